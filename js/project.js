// Projects: a sandbox, and a session in it, that survive the page. What changes
// is saved a moment later; a page that is closed in the middle of a run finds
// at its next load what was there, finished results of the running round
// included, and `session.resume()` goes on.
//
//   const project = await openProject("demo", { files: { "app.py": "…" } });
//   const session = await createSession({ …, env: project.env, history: project.history });
//   project.keep(session);

import { EnvironmentError } from "./errors.js";
import { browserStorage, lockTab } from "./storage.js";

/**
 * @typedef {import("./storage.js").ProjectStorage} ProjectStorage
 * @typedef {object} SaveStatus
 * @property {"saved" | "unsaved" | "saving" | "failed"} state
 * @property {EnvironmentError} [error] why the last attempt failed; the next
 *   change makes another one
 *
 * @typedef {object} ProjectOptions beside those of `MemoryEnvironment.create`,
 *   whose `files` count for a new project only
 * @property {ProjectStorage} [storage] default: the browser's
 * @property {boolean} [readOnly] save nothing, and leave the project to other
 *   tabs; the sandbox can be changed all the same
 * @property {boolean} [takeOver] take the project from the tab that has it,
 *   which saves nothing from then on
 * @property {(status: SaveStatus) => void} [onStatus]
 */

const VERSION = 1;
const INDEX = "project.json";
/** Rest between a change and saving it, in ms. */
const DELAY_MS = 300;
/** Saving may take this part of the time at most. */
const SHARE = 0.1;

/**
 * `openProject` with the sandboxes of `Environment`, in the page or in a worker.
 * @param {typeof import("./sandbox.js").MemoryEnvironment} Environment
 * @param {string} name @param {ProjectOptions} [options]
 * @returns {Promise<Project>}
 */
export async function openProjectIn(Environment, name, { storage, readOnly = false, takeOver = false, onStatus, files, ...options } = {}) {
  checkName(name);
  let denied;
  try {
    storage ??= await browserStorage();
  } catch (error) {
    denied = error;
  }
  const project = new Project(name, storage, onStatus);
  const release = storage && !readOnly ? await lock(name, storage, takeOver, () => project.lose()) : undefined;
  try {
    const saved = storage && (await load(name, storage));
    const env = await Environment.create(saved ? options : { ...options, files });
    if (saved) await env.replaceTree(saved.tree);
    await project.begin(env, { saved, readOnly, release, denied });
  } catch (error) {
    release?.();
    throw error;
  }
  return project;
}

/** Names of the projects, sorted. @param {{storage?: ProjectStorage}} [options] @returns {Promise<string[]>} */
export async function listProjects({ storage } = {}) {
  return (storage ?? (await browserStorage())).list();
}

/** Deletes a project; kind `locked` if it is open. @param {string} name @param {{storage?: ProjectStorage}} [options] */
export async function deleteProject(name, { storage } = {}) {
  checkName(name);
  storage ??= await browserStorage();
  const release = await lock(name, storage, false, () => {});
  try {
    await storage.delete(name);
  } finally {
    release();
  }
}

/** A project that is open. */
export class Project {
  #storage;
  #onStatus;
  #release;
  #session;
  #unwatch;
  #unwatchSession;
  /** What is stored: a snapshot of the files, the name of their archive, the record's text. */
  #stored = { snapshot: undefined, tree: undefined, history: undefined };
  #number = 0;
  #timer;
  #saving;
  #restMs = DELAY_MS;
  #closed = false;
  /** Looking is an activity of the sandbox, too, but changes nothing. */
  #looking = false;

  /** @type {string} */
  name;
  /** The sandbox. @type {MemoryEnvironment} */
  env;
  /** Whether there was nothing stored. @type {boolean} */
  isNew;
  /** The session's record, for `createSession({ history })`. @type {object | undefined} */
  history;
  /** Whether nothing is saved, because it was opened so or another tab took over. @type {boolean} */
  readOnly;
  /** @type {SaveStatus} */
  status = { state: "saved" };

  /** @private use `openProject` */
  constructor(name, storage, onStatus) {
    this.name = name;
    this.#storage = storage;
    this.#onStatus = onStatus;
  }

