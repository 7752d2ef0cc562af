// A session as its runtime keeps it, from opening to end. It knows no `Session`,
// so that one that nobody has any more can be closed.

import { recordingOf } from "../core/recording.js";
import { macrotask } from "../platform/clock.js";
import { CoreError, SessionError } from "../shared/errors.js";
import { endsInput, isSessionEnd } from "./event-stream.js";

/**
 * @typedef {{record: object, history: object[]}} LastState of a session whose core has failed
 *
 * What stays known of a session that is over.
 * @typedef {LastState & {config?: object, toolNames?: string[]}} Remains
 */

export class OpenSession {
  #runtime;
  #core;
  /** The sandbox that was made for it. @type {{dispose: () => Promise<void>} | undefined} */
  #made;
  /** What its last `ERROR` said. */
  #failure;
  /** Why its core is gone. @type {Error | undefined} */
  #lost;
  /** @type {Remains | undefined} */
  #remains;
  #isOver = false;
  /** Whether nobody has its `Session` any more. */
  #isLeft = false;
  #seq = 0;
  #keys;

  /** @type {string} @readonly */
  id;
  /** Resolves when the session is over. @type {Promise<void>} @readonly */
  closed;

  /**
   * @param {import("../core/runtime.js").Runtime} runtime @param {any} core
   * @param {import("./session.js").SessionPart} part
   * @param {{made?: object, leave: () => void, seq?: number}} environment `leave` says that the
   *   session needs it no more; `seq`: number of its last event
   */
  constructor(runtime, core, part, { made, leave, seq = 0 }) {
    this.#runtime = runtime;
    this.#core = core;
    this.#made = made;
    this.#seq = seq;
    this.#keys = part.keys;
    this.id = core.id;
    let close;
    this.closed = new Promise((resolve) => (close = resolve));
    const end = () => {
      if (!this.#lost) this.#remember();
      this.#core = undefined;
      leave();
      close();
    };
    part.publish = (events, json) => {
      this.#seq = events.at(-1)?.seq ?? this.#seq;
      this.#failure = events.findLast(({ kind, agent_id: agent }) => kind === "ERROR" && !agent)?.data.message ?? this.#failure;
      part.eventStream.publish(events, json);
      if (this.#isLeft && events.some(endsInput)) this.#closeSoon();
      if (!events.some(isSessionEnd)) return;
      this.#isOver = true;
      part.eventStream.end();
      runtime.sessions.delete(this.id);
      // Not now: the core is in the middle of telling its news.
      queueMicrotask(end);
    };
    part.lost = (failure, now) => this.#lose(failure, now, part);
    runtime.sessions.set(this.id, part);
  }

  /** @returns {"IDLE" | "PROCESSING" | "AWAITING_INPUT" | "CLOSED"} */
  get state() {
    return this.#isOver ? "CLOSED" : this.call({ call: "state" });
  }

  /** The log of its core. */
  recording() {
    return recordingOf(this.#runtime);
  }

  /** It as a file. @returns {Uint8Array} */
  save() {
    // What a session cannot say, one that is over says better.
    if (this.#lost || !this.#core) this.call({ call: "state" });
    const saved = this.#runtime.call(() => this.#core.save());
    if (this.#keys.areIn(saved)) throw new SessionError("illegal_state", "save: a key stands in what was said or in the files of the sandbox, and is not written to a file");
    return saved;
  }

  /** What stays known of it, once it is over. */
  get remains() {
    return this.#remains;
  }

  /**
   * Makes a call.
   * @param {{call: string}} call as `SessionCall` of src/session/call.rs has it
   * @param {unknown} [content] what is said to a model
   * @returns {any} what answers it
   */
  call(call, content) {
    if (this.#lost) throw this.#lost;
    try {
      if (!this.#core) throw new SessionError("closed", "the session is closed; open a new one");
      return this.#runtime.call(() => this.#core.call(call, content));
    } catch (error) {
      // It may have ended before anybody listened.
      if (error.kind !== "closed" || this.#failure === undefined) throw error;
      throw new SessionError("closed", `${error.message}; it ended with an error: ${this.#failure}`, { cause: error });
    }
  }

  /** @param {"abort" | "close"} how */
  async end(how) {
    if (!this.#isOver) this.call({ call: how });
    await this.closed;
    const made = this.#made;
    this.#made = undefined;
    await made?.dispose();
  }

  /** Nobody has its `Session` any more: nothing can be asked of it once its input is done. */
  leave() {
    this.#isLeft = true;
    if (this.state !== "PROCESSING") this.#closeSoon();
  }

  /** Not now: the core may be in the middle of telling its news. */
  #closeSoon() {
    queueMicrotask(() => void this.end("close").catch(() => {}));
  }

  #remember() {
    this.#remains = this.#runtime.last(() => ({
      record: this.#core.call({ call: "record" }),
      history: this.#core.call({ call: "history" }),
      config: this.#core.call({ call: "config" }),
      toolNames: this.#core.call({ call: "tool_names" }),
    }));
    this.#runtime.last(() => this.#core.free());
  }

  #lose(failure, now, part) {
    this.#lost = failure;
    this.#remains = this.#runtime.last(() => ({ record: this.#core.call({ call: "record" }), history: this.#core.call({ call: "history" }) }));
    part.eventStream.remember(this.#remains);
    const core = this.#core;
    // Whatever a core was in the middle of that failed: nothing looks at it again.
    if (failure instanceof CoreError) core.__destroy_into_raw();
    // Not now: the caller may be called by the core.
    else macrotask(() => core.free());
    const event = (kind, data) => {
      this.#seq += 1;
      return { kind, data, seq: this.#seq, timestamp: new Date(now).toISOString(), session_id: this.id };
    };
    const error = { code: failure.kind, message: failure.message, retryable: false };
    const events = [event("ERROR", error), event("SESSION_END", { state: "CLOSED", reason: "error" })];
    part.publish(events, JSON.stringify(events));
  }
}
