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
 * @typedef {(call: ProgramCall) => Promise<ProgramResult>} Program what it
 *   throws is exit code 126 and a sentence on standard error
 *
 * @typedef {object} ProgramCall
 * @property {string} name as it was lent
 * @property {string[]} args after the name
 * @property {Record<string, string>} env exported variables
 * @property {string} cwd absolute
 * @property {Uint8Array} stdin all of it
 * @property {FileChange[]} changes of the files since the state `since`, sorted
 *   by path; all files when there is no `since`. The contents lie in one buffer.
 * @property {string} [since] the state that an earlier call of this program named
 * @property {string} state what the files are called after `changes`
 * @property {AbortSignal} signal fires at the time limit of the command and when
 *   it is cancelled; what the program answers then still counts
 *
 * @typedef {object} ProgramResult
 * @property {number} [exitCode] only `missing` comes without
 * @property {Uint8Array | string} [stdout]
 * @property {Uint8Array | string} [stderr]
 * @property {FileChange[]} [changes] that the program made, applied in order
 * @property {"kept" | "lost" | "missing"} [files] what it still knows of the
 *   files: `kept`, the default, what it was told and its own changes; `lost`,
 *   nothing, so that the next call tells everything; `missing`, it lacks the
 *   state `since`, has not run, and is to be called again with all files. A
 *   program that keeps no files answers every `since` with `missing`.
 *
 * @typedef {{path: string, type: "file" | "directory" | "removed", content?: Uint8Array | string}} FileChange
 */

/** Environments of this realm, so that the states of their files have names of their own. */
let lineages = 0;

/** Used by several sessions at once if you like: they share the files. */
export class MemoryEnvironment {
  #runtime;
  #number;

  /** @param {MemoryOptions} [options] */
  static async create({ files = {}, programs = {}, limits = {}, ...options } = {}) {
    const runtime = await Runtime.create();
    const wanted = snakeCase({
      utcOffsetMinutes: -new Date().getTimezoneOffset(),
      ...options,
      limits: snakeCase(limits),
      programs: Object.keys(programs),
    });
    const number = runtime.callSandbox((core) => core.addSandbox(wanted));
    lineages += 1;
    runtime.environments.set(number, { programs: new Map(Object.entries(programs)), lineage: lineages });
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

  /**
   * Lends a program to the shell under a name, from now on; the same name again
   * replaces it.
   * @param {string} name such as `python3` @param {Program} program
   */
  program(name, program) {
    if (typeof name !== "string" || !/^[^\s/]+$/.test(name)) {
      throw new EnvironmentError("invalid_input", "the name of a program is one word without a slash");
    }
    if (typeof program !== "function") {
      throw new EnvironmentError("invalid_input", `the program ${name} must be a function`);
    }
    this.#runtime.callSandbox((core) => core.lendProgram(this.#number, name));
    this.#runtime.environments.get(this.#number).programs.set(name, program);
  }

  /** Remembers files, clock and randomness, in constant time. */
  async snapshot() {
    return this.#runtime.callSandbox((core) => core.snapshot(this.#number));
  }

  /** Goes back to a snapshot of this environment, in constant time. */
  async restore(snapshot) {
    this.#runtime.callSandbox((core) => core.restore(this.#number, snapshot));
  }

  /** What changed since a snapshot: `[{path, change}]`, `added`, `changed` or `removed`. */
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
