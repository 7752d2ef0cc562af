// Results of tools that come in pieces: streams of the web and of Node, and
// async iterators. Pieces are text, bytes of UTF-8, or else JSON, a line each.

/** @import { AbortSignal } from "../platform.js" */

/** Characters that a result may have. */
const MAX_LENGTH = 64 << 20;

/** @param {any} value */
export function isStreamed(value) {
  return typeof value?.[Symbol.asyncIterator] === "function" || typeof value?.getReader === "function";
}

/**
 * All of it, as text.
 * @param {any} source @param {AbortSignal} signal ends it
 * @param {(piece: string) => void} show is given each piece as it comes
 * @returns {Promise<string>}
 */
export async function drained(source, signal, show) {
  const pieces = piecesOf(source);
  const stop = () => void Promise.resolve(pieces.return?.()).catch(() => {});
  signal.addEventListener("abort", stop, { once: true });
  const decoder = new TextDecoder();
  let all = "";
  const take = (piece) => {
    if (piece === "") return;
    show(piece);
    all += piece;
  };
  try {
    for (;;) {
      const { done, value } = await pieces.next();
      if (done) break;
      take(textOf(value, decoder));
      if (all.length <= MAX_LENGTH) continue;
      stop();
      throw new Error(`the result has more than ${MAX_LENGTH} characters and was given up`);
    }
    take(decoder.decode());
    return all;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** @returns {AsyncIterator<unknown>} */
function piecesOf(source) {
  if (typeof source[Symbol.asyncIterator] === "function") return source[Symbol.asyncIterator]();
  const reader = source.getReader();
  return { next: () => reader.read(), return: () => reader.cancel() };
}

function textOf(piece, decoder) {
  if (typeof piece === "string") return piece;
  if (piece instanceof ArrayBuffer || ArrayBuffer.isView(piece)) return decoder.decode(piece, { stream: true });
  const line = JSON.stringify(piece);
  return line === undefined ? "" : `${line}\n`;
}