  /** @private */
  async begin(env, { saved, readOnly, release, denied }) {
    this.env = env;
    this.isNew = !saved;
    this.history = saved?.history;
    this.readOnly = readOnly;
    this.#release = release;
    if (denied) this.#tell({ state: "failed", error: denied });
    if (readOnly || denied) return;
    if (saved) {
      this.#number = saved.number;
      this.#stored = { snapshot: await env.snapshot(), tree: saved.treeName, history: JSON.stringify(saved.history) };
    }
    this.#unwatch = env.onActivity(() => this.#soon());
    // What was there first counts as a change.
    if (!saved) this.#soon();
    globalThis.document?.addEventListener("visibilitychange", this.#hidden);
  }

  /** @private The project belongs to somebody else now. */
  lose() {
    this.readOnly = true;
    this.#stop();
    this.#tell({ state: "failed", error: new EnvironmentError("locked", `project ${this.name} was taken over by another tab, so this one saves nothing any more; export its files to keep them`) });
  }

  /** Saves a session's record with the files, from now on. @param {import("./session.js").Session} session */
  keep(session) {
    this.#session = session;
    this.#unwatchSession?.();
    this.#unwatchSession = session.onActivity(() => this.#soon());
    this.#soon();
  }

  /** Saves now; rejects if that fails. What is in memory stays in any case. */
  async save() {
    if (this.readOnly) throw new EnvironmentError("read_only", `project ${this.name} is open for reading only; export its files to keep them`);
    if (!this.#storage) throw this.status.error;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // Two at a time would overtake each other.
    while (this.#saving) await this.#saving.catch(() => {});
    if (this.readOnly) return;
    this.#saving = this.#save();
    try {
      await this.#saving;
    } finally {
      this.#saving = undefined;
    }
  }

  /** Saves, and leaves the project to others. The sandbox goes on in memory. */
  async close() {
    if (this.#closed) return;
    this.#closed = true;
    try {
      if (!this.readOnly && this.#storage) await this.save();
    } finally {
      this.#stop();
      await this.#release?.();
    }
  }

  #stop() {
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#unwatchSession?.();
    clearTimeout(this.#timer);
    globalThis.document?.removeEventListener("visibilitychange", this.#hidden);
  }

  #hidden = () => {
    if (globalThis.document.visibilityState === "hidden" && this.#timer !== undefined) this.#inBackground();
  };

  #soon() {
    if (this.#timer !== undefined || !this.#unwatch || this.#closed || this.#looking) return;
    this.#timer = setTimeout(() => this.#inBackground(), this.#restMs);
  }

  #inBackground() {
    // The status has told.
    this.save().catch(() => {});
  }

  async #save() {
    const started = performance.now();
    // Files and record of one moment: both calls look before they first wait.
    // In a worker, the files may be a moment younger than the record.
    this.#looking = true;
    // A session that is lost leaves what was known of it.
    const recording = this.#session?.record().catch(() => undefined);
    const looking = this.env.snapshot();
    this.#looking = false;
    const [snapshot, record] = await Promise.all([looking, recording]);
    this.history = record ?? this.history;
    const history = JSON.stringify(this.history);
    const stored = this.#stored;
    const filesChanged = !(await isSame(stored.snapshot, snapshot));
    if (!filesChanged && history === stored.history && stored.tree !== undefined) {
      free(snapshot);
      return;
    }
    this.#tell({ state: "saving" });
    let needed = 0;
    let tree = stored.tree;
    try {
      if (filesChanged) {
        const archive = await snapshot.exportTar("/");
        needed = archive.length;
        this.#number += 1;
        tree = `tree-${this.#number}.tar`;
        await this.#storage.write(this.name, tree, archive);
      }
      const index = JSON.stringify({ version: VERSION, number: this.#number, tree, savedMs: Date.now(), history: this.history });
      const bytes = new TextEncoder().encode(index);
      needed += bytes.length;
      // The moment at which the new state counts.
      await this.#storage.write(this.name, INDEX, bytes);
    } catch (error) {
      free(snapshot);
      if (tree !== stored.tree) await this.#storage.remove(this.name, tree).catch(() => {});
      const failure = await storageFailure(this.name, needed, error);
      this.#tell({ state: "failed", error: failure });
      throw failure;
    }
    if (filesChanged && stored.tree !== undefined) await this.#storage.remove(this.name, stored.tree).catch(() => {});
    free(stored.snapshot);
    this.#stored = { snapshot, tree, history };
    this.#restMs = Math.max(DELAY_MS, (performance.now() - started) / SHARE);
    this.#tell({ state: "saved" });
  }

  #tell(status) {
    this.status = status;
    this.#onStatus?.(status);
  }
}

/** Gives a snapshot's memory back, wherever it is. */
function free(snapshot) {
  if (snapshot) Promise.resolve().then(() => snapshot.free()).catch(() => {});
}

/** Whether nothing differs; a snapshot of a worker that is gone tells nothing. */
async function isSame(one, other) {
  try {
    return Boolean(one && (await other.isSame(one)));
  } catch {
    return false;
  }
}

async function lock(name, storage, takeOver, lost) {
  const release = await (storage.lock ?? lockTab)(name, takeOver, lost);
  if (release) return release;
  throw new EnvironmentError("locked", `project ${name} is open in another tab; close it there, open it with readOnly, or take it over`);
}

async function load(name, storage) {
  const bytes = await storage.read(name, INDEX);
  if (!bytes) return undefined;
  const damaged = (why) => new EnvironmentError("io", `the saved project ${name} cannot be read: ${why}; delete it to begin anew`);
  let index;
  try {
    index = JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw damaged(error.message);
  }
  if (index.version !== VERSION) throw damaged(`it has format ${index.version}, this version reads format ${VERSION}`);
  const tree = await storage.read(name, index.tree);
  if (!tree) throw damaged("its files are missing");
  return { tree, treeName: index.tree, number: index.number, history: index.history };
}

/** Why storing failed, and how much is needed. */
async function storageFailure(name, needed, error) {
  const full = error?.name === "QuotaExceededError" || error?.code === "ENOSPC";
  if (full) {
    const { quota, usage } = (await globalThis.navigator?.storage?.estimate?.().catch(() => undefined)) ?? {};
    const free = quota === undefined ? "" : `, and ${megabytes(Math.max(0, quota - usage))} are free`;
    return new EnvironmentError(
      "storage_full",
      `saving project ${name} needs ${megabytes(needed)}${free}; free some space or export the project; the work goes on in memory`,
      { cause: error },
    );
  }
  const denied = ["NotAllowedError", "SecurityError", "InvalidStateError"].includes(error?.name) || ["EACCES", "EPERM", "EROFS"].includes(error?.code);
  return new EnvironmentError(
    denied ? "storage_denied" : "io",
    `project ${name} cannot be saved: ${error?.message ?? error}; the work goes on in memory, so export it to keep it`,
    { cause: error },
  );
}

function checkName(name) {
  if (typeof name !== "string" || name === "" || name.length > 100) {
    throw new EnvironmentError("invalid_input", "the name of a project is a text of 1 to 100 characters");
  }
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
