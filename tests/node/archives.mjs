// Archives that no well-meaning program writes, and a directory handle without
// a browser.

import { crc32 as checksum, deflateRawSync } from "node:zlib";

const bytes = (content) => (typeof content === "string" ? new TextEncoder().encode(content) : content);

/**
 * A zip archive of `{name, content}`, where `mode` (with file type), `madeBy`,
 * `flags`, `method`, `declared` (size), `crc` and `at` (offset of the data) may
 * be anything.
 */
export function packZip(entries) {
  const pieces = [];
  const directory = [];
  let offset = 0;
  for (const { name, content, mode = 0o100644, madeBy = 3, flags = 0, method = 8, declared, crc, at } of entries) {
    const plain = bytes(content);
    const data = method === 8 ? deflateRawSync(plain) : Buffer.from(plain);
    const path = Buffer.from(bytes(name));
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(flags, 2);
    common.writeUInt16LE(method, 4);
    common.writeUInt32LE(crc ?? checksumOf(plain), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(declared ?? plain.length, 18);
    common.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, path, data]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE((mode << 16) >>> 0, 6);
    tail.writeUInt32LE(at ?? offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02"), Buffer.from([20, madeBy]), common, tail, path]));
    if (at !== undefined && offset > 0) continue;
    pieces.push(local);
    offset += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", 0, "latin1");
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(offset, 16);
  return new Uint8Array(Buffer.concat([...pieces, listed, end]));
}

function checksumOf(content) {
  if (checksum) return checksum(content);
  let crc = ~0;
  for (const byte of content) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

/**
 * A tar archive of `{name, content}`, where `type`, `target`, `declared` (size)
 * and `holes` (the size of a sparse file) may be anything; `pax`: records before
 * the entry.
 */
export function packTar(entries) {
  const pieces = entries.flatMap(({ name, content, type = "0", target = "", declared, holes, pax }) => {
    const data = bytes(content);
    const header = Buffer.alloc(512);
    if (pax) return [...records(pax), ...parts(packTar([{ name, content, type, target, declared, holes }]))];
    header.write(name, 0);
    header.write("0000644\0", 100);
    header.write("0000000\0", 108);
    header.write("0000000\0", 116);
    header.write(`${(declared ?? data.length).toString(8).padStart(11, "0")}\0`, 124);
    header.write("00000000000\0", 136);
    header.write("        ", 148);
    header.write(type, 156);
    header.write(target, 157);
    header.write(holes === undefined ? "ustar\x0000" : "ustar  \0", 257, "latin1");
    if (holes !== undefined) {
      // One piece of data at the start, and the end.
      const octal = (value) => `${value.toString(8).padStart(11, "0")}\0`;
      header.write(octal(0) + octal(data.length) + octal(holes) + octal(0), 386);
      header.write(octal(holes), 483);
    }
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return [header, data, Buffer.alloc((512 - (data.length % 512)) % 512)];
  });
  return new Uint8Array(Buffer.concat([...pieces, Buffer.alloc(1024)]));
}

/** A pax header with these records. */
function records(pax) {
  const lines = Object.entries(pax).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`;
    let length = Buffer.byteLength(rest);
    while (String(length).length + Buffer.byteLength(rest) !== length) length = String(length).length + Buffer.byteLength(rest);
    return length + rest;
  });
  return parts(packTar([{ name: "pax", content: lines.join(""), type: "x" }]));
}

/** An archive without its end. */
function parts(archive) {
  return [archive.subarray(0, -1024)];
}

/**
 * A `FileSystemDirectoryHandle` in memory; writing the file `deny` is refused, and
 * there is no room for the file `fill`. Names of files whose writing was given up
 * come to `aborted`.
 */
export function memoryHandle(options = {}) {
  const children = new Map();
  const child = (name, kind, make) => {
    if (!children.has(name)) children.set(name, make());
    if (children.get(name).kind !== kind) throw new DOMException("it is of another kind", "TypeMismatchError");
    return children.get(name);
  };
  return {
    kind: "directory",
    entries: async function* () {
      yield* children.entries();
    },
    getDirectoryHandle: async (name) => child(name, "directory", () => memoryHandle(options)),
    getFileHandle: async (name) => child(name, "file", () => fileHandle(name, options)),
  };
}

function fileHandle(name, { deny, fill, aborted = [] }) {
  let file = new File([], name);
  return {
    kind: "file",
    getFile: async () => file,
    async createWritable() {
      if (name === deny) throw new DOMException("the user declined", "NotAllowedError");
      const pieces = [];
      return {
        write: async (data) => {
          if (name === fill) throw new DOMException("the disk is full", "QuotaExceededError");
          pieces.push(data.slice());
        },
        abort: async () => void aborted.push(name),
        close: async () => void (file = new File(pieces, name)),
      };
    },
  };
}
