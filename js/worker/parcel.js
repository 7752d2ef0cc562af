// Files on their way to a worker. A message takes some 10 µs longer for each
// buffer in it, so small files travel in one.

import { spare } from "./outgoing.js";

/** Bytes of a small file at most. */
const SMALL = 64 * 1024;

/**
 * @typedef {object} Parcel
 * @property {string[]} paths
 * @property {(string | Uint8Array | number)[]} contents of each; a number: so many bytes of `small`,
 *   behind those of the file before
 * @property {Uint8Array} small
 */

const isSmall = (content) => content instanceof Uint8Array && content.length <= SMALL;

/**
 * @param {import("../sandbox.js").Files | Iterable<File> | undefined} files
 * @returns {Parcel | File[] | undefined} whatever is a list becomes an array
 */
export function pack(files) {
  if (files === undefined) return undefined;
  if (typeof files[Symbol.iterator] === "function") return [...files];
  const paths = Object.keys(files);
  const contents = paths.map((path) => files[path]);
  const small = new Uint8Array(contents.reduce((size, content) => size + (isSmall(content) ? content.length : 0), 0));
  spare.add(small);
  let at = 0;
  const packed = contents.map((content) => {
    if (!isSmall(content)) return content;
    small.set(content, at);
    at += content.length;
    return content.length;
  });
  return { paths, contents: packed, small };
}

/** @param {Parcel | File[]} parcel @returns {import("../sandbox.js").Files | File[]} */
export function unpack(parcel) {
  if (Array.isArray(parcel)) return parcel;
  const { paths, contents, small } = parcel;
  /** Takes `__proto__` as a path like any other. @type {import("../sandbox.js").Files} */
  const files = Object.create(null);
  let at = 0;
  contents.forEach((content, index) => {
    const isHere = typeof content === "number";
    files[paths[index]] = isHere ? new Uint8Array(small.buffer, at, content) : content;
    if (isHere) at += content;
  });
  return files;
}
