// Connection: the page's end. It starts the worker, hands its news to sessions,
// notices when it has become deaf, and replaces it.

import { Arrival, answered } from "../../core/load.js";
import { withRemedy } from "../../platform/bundled.js";
import { violations } from "../../platform/content-security-policy.js";
import { collected } from "../../platform/finalization.js";
import { CoreError, SessionError, text } from "../../shared/errors.js";
import { quiet } from "../../shared/notification.js";
import { ROOT, Rpc, oneWay } from "../rpc.js";

/** @import { Worker } from "../../platform.js" */

/** How often a worker that works is asked whether it listens, in ms. */
const BEAT_MS = 1_000;

/**
 * @typedef {object} WorkerOptions
 * @property {import("../../core/runtime.js").WasmSource | Promise<import("../../core/runtime.js").WasmSource>} [wasm]
 *   the module, its bytes or where they are; default: the file of this package
 * @property {() => Worker} [worker] starts the worker where your bundler or server puts its
 *   script, `hermitcrab/worker/main`, elsewhere; called again after a restart
 * @property {(progress: {loaded: number, total: number | undefined}) => void} [onProgress] bytes of
 *   the core that have arrived
 * @property {number} [unresponsiveMs] a worker that works and does not answer for so long is
 *   replaced; default 10,000
 * @property {number} [stopMs] the same once something was stopped; default 5,000
 * @property {(reason: string) => void} [onRestart] a worker was replaced
 */

/** @type {(() => Worker) | undefined} */
let spawnDefault;

/** Called once by the entry file. @param {() => Worker} spawn */
export function setSpawn(spawn) {
  spawnDefault = spawn;
}

export class Connection {
  /** @type {WorkerOptions} */
  #options = {};
  #port;
  #rpc;
  #starting;
  /** Tells who waits for a worker that it does not come. @type {(error: Error) => void} */
  #giveUp = () => {};
  #number = 0;
  /** References to what gets a session's events: see `add`. @type {Map<number, {deref: () => any}>} */
  #sessions = new Map();
  #sandboxes = new Map();
  #heardAt = 0;
  #missed = 0;
  #beat;
  /** The worker that is getting what the last one held. @type {Promise<Rpc> | undefined} */
  #replacing;

