// The projects that a storage keeps: opening one, listing and deleting them. A
// project belongs to one tab or process at a time.
//
//   const project = await openProject("demo", { files: { "app.py": "…" } });
//   const session = await createSession({ …, env: project.env, history: project.history });
//   project.keep(session);

import { acceptInEnvironment } from "../shared/arguments.js";
import { EnvironmentError } from "../shared/errors.js";
import { browserStorage, lockTab } from "./browser-storage.js";
import { Project } from "./project.js";
import { isStored, load, restore, storageTrouble, unreadable } from "./stored-project.js";

/** @typedef {import("./browser-storage.js").ProjectStorage} ProjectStorage */

/**
 * @typedef {object} ProjectOptions beside those of `MemoryEnvironment.create`,
 *   whose `files` count for a new project only, and whose `readOnly` is not among them
 * @property {ProjectStorage} [storage] default: the browser's
 * @property {boolean} [readOnly] save nothing, and leave the project to other
 *   tabs; the sandbox can be changed all the same
 * @property {boolean} [takeOver] take the project from the tab that has it,
 *   which saves nothing from then on
 * @property {(status: import("./project.js").SaveStatus) => void} [onStatus] gets every attempt and
 *   what came of it; what it throws is its own affair
 */

/**
 * `openProject` with the sandboxes of `Environment`, in the page or in a worker.
 * @param {typeof import("../environment/memory-environment.js").MemoryEnvironment} Environment
 * @param {string} name
 * @param {ProjectOptions & Omit<import("../environment/memory-environment.js").MemoryOptions, "readOnly">} [given]
 * @returns {Promise<Project>}
 */
export async function openProjectIn(Environment, name, given = {}) {
  acceptInEnvironment("openProject", name, given);
  let { storage, readOnly = false, takeOver = false, onStatus, files, ...options } = given;
  let denied;
  try {
    storage ??= await browserStorage();
  } catch (error) {
    denied = error;
  }
  const project = new Project(name, storage, onStatus);
  const release = storage && !readOnly ? await lock(name, storage, takeOver, () => project.lose()) : undefined;
  let env;
  try {
    const saved = storage && (await load(name, storage));
    env = await Environment.create(saved ? options : { ...options, files });
    if (saved) await restore(name, saved.parts, env);
    await project.begin(env, { saved, readOnly, release, denied });
  } catch (error) {
    // Both at once: a sandbox that cannot be closed holds no project.
    await Promise.allSettled([env?.dispose(), Promise.resolve().then(release)]);
    throw error;
  }
  return project;
}

/** Names of the projects, sorted. @param {{storage?: ProjectStorage}} [options] @returns {Promise<string[]>} */
export async function listProjects(options = {}) {
  acceptInEnvironment("listProjects", options);
  const storage = options.storage ?? (await browserStorage());
  try {
    const names = await storage.list();
    const stored = await Promise.all(names.map((name) => isStored(name, storage)));
    return names.filter((_, index) => stored[index]);
  } catch (error) {
    throw storageTrouble("the saved projects cannot be listed", error);
  }
}

/** Deletes a project; kind `locked` if it is open. @param {string} name @param {{storage?: ProjectStorage}} [options] */
export async function deleteProject(name, options = {}) {
  acceptInEnvironment("deleteProject", name, options);
  const storage = options.storage ?? (await browserStorage());
  const release = await lock(name, storage, false, () => {});
  try {
    if (release.held && !(await release.held())) throw openElsewhere(name);
    await storage.delete(name);
  } catch (error) {
    throw storageTrouble(`the saved project ${name} cannot be deleted`, error);
  } finally {
    await release();
  }
}

async function lock(name, storage, takeOver, lost) {
  let release;
  try {
    release = await (storage.lock ?? lockTab)(name, takeOver, lost);
  } catch (error) {
    throw unreadable(name, error);
  }
  if (release) return release;
  throw openElsewhere(name);
}

function openElsewhere(name) {
  return new EnvironmentError("locked", `project ${name} is open in another tab or process; close it there, open it with readOnly, or take it over`);
}
