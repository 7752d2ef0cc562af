// Keys that a server sends back, such as an error that quotes the one it
// refuses, are replaced before the core sees them: as they are, and as JSON may
// write them (RFC 8259, section 7), because the core reads that afterwards: with
// a backslash before some of their characters, or with `\u002f` in their place.
// In a text within a text the backslashes are several. The door alone knows the
// keys. host/src/http/redact.rs does the same for the native faces.
//
// A key that comes in the deltas of a stream, a piece in each, is not found: that
// would take reading every provider's stream here, too, and holding its events
// back, to keep from the core what the server that sends it knows anyway.

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

const BACKSLASH = 0x5c;
/** `u`, after which four hexadecimal digits follow. */
const UNICODE = 0x75;
const DIGITS = 4;
/** By byte, the hexadecimal digit that it is; 65,536: none, as no number of four has it. */
const DIGIT = Uint32Array.from({ length: 256 }, (_, byte) => (/[0-9a-f]/i.test(String.fromCharCode(byte)) ? parseInt(String.fromCharCode(byte), 16) : 1 << 16));
/** Backslashes in a row that are looked over: a text within a text within a text. */
const MOST_BACKSLASHES = 8;
/** Bytes that one character of a key may take. */
const LONGEST = MOST_BACKSLASHES + 1 + DIGITS;

/** How many bytes of something there are cannot be said: they end in the middle of it. */
const UNFINISHED = Infinity;

/** The keys to look for, and how to find them in bytes. */
export class Keys {
  #keys = [];
  /** By byte, whether a key begins with it, or with an escape that does. */
  #firsts = new Uint8Array(256);

  /**
   * Looks for these from now on, also in responses that have begun.
   * @param {Iterable<string>} keys those that can be told from other text are looked for
   */
  lookFor(keys) {
    // The longest first, for keys that begin with another.
    const looked = [...keys].filter(isLookedFor).sort((a, b) => b.length - a.length);
    this.#firsts.fill(0);
    this.#keys = looked.map((key) => {
      const plain = ENCODER.encode(key);
      // How many backslashes there are says how deep the text is, and is not compared.
      return { plain, letters: plain.filter((byte) => byte !== BACKSLASH) };
    });
    for (const { plain, letters } of this.#keys) this.#firsts[plain[0]] = this.#firsts[letters[0]] = this.#firsts[BACKSLASH] = 1;
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
    for (const { plain, letters } of this.#keys) {
      for (const length of [plainLength(bytes, at, plain), escapedLength(bytes, at, letters, plain.length * LONGEST)]) {
        if (length > 0 && !(last && length === UNFINISHED)) return length;
      }
    }
    return 0;
  }
}

function isLookedFor(key) {
  return key.length >= (/[0-9]/.test(key) ? SHORTEST_WITH_DIGIT : SHORTEST);
}

/** Length of `key` in `bytes` from `at` on, as it is; 0: it is not there. */
function plainLength(bytes, at, key) {
  const length = Math.min(key.length, bytes.length - at);
  for (let index = 0; index < length; index += 1) {
    if (bytes[at + index] !== key[index]) return 0;
  }
  return length < key.length ? UNFINISHED : length;
}

/** The same for its `letters` as JSON may write them, in `most` bytes. */
function escapedLength(bytes, at, letters, most) {
  let end = at;
  let matched = 0;
  while (matched < letters.length) {
    const start = end;
    while (bytes[end] === BACKSLASH && end - start <= MOST_BACKSLASHES) end += 1;
    if (end - start > MOST_BACKSLASHES || end - at > most) return 0;
    if (end === bytes.length) return UNFINISHED;
    let byte = bytes[end];
    end += 1;
    if (byte === UNICODE && end - 1 > start) {
      byte = numbered(bytes, end, letters[matched]);
      if (byte === UNFINISHED) return UNFINISHED;
      end += DIGITS;
      if (byte === BACKSLASH) continue;
    }
    if (byte !== letters[matched]) return 0;
    matched += 1;
  }
  return letters.length === 0 ? 0 : end - at;
}

/** Which of `letter` and a backslash the digits at `at` stand for; `undefined`: neither. */
function numbered(bytes, at, letter) {
  let number = 0;
  for (let left = DIGITS; left > 0; left -= 1) {
    if (at + DIGITS - left === bytes.length) {
      return [letter, BACKSLASH].some((code) => code >> (4 * left) === number) ? UNFINISHED : undefined;
    }
    number = 16 * number + DIGIT[bytes[at + DIGITS - left]];
  }
  return number === letter || number === BACKSLASH ? number : undefined;
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
