// Outbox: the worker's news for the page. Deltas of a stream come faster than
// a screen shows them, so news of one frame travel as one message, and a page
// that is busy gets the next one when it has taken the last.

/** At 60 frames a second. */
const FRAME_MS = 16;

/** News that may wait before model streams are read no further. */
const HIGH_WATER = 1024;

export class Outbox {
  #port;
  #notes = [];
  #transfer = [];
  #events = 0;
  #sentAt = -Infinity;
  #unanswered = false;
  #timer;
  #room = [];

  /** @param {import("./rpc.js").Port} port */
  constructor(port) {
    this.#port = port;
  }

  /**
   * News that can wait for its frame.
   * @param {object} note @param {Transferable[]} [transfer] @param {number} [events]
   */
  add(note, transfer = [], events = 1) {
    this.#notes.push(note);
    for (const each of transfer) this.#transfer.push(each);
    this.#events += events;
    this.#schedule();
  }

  /** Sends what waits now: what comes next must not overtake it. */
  flush() {
    if (this.#notes.length === 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#port.postMessage({ type: "notes", notes: this.#notes }, this.#transfer);
    this.#notes = [];
    this.#transfer = [];
    this.#events = 0;
    this.#sentAt = performance.now();
    this.#unanswered = true;
    for (const resolve of this.#room.splice(0)) resolve();
  }

  /** The page has taken the last message. */
  taken() {
    this.#unanswered = false;
    this.#schedule();
  }

  /** A promise for when there is room for more; `undefined` if there is. */
  room() {
    if (this.#events < HIGH_WATER) return undefined;
    return new Promise((resolve) => this.#room.push(resolve));
  }

  #schedule() {
    if (this.#unanswered || this.#timer !== undefined || this.#notes.length === 0) return;
    const wait = Math.max(0, this.#sentAt + FRAME_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.flush();
    }, wait);
  }
}

/** Stands in the worker for the `EventStream` that the page has for a session. */
export class RemoteEventStream {
  #outbox;
  #session;
  #toolEnded;
  #full = false;
  #room = [];

  /**
   * @param {Outbox} outbox @param {number} session number that the page knows it by
   * @param {() => void} toolEnded called when files may have changed
   */
  constructor(outbox, session, toolEnded) {
    this.#outbox = outbox;
    this.#session = session;
    this.#toolEnded = toolEnded;
  }

  publish(events, json) {
    if (events.some(({ kind }) => kind === "TOOL_CALL_END")) this.#toolEnded();
    this.#outbox.add({ type: "events", session: this.#session, json }, [], events.length);
    // What begins may keep the worker from telling anything more.
    if (events.some(({ kind }) => kind === "TOOL_CALL_START")) this.#outbox.flush();
  }

  /** The page has it when this worker is gone. @param {import("../session/session.js").LastState | undefined} last */
  remember(last) {
    this.#outbox.add({ type: "last", session: this.#session, last }, [], 0);
  }

  end() {
    this.full = false;
  }

  /** Tells the page that what follows comes after `mark`. @param {number} mark */
  mark(mark) {
    this.#outbox.add({ type: "mark", session: this.#session, mark }, [], 0);
  }

  /** Whether a consumer in the page has fallen behind. */
  set full(full) {
    this.#full = full;
    if (!full) for (const resolve of this.#room.splice(0)) resolve();
  }

  room() {
    if (this.#full) return new Promise((resolve) => this.#room.push(resolve));
    return this.#outbox.room();
  }
}
