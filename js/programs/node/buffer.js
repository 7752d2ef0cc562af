// `Buffer`, as far as programs that handle files and text use it.

const encoder = new TextEncoder();

const ENCODINGS = {
  utf8: {
    decode: (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes),
    encode: (text) => encoder.encode(text),
  },
  latin1: {
    decode: (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""),
    encode: (text) => Uint8Array.from(text, (character) => character.charCodeAt(0)),
  },
  ascii: {
    decode: (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte & 127)).join(""),
    encode: (text) => Uint8Array.from(text, (character) => character.charCodeAt(0)),
  },
  hex: {
    decode: (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""),
    encode: (text) => Uint8Array.from(text.match(/[0-9a-f]{2}/gi) ?? [], (pair) => Number.parseInt(pair, 16)),
  },
  base64: {
    decode: (bytes) => btoa(ENCODINGS.latin1.decode(bytes)),
    encode: (text) => {
      const plain = text
        .replace(/-/g, "+")
        .replace(/_/g, "/")
        .replace(/[^A-Za-z0-9+/]/g, "");
      return ENCODINGS.latin1.encode(atob(plain.length % 4 === 1 ? plain.slice(0, -1) : plain));
    },
  },
  base64url: {
    decode: (bytes) => ENCODINGS.base64.decode(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, ""),
    encode: (text) => ENCODINGS.base64.encode(text),
  },
  utf16le: {
    decode: (bytes) => new TextDecoder("utf-16le").decode(bytes),
    encode: (text) => new Uint8Array(Uint16Array.from(text.split(""), (unit) => unit.charCodeAt(0)).buffer),
  },
};

/** @param {string} [name] */
function encoding(name = "utf8") {
  const known = { "utf-8": "utf8", binary: "latin1", ucs2: "utf16le", "utf-16le": "utf16le" };
  const found = ENCODINGS[known[name?.toLowerCase()] ?? name?.toLowerCase() ?? "utf8"];
  if (!found) throw Object.assign(new TypeError(`Unknown encoding: ${name}`), { code: "ERR_UNKNOWN_ENCODING" });
  return found;
}

/** @param {Uint8Array} bytes @param {string} [name] */
export function decode(bytes, name) {
  return encoding(name).decode(bytes);
}

/** What may be written, as bytes. @param {string | ArrayBufferView | ArrayBuffer} data @param {string} [name] */
export function encode(data, name) {
  if (typeof data === "string") return encoding(name).encode(data);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const message = `The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${data === null ? "null" : typeof data}`;
  throw Object.assign(new TypeError(message), { code: "ERR_INVALID_ARG_TYPE" });
}

export class Buffer extends Uint8Array {
  static from(value, name, length) {
    if (typeof value === "string") return own(encoding(name).encode(value));
    if (value instanceof ArrayBuffer) return new Buffer(value, name, length);
    if (value?.type === "Buffer") return own(Uint8Array.from(value.data));
    return own(Uint8Array.from(value));
  }

  static alloc(size, fill, name) {
    const buffer = new Buffer(size);
    return fill === undefined ? buffer : buffer.fill(fill, name);
  }

  static allocUnsafe(size) {
    return new Buffer(size);
  }

  static isBuffer(value) {
    return value instanceof Buffer;
  }

  static isEncoding(name) {
    return name?.toLowerCase() in ENCODINGS || ["utf-8", "binary", "ucs2", "utf-16le"].includes(name?.toLowerCase());
  }

  static byteLength(value, name) {
    return typeof value === "string" ? encoding(name).encode(value).length : value.byteLength;
  }

  static concat(list, length = list.reduce((sum, piece) => sum + piece.length, 0)) {
    const joined = new Buffer(length);
    let end = 0;
    for (const piece of list) {
      const kept = piece.subarray(0, length - end);
      joined.set(kept, end);
      end += kept.length;
    }
    return joined;
  }

  static compare(a, b) {
    const length = Math.min(a.length, b.length);
    for (let index = 0; index < length; index += 1) {
      if (a[index] !== b[index]) return a[index] < b[index] ? -1 : 1;
    }
    return Math.sign(a.length - b.length);
  }

  toString(name, start = 0, end = this.length) {
    return decode(this.subarray(start, end), name);
  }

  toJSON() {
    return { type: "Buffer", data: Array.from(this) };
  }

  equals(other) {
    return Buffer.compare(this, other) === 0;
  }

  compare(other) {
    return Buffer.compare(this, other);
  }

  slice(start, end) {
    return this.subarray(start, end);
  }

  write(text, offset = 0, length, name) {
    const bytes = encode(text, typeof length === "string" ? length : name);
    const kept = bytes.subarray(0, Math.min(this.length - offset, typeof length === "number" ? length : Infinity));
    this.set(kept, offset);
    return kept.length;
  }

  copy(target, targetStart = 0, start = 0, end = this.length) {
    const piece = this.subarray(start, Math.min(end, start + target.length - targetStart));
    target.set(piece, targetStart);
    return piece.length;
  }

  fill(value, ...range) {
    if (typeof value !== "string") return super.fill(value, ...range);
    const bytes = encode(value);
    for (let index = 0; index < this.length; index += 1) this[index] = bytes[index % bytes.length] ?? 0;
    return this;
  }

  indexOf(value, from = 0) {
    if (typeof value === "number") return super.indexOf(value, from);
    const bytes = encode(value);
    for (let at = from; at + bytes.length <= this.length; at += 1) {
      if (bytes.every((byte, index) => this[at + index] === byte)) return at;
    }
    return -1;
  }

  includes(value, from) {
    return this.indexOf(value, from) >= 0;
  }

  readUInt8(offset = 0) {
    return this[offset];
  }

  writeUInt8(value, offset = 0) {
    this[offset] = value;
    return offset + 1;
  }
}

// `readUInt16BE`, `writeDoubleLE` and their like.
for (const [type, name, bytes] of [
  ["Int16", "Int16", 2],
  ["Uint16", "UInt16", 2],
  ["Int32", "Int32", 4],
  ["Uint32", "UInt32", 4],
  ["Float32", "Float", 4],
  ["Float64", "Double", 8],
  ["BigInt64", "BigInt64", 8],
  ["BigUint64", "BigUInt64", 8],
]) {
  for (const [order, little] of [
    ["LE", true],
    ["BE", false],
  ]) {
    const view = (buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
    Buffer.prototype[`read${name}${order}`] = function (offset = 0) {
      return view(this)[`get${type}`](offset, little);
    };
    Buffer.prototype[`write${name}${order}`] = function (value, offset = 0) {
      view(this)[`set${type}`](offset, value, little);
      return offset + bytes;
    };
  }
}

function own(bytes) {
  return new Buffer(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
