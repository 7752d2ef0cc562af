// NodeEnvironment: the files and processes of this machine, as this user. It is
// no sandbox: a command may do whatever the user may. Its rules are those of the
// native host (host/src/local).

import { constants, existsSync, realpathSync, statSync } from "node:fs";
import * as fs from "node:fs/promises";
import { release, type } from "node:os";
import { basename, dirname, join, resolve } from "node:path";

import { acceptInEnvironment } from "../shared/arguments.js";
import { EnvironmentError, kindOfCode } from "../shared/errors.js";
import { run } from "./node-processes.js";
import { select } from "./node-variables.js";

/** @import { AbortSignal } from "../platform.js" */

/** More entries than this are cut off a listing. */
const MAX_ENTRIES = 100_000;
/** Links followed before it is a loop, as on Linux. */
const MAX_LINKS = 40;

/**
 * @typedef {object} NodeOptions
 * @property {string} root the working directory, where relative paths start; it exists
 * @property {"filtered" | "all" | "core" | "none"} [inherit] what commands inherit of this process's
 *   variables: `filtered`, the default, all but what looks like a secret; `core`, what shells and
 *   tools need to be found
 * @property {Record<string, string>} [variables] given to every command, whatever `inherit` is
 * @property {string[]} [secrets] values that no command inherits under any name
 *
 * @typedef {NodeOptions & import("./custom-environment.js").Wrapping} NodeEnvironmentOptions
 */

/**
 * Runs tools on this machine. Commands run under `bash -c`, in a session without
 * a terminal and with an empty standard input; one that is stopped takes all that
 * it started with it. Paths lead anywhere, as commands do: `approval` says what
 * an agent may write and run.
 */
export class NodeEnvironment {
  /** @type {string} */
  workingDirectory;
  /** @type {string} */
  platform;
  /** @type {string} */
  osVersion;
  /** @type {number} */
  utcOffsetMinutes;
  /** @type {boolean | "commands" | undefined} */
  readOnly;
  /** @type {((line: string) => void) | undefined} */
  log;
  #shell = existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
  #variables;

  /** @param {NodeEnvironmentOptions} options */
  constructor(options) {
    acceptInEnvironment("NodeEnvironment", options);
    const { root, inherit = "filtered", variables = {}, secrets = [], readOnly, log } = options;
    if (!["linux", "darwin"].includes(process.platform)) {
      throw new EnvironmentError("unsupported", `NodeEnvironment works on Linux and macOS, not on ${process.platform}; use MemoryEnvironment or an environment of yours`);
    }
    this.workingDirectory = rootOf(root);
    this.platform = process.platform;
    this.osVersion = `${type()} ${release()}`;
    this.utcOffsetMinutes = -new Date().getTimezoneOffset();
    this.readOnly = readOnly;
    this.log = log;
    this.#variables = { ...select(process.env, inherit, secrets.filter((secret) => secret !== "")), ...variables };
  }

