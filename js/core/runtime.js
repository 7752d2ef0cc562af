// One core and what belongs to it: loading the module, stepping it, and the
// maps from the core's numbers to the JavaScript objects behind them.

import { macrotask } from "../platform/clock.js";
import { acceptInSession } from "../shared/arguments.js";
import { CoreError, EnvironmentError, SessionError, isStackEnd, text, typed } from "../shared/errors.js";
import { hear, quiet } from "../shared/notification.js";
import { Host } from "./host.js";
import { loaded } from "./load.js";
import { Recording } from "./recording.js";

/** @import { AbortSignal, Response, URL, WasmModule } from "../platform.js" */

/** @typedef {import("../wasm/hermitcrab.js").Core} Core */

/**
 * What an entry file provides, because the core has no clock and no entropy.
 * @typedef {object} Platform
 * @property {typeof import("../wasm/hermitcrab.js")} bindings of the core with or
 *   without a sandbox
 * @property {boolean} sandbox whether the core has one
 * @property {() => Promise<unknown>} load what `WebAssembly` compiles: bytes, a
 *   module, a response or a URL
 *
 * What can be compiled to the core, or was.
 * @typedef {WasmModule | ArrayBuffer | ArrayBufferView | Response | URL | string} WasmSource
 *
 * @typedef {object} InitOptions
 * @property {WasmSource | Promise<WasmSource>} [wasm] the module, its bytes or where they are;
 *   default: the file of this package. Hosts that allow no compilation, such as
 *   edge isolates, give the module that they compiled
 * @property {(progress: {loaded: number, total: number | undefined}) => void} [onProgress] bytes
 *   that have arrived; `total` is unknown where the server compresses
 */

/** @type {Platform | undefined} */
let platform;
/** @type {Promise<Platform["bindings"]> | undefined} */
let loading;
/** @type {Platform["bindings"] | undefined} */
let ready;
/** Of each core that is loaded: where its stack ends. @type {WeakMap<Platform["bindings"], WebAssembly.Global>} */
const stacks = new WeakMap();

/**
 * Called by each entry file that is loaded. Where a program loads both cores,
 * the one with a sandbox serves both; what the other one has begun goes on in it.
 * @param {Platform} provided
 */
export function setPlatform(provided) {
  if (platform && (platform.sandbox || !provided.sandbox)) return;
  platform = provided;
  loading = undefined;
}

/** The bindings of the core, once it is loaded. @returns {Promise<Platform["bindings"]>} */
export function loadedBindings() {
  return load();
}

/** The bindings of the core that is used; once it is loaded. */
export function bindings() {
  return ready;
}

/**
 * Loads the core now, perhaps from elsewhere. Without this call the first
 * session or environment loads it.
 * @param {InitOptions} [options]
 * @returns {Promise<void>}
 */
export async function init(options = {}) {
  acceptInSession("init", options);
  const { wasm, onProgress } = options;
  if (wasm !== undefined && loading) {
    throw new SessionError("illegal_state", "the core is loaded already; call init({ wasm }) before anything else");
  }
  await load(wasm, onProgress);
}

/** Loads the core, once; after a failure the next call tries again. */
function load(wasm, onProgress) {
  if (loading) return loading;
  const provided = platform;
  const { bindings } = provided;
  const attempt = loaded(wasm, provided, onProgress).then(
    ({ __stack_pointer: stack }) => {
      stacks.set(bindings, stack);
      // One that another has overtaken serves until that one is loaded.
      if (loading === attempt || !ready) ready = bindings;
      return bindings;
    },
    (error) => {
      if (loading === attempt) loading = undefined;
      throw error;
    },
  );
  loading = attempt;
  return attempt;
}

/** Is told when a core fails. @type {((failure: CoreError) => void) | undefined} */
let failed;

/** A callback for a failed core replaces all of its module; else its runtime begins anew. @param {(failure: CoreError) => void} callback */
export function onFailure(callback) {
  failed = callback;
}

/** Steps in a row that a microtask may start before others get their turn. */
const MICROTASKS = 64;

