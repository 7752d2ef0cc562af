// Projects: a sandbox, and a session in it, that survive the page. What changes
// is saved a moment later; a page that is closed in the middle of a run finds
// at its next load what was there, finished results of the running round
// included, and `session.resume()` goes on.
//
//   const project = await openProject("demo", { files: { "app.py": "…" } });
//   const session = await createSession({ …, env: project.env, history: project.history });
//   project.keep(session);

import { acceptInEnvironment, guardProject } from "./arguments.js";
import { EnvironmentError } from "./errors.js";
import { quiet } from "./quiet.js";
import { browserStorage, lockTab } from "./storage.js";
import { INDEX, VERSION, changeOf, load, restore, storageFailure, storageTrouble, unreadable } from "./stored-project.js";

/**
 * @typedef {import("./storage.js").ProjectStorage} ProjectStorage
 * @typedef {import("./sandbox.js").MemoryEnvironment} MemoryEnvironment
 * @typedef {object} SaveStatus
 * @property {"saved" | "unsaved" | "saving" | "failed"} state
 * @property {EnvironmentError} [error] why the last attempt failed; another one
 *   follows at the next change, or by itself after a while
 *
 * @typedef {object} ProjectOptions beside those of `MemoryEnvironment.create`,
 *   whose `files` count for a new project only, and whose `readOnly` is not among them
 * @property {ProjectStorage} [storage] default: the browser's
 * @property {boolean} [readOnly] save nothing, and leave the project to other
 *   tabs; the sandbox can be changed all the same
 * @property {boolean} [takeOver] take the project from the tab that has it,
 *   which saves nothing from then on
 * @property {(status: SaveStatus) => void} [onStatus] is told every attempt and
 *   what came of it; what it throws is its own affair
 */

/** Rest between a change and saving it, in ms. */
const DELAY_MS = 300;
/** Rest between a failed save and the next try, in ms: twice as long each time, up to the second. */
const RETRY_MS = [2_000, 60_000];
/** Saving may take this part of the time at most. */
const SHARE = 0.1;

