// Environments, in the page: sandboxes of the worker, and objects of the page's
// that the worker calls.

import { acceptOwn, guardSandbox, guardShell, ours, readInSession } from "../arguments.js";
import { collected, weakly } from "../collected.js";
import { asyncDispose } from "../disposable.js";
import { CoreError, EnvironmentError } from "../errors.js";
import { replaceContent } from "../handle.js";
import { hear, quiet } from "../quiet.js";
import { complete, connection } from "./connection.js";
import { ROOT, oneWay } from "./link.js";
import { Scope } from "./outgoing.js";
import { pack } from "./parcel.js";

/** Methods that an environment of the user's may have. */
const METHODS = [
  ...["read", "write", "stat", "list", "remove", "rename", "makeDir", "exec"],
  ...["readPart", "realPath", "grep", "glob", "initialize", "cleanup"],
];

/** @type {WeakMap<MemoryEnvironment, Sandbox>} */
const sandboxes = new WeakMap();

/** Custom environments that a worker knows. */
const customs = new WeakMap();

/** One sandbox: what it takes to make it again in another worker. */
class Sandbox {
  #number = connection.nextNumber();
  #scope = new Scope();
  #options;
  #log;
  #deltas = [];
  #made;
  #here;
  #disposing;
  /** Calls that have no answer yet. */
  #calls = 0;
  /** Whether nobody has its environment any more. */
  #isLeft = false;
  /** Whether no worker could take it, as without a network. */
  #stranded = false;
  watchers = new Set();
  /** Whether a worker has had it. */
  wasMade = false;