/**
 * What a runtime keeps of an environment.
 * @typedef {object} EnvironmentPart
 * @property {(core: Core, rescued?: any) => number} add makes it in a core, of what was
 *   rescued from the last one, which gave it the same number
 * @property {(core: Core) => any} [rescue] takes out of a core that has failed what is left of it
 * @property {(core: Core) => void} [wrap] see `wrap`
 *
 * A core instance: environments that share sessions, and their jobs. Where a
 * command makes it fail, its sessions are lost, and another core takes over
 * what is left of the environments.
 */
export class Runtime {
  /** @type {Map<string, import("../session/session.js").SessionPart>} */
  sessions = new Map();
  /** @type {Map<number, EnvironmentPart & import("../environment/custom-environment.js").EnvironmentAnswers>} */
  environments = new Map();
  /** Takes the lines of a log, by its number. @type {Map<number, (line: string) => void>} */
  logs = new Map();
  /** Called after each step. @type {Set<() => void>} */
  watchers = new Set();
  /** Called when the core can do nothing more. @type {Set<() => void>} */
  endings = new Set();
  #jobs = new Map();
  #bindings;
  #stack;
  #core;
  #host;
  #scheduled = false;
  #inARow = 0;
  #failure;
  /** @type {Promise<void> | undefined} When the memory was given back. */
  #freed;
  /** Of its log. @type {Recording | undefined} */
  #recording;
  #holdsKey = false;

  /** @param {import("./recording.js").Record} [record] */
  static async create(record) {
    return new Runtime(await load(), record);
  }

  /** Whether the core can do nothing more. */
  get failed() {
    return this.#failure !== undefined;
  }

  /** Whether it writes a log. */
  get isRecorded() {
    return this.#recording !== undefined;
  }

  /**
   * @param {Platform["bindings"]} bindings of a core that is loaded
   * @param {import("./recording.js").Record} [record]
   * @param {(host: Host) => Core} [make] a core that has worked before
   */
  constructor(bindings, record, make) {
    this.#bindings = bindings;
    this.#stack = stacks.get(bindings);
    if (record) {
      refuseWithoutLogs(bindings, "record");
      this.#recording = new Recording(record);
    }
    try {
      this.#begin(make);
    } catch (error) {
      const failure = noMore(error);
      failed?.(failure);
      throw failure;
    }
  }

