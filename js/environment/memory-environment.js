// MemoryEnvironment: a file tree and a bash-compatible shell inside the core.

import { budgetOf, exportHandle, importContents, importFileList, importHandle, importInto, importZip, kindOf, tarBytes } from "../archive/import-export.js";
import { packZip } from "../archive/zip.js";
import { bytesOf, entriesOf, exec, exists, statOf, textOf, toBytes } from "../core/jobs.js";
import { recordingOf } from "../core/recording.js";
import { Runtime } from "../core/runtime.js";
import { asyncDispose } from "../platform/disposable.js";
import { collected } from "../platform/finalization.js";
import { guardSandbox, ours } from "../shared/arguments.js";
import { EnvironmentError } from "../shared/errors.js";
import { snakeCase } from "../shared/names.js";
import { quiet } from "../shared/notification.js";
import { attachTo } from "./custom-environment.js";
import { Programs } from "./program.js";
import { Shell } from "./shell.js";
import { Snapshots, using } from "./snapshot.js";

/** @import { AbortSignal, Blob, File, FileSystemDirectoryHandle } from "../platform.js" */

/**
 * @typedef {Record<string, string | Uint8Array>} Files path → content; relative
 *   paths start at the working directory
 * @typedef {MemorySettings & import("./custom-environment.js").Wrapping} MemoryOptions
 * @typedef {object} MemorySettings
 * @property {Files | Iterable<File>} [files] what is there at the start
 * @property {string} [workingDirectory] absolute, default `/workspace`
 * @property {number} [utcOffsetMinutes] of the date in the prompt; default: the
 *   machine's. The sandbox's own clock shows UTC
 * @property {{totalBytes?: number, fileBytes?: number, entries?: number, pathBytes?: number,
 *   outputBytes?: number, workBound?: number, idleShells?: number}} [limits]
 * @property {Record<string, Program>} [programs] lent to the shell, by name
 * @property {Uint8Array | ArrayBuffer | Blob} [saved] what `save()` of a session gave: the sandbox begins as that
 *   session's was, with its directory, and its limits where none are given
 * @property {import("../core/recording.js").Record} [record] writes the log of all that happens in the environment and its
 *   sessions: `true` keeps it for `recording()`, a function gets it piece by piece
 *
 * @typedef {import("./program.js").Program} Program
 * @typedef {import("./snapshot.js").Snapshot} Snapshot
 * @typedef {import("../archive/import-export.js").ImportOptions} ImportOptions
 * @typedef {Uint8Array | ArrayBuffer | Blob} Archive
 */

/** Work without a pause that a command may do where it holds up the page or the process: 1 to 2.5 s. */
const WORK_BOUND = 1_600_000;

/** @type {(runtime: Runtime, number: number, programs: Record<string, Program>) => MemoryEnvironment} */
let adopt;

/** Used by several sessions at once if you like: they share the files. */
export class MemoryEnvironment {
  #runtime;
  #number;
  #workingDirectory;
  #readOnly;
  #snapshots;

  /** @param {MemoryOptions} [options] @returns {Promise<MemoryEnvironment>} */
  static async create({ files = {}, programs = {}, limits = {}, readOnly, log, record, saved, ...options } = {}) {
    const begun = saved && (await bytesOf(saved));
    const runtime = await Runtime.create(record);
    const lent = new Programs(programs);
    const wanted = snakeCase({ utcOffsetMinutes: -new Date().getTimezoneOffset(), ...options, limits: snakeCase({ workBound: WORK_BOUND, ...limits }) });
    try {
      if (begun) runtime.expect(begun.length);
      const number = runtime.add({
        programs: lent,
        add(core, rescued) {
          const settings = { ...wanted, programs: lent.names() };
          const number = begun ? core.addSaved(begun, settings) : core.addSandbox(settings);
          if (rescued) core.restore(number, rescued);
          rescued?.free();
          return number;
        },
        rescue: (core) => core.rescue(number),
      });
      const again = (more) => MemoryEnvironment.create({ programs: lent.all(), readOnly, log, ...more });
      const environment = new MemoryEnvironment(runtime, number, again);
      environment.#workingDirectory = runtime.callSandbox((core) => core.workingDirectory(number));
      environment.#readOnly = readOnly;
      await environment.importFiles(files);
      runtime.wrap(number, { readOnly, log });
      return environment;
    } catch (error) {
      // Nobody has it, so nobody could give its memory back.
      runtime.free();
      throw error;
    }
  }

  static {
    adopt = (runtime, number, programs) => {
      const again = (more) => MemoryEnvironment.create({ programs, ...more });
      runtime.environments.set(number, {
        programs: new Programs(programs),
        add() {
          throw new Error("a fork has no settings to begin anew with");
        },
      });
      const environment = new MemoryEnvironment(runtime, number, again);
      environment.#workingDirectory = runtime.callSandbox((core) => core.workingDirectory(number));
      return environment;
    };
  }

  /** @private use `MemoryEnvironment.create` */
  constructor(runtime, number, again) {
    ours(this);
    this.#runtime = runtime;
    this.#number = number;
    this.#snapshots = new Snapshots(runtime, number, this);
    attachTo(this, { runtime, number }, again);
    collected(this, leaving(runtime));
  }

