// MemoryEnvironment: a file tree and a bash-compatible shell inside the core.

import { attachTo } from "./environment.js";
import { EnvironmentError } from "./errors.js";
import { snakeCase } from "./names.js";
import { Runtime } from "./runtime.js";

/**
 * @typedef {Record<string, string | Uint8Array>} Files path → content; relative
 *   paths start at the working directory
 * @typedef {object} MemoryOptions
 * @property {Files} [files] what is there at the start
 * @property {string} [workingDirectory] default `/workspace`
 * @property {number} [utcOffsetMinutes] default: the machine's
 * @property {{totalBytes?: number, fileBytes?: number, entries?: number, pathBytes?: number,
 *   outputBytes?: number, workBound?: number, idleShells?: number}} [limits]
 * @property {Record<string, Program>} [programs] lent to the shell, by name
 *
 * @typedef {object} Snapshot a remembered state; of use to its environment only
 * @property {() => void} free gives its memory back
 *
 * @typedef {(call: {args: string[], env: Record<string, string>, cwd: string,
 *   stdin: Uint8Array, changes: FileChange[], signal: AbortSignal}) =>
 *   Promise<{exitCode: number, stdout?: Uint8Array | string, stderr?: Uint8Array | string,
 *   changes?: FileChange[]}>} Program
 * @typedef {{path: string, type: "file" | "directory" | "removed", content?: Uint8Array | string}} FileChange
 */

/** Used by several sessions at once if you like: they share the files. */
export class MemoryEnvironment {
  #runtime;
  #number;

  /** @param {MemoryOptions} [options] @returns {Promise<MemoryEnvironment>} */
  static async create({ files = {}, programs = {}, limits = {}, ...options } = {}) {
    const runtime = await Runtime.create();
    const wanted = snakeCase({
      utcOffsetMinutes: -new Date().getTimezoneOffset(),
      ...options,
      limits: snakeCase(limits),
      programs: Object.keys(programs),
    });
    const number = runtime.callSandbox((core) => core.addSandbox(wanted));
    runtime.environments.set(number, { programs: new Map(Object.entries(programs)) });
    const environment = new MemoryEnvironment(runtime, number);
    await environment.importFiles(files);
    return environment;
  }

  /** @private use `MemoryEnvironment.create` */
  constructor(runtime, number) {
    this.#runtime = runtime;
    this.#number = number;
    attachTo(this, { runtime, number });
  }