  /**
   * @param {string} path @param {{maxBytes?: number}} [options]
   * @returns {Promise<Uint8Array>}
   */
  async read(path, { maxBytes = Infinity } = {}) {
    const tooLarge = () => new EnvironmentError("too_large", `cannot read \`${path}\`: it is larger than ${maxBytes} bytes`);
    return this.#opened(path, async (file, { size }) => {
      if (size > maxBytes) throw tooLarge();
      const content = await file.readFile();
      if (content.length > maxBytes) throw tooLarge();
      return content;
    });
  }

  /**
   * @param {string} path @param {{offset: number, maxBytes: number}} options
   * @returns {Promise<Uint8Array>} fewer bytes only at the end of the file
   */
  async readPart(path, { offset, maxBytes }) {
    return this.#opened(path, async (file, { size }) => {
      const part = Buffer.alloc(Math.max(0, Math.min(maxBytes, size - offset)));
      let filled = 0;
      while (filled < part.length) {
        const { bytesRead } = await file.read(part, filled, part.length - filled, offset + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      return part.subarray(0, filled);
    });
  }

  /** Opens a regular file for `work`. */
  async #opened(path, work) {
    const fail = failing("read", path);
    const target = this.#resolve(path);
    // Looked at first: opening some devices has effects.
    refuseSpecial("read", path, await fs.stat(target).catch(fail));
    // Something else may have taken the name by now; a pipe would block.
    const file = await fs.open(target, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY).catch(fail);
    try {
      const stats = await file.stat();
      refuseSpecial("read", path, stats);
      return await work(file, stats);
    } catch (error) {
      return fail(error);
    } finally {
      await file.close();
    }
  }

  /** Creates parents; the old content survives every failure. @param {string} path @param {Uint8Array | string} content */
  async write(path, content) {
    const fail = failing("write", path);
    const target = this.#resolve(path);
    const stats = await fs.stat(target).catch((error) => (error.code === "ENOENT" ? undefined : fail(error)));
    if (!stats) {
      await fs.mkdir(dirname(target), { recursive: true }).catch(failing("make the directories above", path));
      await fs.writeFile(target, content).catch(fail);
      return;
    }
    refuseSpecial("write", path, stats);
    // Opened to learn whether we may write, which renaming would not ask.
    const file = await fs.open(target, constants.O_WRONLY | constants.O_NONBLOCK).catch(fail);
    try {
      // What belongs to the file itself, other names or another owner, would be lost.
      const isOurs = stats.uid === process.geteuid?.() && stats.nlink === 1;
      if (isOurs && (await replaced(await fs.realpath(target), stats, content))) return;
      const { bytesWritten } = await file.write(typeof content === "string" ? Buffer.from(content) : content, 0, undefined, 0);
      await file.truncate(bytesWritten);
    } catch (error) {
      fail(error);
    } finally {
      await file.close();
    }
  }

  /** Links are followed. @param {string} path @returns {Promise<import("./custom-environment.js").Stat>} */
  async stat(path) {
    const stats = await fs.stat(this.#resolve(path)).catch(failing("look at", path));
    return { isDir: stats.isDirectory(), size: stats.isDirectory() ? 0 : stats.size, modifiedMs: Math.trunc(stats.mtimeMs) };
  }

  /** @param {string} path @returns {Promise<string>} */
  async realPath(path) {
    const target = this.#resolve(path);
    const fail = failing("follow the links of", path);
    return fs.realpath(target).catch((error) => (["ENOENT", "ENOTDIR"].includes(error.code) ? follow(target).catch(fail) : fail(error)));
  }

  /**
   * Links count as files. What cannot be read below the first level is left out.
   * @param {string} path @param {{depth?: number, signal?: AbortSignal}} [options]
   * @returns {Promise<{entries: import("./custom-environment.js").Entry[], truncated: boolean}>}
   */
  async list(path, { depth = 1, signal } = {}) {
    const top = this.#resolve(path);
    const found = [];
    const waiting = [{ directory: top, prefix: "", left: Math.max(depth, 1) }];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const { directory, prefix, left } = next;
      const children = await fs.readdir(directory, { withFileTypes: true }).catch(directory === top ? failing("list", path) : () => []);
      for (const child of children) {
        if (found.length === MAX_ENTRIES || signal?.aborted) return { entries: found, truncated: true };
        const place = join(directory, child.name);
        found.push(await described(place, prefix + child.name, child));
        if (child.isDirectory() && left > 1) waiting.push({ directory: place, prefix: `${prefix}${child.name}/`, left: left - 1 });
      }
    }
    return { entries: found, truncated: false };
  }

  /** A file, a link itself, or a directory with all it holds. @param {string} path */
  async remove(path) {
    const target = this.#resolve(path);
    const fail = failing("remove", path);
    await fs.lstat(target).catch(fail);
    await fs.rm(target, { recursive: true }).catch(fail);
  }

  /** Makes the parents of `to`. @param {string} from @param {string} to */
  async rename(from, to) {
    const [source, target] = [this.#resolve(from), this.#resolve(to)];
    await fs.lstat(source).catch(failing("rename", from));
    await fs.mkdir(dirname(target), { recursive: true }).catch(failing("make the directories above", to));
    await fs.rename(source, target).catch(failing(`rename \`${from}\` to`, to));
  }

  /** With its parents. @param {string} path */
  async makeDir(path) {
    await fs.mkdir(this.#resolve(path), { recursive: true }).catch((error) => {
      if (error.code !== "EEXIST") failing("make directory", path)(error);
      throw new EnvironmentError("not_directory", `cannot make directory \`${path}\`: a file has that name`);
    });
  }

  /**
   * @param {string} command
   * @param {Partial<import("./custom-environment.js").ExecOptions>} [options]
   * @returns {Promise<import("./custom-environment.js").ExecResult>}
   */
  async exec(command, { timeoutMs = 600_000, cwd = "", env = {}, signal, onOutput = () => {} } = {}) {
    const directory = this.#resolve(cwd);
    // Told apart here: the shell and the directory fail with the same error.
    const stats = await fs.stat(directory).catch(() => undefined);
    if (!stats?.isDirectory()) throw new EnvironmentError("not_found", `cannot run a command in \`${cwd}\`: no such directory`);
    if (command.includes("\0")) throw new EnvironmentError("invalid_input", "the command holds a NUL byte");
    const options = { cwd: directory, env: { ...this.#variables, ...env }, timeoutMs, signal, onOutput };
    const fail = failing("run", command.split("\n", 1)[0]);
    return run(this.#shell, command, options).catch((error) => {
      if (error.code !== "E2BIG") fail(error);
      throw new EnvironmentError("too_large", `the command is too long for the system (${command.length} characters); write it to a file and run that`);
    });
  }

  /** @param {string} path an empty one is the working directory */
  #resolve(path) {
    if (path.includes("\0")) throw new EnvironmentError("invalid_input", `the path \`${path.replaceAll("\0", "\\0")}\` holds a NUL byte`);
    // Not `resolve` of Node's: that would take `..` out before links are followed.
    return path.startsWith("/") ? path : `${this.workingDirectory}/${path}`;
  }
}

