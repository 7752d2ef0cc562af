// Output of a program in a worker: sent on in pieces, so that what a program
// printed is there when it is ended, and cut at a limit.

import { Exit } from "./wasi.js";

/** The first pieces are sent at once: whatever comes next may be an endless loop. */
const AT_ONCE = 1_000;
/** Bytes and ms after which later ones are sent, together. */
const PIECE_BYTES = 65_536;
const PIECE_MS = 50;

/**
 * @param {number} limit bytes that a program may write to each stream
 * @param {(message: unknown, transfer: ArrayBuffer[]) => void} [post]
 */
export function output(limit, post = (...message) => postMessage(...message)) {
  const streams = { stdout: { pieces: [], bytes: 0 }, stderr: { pieces: [], bytes: 0 } };
  let waiting = 0;
  let pieces = 0;
  let sent = performance.now();

  const flush = () => {
    for (const [stream, { pieces }] of Object.entries(streams)) {
      for (const data of pieces.splice(0)) post({ kind: "output", stream, data }, [data.buffer]);
    }
    waiting = 0;
    sent = performance.now();
  };
  return {
    flush,
    /** @param {"stdout" | "stderr"} stream @param {Uint8Array} data bytes that nobody else holds */
    write(stream, data) {
      const place = streams[stream];
      const room = limit - place.bytes;
      if (data.length > room) {
        place.pieces.push(data.slice(0, room));
        place.bytes = limit;
        const sentence = `output was cut and the program ended: the limit is ${limit} bytes per stream\n`;
        streams.stderr.pieces.push(new TextEncoder().encode(sentence));
        throw new Exit(1);
      }
      place.pieces.push(data);
      place.bytes += data.length;
      waiting += data.length;
      pieces += 1;
      if (pieces <= AT_ONCE || waiting >= PIECE_BYTES || performance.now() - sent >= PIECE_MS) flush();
    },
  };
}
