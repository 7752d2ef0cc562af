// `buffer` with what it lacks: base64url, and text in the engine's own speed.

const { Buffer: Plain, ...rest } = require("buffer-without-base64url");

const { from, isEncoding, byteLength } = Plain;
const { toString } = Plain.prototype;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const isUtf8 = (encoding) => encoding === undefined || encoding === null || /^utf-?8$/i.test(encoding);
const isUrl = (encoding) => typeof encoding === "string" && encoding.toLowerCase() === "base64url";

Plain.from = (value, encoding, length) => {
  if (typeof value !== "string") return from(value, encoding, length);
  if (isUtf8(encoding)) return from(encoder.encode(value).buffer);
  return from(value, isUrl(encoding) ? "base64" : encoding);
};
Plain.isEncoding = (encoding) => isUrl(encoding) || isEncoding(encoding);
Plain.byteLength = (value, encoding) => (isUrl(encoding) ? Plain.from(value, encoding).length : byteLength(value, encoding));
Plain.prototype.toString = function (encoding, start = 0, end = this.length) {
  if (isUtf8(encoding)) return decoder.decode(this.subarray(start, end));
  if (!isUrl(encoding)) return toString.call(this, encoding, start, end);
  return toString.call(this, "base64", start, end).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
};

module.exports = { ...rest, Buffer: Plain };
