// The log of a core, piece by piece as it is written.

import { SessionError } from "../shared/errors.js";
import { quiet } from "../shared/notification.js";

/**
 * `true`: it is kept, and `recording()` gives it; with `maxBytes` it is dropped when it becomes
 * larger, or would by an import. A function gets each piece. Pieces behind each other are a file that
 * `hermitcrab replay` and `replay` read.
 * @typedef {boolean | {maxBytes: number} | ((piece: Uint8Array) => void)} Record
 */

/** Takes the log of one core after the other: a new core begins a new log. */
export class Recording {
  /** @type {Uint8Array[] | undefined} */
  #kept;
  /** @type {(piece: Uint8Array) => void} */
  #put;
  #bytes = 0;
  #most = Infinity;
  /** What became of it, if it was dropped. */
  dropped = "";

  /** @param {Exclude<Record, false>} record */
  constructor(record) {
    if (typeof record === "function") {
      this.#put = quiet(record);
    } else {
      this.#kept = [];
      this.#put = (piece) => this.#kept?.push(piece);
      if (record !== true) this.#most = record.maxBytes;
    }
  }

  /** @param {Uint8Array} piece */
  put(piece) {
    if (piece.length === 0 || this.dropped) return;
    this.#bytes += piece.length;
    this.#put(piece);
  }

  /** Whether it takes so many bytes more. @param {number} bytes */
  fits(bytes) {
    return this.dropped !== "" || this.#bytes + bytes <= this.#most;
  }

  /** @param {string} why */
  drop(why) {
    this.beginAnew();
    this.dropped = why;
  }

  /** A core has failed and another one begins. */
  beginAnew() {
    if (this.#kept) this.#kept = [];
    this.#bytes = 0;
    this.dropped = "";
  }

  /** The log so far, if it is kept. @returns {Uint8Array | undefined} */
  bytes() {
    if (!this.#kept) return undefined;
    const bytes = new Uint8Array(this.#kept.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const piece of this.#kept) {
      bytes.set(piece, at);
      at += piece.length;
    }
    this.#kept = [bytes];
    return bytes.slice();
  }
}

/** The log of a core that keeps it. @param {import("./runtime.js").Runtime} runtime @returns {Uint8Array} */
export function recordingOf(runtime) {
  const bytes = runtime.recording();
  if (bytes) return bytes;
  throw new SessionError(
    "illegal_state",
    runtime.isRecorded ? "the log goes to the function that record was given; only with record: true it is kept" : "nothing is recorded; open the session, or create its environment, with record: true",
  );
}
