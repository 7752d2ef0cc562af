// What the entry files of the core with a sandbox export.

import { setDefaultEnvironment } from "./session.js";
import { openProjectIn } from "./project.js";
import { MemoryEnvironment } from "./sandbox.js";

setDefaultEnvironment(() => MemoryEnvironment.create());

export * from "./api-slim.js";
export { Project, deleteProject, listProjects } from "./project.js";
export { MemoryEnvironment };
export { scriptedFetch } from "./script.js";

/**
 * Opens a project, or begins one. Rejects with kind `locked` if another tab has
 * it. Where nothing can be stored, the project works in memory and its status
 * says why.
 * @param {string} name 1 to 100 characters
 * @param {import("./project.js").ProjectOptions & Omit<import("./sandbox.js").MemoryOptions, "readOnly">} [options]
 * @returns {Promise<import("./project.js").Project>}
 */
export function openProject(name, options) {
  return openProjectIn(MemoryEnvironment, name, options);
}

/**
 * @typedef {import("./sandbox.js").MemoryOptions} MemoryOptions
 * @typedef {import("./sandbox.js").Files} Files
 * @typedef {import("./sandbox.js").Program} Program
 * @typedef {import("./sandbox.js").FileChange} FileChange
 * @typedef {import("./sandbox.js").Snapshot} Snapshot
 */