function rootOf(root) {
  try {
    const directory = realpathSync(resolve(root));
    // A directory that may not be entered has no `.`.
    if (statSync(`${directory}/.`).isDirectory()) return directory;
  } catch (error) {
    failing("work in", root)(error);
  }
  throw new EnvironmentError("not_directory", `cannot work in \`${root}\`: it is not a directory`);
}

/** What an error of the system becomes. @param {string} verb @param {string} shown @returns {(error: any) => never} */
const failing = (verb, shown) => (error) => {
  if (error instanceof EnvironmentError) throw error;
  const reason = String(error?.message).replace(/^[A-Z0-9_]+: /, "").replace(/, \w+( '[^]*)?$/, "").replaceAll("\n", " ");
  throw new EnvironmentError(kindOfCode(error?.code) ?? "io", `cannot ${verb} \`${shown}\`: ${reason}`, { cause: error });
};

/** @param {string} verb @param {string} shown @param {import("node:fs").Stats} stats */
function refuseSpecial(verb, shown, stats) {
  if (stats.isFile()) return;
  if (stats.isDirectory()) throw new EnvironmentError("is_directory", `cannot ${verb} \`${shown}\`: it is a directory`);
  const what = stats.isFIFO() ? "a named pipe" : stats.isSocket() ? "a socket" : "a device";
  throw new EnvironmentError("invalid_input", `cannot ${verb} \`${shown}\`: it is ${what}, not a regular file`);
}

/**
 * Has a new file take the place of another; says whether the directory allows it.
 * @param {string} target @param {import("node:fs").Stats} old @param {Uint8Array | string} content
 */
async function replaced(target, old, content) {
  const beside = join(dirname(target), `.${basename(target).slice(0, 200)}.${crypto.randomUUID().slice(0, 8)}`);
  let file;
  try {
    file = await fs.open(beside, "wx", 0o600);
  } catch (error) {
    if (["EACCES", "EPERM", "EROFS"].includes(error.code)) return false;
    throw error;
  }
  try {
    await file.writeFile(content);
    await file.chmod(old.mode & 0o7777);
    await file.close();
    await fs.rename(beside, target);
    return true;
  } catch (error) {
    await file.close().catch(() => {});
    await fs.unlink(beside).catch(() => {});
    if (["EBUSY", "EACCES", "EPERM"].includes(error.code)) return false;
    throw error;
  }
}

/** An entry: of a link the size of what it leads to, none where that is a directory or nothing. */
async function described(place, path, child) {
  const stats = await (child.isSymbolicLink() ? fs.stat(place) : fs.lstat(place)).catch(() => undefined);
  return {
    path,
    isDir: child.isDirectory(),
    size: stats && !stats.isDirectory() ? stats.size : undefined,
    modifiedMs: stats && Math.trunc(stats.mtimeMs),
  };
}

/** Where a path leads that is not there: name by name, as the system does when it makes a file. */
async function follow(path) {
  let done = "/";
  const pending = path.split("/").reverse();
  let links = 0;
  while (pending.length > 0) {
    const name = pending.pop();
    if (name === "" || name === ".") continue;
    if (name === "..") {
      done = dirname(done);
      continue;
    }
    done = join(done, name);
    // Fails for what is no link, and for what is not there.
    const target = await fs.readlink(done).catch((error) => {
      if (error.code === "EACCES") throw error;
    });
    if (target === undefined) continue;
    links += 1;
    if (links > MAX_LINKS) throw Object.assign(new Error("too many symbolic links encountered"), { code: "ELOOP" });
    done = target.startsWith("/") ? "/" : dirname(done);
    pending.push(...target.split("/").reverse());
  }
  return done;
}
