// MemoryEnvironment, in the page: the worker has the real one.

import { replaceContent } from "../../archive/file-handle.js";
import { asyncDispose } from "../../platform/disposable.js";
import { collected } from "../../platform/finalization.js";
import { guardSandbox, ours } from "../../shared/arguments.js";
import { hear, quiet } from "../../shared/notification.js";
import { pack } from "../packed-files.js";
import { oneWay } from "../rpc.js";
import { connection } from "./connection.js";
import { customNumber } from "./custom-environment.js";
import { Sandbox } from "./sandbox.js";
import { Shell } from "./shell.js";
import { Snapshot, remoteOf } from "./snapshot.js";

/** @type {WeakMap<MemoryEnvironment, Sandbox>} */
const sandboxes = new WeakMap();

/**
 * A sandbox that is in the worker. Its methods are those of `MemoryEnvironment` in
 * ../../environment/memory-environment.js, which documents them.
 */
export class MemoryEnvironment {
  /** @param {import("../../environment/memory-environment.js").MemoryOptions} [options] */
  static async create(options = {}) {
    const environment = new MemoryEnvironment();
    ours(environment);
    const sandbox = new Sandbox(options);
    sandboxes.set(environment, sandbox);
    await sandbox.ready();
    collected(environment, leaving(sandbox));
    return environment;
  }

