// Tar archives: read as far as it takes to judge them, and written anew without
// what is left out. Unpacking is the core's, which also says what it cannot hold.
// (POSIX.1-2017, pax; GNU tar manual, "Basic Tar Format".)

import { EnvironmentError } from "../shared/errors.js";
import { join } from "./zip.js";

/** Bytes of a header; contents are padded to a multiple. */
export const BLOCK = 512;
/** Offset and length of the fields of a header that matter here. */
const NAME = [0, 100];
const SIZE = [124, 12];
const CHECKSUM = [148, 8];
const TYPE = 156;
const TARGET = [157, 100];
const MAGIC = [257, 6];
const PREFIX = [345, 155];
/** Of a sparse file: whether more of its map follows, and its size with the holes. */
const EXTENDED = 482;
const REAL_SIZE = [483, 12];
const EXTENDED_AGAIN = 504;

/**
 * @typedef {object} TarEntry
 * @property {string} name
 * @property {string} type one character
 * @property {string} target of a link
 * @property {number} size bytes that it takes when it is unpacked
 * @property {Uint8Array} header
 * @property {Uint8Array} data what follows the header, padding included
 * @property {number} stored bytes of the content in the archive
 */

/** Whether a tar archive may begin like this. @param {Uint8Array} head its first block */
export function beginsTar(head) {
  if (head.length < BLOCK) return false;
  if (head.every((byte) => byte === 0)) return true;
  const sum = /^ *([0-7]+)[\0 ]*$/.exec(new TextDecoder().decode(field(head, CHECKSUM)));
  return sum !== null && parseInt(sum[1], 8) === checksum(head);
}

/**
 * The entries of an archive. Records that only describe the next entry are part
 * of that.
 * @param {Uint8Array} bytes @returns {Generator<TarEntry>}
 */
export function* tarEntries(bytes) {
  const sizes = new Map();
  let said = {};
  for (let at = 0; at + BLOCK <= bytes.length; ) {
    const header = bytes.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) return;
    if (number(header, CHECKSUM) !== checksum(header)) throw damaged("the checksum of a header is wrong");
    const type = String.fromCharCode(header[TYPE]);
    const describes = "LKxg".includes(type);
    const stored = (describes ? undefined : said.size) ?? number(header, SIZE);
    let start = at + BLOCK;
    if (type === "S") {
      for (let more = header[EXTENDED]; more; more = bytes[start - BLOCK + EXTENDED_AGAIN]) start += BLOCK;
    }
    const end = start + Math.ceil(stored / BLOCK) * BLOCK;
    if (start + stored > bytes.length) throw damaged("it ends too early");
    const content = bytes.subarray(start, start + stored);
    if (type === "L") said.name = untilZero(content);
    else if (type === "K") said.target = untilZero(content);
    else if (type === "x") Object.assign(said, extensions(content));
    if (!describes) {
      const name = utf8(said.name ?? said.path ?? nameOf(header), "a name");
      const target = utf8(said.target ?? said.linkpath ?? untilZero(field(header, TARGET)), `the target of ${name}`);
      if (said.sparse) throw refused(name, "it is a sparse file in pax format; pack it without --sparse or with --format=gnu");
      const size = sizeOf(type, header, stored, sizes.get(target));
      sizes.set(name, size);
      yield { name, type, target, size, header, data: bytes.subarray(at + BLOCK, end), stored };
      said = {};
    }
    at = end;
  }
}

/**
 * An archive of `entries`.
 * @param {(TarEntry & {name: string, target: string})[]} entries by the names that they are to have
 */
export function packTar(entries) {
  const pieces = [];
  for (const entry of entries) {
    const [name, target] = [entry.name, entry.target].map((text) => new TextEncoder().encode(text));
    if (name.length > NAME[1]) pieces.push(...long("L", name));
    if (target.length > TARGET[1]) pieces.push(...long("K", target));
    const header = entry.header.slice();
    // Where there is such a field: others have their own there.
    if (new TextDecoder().decode(field(header, MAGIC)) === "ustar\0") field(header, PREFIX).fill(0);
    put(header, NAME, name);
    put(header, TARGET, target);
    pieces.push(finished(header, entry.stored), entry.data);
    // The last one may lack its padding.
    if (entry.data.length % BLOCK > 0) pieces.push(new Uint8Array(BLOCK - (entry.data.length % BLOCK)));
  }
  return join([...pieces, new Uint8Array(2 * BLOCK)]);
}

