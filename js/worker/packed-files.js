// Files on their way to a worker. A message takes some 10 µs longer for each
// buffer in it, so small files travel in one.

import { EnvironmentError } from "../shared/errors.js";
import { spare } from "./outgoing.js";

/** Bytes of a small file at most. */
const SMALL = 64 * 1024;

/**
 * @typedef {object} PackedFiles
 * @property {string[]} paths
 * @property {(string | Uint8Array | ArrayBuffer | undefined)[]} contents of each that is not small
 * @property {(number | undefined)[]} sizes of those that are: so many bytes of `small`, behind
 *   those of the file before
 * @property {Uint8Array} small
 */

const isSmall = (content) => content instanceof Uint8Array && content.length <= SMALL;

/**
 * @param {import("../environment/memory-environment.js").Files | Iterable<File> | undefined} files
 * @returns {PackedFiles | File[] | undefined} whatever is a list becomes an array
 */
export function pack(files) {
  if (files === undefined) return undefined;
  if (typeof files[Symbol.iterator] === "function") return [...files];
  const paths = Object.keys(files);
  const contents = paths.map((path) => files[path]);
  const sizes = contents.map((content) => (isSmall(content) ? content.length : undefined));
  const small = room(sizes.reduce((sum, size = 0) => sum + size, 0));
  spare.add(small);
  let at = 0;
  sizes.forEach((size, index) => {
    if (size === undefined) return;
    small.set(contents[index], at);
    contents[index] = undefined;
    at += size;
  });
  return { paths, contents, sizes, small };
}

/** @param {number} bytes */
function room(bytes) {
  try {
    return new Uint8Array(bytes);
  } catch (cause) {
    throw new EnvironmentError("too_large", `the files have ${bytes} bytes, and there is no memory for them`, { cause });
  }
}

/** @param {PackedFiles | File[]} packed @returns {import("../environment/memory-environment.js").Files | File[]} */
export function unpack(packed) {
  if (Array.isArray(packed)) return packed;
  const { paths, contents, sizes, small } = packed;
  /** Takes `__proto__` as a path like any other. @type {import("../environment/memory-environment.js").Files} */
  const files = Object.create(null);
  let at = 0;
  paths.forEach((path, index) => {
    const size = sizes[index];
    files[path] = size === undefined ? contents[index] : new Uint8Array(small.buffer, at, size);
    at += size ?? 0;
  });
  return files;
}
