// Keys that a server sends back, such as an error that quotes the one it
// refuses, are replaced before the core sees them. The door alone knows them.
// host/src/http/redact.rs does the same for the native faces.

import { text } from "./errors.js";

/** What stands in the place of a key. */
const REDACTED = "[redacted]";

/**
 * Shortest key that is looked for: names that servers without keys want in the
 * place of one (`ollama`, `lm-studio`) are words that an answer may hold.
 */
const SHORTEST = 12;

const ENCODER = new TextEncoder();
const REPLACEMENT = ENCODER.encode(REDACTED);

/** The keys to look for, and how to find them in bytes. */
export class Keys {
  #keys;
  #bytes;
  /** By byte, whether a key begins with it. */
  #firsts = new Uint8Array(256);

  /** @param {Iterable<string>} keys those that can be told from other text are looked for */
  constructor(keys) {
    // The longest first, for keys that begin with another.
    this.#keys = [...keys].filter((key) => key.length >= SHORTEST).sort((a, b) => b.length - a.length);
    this.#bytes = this.#keys.map((key) => ENCODER.encode(key));
    for (const [first] of this.#bytes) this.#firsts[first] = 1;
  }

  /** @param {string} text */
  replace(text) {
    return this.#keys.reduce((text, key) => text.replaceAll(key, REDACTED), text);
  }

  /** An error that says the same; the same one if it quotes no key. @param {unknown} error */
  replaceIn(error) {
    const said = text(error);
    const without = this.replace(said);
    return without === said ? error : new Error(without);
  }

  /**
   * What of a response the core reads.
   * @param {Response} response
   */
  replaceInResponse(response) {
    const { status, body } = response;
    if (this.#keys.length === 0) return response;
    return { status, headers: this.#headers(response.headers), body: body && { getReader: () => this.#reader(body) } };
  }

  #headers(headers) {
    const given = [...headers.entries()];
    // A fetch of the user's may have anything for a value.
    const without = given.map(([name, value]) => [name, typeof value === "string" ? this.replace(value) : value]);
    return without.some(([, value], index) => value !== given[index][1]) ? new Headers(without) : headers;
  }

  #reader(body) {
    const reader = body.getReader();
    /** End of the last piece, which may be the beginning of a key. @type {Uint8Array | undefined} */
    let held;
    const read = async () => {
      for (;;) {
        const result = await reader.read();
        const { done, value } = result;
        if (done && !held) return result;
        // The core says what is wrong with a body that does not hold bytes.
        if (!done && !(value instanceof Uint8Array)) return result;
        const piece = held ? joined([held, value ?? []]) : value;
        const { passed, rest } = this.#scan(piece, done);
        held = rest;
        if (passed.length > 0) return { done: false, value: passed };
      }
    };
    return {
      read: () => read().catch((error) => Promise.reject(this.replaceIn(error))),
      cancel: (reason) => reader.cancel(reason),
    };
  }

  /**
   * What may be passed on of `bytes`, the same ones if they hold no key, and
   * what has to wait for more, unless this is the `last` piece.
   */
  #scan(bytes, last) {
    const firsts = this.#firsts;
    const pieces = [];
    let from = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      if (firsts[bytes[at]] === 0) continue;
      const key = this.#at(bytes, at, last);
      if (!key) continue;
      if (key.length > bytes.length - at) {
        return { passed: joined([...pieces, bytes.subarray(from, at)]), rest: bytes.subarray(at) };
      }
      pieces.push(bytes.subarray(from, at), REPLACEMENT);
      from = at + key.length;
      at = from - 1;
    }
    return { passed: from === 0 ? bytes : joined([...pieces, bytes.subarray(from)]) };
  }

  /** The key that `bytes` hold from `at` on or, unless they are the `last`, begin to. */
  #at(bytes, at, last) {
    for (const key of this.#bytes) {
      if (begins(bytes, at, key) && (!last || key.length <= bytes.length - at)) return key;
    }
    return undefined;
  }
}

/** Whether `bytes` from `at` on are `key`, or its beginning if they end before it. */
function begins(bytes, at, key) {
  const length = Math.min(key.length, bytes.length - at);
  for (let index = 0; index < length; index += 1) {
    if (bytes[at + index] !== key[index]) return false;
  }
  return true;
}

function joined(pieces) {
  if (pieces.length === 1) return pieces[0];
  const all = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
