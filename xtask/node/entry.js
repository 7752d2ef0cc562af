// The packages behind the modules of `node` in the sandbox, as
// `js/programs/node/packages.js`. Those that are functions are read at their first call.

export { Buffer } from "buffer";
export { default as EventEmitter } from "events";
export { default as path } from "path-browserify";

export const parse = (...args) => require("acorn").parse(...args);
export const walk = (...args) => require("acorn-walk").simple(...args);
export const inspect = (...args) => require("node-inspect-extracted").inspect(...args);
export const format = (...args) => require("node-inspect-extracted").format(...args);
export const assert = () => require("assert");
export const stream = () => require("readable-stream");
export const streamPromises = () => require("readable-stream/lib/stream/promises.js");
export const stringDecoder = () => require("string_decoder/");
export const util = () => require("util/");
export const isDeepStrictEqual = (a, b) => require("assert/build/internal/util/comparisons.js").isDeepStrictEqual(a, b);
