// ToolEnvironment, in the page: the worker has the real one.

import { guardToolEnvironment, ours } from "../../shared/arguments.js";

/**
 * The environment that a tool of the page's has while its call runs. Its methods are those of
 * `ToolEnvironment` in ../../core/tool-environment.js, which documents them.
 */
export class ToolEnvironment {
  #remote;

  /** @param {import("./connection.js").Remote} remote */
  constructor(remote) {
    ours(this);
    this.#remote = remote;
  }

  /** @param {string} command @param {object} [options] @returns {Promise<import("../../environment/custom-environment.js").ExecResult>} */
  async exec(command, options) {
    return this.#remote.call("exec", command, options);
  }

  /** @param {string} path @returns {Promise<Uint8Array>} */
  async readBytes(path) {
    return this.#remote.call("readBytes", path);
  }

  /** @param {string} path @returns {Promise<string>} */
  async readText(path) {
    return this.#remote.call("readText", path);
  }

  /** @param {string} path @param {string | Uint8Array | ArrayBuffer} content */
  async write(path, content) {
    await this.#remote.call("write", path, content);
  }

  /** @param {string} path @returns {Promise<import("../../environment/custom-environment.js").Stat>} */
  async stat(path) {
    return this.#remote.call("stat", path);
  }

  /** @param {string} path @returns {Promise<boolean>} */
  async exists(path) {
    return this.#remote.call("exists", path);
  }

  /** @param {string} [path] @param {{depth?: number}} [options] */
  async list(path, options) {
    return this.#remote.call("list", path, options);
  }

  /** @param {string} path */
  async remove(path) {
    await this.#remote.call("remove", path);
  }

  /** @param {string} from @param {string} to */
  async rename(from, to) {
    await this.#remote.call("rename", from, to);
  }

  /** @param {string} path */
  async makeDir(path) {
    await this.#remote.call("makeDir", path);
  }
}

guardToolEnvironment(ToolEnvironment);
