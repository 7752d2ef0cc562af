// Keys that a server sends back, such as an error that quotes the one it
// refuses, are replaced before the core sees them: as they stand, and as writers
// of JSON write them (RFC 8259, section 7), because the core reads that
// afterwards. The door alone knows the keys. host/src/keys.rs does the same for
// the native faces.
//
// A key within a JSON text within a JSON text is not found, nor one of which a
// server sends a piece in each delta of a stream: what the core then puts together
// is in no log and in no saved session (`js/core/host.js`).

import { text } from "../shared/errors.js";

/** @import { Response } from "../platform.js" */

/** What stands in the place of a key. */
const REDACTED = "[redacted]";

/**
 * Shortest key that is looked for: names that servers without keys want in the
 * place of one (`ollama`, `lm-studio`, `not-needed`) are words that an answer
 * may hold.
 */
const SHORTEST = 12;
/** The same for one that holds a digit, as those words do not. */
const SHORTEST_WITH_DIGIT = 8;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });
const REPLACEMENT = ENCODER.encode(REDACTED);

/** How many bytes of something there are cannot be said: they end in the middle of it. */
const UNFINISHED = Infinity;

/** The keys to look for, and how to find them in bytes. */
export class Keys {
  /** All that is looked for, the longest first: a key may begin with another. @type {Uint8Array[]} */
  #keys = [];
  /** The same as texts. @type {string[]} */
  #spelled = [];
  /** By byte, whether a key begins with it. */
  #firsts = new Uint8Array(256);

  /**
   * Looks for these from now on, also in responses that have begun.
   * @param {Iterable<string>} keys those that are distinct enough from other text are looked for
   */
  lookFor(keys) {
    this.#spelled = [...keys].filter(isLookedFor).flatMap(spellings).sort((a, b) => b.length - a.length);
    this.#keys = this.#spelled.map((key) => ENCODER.encode(key));
    this.#firsts.fill(0);
    for (const [first] of this.#keys) this.#firsts[first] = 1;
  }

  /** Whether a key stands in it. @param {Uint8Array} bytes */
  areIn(bytes) {
    return this.#keys.length > 0 && this.#scan(bytes, true).passed !== bytes;
  }

  /** Whether a key stands in it. @param {string} text */
  areInText(text) {
    return this.#spelled.some((key) => text.includes(key));
  }

  /** @param {string} text */
  replace(text) {
    const bytes = ENCODER.encode(text);
    const { passed } = this.#scan(bytes, true);
    return passed === bytes ? text : DECODER.decode(passed);
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
    return { status, headers: this.#headers(response.headers), body: body && { getReader: () => this.#reader(body) } };
  }

  #headers(headers) {
    if (this.#keys.length === 0) return headers;
    const given = [...headers.entries()];
    // A fetch of the user's may have anything for a value.
    const without = given.map(([name, value]) => [name, typeof value === "string" ? this.replace(value) : value]);
    return without.some(([, value], index) => value !== given[index][1]) ? new Headers(without) : headers;
  }

  /** A body may be anything that has a `getReader`; what is wrong with it is what reading it throws. */
  #reader(body) {
    let reader;
    const begun = () => (reader ??= body.getReader());
    /** End of the last piece, which may be the beginning of a key. @type {Uint8Array | undefined} */
    let held;
    const read = async () => {
      for (;;) {
        const result = await begun().read();
        const { done, value } = result;
        if (this.#keys.length === 0 || (done && !held)) return result;
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
      cancel: async (reason) => {
        try {
          await begun().cancel(reason);
        } catch {
          // Nobody waits for what comes of it.
        }
      },
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
      const length = this.#lengthAt(bytes, at, last);
      if (length === 0) continue;
      if (length === UNFINISHED) {
        return { passed: joined([...pieces, bytes.subarray(from, at)]), rest: bytes.subarray(at) };
      }
      pieces.push(bytes.subarray(from, at), REPLACEMENT);
      from = at + length;
      at = from - 1;
    }
    return { passed: from === 0 ? bytes : joined([...pieces, bytes.subarray(from)]) };
  }

  /** Length of the key that `bytes` hold from `at` on or, unless they are the `last`, begin to; 0: none. */
  #lengthAt(bytes, at, last) {
    for (const key of this.#keys) {
      const length = lengthOf(key, bytes, at);
      if (length > 0 && !(last && length === UNFINISHED)) return length;
    }
    return 0;
  }
}

function isLookedFor(key) {
  return key.length >= (/[0-9]/.test(key) ? SHORTEST_WITH_DIGIT : SHORTEST);
}

/** How a key may stand in a text or in JSON: writers differ in what they escape. @param {string} key */
function spellings(key) {
  const written = JSON.stringify(key).slice(1, -1);
  const number = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const upper = (character) => number(character).toUpperCase().replace("U", "u");
  // As JavaScript, PHP, Go, Gson and .NET do.
  const ways = [
    written,
    written.replace(/\//g, "\\/"),
    written.replace(/[<>&]/g, number),
    written.replace(/[<>&=']/g, number),
    written.replace(/\\"|[<>&'+`]/g, (escaped) => upper(escaped.at(-1) ?? "")),
  ];
  return [...new Set([key, ...ways])];
}

/** Length of `key` in `bytes` from `at` on; 0: it is not there. */
function lengthOf(key, bytes, at) {
  const length = Math.min(key.length, bytes.length - at);
  for (let index = 0; index < length; index += 1) {
    if (bytes[at + index] !== key[index]) return 0;
  }
  return length < key.length ? UNFINISHED : length;
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
