// A project that is open: a sandbox, and a session in it, that survive the page.
// What changes is saved a moment later; a page that is closed in the middle of a
// run finds at its next load what was there, finished results of the running
// round included, and `session.resume()` goes on.

import { guardProject, ours } from "../shared/arguments.js";
import { EnvironmentError } from "../shared/errors.js";
import { quiet } from "../shared/notification.js";
import { data as dataProblem } from "../shared/plain-data.js";
import { ProjectStore, free } from "./project-store.js";
import { storageFailure } from "./stored-project.js";

/**
 * @typedef {import("../environment/memory-environment.js").MemoryEnvironment} MemoryEnvironment
 * @typedef {object} SaveStatus
 * @property {"saved" | "unsaved" | "saving" | "failed"} state
 * @property {EnvironmentError} [error] why the last attempt failed; another one
 *   follows at the next change, or by itself after a while
 */

/** Rest between a change and saving it, in ms. */
const DELAY_MS = 300;
/** Rest between a failed save and the next try, in ms: twice as long each time, up to the second. */
const RETRY_MS = [2_000, 60_000];
/** Saving may take this part of the time at most. */
const SHARE = 0.1;

/** A project that is open. */
export class Project {
  #onStatus;
  #release;
  #session;
  #unwatch;
  #unwatchSession;
  /** None where nothing can be stored. @type {ProjectStore | undefined} */
  #store;
  /** Why nothing is saved any more. @type {EnvironmentError | undefined} */
  #lost;
  #data;
  /** `#data` as JSON, since it was set. */
  #dataText;
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
    ours(this);
    this.name = name;
    this.#store = storage && new ProjectStore(name, storage, () => this.#own());
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
      await this.#store.goOn(saved, await env.snapshot(), this.#rest());
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
   * @param {import("../session/session.js").Session} [session] none: the next one begins
   *   a new conversation, and `history` is forgotten
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
   * when something in it has changed. What JSON does not hold, such as NaN or a
   * `Map`, is refused.
   * @type {any}
   */
  get data() {
    return this.#data;
  }

  set data(value) {
    const problem = dataProblem(value, "project.data");
    if (problem) throw new EnvironmentError("invalid_input", problem);
    this.#data = value;
    this.#dataText = undefined;
    this.#soon();
  }

  /** Saves now; rejects if that fails. What is in memory stays in any case. */
  async save() {
    if (this.#lost) throw this.#lost;
    if (this.readOnly) throw new EnvironmentError("read_only", `project ${this.name} is open for reading only; export its files to keep them`);
    if (!this.#store) throw this.status.error;
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
      if (!this.readOnly && this.#store) await this.#saveNow();
    } finally {
      this.#stop();
      this.#store?.free();
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

  /** @param {{needed: number}} room gets how many bytes are to be stored */
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
      const begins = () => this.#tell({ state: "saving" });
      if (!(await this.#store.store(snapshot, this.#rest(), room, begins))) free(snapshot);
    } catch (error) {
      free(snapshot);
      throw error;
    }
    this.#restMs = Math.max(DELAY_MS, (performance.now() - started) / SHARE);
    this.#done();
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
