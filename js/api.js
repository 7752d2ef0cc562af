// What the entry files of the core with a sandbox export.

import { warmUp as warmUpIn } from "./core/warm-up.js";
import { MemoryEnvironment, adoptSandbox } from "./environment/memory-environment.js";
import { openProjectIn } from "./project/projects.js";
import { forkIn } from "./session/replay.js";
import { createSessionIn } from "./session/session.js";

export * from "./api-slim.js";
export { Project } from "./project/project.js";
export { deleteProject, listProjects } from "./project/projects.js";
export { MemoryEnvironment };
export { ReplayError } from "./shared/errors.js";
export { replay } from "./session/replay.js";
export { scriptedFetch } from "./model/scripted-model.js";

/** @type {typeof import("./api-slim.js").createSession} */
export function createSession(options = {}) {
  return createSessionIn(options, (made) => MemoryEnvironment.create(made));
}

/**
 * Goes on live from a round of a run: the log is repeated up to there, with its files as they
 * were. The session stands still before its next request: `resume()` or `proceed()` lets it go on,
 * with what it heard meanwhile. Where the round was the last of its input, it waits for the next
 * one. Its request begins with the same bytes as that of the run did.
 * @param {import("./session/replay.js").Log} log
 * @param {import("./session/replay.js").ForkOptions} options
 * @returns {Promise<import("./session/session.js").Session>}
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
 * @param {import("./project/projects.js").ProjectOptions & Omit<import("./environment/memory-environment.js").MemoryOptions, "readOnly">} [options]
 * @returns {Promise<import("./project/project.js").Project>}
 */
export function openProject(name, options) {
  return openProjectIn(MemoryEnvironment, name, options);
}

/**
 * @typedef {import("./environment/memory-environment.js").MemoryOptions} MemoryOptions
 * @typedef {import("./environment/memory-environment.js").MemorySettings} MemorySettings
 * @typedef {import("./environment/memory-environment.js").Files} Files
 * @typedef {import("./environment/memory-environment.js").Archive} Archive
 * @typedef {import("./archive/import-export.js").ImportOptions} ImportOptions
 * @typedef {import("./environment/shell.js").Shell} Shell
 * @typedef {import("./environment/shell.js").ShellOptions} ShellOptions
 * @typedef {import("./project/projects.js").ProjectOptions} ProjectOptions
 * @typedef {import("./project/project.js").SaveStatus} SaveStatus
 * @typedef {import("./project/browser-storage.js").ProjectStorage} ProjectStorage
 * @typedef {import("./core/recording.js").Record} Record
 * @typedef {import("./session/replay.js").Log} Log
 * @typedef {import("./session/replay.js").ReplayOptions} ReplayOptions
 * @typedef {import("./session/replay.js").Replayed} Replayed
 * @typedef {import("./session/replay.js").ForkOptions} ForkOptions
 * @typedef {import("./environment/program.js").Program} Program
 * @typedef {import("./environment/program.js").ProgramCall} ProgramCall
 * @typedef {import("./environment/program.js").ProgramResult} ProgramResult
 * @typedef {import("./environment/program.js").FileChange} FileChange
 * @typedef {import("./environment/snapshot.js").Snapshot} Snapshot
 */
