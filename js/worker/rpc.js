// Calls between a page and its worker, in both directions. Values travel by
// structured clone. What cannot be cloned (functions, signals, errors,
// responses, objects with methods) travels as a marker, and the other end puts
// it together. One class serves both ends.

import { CoreError, EnvironmentError, HermitcrabError, ReplayError, SessionError } from "../shared/errors.js";
import { MARK, Outgoing, Scope, everProxies, isPlain, mapValues } from "./outgoing.js";

/** @import { ReadableStream, Transferable } from "../platform.js" */

/** Number of the worker's object that the page starts with. */
export const ROOT = 0;

const ERRORS = { CoreError, EnvironmentError, HermitcrabError, SessionError };
const PLAIN_ERRORS = { RangeError, SyntaxError, TypeError };

/**
 * A `Worker`, its inside, or a `MessagePort`.
 * @typedef {object} Port
 * @property {(message: unknown, transfer: Transferable[]) => void} postMessage
 *
 * What the other end knows of an object: its number, and the numbers of what it can ask for the
 * object's promises.
 * @typedef {{id: number, promises: [string, number][]}} Handle
 *
 * @typedef {object} RpcOptions
 * @property {() => void} [before] called before a message of the worker leaves
 * @property {boolean} [worker] this end is the worker: what it sends in bytes is
 *   its own and moves, and nobody waits for the functions that it hands out
 * @property {(handle: Handle) => object} [proxy]
 *   makes what stands for an object of the other end
 * @property {(note: object, transfer: Transferable[]) => void} [note] takes one-way
 *   calls, to send them with other news
 * @property {(object: object) => void} [served] a call of this object is done
 */

/** Functions that give nothing back and are not waited for. */
const oneWays = new WeakSet();

/** @template {Function} F @param {F} call @returns {F} */
export function oneWay(call) {
  oneWays.add(call);
  return call;
}

export class Rpc {
  #port;
  #options;
  #next = 1;
  #pending = new Map();
  #functions = new Map();
  #objects = new Map();
  #proxies = new WeakMap();
  #signals = new Map();
  #batch = [];
  #closed;

  /** @param {Port} port @param {RpcOptions} options */
  constructor(port, options) {
    this.#port = port;
    this.#options = options;
  }

  /** Whether the other end is gone. */
  get ended() {
    return this.#closed !== undefined;
  }

  /** Calls that have no answer yet. */
  get waiting() {
    return this.#pending.size;
  }

  /**
   * Makes `object` callable from the other end under a well-known number.
   * @param {number} id @param {object} object
   */
  serve(id, object) {
    this.#objects.set(id, object);
  }

  /**
   * Calls a method of an object of the other end.
   * @param {number} target @param {string} method @param {unknown[]} args
   * @param {{scope?: Scope}} [options] `scope` keeps functions among the
   *   arguments callable after the answer
   * @returns {Promise<any>}
   */
  call(target, method, args, { scope } = {}) {
    return this.#request({ type: "call", target, method }, args, scope);
  }

