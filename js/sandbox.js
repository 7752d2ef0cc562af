// MemoryEnvironment: a file tree and a bash-compatible shell inside the core.

import { Budget, exportHandle, importFileList, importHandle, importZip, kindOf, placing, tarBytes } from "./archive.js";
import { guardSandbox } from "./arguments.js";
import { attachTo } from "./environment.js";
import { EnvironmentError } from "./errors.js";
import { snakeCase } from "./names.js";
import { quiet } from "./quiet.js";
import { Runtime } from "./runtime.js";
import { Shell } from "./shell.js";
import { packZip } from "./zip.js";

/**
 * @typedef {Record<string, string | Uint8Array>} Files path → content; relative
 *   paths start at the working directory
 * @typedef {MemorySettings & import("./environment.js").Wrapping} MemoryOptions
 * @typedef {object} MemorySettings
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
 * @typedef {(call: ProgramCall) => Promise<ProgramResult>} Program what it
 *   throws is exit code 126 and a sentence on standard error; so is a result
 *   that is none
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
 * @property {number} [exitCode] 0 to 255; only `missing` comes without
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
 * @typedef {import("./archive.js").ImportOptions} ImportOptions
 * @typedef {Uint8Array | ArrayBuffer | Blob} Archive
 */

/** Environments of this realm, so that the states of their files have names of their own. */
let lineages = 0;
/** A worker that replaces another must not name them like that one. Edge isolates draw nothing at their start. */
let realm;

/** Used by several sessions at once if you like: they share the files. */
export class MemoryEnvironment {
  #runtime;
  #number;
  #workingDirectory;
  #readOnly;
  /** Those that were taken of it. */
  #snapshots = new WeakSet();

