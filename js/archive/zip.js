// Zip archives: the container, read and written here, over the platform's own
// deflate. Limits and paths must be judged from the central directory before
// anything is unpacked, and modes and links live only there. (PKWARE's
// APPNOTE.TXT 6.3; extra field 0x5455 as Info-ZIP writes it.)

import { EnvironmentError } from "../shared/errors.js";

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const END_64 = 0x06064b50;
const LOCATOR_64 = 0x07064b50;

const ENCRYPTED = 1;
const UTF8 = 1 << 11;
const STORED = 0;
const DEFLATED = 8;

/** File types in the upper bits of a Unix mode. */
const TYPE = 0o170000;
const DIRECTORY = 0o040000;
const REGULAR = 0o100000;
const LINK = 0o120000;

/** Bytes of the records at the end. */
const END_BYTES = 22;
const LOCATOR_64_BYTES = 20;
const END_64_BYTES = 56;
/** Longest comment behind the end record. */
const MAX_COMMENT = 0xffff;
/** Bytes from which on deflating saves any. */
const WORTH_IT = 64;
/** Longest target of a link. */
const MAX_TARGET = 4096;
/** Entries and bytes that the format holds without its 64-bit extension. */
const MAX_ENTRIES = 0xffff;
const MAX_BYTES = 0xffffffff;

/**
 * @typedef {object} ZipEntry
 * @property {string} name with `/` between its parts
 * @property {"file" | "directory" | "link"} type
 * @property {number} size of the content, as declared
 * @property {number} [mode] permission bits, if the archive has them
 * @property {number} [modifiedMs]
 */

/**
 * The entries of an archive, judged before any is unpacked.
 * @param {Uint8Array | Blob} archive
 * @param {(count: number) => void} judge gets how many there are before they
 *   are read; throws if they are too many
 * @returns {Promise<{entries: ZipEntry[], read: (entry: ZipEntry) => Promise<Uint8Array>}>}
 *   `read` gives exactly the declared bytes or throws
 */
export async function openZip(archive, judge) {
  const source = sourceOf(archive);
  const { count, offset, size, shift } = await directoryOf(source);
  judge(count);
  const bytes = await source(offset + shift, offset + shift + size);
  const places = new Map();
  const entries = [];
  let packed = 0;
  let at = 0;
  for (let index = 0; index < count; index += 1) {
    const { entry, place, length } = centralEntry(bytes, at);
    at += length;
    packed += place.packed;
    place.offset += shift;
    // Entries that share their data: a bomb that needs no ratio.
    if (packed > source.size) throw damaged("its entries overlap");
    entries.push(entry);
    places.set(entry, place);
  }
  return { entries, read: (entry) => content(source, entry, places.get(entry)) };
}

/**
 * An archive of `entries`; `read` gives the content of a file.
 * @param {(ZipEntry & {path: string, target?: string})[]} entries
 * @param {(path: string) => Uint8Array} read
 * @returns {Promise<Uint8Array>}
 */