  /** @param {WorkerOptions} options */
  async init(options) {
    if (this.#starting && (options.wasm !== undefined || options.worker)) {
      throw new SessionError("illegal_state", "the worker runs already; call init before anything else");
    }
    const { wasm: before } = this.#options;
    Object.assign(this.#options, options);
    let given = before;
    if (options.wasm !== undefined) {
      given = sendable(options.wasm, options.onProgress);
      this.#options.wasm = given;
      // The start tells.
      given.catch(() => {});
    }
    if (options.onRestart) this.#options.onRestart = quiet(options.onRestart);
    try {
      await this.rpc();
    } catch (error) {
      // A call after this one does without what did not start.
      if (this.#options.wasm === given) this.#options.wasm = before;
      throw error;
    }
  }

  /** The channel to a worker that is ready. @returns {Promise<Rpc>} */
  rpc() {
    if (this.#starting) return this.#starting;
    const starting = this.#start().catch((error) => {
      // Another worker may have taken its place.
      if (starting === this.#starting) this.#end(error);
      throw error;
    });
    this.#starting = starting;
    return starting;
  }

  /** Calls the worker, and watches it meanwhile. */
  call(rpc, target, method, args, options) {
    const answer = rpc.call(target, method, args, options);
    this.watch();
    return answer;
  }

  nextNumber() {
    return (this.#number += 1);
  }

  /** A session that gets its events from the worker; one that works must not be a weak reference. */
  add(number, session) {
    this.#sessions.set(number, session);
  }

  #session(number) {
    return this.#sessions.get(number)?.deref();
  }

  remove(number) {
    this.#sessions.delete(number);
  }

  /** A sandbox that is put into the next worker too. */
  addSandbox(number, sandbox) {
    this.#sandboxes.set(number, sandbox);
  }

  removeSandbox(number) {
    this.#sandboxes.delete(number);
  }

  /** Sends a note, unless the worker is gone. */
  tell(message) {
    this.#port?.postMessage(message);
  }

  /** Something begins or ends: watches the worker while it works. */
  watch() {
    const busy = this.#busy();
    if (busy === (this.#beat !== undefined) || !this.#port) return;
    if (busy) {
      this.#missed = 0;
      this.#heardAt = performance.now();
      this.#port.ref?.();
      this.#beat = setInterval(() => this.#check(), BEAT_MS);
    } else {
      this.#rest();
    }
  }

  /** Something was stopped: the worker has to hear it soon. */
  hurry() {
    const port = this.#port;
    if (!port) return;
    const asked = performance.now();
    const { stopMs = 5_000 } = this.#options;
    const deaf = () => port === this.#port && this.#heardAt < asked;
    port.postMessage({ type: "ping" });
    const timer = setTimeout(() => {
      // A page that was busy itself finds the answer after the timer.
      if (deaf()) setTimeout(() => deaf() && this.#restartUnasked(`what it did could not be stopped within ${stopMs} ms`), 50);
    }, stopMs);
    timer.unref?.();
  }

  /**
   * Ends the worker, whatever it does, and starts another: sandboxes are as
   * before the commands that were running, sessions are over.
   * @param {string} [reason]
   */
  async restart(reason = "the page asked for it") {
    if (!this.#starting) return;
    this.#end(CoreError.saying(`the worker was restarted and its sessions are lost: ${reason}`));
    await this.#replace(reason);
  }

  /** Nobody waits for it: whoever calls a sandbox next gets the error. */
  #restartUnasked(reason) {
    void this.restart(reason).catch(() => {});
  }

  /** Starts another worker with the sandboxes of the last one. */
  async #replace(reason) {
    // One that is being made is refused to who asked for it.
    const sandboxes = [...this.#sandboxes.values()].filter(({ wasMade }) => wasMade);
    if (sandboxes.length > 0) {
      const starting = this.rpc();
      this.#replacing = starting;
      try {
        for (const sandbox of sandboxes) sandbox.restore(starting);
        await Promise.all(sandboxes.map((sandbox) => sandbox.ready()));
      } catch (error) {
        // Another restart came in between, and tells.
        if (this.#replacing !== starting) return;
        throw error;
      } finally {
        if (this.#replacing === starting) this.#replacing = undefined;
      }
    }
    this.#options.onRestart?.(reason);
  }

  /** Ends the worker. The next call starts another, which knows nothing. */
  async terminate() {
    const error = CoreError.saying("the worker was ended");
    this.#end(error);
    for (const sandbox of this.#sandboxes.values()) sandbox.lose(error);
    this.#sandboxes.clear();
  }

  async #start() {
    const { port, url } = this.#spawn();
    const policy = violations();
    let ready = false;
    const rpc = new Rpc(port, { proxy: (handle) => new Remote(rpc, handle) });
    this.#port = port;
    this.#rpc = rpc;
    const ended = new Promise((_, reject) => (this.#giveUp = reject));
    const begun = new Promise((resolve, reject) => {
      const failed = async ({ message } = {}) => {
        if (port !== this.#port) return;
        const reason = this.#remedied(message) || (ready ? "it says no reason" : await whyNot(url, policy));
        const error = CoreError.saying(`the worker ${ready ? "failed" : "cannot be started"}: ${reason}`);
        reject(error);
        if (ready && port === this.#port) this.#fail(error);
      };
      const receive = (message) => {
        if (port !== this.#port) return;
        this.#heardAt = performance.now();
        if (message.type === "ready") {
          ready = true;
          resolve();
        } else this.#receive(message);
      };
      if (port.on) {
        port.on("message", receive);
        port.on("error", failed);
        // A script that is another one may end without a word.
        port.on("exit", (code) => failed({ message: `its script ended with code ${code}` }));
      } else {
        port.onmessage = ({ data }) => receive(data);
        port.onerror = failed;
      }
    });
    await Promise.race([begun, ended]).finally(() => policy.end());
    const { onProgress } = this.#options;
    const wasm = await Promise.race([this.#options.wasm, ended]);
    await this.call(rpc, ROOT, "init", [{ wasm, onProgress: onProgress && oneWay(quiet(onProgress)) }]);
    // Nobody waits for what the next worker loads.
    this.#options.onProgress = undefined;
    port.unref?.();
    return rpc;
  }

  /** Starts the worker, and notes where its script is: a worker does not tell. */
  #spawn() {
    const { Worker } = globalThis;
    let url;
    const noting = Worker && new Proxy(Worker, {
      construct(Worker, [script, ...options]) {
        url = new URL(script, globalThis.location?.href);
        return new Worker(script, ...options);
      },
    });
    try {
      if (noting) Reflect.set(globalThis, "Worker", noting);
      return { port: (this.#options.worker ?? spawnDefault)(), url };
    } catch (error) {
      throw CoreError.saying(`the worker cannot be started: ${this.#remedied(text(error))}`, { cause: error });
    } finally {
      if (noting) Reflect.set(globalThis, "Worker", Worker);
    }
  }

  /** @param {string | undefined} said */
  #remedied(said) {
    return said && (this.#options.worker ? said : withRemedy(said, "start hermitcrab/worker/main yourself: init({ worker })"));
  }

  #receive(message) {
    if (this.#rpc.receive(message)) {
      this.watch();
      return;
    }
    if (message.type === "delta") this.#sandboxes.get(message.environment)?.keep(message);
    if (message.type === "failed") this.#fail(CoreError.saying(message.message));
    if (message.type !== "notes") return;
    for (const note of message.notes) {
      if (note.type === "events") this.#session(note.session)?.publish(JSON.parse(note.json));
      else if (note.type === "mark") this.#session(note.session)?.mark(note.mark);
      else if (note.type === "last") this.#session(note.session)?.remember(note.last);
      else this.#rpc.run(note);
    }
    this.tell({ type: "taken" });
    this.watch();
  }

  #busy() {
    if (this.#rpc.waiting > 0) return true;
    for (const session of this.#sessions.values()) if (session.deref()?.state === "PROCESSING") return true;
    return false;
  }

  #check() {
    const { unresponsiveMs = 10_000 } = this.#options;
    this.#missed = performance.now() - this.#heardAt > BEAT_MS * 1.5 ? this.#missed + 1 : 0;
    if (this.#missed * BEAT_MS >= unresponsiveMs) {
      this.#restartUnasked(`it did not answer for ${unresponsiveMs} ms`);
    } else {
      this.#port.postMessage({ type: "ping" });
    }
  }

  #rest() {
    clearInterval(this.#beat);
    this.#beat = undefined;
    this.#port?.unref?.();
  }

  /** The worker itself failed, as by running out of memory. */
  #fail(error) {
    const again = this.#replacing !== undefined;
    this.#end(error);
    // One that fails over what it is given would do so for ever: the next call
    // of a sandbox tries once more.
    if (again) for (const sandbox of this.#sandboxes.values()) sandbox.strand(error);
    else void this.#replace(error.message).catch(() => {});
  }

  #end(error) {
    const port = this.#port;
    this.#rest();
    this.#port = undefined;
    this.#starting = undefined;
    this.#giveUp(error);
    this.#rpc?.close(error);
    void port?.terminate();
    for (const session of [...this.#sessions.values()]) session.deref()?.lost(error);
  }
}

/** What a worker can be given, also the one after it, and finds from where it is. */
async function sendable(wasm, onProgress) {
  try {
    const given = await wasm;
    if (given instanceof Response) return await received(given, onProgress);
    return typeof given === "string" && globalThis.document ? new URL(given, document.baseURI).href : given;
  } catch (error) {
    if (error instanceof CoreError) throw error;
    throw CoreError.saying(`the core cannot be loaded: ${text(error)}`, { cause: error });
  }
}

/** The bytes of a response: it could be read only once. */
async function received(response, onProgress) {
  answered(response);
  const arrival = onProgress && new Arrival(response, onProgress);
  const bytes = new Uint8Array(await response.arrayBuffer());
  await arrival?.told;
  return bytes;
}

/** Why a script did not start. Browsers say nothing but that, so it is looked for once more. */
async function whyNot(url, policy) {
  let response;
  let problem;
  try {
    response = url && (await fetch(url));
  } catch (error) {
    problem = text(error);
  }
  const directive = policy.forbids("worker-src", "child-src", "script-src", "default-src");
  if (directive) return `the content security policy forbids its script (${directive}); allow it with worker-src`;
  if (!url) return "its script could not be loaded; the browser's console may say more";
  if (globalThis.navigator?.onLine === false) return `its script ${url} cannot be downloaded: there is no network`;
  if (policy.forbids("connect-src")) return `its script ${url} could not be loaded; the browser's console says more`;
  if (problem !== undefined) return `its script ${url} cannot be downloaded: ${problem}; check the network`;
  if (!response.ok) return `its script ${url} answered with status ${response.status}; say with init({ worker }) where it is`;
  const type = response.headers.get("content-type") ?? "no type";
  if (!/javascript|ecmascript/i.test(type)) return `its script ${url} is served as ${type}, not as JavaScript; say with init({ worker }) where it is`;
  return `its script ${url}, or a module that it imports, is missing or has a mistake in it; the browser's console says which`;
}

/** What stands for an object of the worker. */
export class Remote {
  /** Number by which the worker knows it. @type {number} @readonly */
  id;
  #rpc;
  /** Numbers of its promises, by name. @type {Map<string, number>} */
  #promises;

  /** @param {Rpc} rpc @param {import("../rpc.js").Handle} handle */
  constructor(rpc, { id, promises }) {
    this.id = id;
    this.#rpc = rpc;
    this.#promises = new Map(promises);
    collected(this, releaseOf(rpc, [id, ...this.#promises.values()]));
  }

  /** Calls a method of the object. @param {string} method @param {...unknown} args @returns {Promise<any>} */
  call(method, ...args) {
    return connection.call(this.#rpc, this.id, method, args);
  }

  /** What a promise that the object has settles to. @param {string} name @returns {Promise<any>} */
  settled(name) {
    return connection.call(this.#rpc, this.#promises.get(name), "settled", []);
  }
}

/** Not made where the object is in sight: a function keeps all that is. */
const releaseOf = (rpc, ids) => () => rpc.release(ids);

/** The worker of this page. One: it serves any number of sessions and sandboxes. */
export const connection = new Connection();