  /**
   * Runs a command from pristine shell state, like `bash -c`. An abort gives a
   * result with `cancelled: true`.
   * @param {string} command
   * @param {{timeoutMs?: number, cwd?: string, env?: Record<string, string>, signal?: AbortSignal,
   *   onOutput?: (stream: "stdout" | "stderr", data: Uint8Array) => void}} [options]
   * @returns {Promise<{exitCode: number, stdout: string, stderr: string, timedOut: boolean,
   *   cancelled: boolean, durationMs: number}>} `durationMs` is virtual time
   */
  async exec(command, { timeoutMs = 600_000, cwd, env = {}, signal, onOutput } = {}) {
    const output = { stdout: decoder(), stderr: decoder() };
    const request = { command, timeout_ms: timeoutMs, working_dir: cwd ?? null, env };
    const status = await this.#runtime.job((core) => core.startExec(this.#number, request), {
      signal,
      onOutput: (stream, data) => {
        output[stream].push(data);
        onOutput?.(stream, data);
      },
    });
    return {
      exitCode: status.exit_code,
      stdout: output.stdout.end(),
      stderr: output.stderr.end(),
      timedOut: status.timed_out,
      cancelled: status.cancelled,
      durationMs: status.duration_ms,
    };
  }

  /** @param {string} path @returns {Promise<Uint8Array>} */
  async readBytes(path) {
    return this.#call({ call: "read", path, max_bytes: Number.MAX_SAFE_INTEGER });
  }

  /** Invalid UTF-8 becomes U+FFFD. @param {string} path @returns {Promise<string>} */
  async readText(path) {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.readBytes(path));
  }

  /** Replaces or creates a file, with its parents. @param {string} path @param {string | Uint8Array} content */
  async write(path, content) {
    await this.#call({ call: "write", path }, toBytes(content));
  }

  /** @param {string} path @returns {Promise<{isDir: boolean, size: number, modifiedMs?: number}>} */
  async stat(path) {
    const { value } = await this.#call({ call: "stat", path });
    return { isDir: value.is_dir, size: value.size, modifiedMs: value.modified_ms ?? undefined };
  }

  /** @param {string} path @returns {Promise<boolean>} */
  async exists(path) {
    try {
      await this.stat(path);
      return true;
    } catch (error) {
      if (error.kind === "not_found") return false;
      throw error;
    }
  }

  /**
   * Entries below a directory, sorted by path, which is relative to it.
   * @param {string} [path] @param {{depth?: number}} [options] depth 1: the directory itself
   * @returns {Promise<{path: string, isDir: boolean, size: number | undefined, modifiedMs: number | undefined}[]>}
   */
  async list(path = ".", { depth = 1 } = {}) {
    const { value } = await this.#call({ call: "list", path, depth });
    return value.entries.map((entry) => ({
      path: entry.path,
      isDir: entry.is_dir,
      size: entry.size ?? undefined,
      modifiedMs: entry.modified_ms ?? undefined,
    }));
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

  /** Writes files below the working directory, all or none. @param {Files} files */
  async importFiles(files) {
    const paths = Object.keys(files);
    if (paths.length === 0) return;
    const contents = paths.map((path) => toBytes(files[path]));
    this.#runtime.callSandbox((core) => core.importFiles(this.#number, paths, contents));
  }

  /** Unpacks a tar archive below the working directory, all or nothing. @param {Uint8Array} archive */
  async importTar(archive) {
    if (!(archive instanceof Uint8Array)) {
      throw new EnvironmentError("invalid_input", "importTar takes the archive as a Uint8Array");
    }
    this.#runtime.callSandbox((core) => core.importTar(this.#number, archive));
  }

  /** The working directory as a tar archive. @returns {Promise<Uint8Array>} */
  async exportTar() {
    return this.#runtime.callSandbox((core) => core.exportTar(this.#number));
  }

  /** Remembers files, clock and randomness, in constant time. @returns {Promise<Snapshot>} */
  async snapshot() {
    return this.#runtime.callSandbox((core) => core.snapshot(this.#number));
  }

  /** Goes back to a snapshot of this environment, in constant time. @param {Snapshot} snapshot */
  async restore(snapshot) {
    this.#runtime.callSandbox((core) => core.restore(this.#number, snapshot));
  }

  /**
   * What changed since a snapshot, sorted by path.
   * @param {Snapshot} snapshot
   * @returns {Promise<{path: string, change: "added" | "changed" | "removed"}[]>}
   */
  async changesSince(snapshot) {
    return this.#runtime.callSandbox((core) => core.changesSince(this.#number, snapshot));
  }

  /** Gives the memory back. Sessions in it are over. */
  async dispose() {
    this.#runtime.free();
  }

  #call(call, content) {
    return this.#runtime.job((core) => core.startCall(this.#number, call, content));
  }
}

function toBytes(content) {
  if (content instanceof Uint8Array) return content;
  if (typeof content === "string") return new TextEncoder().encode(content);
  if (content instanceof ArrayBuffer) return new Uint8Array(content);
  throw new TypeError("the content of a file must be a string or a Uint8Array");
}

/** Joins pieces of UTF-8 that are cut anywhere. */
function decoder() {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  return {
    push: (data) => void (text += decoder.decode(data, { stream: true })),
    end: () => text + decoder.decode(),
  };
}