/** A long name in a separate entry, as GNU tar writes it. */
function long(type, text) {
  const header = new Uint8Array(BLOCK);
  put(header, NAME, new TextEncoder().encode("././@LongLink"));
  put(header, [MAGIC[0], 8], new TextEncoder().encode("ustar  "));
  header[TYPE] = type.charCodeAt(0);
  const content = new Uint8Array(Math.ceil((text.length + 1) / BLOCK) * BLOCK);
  content.set(text);
  return [finished(header, text.length + 1), content];
}

function finished(header, size) {
  const octal = (value, digits) => new TextEncoder().encode(`${value.toString(8).padStart(digits, "0")}\0`);
  if (size < 8 ** 11) put(header, SIZE, octal(size, 11));
  put(header, CHECKSUM, octal(checksum(header), 6));
  header[CHECKSUM[0] + 7] = 0x20;
  return header;
}

/** Bytes that an entry takes when it is unpacked: a hard link becomes a copy, holes are filled. */
function sizeOf(type, header, stored, linked = 0) {
  if (type === "S") return number(header, REAL_SIZE);
  if (type === "1") return linked;
  return "07\0".includes(type) ? stored : 0;
}

/** What a pax record says of the next entry: `LENGTH KEY=VALUE\n`, again and again. */
function extensions(bytes) {
  const said = {};
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const length = parseInt(new TextDecoder().decode(bytes.subarray(at, Math.max(at, space))), 10);
    const record = bytes.subarray(space + 1, at + length);
    const equals = record.indexOf(0x3d);
    if (!(length > 0) || space < 0 || equals < 0 || at + length > bytes.length) throw damaged("a pax record cannot be read");
    const key = new TextDecoder().decode(record.subarray(0, equals));
    const value = record.subarray(equals + 1, -1);
    if (key === "path" || key === "linkpath") said[key] = value;
    if (key === "size") said.size = whole(parseInt(new TextDecoder().decode(value), 10));
    if (key.startsWith("GNU.sparse.")) said.sparse = true;
    at += length;
  }
  return said;
}

function nameOf(header) {
  const name = untilZero(field(header, NAME));
  const isPosix = new TextDecoder().decode(field(header, MAGIC)) === "ustar\0";
  const prefix = isPosix ? untilZero(field(header, PREFIX)) : [];
  return prefix.length > 0 ? join([prefix, new Uint8Array([0x2f]), name]) : name;
}

function number(header, place) {
  const bytes = field(header, place);
  // Large numbers are binary, with the first bit set.
  if (bytes[0] & 0x80) return whole(bytes.subarray(1).reduce((value, byte) => value * 256 + byte, bytes[0] & 0x7f));
  const text = new TextDecoder().decode(bytes).replace(/[\0 ]+$/, "").trim();
  return text === "" ? 0 : whole(/^[0-7]+(?:\0.*)?$/.test(text) ? parseInt(text, 8) : NaN);
}

function whole(value) {
  if (!Number.isSafeInteger(value) || value < 0) throw damaged("a number in a header cannot be read");
  return value;
}

/** The sum of a header's bytes, its own field counted as blanks. */
function checksum(header) {
  const own = field(header, CHECKSUM).reduce((sum, byte) => sum + byte, 0);
  return header.reduce((sum, byte) => sum + byte, 0) - own + 8 * 0x20;
}

function field(header, [start, length]) {
  return header.subarray(start, start + length);
}

function put(header, place, bytes) {
  const into = field(header, place);
  into.fill(0);
  into.set(bytes.subarray(0, into.length));
}

function untilZero(bytes) {
  const end = bytes.indexOf(0);
  return end < 0 ? bytes : bytes.subarray(0, end);
}

function utf8(bytes, what) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new EnvironmentError("invalid_input", `cannot take ${new TextDecoder().decode(bytes)}: ${what} is not UTF-8`);
  }
}

function refused(name, reason) {
  return new EnvironmentError("invalid_input", `cannot take ${name}: ${reason}`);
}

function damaged(reason) {
  return new EnvironmentError("invalid_input", `the archive is not a tar file or is damaged: ${reason}`);
}