  /** Sends something that has no answer. @param {object} message @param {Transferable[]} [transfer] */
  send(message, transfer = []) {
    if (this.#closed) return;
    if (this.#options.worker) {
      this.#options.before();
      this.#port.postMessage(message, transfer);
    } else {
      // What a page asks for in one turn begins in one turn of the worker.
      if (this.#batch.length === 0) queueMicrotask(() => this.#post());
      this.#batch.push({ message, transfer });
    }
  }

  /** Takes a message of the other end; says whether it was one of this class. @param {any} message */
  receive(message) {
    switch (message.type) {
      case "call":
        void this.#serve(message);
        return true;
      case "done":
      case "fail":
        this.#settle(message);
        return true;
      case "abort":
        this.#signals.get(message.signal)?.abort(this.#decode(message.reason));
        return true;
      case "run":
        this.run(message);
        return true;
      case "batch":
        for (const one of message.messages) this.receive(one);
        return true;
      case "release":
        for (const id of message.objects) this.#objects.delete(id);
        return true;
      default:
        return false;
    }
  }

  /** Runs a one-way call that came by another way. @param {{target: number, args: unknown[]}} call */
  run({ target, args }) {
    this.#functions.get(target)?.(...args.map((value) => this.#decode(value)));
  }

  /** No answer will come any more. @param {Error} reason */
  close(reason) {
    this.#closed = reason;
    for (const { reject, outgoing } of this.#pending.values()) {
      outgoing.end();
      reject(reason);
    }
    this.#pending.clear();
    for (const controller of this.#signals.values()) controller.abort(reason);
    this.#signals.clear();
    this.#functions.clear();
    this.#objects.clear();
  }

  /** Forgets the functions of `scope`. @param {Scope} scope */
  forget(scope) {
    for (const id of scope.ids) this.#functions.delete(id);
    scope.ids.clear();
  }

  /** Says that `proxy` stands for object `id` of the other end. */
  adopt(proxy, id) {
    this.#proxies.set(proxy, id);
    everProxies.add(proxy);
  }

  /** The other end's objects are not needed any more. @param {number[]} ids */
  release(ids) {
    this.send({ type: "release", objects: ids });
  }

  #post() {
    const batch = this.#batch.splice(0);
    if (this.#closed) return;
    try {
      const messages = batch.map(({ message }) => message);
      const transfer = batch.flatMap(({ transfer }) => transfer);
      this.#port.postMessage(batch.length === 1 ? messages[0] : { type: "batch", messages }, transfer);
    } catch (error) {
      if (batch.length === 1) return this.#refuse(batch[0].message, error);
      // One of them cannot be cloned; the others can.
      for (const one of batch) {
        this.#batch.push(one);
        this.#post();
      }
    }
  }

  /** A message that could not be sent: a call fails, an answer becomes a failure. */
  #refuse({ type, id }, { message }) {
    if (type === "call") {
      const call = this.#pending.get(id);
      this.#pending.delete(id);
      call?.outgoing.end();
      call?.reject(new HermitcrabError("invalid_input", `an argument cannot be sent to the worker: ${message}`));
    } else if (type === "done" || type === "fail") {
      const error = new HermitcrabError("io", `the result cannot be sent to the worker: ${message}`);
      this.send({ type: "fail", id, value: new Outgoing(this).encode(error) });
    }
  }

  #request(message, args, scope) {
    if (this.#closed) return Promise.reject(this.#closed);
    const id = this.#next++;
    const outgoing = new Outgoing(this, scope);
    return new Promise((resolve, reject) => {
      try {
        message.args = args.map((value) => outgoing.argument(value));
      } catch (error) {
        outgoing.end();
        throw error;
      }
      this.#pending.set(id, { resolve, reject, outgoing });
      this.send({ ...message, id }, outgoing.transfer);
    });
  }

  #settle({ type, id, value }) {
    const call = this.#pending.get(id);
    if (!call) return;
    this.#pending.delete(id);
    const streams = [];
    const decoded = this.#decode(value, { signals: [], streams });
    // What was given lives as long as the answer: the signal of a fetch also ends its body.
    whenAll(streams, () => call.outgoing.end());
    if (type === "done") call.resolve(decoded);
    else call.reject(decoded);
  }

  async #serve({ id, target, method, args }) {
    const signals = [];
    let answer;
    const outgoing = new Outgoing(this, new Scope());
    try {
      const object = method === undefined ? this.#functions.get(target) : this.#objects.get(target);
      if (!object) throw new HermitcrabError("illegal_state", "what is called does not exist any more");
      const values = args.map((value) => this.#decode(value, { signals, streams: [] }));
      const result = method === undefined ? object(...values) : object[method](...values);
      answer = { type: "done", id, value: outgoing.encode(await result) };
      this.#options.served?.(object);
    } catch (error) {
      answer = { type: "fail", id, value: outgoing.failure(error) };
    }
    whenAll(outgoing.streams, () => {
      for (const signal of signals) this.#signals.delete(signal);
    });
    try {
      this.send(answer, outgoing.transfer);
    } catch (error) {
      this.#refuse(answer, error);
    }
  }

  // What `Outgoing` needs.

  get movesBytes() {
    return Boolean(this.#options.worker);
  }

  hasOneWay(call) {
    return this.#options.worker || oneWays.has(call);
  }

  keepFunction(call, scope) {
    const id = this.#next++;
    this.#functions.set(id, call);
    scope.ids.add(id);
    return id;
  }

  /** @param {ReadableStream} stream @param {Promise<void>[]} streams gets a promise for its end */
  keepStream(stream, streams) {
    const id = this.#next++;
    let over;
    streams.push(new Promise((resolve) => (over = resolve)));
    let reader;
    const source = {
      async read() {
        try {
          reader ??= stream.getReader();
          const { done, value } = await reader.read();
          if (done) end();
          return { done, value };
        } catch (error) {
          end();
          throw error;
        }
      },
      async cancel(reason) {
        end();
        await (reader ?? stream).cancel(reason);
      },
    };
    const end = () => {
      this.#objects.delete(id);
      over();
    };
    this.#objects.set(id, source);
    return id;
  }

  /** Number under which the other end knows `object`. */
  numberOf(object) {
    return this.#proxies.get(object);
  }

  keepObject(object) {
    // A new number each time: the other end gives each one back by itself.
    const id = this.#next++;
    this.#objects.set(id, object);
    return id;
  }

  nextNumber() {
    return this.#next++;
  }

  /** @param {any} value @param {{signals: number[], streams: Promise<void>[]}} [found] gets what comes with it */
  #decode(value, found = { signals: [], streams: [] }) {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map((item) => this.#decode(item, found));
    if (!isPlain(value)) return value;
    if (!(MARK in value)) return mapValues(value, (item) => this.#decode(item, found));
    switch (value[MARK]) {
      case "data":
        return Object.fromEntries(value.entries.map(([name, item]) => [name, this.#decode(item, found)]));
      case "function":
        return this.#stub(value);
      case "signal":
        return this.#signal(value, found);
      case "error":
        return decodeError(value, (item) => this.#decode(item, found));
      case "response":
        return { ...value, headers: new Headers(value.headers), body: this.#decode(value.body, found) };
      case "file":
        return new File([value.content], value.name, value);
      case "stream":
        return this.#stream(value, found);
      case "own":
        return this.#objects.get(value.id);
      case "handle":
        return this.#proxy(value);
      default:
        return undefined;
    }
  }

  #stub({ id, oneWay: forgets }) {
    if (!forgets) return (...args) => this.#request({ type: "call", target: id }, args);
    return (...args) => {
      const outgoing = new Outgoing(this, new Scope());
      const note = { type: "run", target: id, args: args.map((value) => outgoing.encode(value)) };
      if (this.#options.note) this.#options.note(note, outgoing.transfer);
      else this.send(note);
    };
  }

  #signal({ id, aborted, reason }, found) {
    const controller = new AbortController();
    if (aborted) controller.abort(this.#decode(reason, found));
    this.#signals.set(id, controller);
    found.signals.push(id);
    return controller.signal;
  }

  #stream({ id, locked }, found) {
    if (locked) return { locked, getReader() {} };
    let over;
    found.streams.push(new Promise((resolve) => (over = resolve)));
    return new ReadableStream({
      pull: async (controller) => {
        const { done, value } = await this.call(id, "read", []).catch((error) => {
          over();
          throw error;
        });
        if (!done) return controller.enqueue(value);
        over();
        controller.close();
      },
      cancel: (reason) => {
        over();
        return this.call(id, "cancel", [reason]);
      },
    }, { highWaterMark: 0 });
  }

  #proxy(handle) {
    const proxy = this.#options.proxy(handle);
    this.adopt(proxy, handle.id);
    return proxy;
  }
}

/** Calls `then` when all promises are kept; now, if there are none. */
function whenAll(promises, then) {
  if (promises.length === 0) then();
  else void Promise.all(promises).then(then);
}

function decodeError({ name, message, kind, code, cause, difference }, decode) {
  if (difference) return new ReplayError({ kind, message, ...difference });
  const Class = ERRORS[name];
  const options = cause === undefined ? undefined : { cause: decode(cause) };
  if (Class === CoreError) return CoreError.saying(message, options);
  if (Class) return new Class(kind, message, options);
  if (name === "AbortError" || name === "TimeoutError") return new DOMException(message, name);
  const Plain = PLAIN_ERRORS[name] ?? Error;
  const error = new Plain(message, options);
  if (name !== undefined) error.name = name;
  if (kind !== undefined) error.kind = kind;
  if (code !== undefined) error.code = code;
  return error;
}
