// What the entry files of the core with a sandbox export.

import { setDefaultEnvironment } from "./session.js";
import { MemoryEnvironment } from "./sandbox.js";

setDefaultEnvironment(() => MemoryEnvironment.create());

export * from "./api-slim.js";
export { MemoryEnvironment };
export { scriptedFetch } from "./script.js";

/**
 * @typedef {import("./sandbox.js").MemoryOptions} MemoryOptions
 * @typedef {import("./sandbox.js").Files} Files
 * @typedef {import("./sandbox.js").Program} Program
 * @typedef {import("./sandbox.js").FileChange} FileChange
 * @typedef {import("./sandbox.js").Snapshot} Snapshot
 */