  #begin(make = (host) => new this.#bindings.Core(host, globalThis.crypto.getRandomValues(new Uint8Array(32)), this.isRecorded)) {
    const host = new Host(this);
    this.#core = this.#guarded(() => make(host));
    this.#host = host;
  }

  /** What its log holds so far, where that is kept. */
  recording() {
    if (!this.#recording) return undefined;
    if (!this.#failure) this.#drain(true);
    if (this.#recording.dropped) throw new SessionError("illegal_state", `the log ${this.#recording.dropped}`);
    return this.#recording.bytes();
  }

  /** Hands on what was written of the log. @param {boolean} [flush] all that was noted */
  #drain(flush = false) {
    if (!this.#recording) return;
    const core = this.#core;
    if (this.#holdsKey) this.#drop("was dropped, because what came next holds a key, which no log may");
    this.#recording.put(this.#guarded(() => core.takeLog(flush)));
    this.expect(0);
  }

  /** So many bytes follow, all of which the log has: one that they make too large is dropped. @param {number} bytes */
  expect(bytes) {
    if (!this.#recording || this.#failure || this.#recording.fits(bytes)) return;
    this.#drop("became larger than record.maxBytes and was dropped; open the session, or create its environment, with room for more");
  }

  /** Takes no more of the log: a key stands in what came since it was last taken. */
  endRecording() {
    this.#holdsKey = true;
  }

  /** @param {string} why what became of the log */
  #drop(why) {
    if (this.#recording.dropped) return;
    const core = this.#core;
    this.#guarded(() => core.endLog());
    this.#recording.drop(why);
  }

  /**
   * Enters the module. A call that fails leaves the stack where it was, which
   * all cores of the module share.
   * @template T @param {() => T} call @returns {T}
   */
  #guarded(call) {
    return guarded(this.#stack, call);
  }

  /**
   * Calls into the module on behalf of a command, which ends alone: says why, if it
   * was left in the middle.
   * @param {() => void} work @returns {string | undefined}
   */
  contain(work) {
    try {
      this.#guarded(work);
    } catch (error) {
      return isStackEnd(error) ? "stack" : text(error);
    }
  }

  /** Makes an environment; returns its number. @param {EnvironmentPart} part */
  add(part) {
    const number = this.callSandbox((core) => part.add(core));
    this.environments.set(number, part);
    return number;
  }

  /**
   * Calls an export. What it throws becomes an error of `Class`; when the core
   * itself fails, every session gets an error.
   * @template T @param {(core: Core) => T} call @returns {T}
   */
  call(call, Class = SessionError) {
    if (this.#failure) throw this.#failure;
    try {
      return this.#guarded(() => call(this.#core));
    } catch (error) {
      const failure = typed(error, Class);
      if (failure instanceof CoreError) this.#fail(failure);
      throw failure;
    }
  }

  /**
   * `call` for exports about a sandbox. They stamp files with the core's time,
   * which is that of its last step.
   * @template T @param {(core: Core) => T} call @returns {T}
   */
  callSandbox(call) {
    this.#advance();
    return this.call(call, EnvironmentError);
  }

  /**
   * Puts around an environment what its options ask for; the log is outside and
   * has what is rejected, too.
   * @param {number} number @param {import("../environment/custom-environment.js").Wrapping} wrapping
   */
  wrap(number, { readOnly, log }) {
    const wrap = (core) => {
      if (readOnly) core.makeReadOnly(number, readOnly === "commands");
      if (log) this.logs.set(core.logCalls(number), quiet(log));
    };
    this.call(wrap);
    this.environments.get(number).wrap = wrap;
  }

  /** What can still be read of a core that has failed. @template T @param {() => T} read @returns {T | undefined} */
  last(read) {
    try {
      return this.#guarded(read);
    } catch {
      return undefined;
    }
  }

  /** Steps the core soon. Many reasons to step make one step. */
  wake() {
    if (this.#scheduled || this.#failure) return;
    this.#scheduled = true;
    this.#inARow += 1;
    if (this.#inARow < MICROTASKS) {
      queueMicrotask(this.#step);
    } else {
      this.#inARow = 0;
      macrotask(this.#step);
    }
  }

  /**
   * Starts a job and resolves with its last report, once `onOutput` is done, too.
   * @param {(core: Core) => string} start
   * @param {{signal?: AbortSignal, onOutput?: (stream: string, data: Uint8Array) => unknown}} [options]
   */
  job(start, { signal, onOutput } = {}) {
    signal?.throwIfAborted();
    const id = this.call(start, EnvironmentError);
    const cancel = () => {
      job.stop();
      if (!this.#failure && this.#jobs.get(id) === job) this.call((core) => core.cancelJob(id));
    };
    signal?.addEventListener("abort", cancel, { once: true });
    const job = { onOutput, cancel, hearing: new Set() };
    const result = new Promise((resolve, reject) => Object.assign(job, { resolve, reject }));
    job.stopped = new Promise((stop) => (job.stop = stop));
    this.#jobs.set(id, job);
    return result.finally(() => signal?.removeEventListener("abort", cancel));
  }

  report({ job: id, kind, ...news }) {
    const job = this.#jobs.get(id);
    if (!job) return;
    if (kind === "output") return this.#output(job, news);
    this.#jobs.delete(id);
    if (kind === "failed") job.reject(new EnvironmentError(news.error.kind, news.error.message));
    else if (kind === "exec") void heard(job, news.status).then(() => job.resolve(news.status));
    else job.resolve(news.reply);
  }

  /** Hands output to the user's callback; one that throws, or rejects, ends its job. */
  #output(job, { stream, data }) {
    const fail = (error) => {
      job.onOutput = undefined;
      job.reject(error);
      // Not now: the core is in the middle of telling its news.
      queueMicrotask(job.cancel);
    };
    try {
      hear(job.hearing, job.onOutput?.(stream, data), fail);
    } catch (error) {
      fail(error);
    }
  }

  /** Nobody has its sandbox any more: gives the memory back, once no job is under way. */
  leave() {
    const free = () => {
      if (this.#jobs.size > 0) return;
      this.watchers.delete(free);
      this.free();
    };
    this.watchers.add(free);
    free();
  }

  /** Gives the core's memory back; whatever runs is cancelled. @returns {Promise<void>} */
  async free() {
    if (this.#failure) return this.#freed;
    this.#core.stop();
    if (this.#recording) {
      this.#core.endLog();
      this.#drain();
    }
    // Not now: the caller may be called by the core.
    this.#freed = new Promise((resolve) => {
      macrotask(() => {
        try {
          this.#core.free();
        } finally {
          resolve();
        }
      });
    });
    this.#lose(new EnvironmentError("cancelled", "the environment was closed"));
    return this.#freed;
  }

  #step = () => {
    this.#scheduled = false;
    this.#advance();
  };

  #advance() {
    if (this.#failure) return;
    const core = this.#core;
    let busy;
    try {
      busy = this.#guarded(() => core.step(Date.now()));
    } catch (error) {
      this.#fail(new CoreError(error));
      return;
    }
    // It may have failed meanwhile, by a call of somebody whom it told its news.
    if (core !== this.#core) return;
    this.#drain();
    for (const watcher of this.watchers) watcher();
    if (busy && !this.#scheduled) {
      this.#scheduled = true;
      this.#inARow = 0;
      macrotask(this.#step);
    }
  }

  #fail(failure) {
    if (this.#failure) return;
    const core = this.#core;
    try {
      this.#guarded(() => core.stop());
    } catch {
      // A core that has failed may fail again; there is nothing left to stop.
    }
    this.#lose(failure);
    if (failed) failed(failure);
    else this.#beginAnew(core);
    // It is in the middle of something, and must not be looked at again: also
    // not to give its memory back.
    core.__destroy_into_raw();
  }

  /** Another core takes over what is left of the environments. */
  #beginAnew(old) {
    try {
      const parts = [...this.environments].map(([number, part]) => ({ number, part, rescued: part.rescue?.(old) }));
      this.#begin();
      this.#recording?.beginAnew();
      this.#holdsKey = false;
      this.logs.clear();
      for (const { number, part, rescued } of parts) {
        if (this.#guarded(() => part.add(this.#core, rescued)) !== number) throw new Error(`environment ${number} has another number`);
        this.#guarded(() => part.wrap?.(this.#core));
      }
      this.#failure = undefined;
    } catch (error) {
      this.#failure = noMore(error);
    }
  }

  #lose(failure) {
    this.#failure = failure;
    this.#host.end();
    const jobs = [...this.#jobs.values()];
    this.#jobs.clear();
    for (const job of jobs) job.reject(failure);
    for (const session of [...this.sessions.values()]) session.lost(failure, Date.now());
    for (const end of [...this.endings]) end();
  }
}

/** @template T @param {WebAssembly.Global} stack @param {() => T} call @returns {T} */
function guarded(stack, call) {
  const { value } = stack;
  try {
    return call();
  } catch (error) {
    stack.value = value;
    throw error;
  }
}

/**
 * Enters a module that is loaded, as a runtime does.
 * @param {Platform["bindings"]} bindings
 * @returns {<T>(call: () => T) => T}
 */
export function guardOf(bindings) {
  const stack = stacks.get(bindings);
  return (call) => guarded(stack, call);
}

/**
 * The core without a sandbox writes no logs and reads none.
 * @param {Platform["bindings"]} bindings @param {string} what
 */
export function refuseWithoutLogs(bindings, what) {
  if (bindings.Replay) return;
  throw new SessionError("invalid_input", `${what} needs the core with a sandbox; import hermitcrab instead of hermitcrab/slim`);
}

/** Resolves when `onOutput` has taken everything, or somebody's patience ended. */
async function heard({ hearing, stopped }, { timed_out: timedOut }) {
  if (!timedOut) await Promise.race([Promise.all(hearing), stopped]);
}

/** Nothing that the module holds can be trusted. */
function noMore(error) {
  return CoreError.saying(`the core has failed before and cannot begin anew: ${text(error)}; load the page or start the process again, or use hermitcrab/worker, which goes on`, { cause: error });
}
