// The smaller modules of Node: `events`, `util`, `os`, `url`.

import { deepEqual } from "./assert.js";
import { format, inspect } from "./inspect.js";

/** Listeners by event, of each emitter. @type {WeakMap<object, Map<string | symbol, Function[]>>} */
const listening = new WeakMap();

function listenersOf(emitter) {
  if (!listening.has(emitter)) listening.set(emitter, new Map());
  return listening.get(emitter);
}

class Emitter {
  on(name, listener) {
    const listeners = listenersOf(this).get(name) ?? [];
    listeners.push(listener);
    listenersOf(this).set(name, listeners);
    return this;
  }

  once(name, listener) {
    const once = (...args) => {
      this.off(name, once);
      listener.apply(this, args);
    };
    once.listener = listener;
    return this.on(name, once);
  }

  off(name, listener) {
    const listeners = listenersOf(this).get(name) ?? [];
    const index = listeners.findLastIndex((known) => known === listener || known.listener === listener);
    if (index >= 0) listenersOf(this).set(name, listeners.toSpliced(index, 1));
    return this;
  }

  emit(name, ...args) {
    const listeners = listenersOf(this).get(name) ?? [];
    if (listeners.length === 0 && name === "error") throw args[0];
    for (const listener of [...listeners]) listener.apply(this, args);
    return listeners.length > 0;
  }

  prependListener(name, listener) {
    listenersOf(this).set(name, [listener, ...(listenersOf(this).get(name) ?? [])]);
    return this;
  }

  removeAllListeners(name) {
    if (name === undefined) listenersOf(this).clear();
    else listenersOf(this).delete(name);
    return this;
  }

  listenerCount(name) {
    return listenersOf(this).get(name)?.length ?? 0;
  }

  listeners(name) {
    return (listenersOf(this).get(name) ?? []).map((listener) => listener.listener ?? listener);
  }

  eventNames() {
    return [...listenersOf(this).keys()];
  }

  setMaxListeners() {
    return this;
  }
}

/** A function, since old code calls it on objects of its own: `EventEmitter.call(this)`. */
export function EventEmitter() {}
EventEmitter.prototype = Emitter.prototype;
Object.defineProperty(EventEmitter.prototype, "constructor", { value: EventEmitter, writable: true, configurable: true });
EventEmitter.prototype.addListener = EventEmitter.prototype.on;
EventEmitter.prototype.removeListener = EventEmitter.prototype.off;
EventEmitter.EventEmitter = EventEmitter;
EventEmitter.defaultMaxListeners = 10;
EventEmitter.once = (emitter, name) =>
  new Promise((resolve, reject) => {
    emitter.once(name, (...args) => resolve(args));
    if (name !== "error") emitter.once("error", reject);
  });

export const util = {
  inspect,
  format,
  isDeepStrictEqual: (a, b) => deepEqual(a, b, true),
  promisify: (call) =>
    function (...args) {
      return new Promise((resolve, reject) => {
        call.call(this, ...args, (error, value) => (error ? reject(error) : resolve(value)));
      });
    },
  callbackify:
    (call) =>
    (...args) => {
      const callback = args.pop();
      call(...args).then(
        (value) => queueMicrotask(() => callback(null, value)),
        (error) => queueMicrotask(() => callback(error)),
      );
    },
  inherits(Class, Super) {
    Object.setPrototypeOf(Class.prototype, Super.prototype);
    Class.super_ = Super;
  },
  deprecate: (call) => call,
  stripVTControlCharacters: (text) => text.replace(/\u001b\[[\d;]*[A-Za-z]/g, ""),
  styleText: (style, text) => text,
  types: {
    isPromise: (value) => value instanceof Promise,
    isRegExp: (value) => value instanceof RegExp,
    isDate: (value) => value instanceof Date,
    isMap: (value) => value instanceof Map,
    isSet: (value) => value instanceof Set,
    isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView),
    isUint8Array: (value) => value instanceof Uint8Array,
  },
  TextEncoder,
  TextDecoder,
};

/** @param {Record<string, string>} env */
export const makeOs = (env) => ({
  EOL: "\n",
  platform: () => "linux",
  type: () => "Linux",
  arch: () => "wasm32",
  release: () => "",
  tmpdir: () => "/tmp",
  homedir: () => env.HOME ?? "/home/user",
  hostname: () => "sandbox",
  endianness: () => "LE",
  cpus: () => [],
  availableParallelism: () => 1,
  totalmem: () => 0,
  freemem: () => 0,
  userInfo: () => ({ username: "user", uid: 1000, gid: 1000, homedir: env.HOME ?? "/home/user", shell: "/bin/bash" }),
});

export const url = {
  URL,
  URLSearchParams,
  fileURLToPath: (value) => decodeURIComponent(new URL(value).pathname),
  pathToFileURL: (path) => new URL(`file://${encodeURI(path).replace(/[?#]/g, encodeURIComponent)}`),
};
