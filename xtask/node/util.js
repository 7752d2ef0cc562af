// `util` with the `inspect` of Node's own source, and promises of what says how to make them.

const inspected = require("node-inspect-extracted");
const util = require("util-without-inspect");

const custom = Symbol.for("nodejs.util.promisify.custom");
const promisify = (call) => call?.[custom] ?? util.promisify(call);

module.exports = { ...util, ...inspected, promisify: Object.assign(promisify, { custom }) };
