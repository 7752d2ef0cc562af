// What the entry files of the core with a sandbox export.

import { openProjectIn } from "./projects.js";
import { forkIn } from "./replay.js";
import { MemoryEnvironment, adoptSandbox } from "./sandbox.js";
import { createSessionIn } from "./session.js";
import { warmUp as warmUpIn } from "./warm-up.js";

export * from "./api-slim.js";
export { Project } from "./project.js";
export { deleteProject, listProjects } from "./projects.js";
export { MemoryEnvironment };
export { ReplayError } from "./errors.js";
export { replay } from "./replay.js";
export { scriptedFetch } from "./script.js";

/** @type {typeof import("./api-slim.js").createSession} */
export function createSession(options = {}) {
  return createSessionIn(options, (made) => MemoryEnvironment.create(made));
}

/**
 * Goes on live from a round of a run: the log is repeated up to there, with its files as they
 * were. The session stands still before its next request: `resume()` or `proceed()` lets it go on,
 * with what it heard meanwhile. Where the round was the last of its input, it waits for the next
 * one. Its request begins with the same bytes as that of the run did.
 * @param {import("./replay.js").Log} log
 * @param {import("./replay.js").ForkOptions} options
 * @returns {Promise<import("./session.js").Session>}
 */
export function fork(log, options) {
  return forkIn(log, options, adoptSandbox);
}

/**
 * Has the engine compile what a first command needs: for a page that has nothing
 * else to do. It takes some 40 ms of the page's thread, later less; Chromium keeps
 * what was compiled for the next load if the page rests for 2 s afterwards. A
 * worker does it unasked. Never rejects.
 * @returns {Promise<void>}
 */
export function warmUp() {
  return warmUpIn((options) => MemoryEnvironment.create(options));
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
 * @typedef {import("./sandbox.js").MemorySettings} MemorySettings
 * @typedef {import("./sandbox.js").Files} Files
 * @typedef {import("./sandbox.js").Archive} Archive
 * @typedef {import("./archive.js").ImportOptions} ImportOptions
 * @typedef {import("./shell.js").Shell} Shell
 * @typedef {import("./shell.js").ShellOptions} ShellOptions
 * @typedef {import("./projects.js").ProjectOptions} ProjectOptions
 * @typedef {import("./project.js").SaveStatus} SaveStatus
 * @typedef {import("./storage.js").ProjectStorage} ProjectStorage
 * @typedef {import("./recording.js").Record} Record
 * @typedef {import("./replay.js").Log} Log
 * @typedef {import("./replay.js").ReplayOptions} ReplayOptions
 * @typedef {import("./replay.js").Replayed} Replayed
 * @typedef {import("./replay.js").ForkOptions} ForkOptions
 * @typedef {import("./program.js").Program} Program
 * @typedef {import("./program.js").ProgramCall} ProgramCall
 * @typedef {import("./program.js").ProgramResult} ProgramResult
 * @typedef {import("./program.js").FileChange} FileChange
 * @typedef {import("./snapshot.js").Snapshot} Snapshot
 */
