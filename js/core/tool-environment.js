// ToolEnvironment: the environment of a session as a tool of the user's has it,
// while its call runs.

import { guardToolEnvironment, ours } from "../shared/arguments.js";
import { entriesOf, exec, exists, statOf, textOf, toBytes } from "./jobs.js";

/** @import { AbortSignal } from "../platform.js" */

/**
 * What a tool changes there, and the commands that it runs, are under the same
 * policy as those of the model: `readOnly` and `log` of the environment, approval
 * of commands and of writes, limits of time. Whatever is under way ends with the
 * tool's call; later calls reject with kind `not_found`.
 */
export class ToolEnvironment {
  #runtime;
  #effect;

  /** @private a tool gets it as `context.env` */
  constructor(runtime, effect) {
    ours(this);
    this.#runtime = runtime;
    this.#effect = effect;
  }

  /**
   * Runs a command, like `bash -c`.
   * @param {string} command
   * @param {{timeoutMs?: number, cwd?: string, env?: Record<string, string>, signal?: AbortSignal,
   *   onOutput?: (stream: "stdout" | "stderr", data: Uint8Array) => unknown}} [options] without
   *   `timeoutMs` the session's default
   * @returns {Promise<{exitCode: number, stdout: string, stderr: string, timedOut: boolean,
   *   cancelled: boolean, durationMs: number}>}
   */
  async exec(command, options = {}) {
    const start = (request, heard) => this.#runtime.job((core) => core.execForTool(this.#effect, request), heard);
    return exec(start, command, 0, options);
  }

  /** @param {string} path @returns {Promise<Uint8Array>} */
  async readBytes(path) {
    return this.#call({ call: "read", path, max_bytes: Number.MAX_SAFE_INTEGER });
  }

  /** Invalid UTF-8 becomes U+FFFD. @param {string} path @returns {Promise<string>} */
  async readText(path) {
    return textOf(await this.readBytes(path));
  }

  /** Replaces or creates a file, with its parents. @param {string} path @param {string | Uint8Array | ArrayBuffer} content */
  async write(path, content) {
    await this.#call({ call: "write", path }, toBytes(content));
  }

  /** @param {string} path @returns {Promise<{isDir: boolean, size: number, modifiedMs?: number}>} */
  async stat(path) {
    return statOf(await this.#call({ call: "stat", path }));
  }

  /** @param {string} path @returns {Promise<boolean>} */
  async exists(path) {
    return exists(this.stat(path));
  }

  /**
   * Entries below a directory, sorted by path, which is relative to it.
   * @param {string} [path] @param {{depth?: number}} [options] depth 1: the directory itself
   * @returns {Promise<{path: string, isDir: boolean, size: number | undefined, modifiedMs: number | undefined}[]>}
   */
  async list(path = ".", { depth = 1 } = {}) {
    return entriesOf(await this.#call({ call: "list", path, depth }));
  }

  /** A file, or a directory with all it holds. @param {string} path */
  async remove(path) {
    await this.#call({ call: "remove", path });
  }

  /** @param {string} from @param {string} to */
  async rename(from, to) {
    await this.#call({ call: "rename", from, to });
  }

  /** With its parents. @param {string} path */
  async makeDir(path) {
    await this.#call({ call: "make_dir", path });
  }

  #call(call, content) {
    return this.#runtime.job((core) => core.callForTool(this.#effect, call, content));
  }
}

guardToolEnvironment(ToolEnvironment);