/**
 * `openProject` with the sandboxes of `Environment`, in the page or in a worker.
 * @param {typeof import("./sandbox.js").MemoryEnvironment} Environment
 * @param {string} name
 * @param {ProjectOptions & Omit<import("./sandbox.js").MemoryOptions, "readOnly">} [options]
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
    return await storage.list();
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

/** A project that is open. */
export class Project {
  #storage;
  #onStatus;
  #release;
  #session;
  #unwatch;
  #unwatchSession;
  /**
   * What is stored: a snapshot of the files, what they are stored in (everything,
   * then what changed from time to time), and record and data as text.
   */
  #stored = { snapshot: undefined, parts: [], rest: undefined };
  /** In the names of what is stored from now on. */
  #owner = hex(crypto.getRandomValues(new Uint8Array(4)));
  /** Why nothing is saved any more. @type {EnvironmentError | undefined} */
  #lost;
  #data;
  /** `#data` as JSON, since it was set. */
  #dataText;
  #number = 0;
  #timer;
  #saving;
  #restMs = DELAY_MS;
  #retry;
  #retryMs = RETRY_MS[0];
  /** When it is closed; set as soon as that begins. @type {Promise<void> | undefined} */
  #closed;
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
    this.#onStatus = onStatus && quiet(onStatus);
  }

  /** @private */
  async begin(env, { saved, readOnly, release, denied }) {
    this.env = env;
    this.isNew = !saved;
    this.history = saved?.history;
    this.#data = saved?.data;
    this.readOnly = readOnly;
    this.#release = release;
    if (denied) this.#tell({ state: "failed", error: denied });
    if (readOnly || denied) return;
    if (saved) {
      this.#number = saved.number;
      // A process that was killed may have left the next piece behind.
      const [, owner = ""] = /(-[0-9a-f]+)\.tar$/.exec(saved.parts.at(-1).file) ?? [];
      await this.#remove(`files-${saved.number + 1}${owner}.tar`);
      const parts = saved.parts.map(({ archive: _, ...part }) => part);
      this.#stored = { snapshot: await env.snapshot(), parts, rest: this.#rest() };
    }
    this.#unwatch = env.onActivity(() => this.#soon());
    // What was there first counts as a change.
    if (!saved) this.#soon();
    globalThis.document?.addEventListener("visibilitychange", this.#hidden);
  }

  /** @private The project belongs to somebody else now. */
  lose() {
    if (this.#lost) return;
    this.#lost = new EnvironmentError("locked", `project ${this.name} was taken over by another tab or process, so this one saves nothing any more; export its files to keep them`);
    this.readOnly = true;
    this.#stop();
    this.#tell({ state: "failed", error: this.#lost });
  }

  /** Rejects if the project is somebody else's. */
  async #own() {
    if (!this.#lost && this.#release?.held && !(await this.#release.held())) this.lose();
    if (this.#lost) throw this.#lost;
  }

  /**
   * Saves a session's record with the files, from now on.
   * @param {import("./session.js").Session} [session] none: the next one begins
   *   a conversation of its own, and `history` is forgotten
   */
  keep(session) {
    this.#session = session;
    if (!session) this.history = undefined;
    this.#unwatchSession?.();
    this.#unwatchSession = session?.onActivity(() => this.#soon());
    this.#soon();
  }

  /**
   * Data of the host's own, such as what its page shows: any value that JSON
   * holds. It is saved with the files, some time after it was set; set it anew
   * when something in it has changed.
   * @type {any}
   */
  get data() {
    return this.#data;
  }

  set data(value) {
    this.#data = value;
    this.#dataText = undefined;
    this.#soon();
  }

  /** Saves now; rejects if that fails. What is in memory stays in any case. */
  async save() {
    if (this.#lost) throw this.#lost;
    if (this.readOnly) throw new EnvironmentError("read_only", `project ${this.name} is open for reading only; export its files to keep them`);
    if (!this.#storage) throw this.status.error;
    if (this.#closed) throw new EnvironmentError("read_only", `project ${this.name} is closed; open it again to save it`);
    await this.#saveNow();
  }

  async #saveNow() {
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
    this.#timer = undefined;
    // Two at a time would overtake each other.
    while (this.#saving) await this.#saving.catch(() => {});
    if (this.#lost) throw this.#lost;
    this.#saving = this.#save();
    try {
      await this.#saving;
    } finally {
      this.#saving = undefined;
    }
  }

  /** Saves, and leaves the project to others. The sandbox goes on in memory. */
  async close() {
    this.#closed ??= this.#close();
    await this.#closed;
  }

  async #close() {
    try {
      if (!this.readOnly && this.#storage) await this.#saveNow();
    } finally {
      this.#stop();
      free(this.#stored.snapshot);
      await this.#release?.();
    }
  }

  #stop() {
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#unwatchSession?.();
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
    globalThis.document?.removeEventListener("visibilitychange", this.#hidden);
  }

  #hidden = () => {
    if (globalThis.document.visibilityState === "hidden" && this.#timer !== undefined) this.#inBackground();
  };

  #soon() {
    if (this.#timer !== undefined || !this.#unwatch || this.#closed || this.#looking) return;
    this.#timer = setTimeout(() => this.#inBackground(), this.#restMs);
    if (this.status.state !== "unsaved") this.#tell({ state: "unsaved" });
  }

  /** What is stored beside the files, as the fields of a JSON object. */
  #rest() {
    this.#dataText ??= JSON.stringify(this.#data) ?? "null";
    return `"history":${JSON.stringify(this.history) ?? "null"},"data":${this.#dataText}`;
  }

  #inBackground() {
    // The status has told. A full disk may have room later, also if nothing changes here.
    this.save().catch(() => this.#again());
  }

  #again() {
    if (!this.#unwatch || this.#closed) return;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#inBackground(), this.#retryMs);
    // Node, Deno and Bun: what cannot be saved keeps no process.
    this.#retry.unref?.();
    this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MS[1]);
  }

  /** Saves, and tells a failure, whatever it is of. */
  async #save() {
    const room = { needed: 0 };
    try {
      await this.#own();
      await this.#write(room);
      this.#retryMs = RETRY_MS[0];
    } catch (error) {
      // What failed on the way to a loss is of no interest: `lose` has told that.
      await this.#own().catch(() => {});
      if (this.#lost) throw this.#lost;
      const failure = await storageFailure(this.name, room.needed, error);
      this.#tell({ state: "failed", error: failure });
      throw failure;
    }
  }

  /** @param {{needed: number}} room is told how many bytes are to be stored */
  async #write(room) {
    const started = performance.now();
    // Files and record of one moment: both calls look before they first wait.
    // In a worker, the files may be a moment younger than the record.
    this.#looking = true;
    // A session that is lost leaves what was known of it.
    const recording = this.#session?.record().catch(() => undefined);
    const looking = this.env.snapshot();
    this.#looking = false;
    const session = this.#session;
    const [snapshot, record] = await Promise.all([looking, recording]);
    // Another one may have taken its place meanwhile.
    if (session === this.#session) this.history = record ?? this.history;
    try {
      if (!(await this.#store(snapshot, room))) free(snapshot);
    } catch (error) {
      free(snapshot);
      throw error;
    }
    this.#restMs = Math.max(DELAY_MS, (performance.now() - started) / SHARE);
    this.#done();
  }

  /** Says whether there was anything to store. */
  async #store(snapshot, room) {
    const rest = this.#rest();
    const stored = this.#stored;
    const change = await changeOf(snapshot, stored);
    if (!change && rest === stored.rest && stored.parts.length > 0) return false;
    this.#tell({ state: "saving" });
    let { parts } = stored;
    let file;
    let number = this.#number;
    try {
      if (change) {
        number += 1;
        file = `files-${number}-${this.#owner}.tar`;
        const { archive, removed, whole } = change;
        parts = [...(whole ? [] : parts), { file, removed, bytes: archive.length }];
        room.needed = archive.length;
        await this.#storage.write(this.name, file, archive);
      }
      const index = JSON.stringify({ version: VERSION, number, parts, savedMs: Date.now() });
      const bytes = new TextEncoder().encode(`${index.slice(0, -1)},${rest}}`);
      room.needed += bytes.length;
      await this.#own();
      // The moment at which the new state counts.
      await this.#storage.write(this.name, INDEX, bytes, () => this.#own());
    } catch (error) {
      if (file) await this.#remove(file);
      throw error;
    }
    this.#number = number;
    this.#stored = { snapshot, parts, rest };
    free(stored.snapshot);
    // The next owner's state may consist of them.
    await this.#own();
    for (const old of stored.parts) if (!parts.includes(old)) await this.#remove(old.file);
    return true;
  }

  /** What is left behind takes room, and does no harm. */
  async #remove(file) {
    try {
      await this.#storage.remove(this.name, file);
    } catch {
      // Nothing counts on it.
    }
  }

  /** What has changed while it was saved is not. */
  #done() {
    const state = this.#timer === undefined ? "saved" : "unsaved";
    if (this.status.state !== state) this.#tell({ state });
  }

  #tell(status) {
    this.status = status;
    this.#onStatus?.(status);
  }
}

guardProject(Project);

/** Pages without https have no `crypto.randomUUID`. @param {Uint8Array} bytes */
function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Gives a snapshot's memory back, wherever it is. */
function free(snapshot) {
  if (snapshot) Promise.resolve().then(() => snapshot.free()).catch(() => {});
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
