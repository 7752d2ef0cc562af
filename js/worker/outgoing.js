// What leaves for the other end: values as structured clone takes them, with markers for
// what it does not take, and what moves or has to be kept along with them.

import { EnvironmentError, HermitcrabError, ReplayError, text } from "../shared/errors.js";

/** Marks what stands for something else. Data that has it is wrapped. */
export const MARK = "$hermitcrab";

/** Functions of one owner, forgotten together. */
export class Scope {
  ids = new Set();
}

/** What stands for objects of any worker, also of one that is gone. */
export const everProxies = new WeakSet();

/** Bytes that nobody else needs: they move even if others are copied. */
export const spare = new WeakSet();

/** Objects that a `fetch` of the user's gave as responses. */
const responses = new WeakSet();

/** What a `fetch` of the user's gave, sent as a response if it has what one has. */
export function asResponse(value) {
  const { status, headers, body } = Object(value);
  const isResponse = typeof status === "number" && typeof headers?.entries === "function" && (!body || typeof body.getReader === "function");
  if (isResponse) responses.add(value);
  return value;
}

/** One message on its way out: what moves with it, and what lives as long. */
export class Outgoing {
  transfer = [];
  /** Promises for the ends of its streams. @type {Promise<void>[]} */
  streams = [];
  #rpc;
  #scope;
  #ends = [];

  /** @param {import("./rpc.js").Rpc} rpc @param {Scope} [scope] without one, functions live until the answer */
  constructor(rpc, scope) {
    this.#rpc = rpc;
    this.#scope = scope;
  }

  /** The answer has come. */
  end() {
    for (const end of this.#ends) end();
  }

  /** What was thrown, or why it cannot be sent. */
  failure(error) {
    try {
      return this.encode(error);
    } catch {
      return this.encode(new HermitcrabError("io", text(error)));
    }
  }

  /** As `encode`, of what a caller gave: that may be a circle, and getters may throw. */
  argument(value) {
    try {
      return this.encode(value);
    } catch (error) {
      if (error instanceof HermitcrabError) throw error;
      const deep = /stack|recursion/i.test(error?.message);
      const reason = deep ? "it refers back to itself, or is nested too deeply" : text(error);
      throw new HermitcrabError("invalid_input", `an argument cannot be sent to the worker: ${reason}`, { cause: error });
    }
  }

  encode(value) {
    if (typeof value === "function") return this.#function(value);
    if (typeof value === "symbol") return String(value);
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map((item) => this.encode(item));
    if (value instanceof Response || responses.has(value)) return this.#response(value);
    if (isPlain(value)) return this.#plain(value);
    if (ArrayBuffer.isView(value)) return this.#bytes(value);
    if (value instanceof ArrayBuffer && value.byteLength > 0) return this.#bytes(new Uint8Array(value)).buffer;
    if (value instanceof AbortSignal) return this.#signal(value);
    if (isError(value)) return this.#error(value);
    if (value instanceof ReadableStream) return this.#stream(value);
    if (value instanceof URL) return value.href;
    if (typeof File === "function" && value instanceof File) return this.#file(value);
    if (value instanceof Blob) return value;
    const number = this.#rpc.numberOf(value);
    if (number !== undefined) return { [MARK]: "own", id: number };
    if (everProxies.has(value)) {
      throw new EnvironmentError("not_found", "a snapshot, or what else the worker made, was lost with that worker; take another");
    }
    if (isNative(value)) return value;
    // A page's objects travel by value, the worker's stay there.
    return this.#rpc.movesBytes ? this.#handle(value) : mapValues(value, (item) => this.encode(item));
  }

  #plain(value) {
    if (!(MARK in value)) return mapValues(value, (item) => this.encode(item));
    const entries = Object.entries(value).map(([name, item]) => [name, this.encode(item)]);
    return { [MARK]: "data", entries };
  }

  #bytes(view) {
    const { buffer, byteLength } = view;
    if (!(buffer instanceof ArrayBuffer) || byteLength === 0) return view;
    if (this.#rpc.movesBytes || spare.has(view)) {
      if (!this.transfer.includes(buffer)) this.transfer.push(buffer);
      return view;
    }
    if (!(view instanceof Uint8Array)) return view;
    // A message is sent a moment later, and the caller may write to its bytes until then.
    const copy = new Uint8Array(view);
    this.transfer.push(copy.buffer);
    return copy;
  }

  /** A copy of a `File` would lose its folder, and in Node its name. */
  #file(file) {
    const { name, webkitRelativePath, type, lastModified } = file;
    return { [MARK]: "file", name: webkitRelativePath || name, type, lastModified, content: file.slice(0, file.size, type) };
  }

  #function(call) {
    const scope = this.#scope ?? new Scope();
    if (!this.#scope) this.#ends.push(() => this.#rpc.forget(scope));
    const id = this.#rpc.keepFunction(call, scope);
    return { [MARK]: "function", id, oneWay: this.#rpc.hasOneWay(call) };
  }

  #signal(signal) {
    const id = this.#rpc.nextNumber();
    const reason = signal.aborted ? this.encode(signal.reason) : undefined;
    if (!signal.aborted) {
      const told = () => {
        this.#rpc.send({ type: "abort", signal: id, reason: this.failure(signal.reason) });
      };
      signal.addEventListener("abort", told, { once: true });
      this.#ends.push(() => signal.removeEventListener("abort", told));
    }
    return { [MARK]: "signal", id, aborted: signal.aborted, reason };
  }

  #error(error) {
    const { name, message, kind, code, cause } = error;
    const inner = cause === undefined ? undefined : this.encode(cause);
    const difference = error instanceof ReplayError ? { ...error } : undefined;
    return { [MARK]: "error", name, message: String(message), kind, code, cause: inner, difference };
  }

  #response({ status, statusText, headers, redirected, type, bodyUsed, body }) {
    return {
      [MARK]: "response",
      ...{ status, statusText, redirected, type, bodyUsed },
      // Names and values that no header may have throw here.
      headers: [...new Headers([...headers.entries()]).entries()],
      body: body && this.#stream(body),
    };
  }

  #stream(stream) {
    if (stream.locked) return { [MARK]: "stream", locked: true };
    return { [MARK]: "stream", id: this.#rpc.keepStream(stream, this.streams), locked: false };
  }

  #handle(object) {
    const promises = Object.entries(object)
      .filter(([, value]) => value instanceof Promise)
      .map(([name, promise]) => [name, this.#rpc.keepObject({ settled: () => promise })]);
    return { [MARK]: "handle", id: this.#rpc.keepObject(object), promises };
  }
}

/** Whether an object is data: a record, not of a class. */
export function isPlain(value) {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function isError(value) {
  return value instanceof Error || (typeof DOMException === "function" && value instanceof DOMException);
}

/** What the platform made, it knows how to clone. */
function isNative({ constructor }) {
  return typeof constructor === "function" && Function.prototype.toString.call(constructor).includes("[native code]");
}

/** A record with `change`d values. */
export function mapValues(object, change) {
  const mapped = {};
  for (const [name, value] of Object.entries(object)) {
    // `__proto__` would set the prototype instead of a property.
    Object.defineProperty(mapped, name, { value: change(value), enumerable: true, configurable: true, writable: true });
  }
  return mapped;
}
