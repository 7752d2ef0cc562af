// Connection: the page's end. It starts the worker, hands its news to sessions,
// notices when it has become deaf, and replaces it.

import { CoreError, SessionError } from "../errors.js";
import { Link, ROOT, oneWay } from "./link.js";

/** How often a worker that works is asked whether it listens, in ms. */
const BEAT_MS = 1_000;

/**
 * @typedef {object} WorkerOptions
 * @property {import("../runtime.js").WasmSource} [wasm] the module, its bytes or where they
 *   are; default: the file of this package
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
  #link;
  #starting;
  #number = 0;
  #sessions = new Map();
  #sandboxes = new Map();
  #heardAt = 0;
  #missed = 0;
  #beat;

  /** @param {WorkerOptions} options */
  async init(options) {
    if (this.#starting && (options.wasm !== undefined || options.worker)) {
      throw new SessionError("illegal_state", "the worker runs already; call init before anything else");
    }
    Object.assign(this.#options, options);
    await this.link();
  }

  /** The link to a worker that is ready. @returns {Promise<Link>} */
  link() {
    this.#starting ??= this.#start().catch((error) => {
      this.#end(error);
      throw error;
    });
    return this.#starting;
  }

  /** Calls the worker, and watches it meanwhile. */
  call(link, target, method, args, options) {
    const answer = link.call(target, method, args, options);
    this.watch();
    return answer;
  }

  nextNumber() {
    return (this.#number += 1);
  }

  /** A session that gets its events from the worker. */
  add(number, session) {
    this.#sessions.set(number, session);
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
      if (deaf()) setTimeout(() => deaf() && this.restart(`what it did could not be stopped within ${stopMs} ms`), 50);
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
    const sandboxes = [...this.#sandboxes.values()];
    if (sandboxes.length > 0) {
      const starting = this.link();
      for (const sandbox of sandboxes) sandbox.restore(starting);
      await Promise.all(sandboxes.map((sandbox) => sandbox.ready()));
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
    const port = this.#spawn();
    const link = new Link(port, { proxy: (handle) => new Remote(link, handle) });
    this.#port = port;
    this.#link = link;
    await new Promise((resolve, reject) => {
      const failed = ({ message } = {}) => {
        const error = CoreError.saying(
          `the worker failed${message ? `: ${message}` : ""}; its script must be served from the page's ` +
            "origin, and a content security policy must allow it (worker-src)",
        );
        reject(error);
        if (port === this.#port) this.#fail(error);
      };
      const receive = (message) => {
        if (port !== this.#port) return;
        this.#heardAt = performance.now();
        if (message.type === "ready") resolve();
        else this.#receive(message);
      };
      if (port.on) {
        port.on("message", receive);
        port.on("error", failed);
      } else {
        port.onmessage = ({ data }) => receive(data);
        port.onerror = failed;
      }
    });
    const { wasm, onProgress } = this.#options;
    await this.call(link, ROOT, "init", [{ wasm, onProgress: onProgress && oneWay(quiet(onProgress)) }]);
    port.unref?.();
    return link;
  }

  #spawn() {
    try {
      return (this.#options.worker ?? spawnDefault)();
    } catch (error) {
      throw CoreError.saying(`the worker cannot be started: ${error.message}`, { cause: error });
    }
  }

  #receive(message) {
    if (this.#link.receive(message)) {
      this.watch();
      return;
    }
    if (message.type === "delta") this.#sandboxes.get(message.environment)?.keep(message);
    if (message.type !== "notes") return;
    for (const note of message.notes) {
      if (note.type === "events") this.#sessions.get(note.session)?.publish(JSON.parse(note.json));
      else this.#link.run(note);
    }
    this.tell({ type: "taken" });
    this.watch();
  }

  #busy() {
    if (this.#link.waiting > 0) return true;
    for (const session of this.#sessions.values()) if (session.state === "PROCESSING") return true;
    return false;
  }

  #check() {
    const { unresponsiveMs = 10_000 } = this.#options;
    this.#missed = performance.now() - this.#heardAt > BEAT_MS * 1.5 ? this.#missed + 1 : 0;
    if (this.#missed * BEAT_MS >= unresponsiveMs) {
      void this.restart(`it did not answer for ${unresponsiveMs} ms`).catch(() => {});
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
    this.#end(error);
    for (const sandbox of this.#sandboxes.values()) sandbox.restore(this.link());
  }

  #end(error) {
    const port = this.#port;
    this.#rest();
    this.#port = undefined;
    this.#starting = undefined;
    this.#link?.close(error);
    void port?.terminate();
    for (const session of [...this.#sessions.values()]) session.lost(error);
  }
}

/** What stands for an object of the worker: its methods, and nothing else. */
export class Remote {
  /** @param {Link} link @param {import("./link.js").Handle} handle */
  constructor(link, { id, methods }) {
    const define = (name, value) => Object.defineProperty(this, name, { value });
    for (const name of methods) define(name, (...args) => connection.call(link, id, name, args));
    define("handle", { id, link, methods });
    left?.register(this, () => link.release(id));
  }
}

const left =
  typeof FinalizationRegistry === "function" ? new FinalizationRegistry((release) => release()) : undefined;

/** A callback whose mistakes are its own. */
export function quiet(call) {
  return (...args) => {
    try {
      call(...args);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  };
}

/** What the worker's objects can do, the page's can. */
export function complete(Class, methods, call) {
  for (const name of methods) {
    if (name in Class.prototype) continue;
    const value = function (...args) {
      return call(this, name, args);
    };
    Object.defineProperty(Class.prototype, name, { value, writable: true, configurable: true });
  }
}

/** The worker of this page. One: it serves any number of sessions and sandboxes. */
export const connection = new Connection();
