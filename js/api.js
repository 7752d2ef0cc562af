// What the entry files of the core with a sandbox export.

import { openProjectIn } from "./projects.js";
import { MemoryEnvironment } from "./sandbox.js";
import { createSessionIn } from "./session.js";

export * from "./api-slim.js";
export { Project } from "./project.js";
export { deleteProject, listProjects } from "./projects.js";
export { MemoryEnvironment };
export { scriptedFetch } from "./script.js";

/** @type {typeof import("./api-slim.js").createSession} */
export function createSession(options = {}) {
  return createSessionIn(options, () => MemoryEnvironment.create());
}

/**
 * Opens a project, or begins one. Rejects with kind `locked` if another tab has
 * it. Where nothing can be stored, the project works in memory and its status
 * says why.
 * @param {string} name 1 to 100 characters
 * @param {import("./projects.js").ProjectOptions & Omit<import("./sandbox.js").MemoryOptions, "readOnly">} [options]
 * @returns {Promise<import("./project.js").Project>}
 */
export function openProject(name, options) {
  return openProjectIn(MemoryEnvironment, name, options);
}

/**
 * @typedef {import("./sandbox.js").MemoryOptions} MemoryOptions
 * @typedef {import("./sandbox.js").Files} Files
 * @typedef {import("./program.js").Program} Program
 * @typedef {import("./program.js").FileChange} FileChange
 * @typedef {import("./snapshot.js").Snapshot} Snapshot
 */