export async function packZip(entries, read) {
  if (entries.length > MAX_ENTRIES) {
    throw new EnvironmentError("too_large", `a zip archive holds ${MAX_ENTRIES} entries, not ${entries.length}; export a tar archive`);
  }
  const pieces = [];
  const directory = [];
  let offset = 0;
  const add = (entry, { plain, data }) => {
    const name = new TextEncoder().encode(entry.type === "directory" ? `${entry.path}/` : entry.path);
    const deflated = data !== plain;
    const common = commonFields({ entry, name, crc: crc32(plain), packed: data.length, size: plain.length, deflated });
    const local = record(LOCAL, [[2, 20], ...common], [name, timestamp(entry)]);
    const type = { file: REGULAR, directory: DIRECTORY, link: LINK }[entry.type];
    const attributes = ((type | entry.mode) << 16) >>> 0;
    directory.push(
      record(
        CENTRAL,
        // Made on Unix: the mode counts. Then: no comment, first disk.
        [[2, 0x031e], [2, 20], ...common, [2, 0], [2, 0], [2, 0], [4, attributes], [4, offset]],
        [name, timestamp(entry)],
      ),
    );
    pieces.push(local, data);
    offset += local.length + data.length;
    if (offset > MAX_BYTES) throw new EnvironmentError("too_large", "a zip archive holds 4 GiB at most; export a tar archive");
  };
  for (const batch of batches(entries, ({ size }) => size)) {
    const packed = await Promise.all(batch.map((entry) => deflated(plainContent(entry, read))));
    batch.forEach((entry, index) => add(entry, packed[index]));
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  const count = entries.length;
  const end = record(END, [[2, 0], [2, 0], [2, count], [2, count], [4, size], [4, offset], [2, 0]], []);
  return join([...pieces, ...directory, end]);
}

/**
 * Runs of items that are worked on together: a stream of the platform's takes
 * its time to start, whatever it carries, and must not carry all at once.
 * @template T @param {T[]} items @param {(item: T) => number} bytesOf
 */
export function* batches(items, bytesOf) {
  let batch = [];
  let bytes = 0;
  for (const item of items) {
    batch.push(item);
    bytes += bytesOf(item);
    if (batch.length < 32 && bytes < 4 << 20) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

/** A content and what is stored of it: deflated, if that is less. */
async function deflated(plain) {
  if (plain.length < WORTH_IT) return { plain, data: plain };
  const small = await pump(plain, new CompressionStream("deflate-raw"));
  return { plain, data: small.length < plain.length ? small : plain };
}

/** Joins pieces of bytes. @param {Uint8Array[]} pieces */
export function join(pieces) {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** A function that gives a range of the archive, and its `size`. */
function sourceOf(archive) {
  const range = async (start, end) => {
    if (start < 0 || end > range.size || start > end) throw damaged("it ends too early");
    if (archive instanceof Uint8Array) return archive.subarray(start, end);
    return new Uint8Array(await archive.slice(start, end).arrayBuffer());
  };
  range.size = archive instanceof Uint8Array ? archive.length : archive.size;
  return range;
}

/** Whether an archive has what ends a zip archive, whatever is around that. @param {Uint8Array | Blob} archive */
export async function endsZip(archive) {
  return directoryOf(sourceOf(archive)).then(
    () => true,
    () => false,
  );
}

/**
 * Where the central directory is. `shift`: bytes before the archive that its
 * offsets do not count, such as the program of one that extracts itself.
 */
async function directoryOf(source) {
  const start = Math.max(0, source.size - END_BYTES - MAX_COMMENT);
  const tail = await source(start, source.size);
  const view = viewOf(tail);
  for (let at = tail.length - END_BYTES; at >= 0; at -= 1) {
    if (view.getUint32(at, true) !== END) continue;
    const behind = tail.length - at - END_BYTES - view.getUint16(at + 20, true);
    if (behind < 0) continue;
    const said = { count: view.getUint16(at + 10, true), size: view.getUint32(at + 12, true), offset: view.getUint32(at + 16, true) };
    const directory = await placed(source, start + at, said);
    // What looks like the record may stand in the comment, or in what follows the
    // archive: the right one ends there, or has its directory.
    if (behind === 0 || (directory.isThere && directory.count > 0)) return directory;
  }
  throw new EnvironmentError("invalid_input", "the archive is not a zip file or is damaged: it has no end record");
}

/** The directory that an end record at `end` speaks of, or the 64-bit one before it. */
async function placed(source, end, said) {
  const locator = end - LOCATOR_64_BYTES;
  if ((await signature(source, locator)) !== LOCATOR_64) return shifted(source, end, said);
  const place = large(viewOf(await source(locator, end)), 8);
  const at = (await signature(source, place)) === END_64 ? place : locator - END_64_BYTES;
  if ((await signature(source, at)) !== END_64) throw damaged("its 64-bit end record is missing");
  const wide = viewOf(await source(at, at + END_64_BYTES));
  return shifted(source, at, { count: large(wide, 32), size: large(wide, 40), offset: large(wide, 48) });
}

/** The directory ends where its end record begins, or is where that says. */
async function shifted(source, end, { count, size, offset }) {
  const shift = end - size - offset;
  if (shift !== 0 && (await signature(source, end - size)) === CENTRAL) return { count, size, offset, shift, isThere: true };
  return { count, size, offset, shift: 0, isThere: (await signature(source, offset)) === CENTRAL };
}

/** The number that a record begins with; `undefined`: nothing is there. */
async function signature(source, at) {
  if (at < 0 || at + 4 > source.size) return undefined;
  return viewOf(await source(at, at + 4)).getUint32(0, true);
}

function centralEntry(bytes, at) {
  const view = viewOf(bytes);
  if (at + 46 > bytes.length || view.getUint32(at, true) !== CENTRAL) throw damaged("its directory is cut off");
  const flags = view.getUint16(at + 8, true);
  const nameLength = view.getUint16(at + 28, true);
  const extraLength = view.getUint16(at + 30, true);
  const length = 46 + nameLength + extraLength + view.getUint16(at + 32, true);
  if (at + length > bytes.length) throw damaged("its directory is cut off");
  const madeOn = view.getUint16(at + 4, true) >> 8;
  const attributes = view.getUint32(at + 38, true);
  const unixMode = madeOn === 3 || madeOn === 19 ? attributes >>> 16 : 0;
  const raw = nameOf(bytes.subarray(at + 46, at + 46 + nameLength), flags, madeOn);
  const fields = extraFields(bytes.subarray(at + 46 + nameLength, at + 46 + nameLength + extraLength));
  const place = {
    method: view.getUint16(at + 10, true),
    crc: view.getUint32(at + 16, true),
    packed: view.getUint32(at + 20, true),
    offset: view.getUint32(at + 42, true),
  };
  let size = view.getUint32(at + 24, true);
  // The 64-bit field holds only what does not fit above, in this order.
  let wide = 0;
  const widened = (value) => {
    if (value !== MAX_BYTES || !fields.zip64) return value;
    wide += 8;
    if (wide > fields.zip64.byteLength) throw damaged(`the size of ${raw} is missing`);
    return large(fields.zip64, wide - 8);
  };
  size = widened(size);
  place.packed = widened(place.packed);
  place.offset = widened(place.offset);
  if (flags & ENCRYPTED) throw refused(raw, "it is encrypted; unpack the archive with its password first");
  const type = typeOf(raw, unixMode & TYPE);
  const entry = {
    name: raw.replace(/\/+$/, "") || raw,
    type,
    size: type === "directory" ? 0 : size,
    mode: unixMode ? unixMode & 0o7777 : undefined,
    modifiedMs: fields.modifiedMs ?? dosTime(view.getUint16(at + 14, true), view.getUint16(at + 12, true)),
  };
  if (type === "link" && size > MAX_TARGET) throw refused(raw, "the target of the link is too long");
  if (type !== "directory" && place.method !== STORED && place.method !== DEFLATED) {
    throw refused(raw, `it is compressed by method ${place.method}; pack it with deflate`);
  }
  return { entry, place, length };
}

function typeOf(name, type) {
  if (type === LINK) return "link";
  if (type === DIRECTORY || name.endsWith("/")) return "directory";
  if (type === 0 || type === REGULAR) return "file";
  throw refused(name, "it is a device, pipe or socket");
}

/** Names are UTF-8 if they say so or look so, else in the old code page. */
function nameOf(bytes, flags, madeOn) {
  let name;
  try {
    name = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    if (flags & UTF8) throw refused(new TextDecoder().decode(bytes), "its name is not UTF-8");
    name = Array.from(bytes, (byte) => (byte < 128 ? String.fromCharCode(byte) : CODE_PAGE_437[byte - 128])).join("");
  }
  // Some programs on Windows write `\`, against the standard.
  const windows = madeOn === 0 || madeOn === 10 || madeOn === 14;
  const placed = windows && !name.includes("/") ? name.replaceAll("\\", "/") : name;
  // Nobody means a file of such a name, wherever it was packed; `..` and `/` are the core's to refuse.
  if (/^[A-Za-z]:[\\/]/.test(name)) throw refused(name, "it starts at a drive of Windows; pack relative paths");
  if (name.includes("\\") && name.split(/[\\/]/).includes("..")) throw refused(name, "it leads out of the directory");
  return placed;
}

const CODE_PAGE_437 =
  "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0";

function extraFields(bytes) {
  const view = viewOf(bytes);
  const fields = {};
  for (let at = 0; at + 4 <= bytes.length; ) {
    const length = view.getUint16(at + 2, true);
    if (at + 4 + length > bytes.length) break;
    const field = new DataView(bytes.buffer, bytes.byteOffset + at + 4, length);
    const id = view.getUint16(at, true);
    if (id === 1) fields.zip64 = field;
    if (id === 0x5455 && length >= 5 && field.getUint8(0) & 1) fields.modifiedMs = field.getInt32(1, true) * 1000;
    at += 4 + length;
  }
  return fields;
}

async function content(source, { name, size }, { method, crc, packed, offset }) {
  const header = viewOf(await source(offset, offset + 30));
  if (header.getUint32(0, true) !== LOCAL) throw damaged(`the data of ${name} is missing`);
  const start = offset + 30 + header.getUint16(26, true) + header.getUint16(28, true);
  const data = await source(start, start + packed);
  const bytes = method === STORED ? data : await inflated(name, data, size);
  if (bytes.length !== size) throw refused(name, `it holds ${bytes.length} bytes, not the ${size} that it declares`);
  if (crc32(bytes) !== crc) throw refused(name, "its checksum is wrong: the archive is damaged");
  return bytes;
}

async function inflated(name, data, size) {
  if (size === 0) return new Uint8Array();
  try {
    return await pump(data, new DecompressionStream("deflate-raw"), (bytes) => {
      if (bytes > size) throw refused(name, `it holds more than the ${size} bytes that it declares`);
    });
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    throw refused(name, "its data is damaged");
  }
}

/**
 * `data` through a stream of the platform's. `judge` gets the bytes so far
 * and may throw; nothing more is then unpacked.
 * @param {Uint8Array | ReadableStream<Uint8Array>} data
 * @param {{readable: ReadableStream, writable: WritableStream}} stream
 * @param {(bytes: number) => void} [judge]
 */
export async function pump(data, stream, judge) {
  const input = data instanceof Uint8Array ? new Blob([data]).stream() : data;
  const reader = input.pipeThrough(stream).getReader();
  const pieces = [];
  let bytes = 0;
  try {
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      bytes += value.length;
      judge?.(bytes);
      pieces.push(value);
    }
  } catch (error) {
    await reader.cancel().catch(() => {});
    throw error;
  }
  return pieces.length === 1 ? pieces[0] : join(pieces);
}

function plainContent({ type, path, target }, read) {
  if (type === "file") return read(path);
  return new TextEncoder().encode(type === "link" ? target : "");
}

function commonFields({ entry, name, crc, packed, size, deflated }) {
  const { date, time } = toDosTime(entry.modifiedMs);
  return [
    [2, UTF8], [2, deflated ? DEFLATED : STORED], [2, time], [2, date],
    [4, crc], [4, packed], [4, size], [2, name.length], [2, 9],
  ];
}

function timestamp({ modifiedMs }) {
  const field = new DataView(new ArrayBuffer(9));
  field.setUint16(0, 0x5455, true);
  field.setUint16(2, 5, true);
  field.setUint8(4, 1);
  field.setInt32(5, Math.min(Math.floor(modifiedMs / 1000), 0x7fffffff), true);
  return new Uint8Array(field.buffer);
}

function record(signature, fields, rest) {
  const view = new DataView(new ArrayBuffer(4 + fields.reduce((sum, [width]) => sum + width, 0)));
  view.setUint32(0, signature, true);
  let at = 4;
  for (const [width, value] of fields) {
    if (width === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += width;
  }
  return join([new Uint8Array(view.buffer), ...rest]);
}

/** The format's own times are local and count in steps of 2 s from 1980. */
function dosTime(date, time) {
  if (date === 0) return undefined;
  return new Date(1980 + (date >> 9), ((date >> 5) & 15) - 1, date & 31, time >> 11, (time >> 5) & 63, (time & 31) * 2).getTime();
}

function toDosTime(ms) {
  const at = new Date(Math.max(ms, Date.UTC(1980, 0, 2)));
  const year = Math.min(at.getFullYear() - 1980, 127);
  return {
    date: (year << 9) | ((at.getMonth() + 1) << 5) | at.getDate(),
    time: (at.getHours() << 11) | (at.getMinutes() << 5) | (at.getSeconds() >> 1),
  };
}

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

function crc32(bytes) {
  let crc = 0xffffffff;
  for (let at = 0; at < bytes.length; at += 1) crc = CRC[(crc ^ bytes[at]) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

function viewOf(bytes) {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A number of 64 bits; what is beyond 2^53 is beyond any archive, too. */
function large(view, at) {
  if (at + 8 > view.byteLength) throw damaged("a 64-bit field is cut off");
  return Number(view.getBigUint64(at, true));
}

function damaged(why) {
  return new EnvironmentError("invalid_input", `the zip archive is damaged: ${why}`);
}

function refused(name, why) {
  return new EnvironmentError("invalid_input", `cannot take ${name}: ${why}`);
}