  /**
   * Runs a command from pristine shell state, like `bash -c`. An abort gives a
   * result with `cancelled: true`; a signal that has fired before is what it rejects with.
   * @param {string} command
   * @param {{timeoutMs?: number, cwd?: string, env?: Record<string, string>, signal?: AbortSignal,
   *   onOutput?: (stream: "stdout" | "stderr", data: Uint8Array) => unknown}} [options] the result
   *   waits for an `onOutput` that is async, unless the command timed out or was aborted; one that throws or rejects ends the command
   * @returns {Promise<{exitCode: number, stdout: string, stderr: string, timedOut: boolean,
   *   cancelled: boolean, durationMs: number}>} `durationMs` is virtual time
   */
  async exec(command, options = {}) {
    const start = (request, heard) => this.#runtime.job((core) => core.startExec(this.#number, request), heard);
    return exec(start, command, 600_000, options);
  }

  /** @param {string} path @returns {Promise<Uint8Array>} */
  async readBytes(path) {
    return this.#call({ call: "read", path, max_bytes: Number.MAX_SAFE_INTEGER });
  }

  /** Invalid UTF-8 becomes U+FFFD. @param {string} path @returns {Promise<string>} */
  async readText(path) {
    return textOf(await this.readBytes(path));
  }

  /** Replaces or creates a file, with its parents. @param {string} path @param {string | Uint8Array} content */
  async write(path, content) {
    const bytes = toBytes(content);
    this.#runtime.expect(bytes.length);
    await this.#call({ call: "write", path }, bytes);
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

  /**
   * Writes files below the working directory, all or none.
   * @param {Files | Iterable<File>} files a list of `File`s, as an input or a
   *   drop gives them, keeps its folders
   * @param {ImportOptions} [options]
   */
  async importFiles(files, options = {}) {
    if (typeof files?.[Symbol.iterator] === "function") {
      return this.#import(options, (sink) => importFileList(files, sink));
    }
    const paths = Object.keys(files);
    const contents = paths.map((path) => toBytes(files[path]));
    if (Object.values(options).some((option) => option !== undefined)) {
      return this.#import(options, (sink) => importContents(paths, contents, sink));
    }
    this.#runtime.expect(contents.reduce((sum, { length }) => sum + length, 0));
    this.#runtime.callSandbox((core) => core.importFiles(this.#number, paths, contents));
  }

  /**
   * Unpacks a tar archive, plain or packed with gzip, below the working
   * directory, all or nothing.
   * @param {Archive} archive @param {ImportOptions} [options]
   */
  async importTar(archive, options) {
    const bytes = await tarBytes(archive, budgetOf(this.#runtime, this.#number, options), options);
    this.#runtime.expect(bytes.length);
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
    this.#runtime.environments.get(this.#number).programs.lend(name, program);
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
    return this.#snapshots.take();
  }

  /**
   * Goes back to a snapshot of this environment, in constant time. That of
   * another one is refused: with it would come that one's limits, clock and
   * randomness; `replaceTree(await other.exportTree())` takes its files alone.
   * @param {Snapshot} snapshot
   */
  async restore(snapshot) {
    this.#snapshots.check(snapshot);
    this.#runtime.callSandbox((core) => core.restore(this.#number, snapshot));
  }

  /**
   * What changed since a snapshot, sorted by path.
   * @param {Snapshot} snapshot
   * @returns {Promise<{path: string, change: "added" | "changed" | "removed"}[]>}
   */
  async changesSince(snapshot) {
    this.#snapshots.check(snapshot);
    return this.#runtime.callSandbox((core) => core.changesSince(this.#number, snapshot));
  }

  /** All files as one tar archive, names relative to the root; see `replaceTree`. @returns {Promise<Uint8Array>} */
  async exportTree() {
    return using(await this.snapshot(), (snapshot) => snapshot.exportTar("/"));
  }

  /** Replaces all files by those of `exportTree`. @param {Uint8Array} archive */
  async replaceTree(archive) {
    this.#runtime.expect(archive.length);
    this.#runtime.callSandbox((core) => core.replaceTree(this.#number, archive));
  }

  /** Applies what `deltaSince` of a snapshot gave. @param {{archive: Uint8Array, removed: string[]}} delta */
  async applyDelta({ archive, removed }) {
    this.#runtime.expect(archive.length);
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

  /**
   * The log so far, of an environment that was made with `record: true`; whole once that is
   * disposed of. `replay`, `fork` and `hermitcrab replay FILE` read it.
   * @returns {Promise<Uint8Array>}
   */
  async recording() {
    return recordingOf(this.#runtime);
  }

  /** Gives the memory back. Sessions in it are over. */
  async dispose() {
    await this.#runtime.free();
  }

  /** `dispose()`, for `await using`. @returns {Promise<void>} */
  async [asyncDispose]() {
    await this.dispose();
  }

  /** @param {ImportOptions} options @param {(sink: import("../archive/import-export.js").Sink) => Promise<void>} fill */
  #import(options, fill) {
    return importInto(this.#runtime, this.#number, options, fill);
  }

  /** Lets `pack` read the working directory as it is now. */
  async #export(pack) {
    return using(await this.snapshot(), (snapshot) => {
      const directory = this.#workingDirectory;
      const prefix = directory === "/" ? "/" : `${directory}/`;
      return pack(snapshot.entries(directory), (path) => snapshot.read(prefix + path));
    });
  }

  #call(call, content) {
    return this.#runtime.job((core) => core.startCall(this.#number, call, content));
  }
}

guardSandbox(MemoryEnvironment);

/**
 * A sandbox of a core that has worked before.
 * @param {Runtime} runtime @param {number} number @param {Record<string, Program>} programs
 */
export const adoptSandbox = (runtime, number, programs) => adopt(runtime, number, programs);

/** Not made where the environment is in sight: a function keeps all that is. @param {Runtime} runtime */
const leaving = (runtime) => () => runtime.leave();