  /** @param {MemoryOptions} [options] @returns {Promise<MemoryEnvironment>} */
  static async create({ files = {}, programs = {}, limits = {}, readOnly, log, ...options } = {}) {
    const runtime = await Runtime.create();
    const wanted = snakeCase({
      utcOffsetMinutes: -new Date().getTimezoneOffset(),
      ...options,
      limits: snakeCase(limits),
      programs: Object.keys(programs),
    });
    const number = runtime.callSandbox((core) => core.addSandbox(wanted));
    lineages += 1;
    realm ??= globalThis.crypto.getRandomValues(new Uint32Array(2)).join("-");
    runtime.environments.set(number, { programs: new Map(Object.entries(programs)), lineage: `${realm}-${lineages}` });
    const environment = new MemoryEnvironment(runtime, number);
    environment.#workingDirectory = runtime.callSandbox((core) => core.workingDirectory(number));
    environment.#readOnly = readOnly;
    await environment.importFiles(files);
    runtime.wrap(number, { readOnly, log });
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

  /**
   * Writes files below the working directory, all or none.
   * @param {Files | Iterable<File>} files a list of `File`s, as an input or a
   *   drop gives them, keeps its folders
   * @param {ImportOptions} [options] for a list
   */
  async importFiles(files, options) {
    if (typeof files?.[Symbol.iterator] === "function") {
      return this.#import(options, (sink) => importFileList(files, sink));
    }
    const paths = Object.keys(files);
    if (paths.length === 0) return;
    const contents = paths.map((path) => toBytes(files[path]));
    this.#runtime.callSandbox((core) => core.importFiles(this.#number, paths, contents));
  }

  /**
   * Unpacks a tar archive, plain or packed with gzip, below the working
   * directory, all or nothing.
   * @param {Archive} archive @param {ImportOptions} [options]
   */
  async importTar(archive, options) {
    const bytes = await tarBytes(archive, this.#budget(options), options);
    this.#runtime.callSandbox((core) => core.importTar(this.#number, bytes));
  }

  /**
   * Unpacks a zip archive below the working directory, all or nothing. A `Blob`
   * is read piece by piece.
   * @param {Archive} archive @param {ImportOptions} [options]
   */
  async importZip(archive, options) {
    await this.#import(options, (sink) => importZip(archive, sink));
  }

  /** `importZip` or `importTar`, whatever the archive is. @param {Archive} archive @param {ImportOptions} [options] */
  async importArchive(archive, options) {
    const kind = await kindOf(archive);
    if (!kind) throw new EnvironmentError("invalid_input", "the archive is neither a zip nor a tar file, or is damaged");
    return kind === "zip" ? this.importZip(archive, options) : this.importTar(archive, options);
  }

  /**
   * Copies a directory that the user has opened into the working directory, all
   * or nothing.
   * @param {FileSystemDirectoryHandle} handle @param {ImportOptions} [options]
   */
  async importDirectory(handle, options) {
    await this.#import(options, (sink) => importHandle(handle, sink));
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
  async program(name, program) {
    this.#runtime.callSandbox((core) => core.lendProgram(this.#number, name));
    this.#runtime.environments.get(this.#number).programs.set(name, program);
  }

  /** The working directory as a zip archive. @returns {Promise<Uint8Array>} */
  async exportZip() {
    return this.#export((entries, read) => packZip(entries, read));
  }

  /**
   * Copies the working directory into one that the user has opened. Files that
   * are only there stay; links are left out, because handles cannot make them.
   * @param {FileSystemDirectoryHandle} handle
   * @returns {Promise<{files: number, skipped: string[]}>} `skipped`: paths of links
   */
  async exportDirectory(handle) {
    return this.#export((entries, read) => exportHandle(entries, read, handle));
  }

  /**
   * Opens a shell for a terminal widget, over the same files: see `Shell`.
   * @param {import("./shell.js").ShellOptions} options
   * @returns {Promise<Shell>}
   */
  async openShell(options) {
    if (this.#readOnly === true) throw new EnvironmentError("read_only", "commands are disabled in read-only mode");
    return new Shell(this.#runtime, this.#number, this, options);
  }

  /** Remembers files, clock and randomness, in constant time. @returns {Promise<Snapshot>} */
  async snapshot() {
    const snapshot = this.#runtime.callSandbox((core) => core.snapshot(this.#number));
    // Given back once, however often it is asked for.
    const free = snapshot.free.bind(snapshot);
    snapshot.free = () => {
      if (snapshot.__wbg_ptr !== 0) free();
    };
    this.#snapshots.add(snapshot);
    return snapshot;
  }

  /**
   * Goes back to a snapshot of this environment, in constant time. That of
   * another one is refused: with it would come that one's limits, clock and
   * randomness; `replaceTree(await other.exportTree())` takes its files alone.
   * @param {Snapshot} snapshot
   */
  async restore(snapshot) {
    this.#own(snapshot);
    this.#runtime.callSandbox((core) => core.restore(this.#number, snapshot));
  }

  /**
   * What changed since a snapshot, sorted by path.
   * @param {Snapshot} snapshot
   * @returns {Promise<{path: string, change: "added" | "changed" | "removed"}[]>}
   */
  async changesSince(snapshot) {
    this.#own(snapshot);
    return this.#runtime.callSandbox((core) => core.changesSince(this.#number, snapshot));
  }

  /** All files as one tar archive, names relative to the root; see `replaceTree`. @returns {Promise<Uint8Array>} */
  async exportTree() {
    return withHandle(await this.snapshot(), (snapshot) => snapshot.exportTar("/"));
  }

  /** Replaces all files by those of `exportTree`. @param {Uint8Array} archive */
  async replaceTree(archive) {
    this.#runtime.callSandbox((core) => core.replaceTree(this.#number, archive));
  }

  /** Applies what `deltaSince` of a snapshot gave. @param {{archive: Uint8Array, removed: string[]}} delta */
  async applyDelta({ archive, removed }) {
    this.#runtime.callSandbox((core) => core.applyDelta(this.#number, archive, removed));
  }

  /**
   * Calls `callback` after anything may have happened in the sandbox; returns
   * what ends that.
   * @param {() => void} callback @returns {() => void}
   */
  onActivity(callback) {
    const told = quiet(callback);
    this.#runtime.watchers.add(told);
    return () => void this.#runtime.watchers.delete(told);
  }

  /** Gives the memory back. Sessions in it are over. */
  async dispose() {
    this.#runtime.free();
  }

  /** Refuses a snapshot of another environment, and one that was freed: the core would not survive it. */
  #own(snapshot) {
    if (!this.#snapshots.has(snapshot)) {
      throw new EnvironmentError("invalid_input", "the snapshot is not one of this environment; to take the files of another, use replaceTree(await other.exportTree())");
    }
    if (snapshot.__wbg_ptr === 0) throw new EnvironmentError("invalid_input", "the snapshot was freed; take another with snapshot()");
  }

  #budget(options) {
    return new Budget(this.#runtime.callSandbox((core) => core.room(this.#number)), options);
  }

  /** Lets `fill` hand over entries, and takes them all at the end. */
  async #import(options, fill) {
    const runtime = this.#runtime;
    const budget = this.#budget(options);
    const handed = runtime.callSandbox((core) => core.beginImport(this.#number));
    const hand = (call) => runtime.call(() => call(handed), EnvironmentError);
    try {
      await fill({
        budget,
        place: placing(options),
        file: (name, content, mode, modifiedMs) => hand((core) => core.addFile(name, content, mode, modifiedMs)),
        directory: (name) => hand((core) => core.addDirectory(name)),
        link: (name, target) => hand((core) => core.addLink(name, target)),
      });
    } catch (error) {
      if (!runtime.failed) handed.free();
      throw error;
    }
    // Takes the handle, whatever comes of it.
    runtime.callSandbox((core) => core.commitImport(this.#number, handed));
  }

  /** Lets `pack` read the working directory as it is now. */
  async #export(pack) {
    return withHandle(await this.snapshot(), (snapshot) => {
      const directory = this.#workingDirectory;
      const prefix = directory === "/" ? "/" : `${directory}/`;
      const ask = (call) => this.#runtime.call(call, EnvironmentError);
      return pack(
        ask(() => snapshot.entries(directory)),
        (path) => ask(() => snapshot.read(prefix + path)),
      );
    });
  }

  #call(call, content) {
    return this.#runtime.job((core) => core.startCall(this.#number, call, content));
  }
}

guardSandbox(MemoryEnvironment);

/** @param {string | Uint8Array | ArrayBuffer} content */
function toBytes(content) {
  if (typeof content === "string") return new TextEncoder().encode(content);
  return content instanceof ArrayBuffer ? new Uint8Array(content) : content;
}

/** Gives the core's memory behind `handle` back once `use` is done. */
async function withHandle(handle, use) {
  try {
    return await use(handle);
  } finally {
    handle.free();
  }
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