  /** What another one like it has, too. */
  get wrapping() {
    const { programs, readOnly } = this.#options;
    return { ...(programs && { programs }), ...(readOnly !== undefined && { readOnly }), ...(this.#log && { log: this.#log }) };
  }

  constructor({ files, log, record, ...options }) {
    this.#log = log;
    const recorded = typeof record === "function" ? oneWay(quiet(record)) : record;
    this.#options = { ...options, log: log && oneWay(quiet(log)), record: recorded };
    // First: it reads what the caller gave, which may throw.
    const parcel = pack(files);
    connection.addSandbox(this.#number, this);
    this.#made = this.#make(connection.link(), parcel);
    this.#made.catch(() => connection.removeSandbox(this.#number));
  }

  /** The worker's environment and the link to it; asks for another worker if the last try failed. */
  ready() {
    if (this.#stranded) this.restore(connection.link());
    return this.#made;
  }

  /** Another worker is lent it, too. */
  async lend(name, program) {
    await this.call("program", [name, program]);
    this.#options.programs = { ...this.#options.programs, [name]: program };
  }

  keep({ archive, removed, afresh }) {
    if (afresh) this.#deltas = [];
    this.#deltas.push({ archive, removed });
    for (const watcher of this.watchers) watcher();
  }

  /** @param {Promise<import("./link.js").Link>} starting another worker */
  restore(starting) {
    this.#here = undefined;
    this.#stranded = false;
    const made = this.#make(starting, undefined, this.#deltas);
    this.#made = made;
    made.catch(() => {
      if (made === this.#made) this.#stranded = true;
    });
  }

  /** No worker has it; the next call asks for one. */
  strand(error) {
    this.lose(error);
    this.#stranded = true;
  }

  /** It is gone for good. */
  lose(error) {
    this.#here = undefined;
    this.#stranded = false;
    this.#made = Promise.reject(error);
    this.#made.catch(() => {});
  }

  call(name, args, options) {
    return this.#call((remote) => [remote.handle.id, name, args], name, { scope: this.#scope, ...options });
  }

  /** Calls the worker's root about it: for what the page cannot send as it is. */
  callRoot(name, ...args) {
    return this.#call((remote) => [ROOT, name, [remote, ...args]], name, {});
  }

  async #call(asked, name, options) {
    this.#calls += 1;
    try {
      return await this.#asked(asked, name, options);
    } finally {
      this.#calls -= 1;
      if (this.#isLeft) this.leave();
    }
  }

  async #asked(asked, name, options) {
    // Called at once where that is possible: what follows may be an abort.
    const { link, remote } = this.#here ?? (await this.ready());
    try {
      return await connection.call(link, ...asked(remote), options);
    } catch (error) {
      if (!link.ended || !(error instanceof CoreError)) throw error;
      const sentence = `${name} was given up with its worker; files are as before it: ${error.message}`;
      throw new EnvironmentError("cancelled", sentence, { cause: error });
    }
  }

  dispose() {
    this.#disposing ??= this.#dispose();
    return this.#disposing;
  }

  /** Nobody has its environment any more: it goes, once no call is under way. */
  leave() {
    this.#isLeft = true;
    if (this.#calls === 0 && !this.#disposing) void this.dispose().catch(() => {});
  }

  async #dispose() {
    // First: no other worker needs it any more, whatever becomes of this one.
    connection.removeSandbox(this.#number);
    try {
      const { link, remote } = await this.#made;
      await this.call("dispose", []);
      link.forget(this.#scope);
      await connection.call(link, ROOT, "forget", [this.#number]);
      link.release([remote.handle.id]);
    } catch (error) {
      // A worker that is gone took it along.
      if (!(error instanceof CoreError || error.cause instanceof CoreError)) throw error;
    }
    this.#deltas = [];
    this.lose(new EnvironmentError("cancelled", "the environment was closed"));
  }

  async #make(starting, files, deltas) {
    const link = await starting;
    const args = [this.#number, { ...this.#options, files }, deltas];
    const remote = await connection.call(link, ROOT, "createSandbox", args, { scope: this.#scope });
    this.#here = { link, remote };
    this.wasMade = true;
    complete(MemoryEnvironment, remote.handle.methods, (self, name, given) => sandboxes.get(self).call(name, given));
    guardSandbox(MemoryEnvironment);
    return this.#here;
  }
}

export class MemoryEnvironment {
  /** @param {import("../sandbox.js").MemoryOptions} [options] */
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

/** A terminal's other end. Of a worker that is gone it shows and takes nothing any more. */
class Shell {
  #remote;

  constructor(remote) {
    ours(this);
    this.#remote = remote;
  }

  get closed() {
    return this.#remote.closed;
  }

  async write(data) {
    // Ctrl-C: what runs may be deaf.
    if (typeof data === "string" ? data.includes("\x03") : data.includes(3)) connection.hurry();
    await this.#call("write", [data]);
  }

  async interrupt() {
    connection.hurry();
    await this.#call("interrupt", []);
  }

  async resize(cols, rows) {
    await this.#call("resize", [cols, rows]);
  }

  async close() {
    await this.#call("close", []);
  }

  async history() {
    return (await this.#call("history", [])) ?? [];
  }

  async #call(name, args) {
    try {
      return await this.#remote[name](...args);
    } catch (error) {
      // `closed` tells it.
      if (!(error instanceof CoreError)) throw error;
    }
  }
}

guardShell(Shell);

/** As in ../environment.js. @param {object} env */
export function againOf(env) {
  const sandbox = sandboxes.get(env);
  return sandbox && ((options) => MemoryEnvironment.create({ ...sandbox.wrapping, ...options }));
}

/**
 * What the worker's `createSession` needs to find the environment.
 * @param {object | undefined} env @param {import("./link.js").Link} link
 */
export async function place(env, link) {
  if (env === undefined || env === null) return {};
  const sandbox = sandboxes.get(env);
  if (sandbox) return { env: (await sandbox.ready()).remote };
  let custom = customs.get(env);
  if (custom?.link !== link) {
    const number = connection.nextNumber();
    custom = { link, number, told: tell(env, number, link) };
    customs.set(env, custom);
    custom.told.catch(() => customs.delete(env));
  }
  await custom.told;
  return { custom: custom.number };
}

async function tell(env, number, link) {
  acceptOwn(env);
  const object = readInSession("options.env", () => described(env));
  const scope = new Scope();
  await connection.call(link, ROOT, "addCustom", [number, object], { scope });
  collected(env, forgetting(link, number, scope));
}

/** What the worker is told of an environment. */
function described(env) {
  const { workingDirectory, platform, osVersion, utcOffsetMinutes, readOnly, log } = env;
  const methods = METHODS.filter((name) => typeof env[name] === "function");
  const functions = functionsOf(weakly(env), methods, typeof log === "function");
  return { workingDirectory, platform, osVersion, utcOffsetMinutes, readOnly, log, ...functions };
}

/** What the worker calls of an environment. Sessions hold that; the link need not. */
function functionsOf(held, methods, logs) {
  const functions = Object.fromEntries(methods.map((name) => [name, (...args) => held.deref()[name](...args)]));
  if (logs) functions.log = oneWay(quiet((line) => held.deref()?.log(line)));
  return functions;
}

/** Holds nothing else, so that the environment can go. */
const forgetting = (link, number, scope) => () => {
  link.forget(scope);
  void connection.call(link, ROOT, "forgetCustom", [number]).catch(() => {});
};