  async exec(command, { signal, onOutput, ...options } = {}) {
    signal?.throwIfAborted();
    // A callback that throws ends its command, as it does without a worker.
    const stop = new AbortController();
    let failed = false;
    let failure;
    const hearing = new Set();
    const fail = (error) => {
      if (failed) return;
      failed = true;
      failure = error;
      stop.abort();
    };
    const output = oneWay((...piece) => {
      if (failed) return;
      try {
        hear(hearing, onOutput(...piece), fail);
      } catch (error) {
        fail(error);
      }
    });
    let giveUp;
    const givenUp = new Promise((resolve) => (giveUp = resolve));
    const abort = () => {
      connection.hurry();
      stop.abort(signal.reason);
      giveUp();
    };
    signal?.addEventListener("abort", abort, { once: true });
    const asked = { ...options, signal: stop.signal, ...(onOutput && { onOutput: output }) };
    try {
      const result = await sandboxes.get(this).call("exec", [command, asked], { scope: undefined });
      if (!result.timedOut) await Promise.race([Promise.all(hearing), givenUp]);
      if (failed) throw failure;
      return result;
    } catch (error) {
      throw failed ? failure : error;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  /** @param {string} path @returns {Promise<Uint8Array>} */
  async readBytes(path) {
    return this.#call("readBytes", path);
  }

  /** @param {string} path @returns {Promise<string>} */
  async readText(path) {
    return this.#call("readText", path);
  }

  /** @param {string} path @param {string | Uint8Array} content */
  async write(path, content) {
    await this.#call("write", path, content);
  }

  /** @param {string} path @returns {Promise<import("../../environment/custom-environment.js").Stat>} */
  async stat(path) {
    return this.#call("stat", path);
  }

  /** @param {string} path @returns {Promise<boolean>} */
  async exists(path) {
    return this.#call("exists", path);
  }

  /** @param {string} [path] @param {{depth?: number}} [options] */
  async list(path, options) {
    return this.#call("list", path, options);
  }

  /** @param {string} path */
  async remove(path) {
    await this.#call("remove", path);
  }

  /** @param {string} from @param {string} to */
  async rename(from, to) {
    await this.#call("rename", from, to);
  }

  /** @param {string} path */
  async makeDir(path) {
    await this.#call("makeDir", path);
  }

  async importTar(archive, options) {
    await callWithArchive(sandboxes.get(this), "importTar", archive, options);
  }

  async importZip(archive, options) {
    await callWithArchive(sandboxes.get(this), "importZip", archive, options);
  }

  async importArchive(archive, options) {
    await callWithArchive(sandboxes.get(this), "importArchive", archive, options);
  }

  async importFiles(files, options) {
    await sandboxes.get(this).callRoot("importFiles", pack(files), options);
  }

  async importDirectory(handle, options) {
    const sandbox = sandboxes.get(this);
    if (isNative(handle)) await sandbox.call("importDirectory", [handle, options]);
    else await sandbox.callRoot("importDirectory", sourceOf(handle), options);
  }

  async exportDirectory(handle) {
    const sandbox = sandboxes.get(this);
    return isNative(handle) ? sandbox.call("exportDirectory", [handle]) : sandbox.callRoot("exportDirectory", targetOf(handle));
  }

  /** @returns {Promise<Uint8Array>} */
  async exportTar() {
    return this.#call("exportTar");
  }

  /** @returns {Promise<Uint8Array>} */
  async exportZip() {
    return this.#call("exportZip");
  }

  /** @returns {Promise<Snapshot>} */
  async snapshot() {
    return new Snapshot(await this.#call("snapshot"));
  }

  /** @param {Snapshot} snapshot */
  async restore(snapshot) {
    await this.#call("restore", remoteOf(snapshot));
  }

  /** @param {Snapshot} snapshot */
  async changesSince(snapshot) {
    return this.#call("changesSince", remoteOf(snapshot));
  }

  /** @returns {Promise<Uint8Array>} */
  async exportTree() {
    return this.#call("exportTree");
  }

  /** @param {Uint8Array} archive */
  async replaceTree(archive) {
    await this.#call("replaceTree", archive);
  }

  /** @param {{archive: Uint8Array, removed: string[]}} delta */
  async applyDelta(delta) {
    await this.#call("applyDelta", delta);
  }

  /** @returns {Promise<Uint8Array>} */
  async recording() {
    return this.#call("recording");
  }

  async openShell({ onData, ...options }) {
    const asked = { ...options, onData: oneWay(quiet(onData)) };
    return new Shell(await sandboxes.get(this).call("openShell", [asked]));
  }

  async program(name, program) {
    await sandboxes.get(this).lend(name, program);
  }

  onActivity(callback) {
    const { watchers } = sandboxes.get(this);
    const told = quiet(callback);
    watchers.add(told);
    return () => void watchers.delete(told);
  }

  async dispose() {
    await sandboxes.get(this).dispose();
  }

  async [asyncDispose]() {
    await this.dispose();
  }

  #call(name, ...args) {
    return sandboxes.get(this).call(name, args);
  }
}

guardSandbox(MemoryEnvironment);

/** Not made where the environment is in sight: a function keeps all that is. @param {Sandbox} sandbox */
const leaving = (sandbox) => () => sandbox.leave();

/** Bytes are those of this moment; a blob of Node's that is a file's cannot be sent to a worker, its bytes can. */
async function callWithArchive(sandbox, method, archive, options) {
  const given = archive instanceof Blob && !isSendable(archive) ? await archive.arrayBuffer() : archive;
  await sandbox.call(method, [given, options]);
}

function isSendable(blob) {
  try {
    return Boolean(structuredClone(blob));
  } catch {
    return false;
  }
}

/** Whether a handle is the browser's, which can be sent to a worker. */
function isNative(handle) {
  const { FileSystemDirectoryHandle: Native } = globalThis;
  return Native !== undefined && handle instanceof Native;
}

/**
 * A directory of the page's own making, as two functions that a worker can
 * call. Paths are lists of names.
 */
function sourceOf(handle) {
  const handles = new Map([["[]", handle]]);
  const at = (path) => handles.get(JSON.stringify(path));
  return {
    name: handle.name,
    async list(path) {
      const children = [];
      for await (const [name, child] of at(path).entries()) {
        handles.set(JSON.stringify([...path, name]), child);
        children.push([name, child.kind]);
      }
      return children;
    },
    async file(path) {
      const file = await at(path).getFile();
      return file instanceof Blob ? file : new File([await file.arrayBuffer()], path.at(-1), { lastModified: file.lastModified });
    },
  };
}

/** The same for what is to be written: parents are made before what they hold. */
function targetOf(handle) {
  const handles = new Map([["[]", handle]]);
  const parent = (path) => handles.get(JSON.stringify(path.slice(0, -1)));
  return {
    async makeDirectory(path) {
      handles.set(JSON.stringify(path), await parent(path).getDirectoryHandle(path.at(-1), { create: true }));
    },
    async write(path, content) {
      await replaceContent(await parent(path).getFileHandle(path.at(-1), { create: true }), [content]);
    },
  };
}

/** As in ../../environment/custom-environment.js. @param {object} env */
export function againOf(env) {
  const sandbox = sandboxes.get(env);
  return sandbox && ((options) => MemoryEnvironment.create({ ...sandbox.wrapping, ...options }));
}

/**
 * What the worker's `createSession` needs to find the environment.
 * @param {object | undefined} env @param {import("../rpc.js").Rpc} rpc
 */
export async function environmentArgument(env, rpc) {
  if (env === undefined || env === null) return {};
  const sandbox = sandboxes.get(env);
  return sandbox ? { env: (await sandbox.ready()).remote } : { custom: await customNumber(env, rpc) };
}
