// Events on their way from a session to whoever iterates over them.

import { quiet } from "../shared/notification.js";

/** @import { AbortSignal } from "../platform.js" */

/** Events that may wait for a consumer before model streams are read no further. */
const HIGH_WATER = 1024;

/** Events that are kept for the first consumer, while there has been none. */
const BACKLOG = 1024;

/** Delivers the events of one session to any number of consumers. */
export class EventStream {
  #subscriptions = new Set();
  #backlog = [];
  /** The consumer that got the backlog. */
  #first;
  #ended = false;
  #room = [];
  #watchers = new Set();
  /** What ends with the input that is being worked on. */
  #ends = [];

  /**
   * Calls `callback` whenever something happens; returns what ends that.
   * @param {() => void} callback @returns {() => void}
   */
  watch(callback) {
    const told = quiet(callback);
    this.#watchers.add(told);
    return () => void this.#watchers.delete(told);
  }

  /** Something has happened that makes no event. */
  touch() {
    for (const watcher of this.#watchers) watcher();
  }

  /**
   * Calls `interrupt` if the signal fires before the input that is being worked
   * on, and the follow-ups behind it, are done, whoever listens until then.
   * @param {AbortSignal | undefined} signal @param {() => void} interrupt
   */
  interruptBy(signal, interrupt) {
    if (!signal) return;
    signal.addEventListener("abort", interrupt, { once: true });
    this.#ends.push(() => signal.removeEventListener("abort", interrupt));
  }

  /** @param {object[]} events in order */
  publish(events) {
    this.touch();
    if (this.#ends.length > 0 && events.some(endsInput)) for (const end of this.#ends.splice(0)) end();
    for (const event of events) {
      for (const subscription of this.#subscriptions) subscription.push(event);
    }
    if (this.#backlog && this.#subscriptions.size === 0) {
      for (const event of events) this.#backlog.push(event);
      if (this.#backlog.length > BACKLOG) this.#backlog = null;
    }
  }

  /** What is known of a session whose core has failed: it has that itself. */
  remember() {}

  /** No more events will come. */
  end() {
    this.#ended = true;
    for (const subscription of this.#subscriptions) subscription.finish();
    this.drained();
  }

  /**
   * An async iterator over the events from now on; the first one also gets
   * the events so far, if they are not too many.
   * @param {(event: object) => boolean} isLast ends the iterator after this event
   */
  subscribe(isLast = () => false) {
    const subscription = new Subscription(this, isLast);
    this.#subscriptions.add(subscription);
    const backlog = this.#backlog ?? [];
    if (this.#backlog) this.#first = subscription;
    this.#backlog = null;
    // What happened before cannot be the last event of what comes.
    for (const event of backlog) subscription.keep(event);
    if (this.#ended) subscription.finish();
    return subscription;
  }

  /** Ends a subscription that nobody has read as if it had not been: what the first one got, another gets. */
  withdraw(subscription) {
    const events = subscription.unread;
    void subscription.return();
    if (subscription === this.#first && this.#subscriptions.size === 0 && events.length <= BACKLOG) this.#backlog = events;
  }

  unsubscribe(subscription) {
    this.#subscriptions.delete(subscription);
    this.drained();
  }

  /** A promise for when every consumer has room; `undefined` if all have. */
  room() {
    if (!this.#full()) return undefined;
    return new Promise((resolve) => this.#room.push(resolve));
  }

  drained() {
    if (this.#room.length === 0 || this.#full()) return;
    for (const resolve of this.#room.splice(0)) resolve();
  }

  #full() {
    if (this.#ended) return false;
    for (const { size } of this.#subscriptions) if (size >= HIGH_WATER) return true;
    return false;
  }
}

/** One consumer: an async iterator with a queue. */
class Subscription {
  #eventStream;
  #isLast;
  #queue = [];
  #head = 0;
  #waiting = [];
  #done = false;

  constructor(eventStream, isLast) {
    this.#eventStream = eventStream;
    this.#isLast = isLast;
  }

  get size() {
    return this.#queue.length - this.#head;
  }

  get unread() {
    return this.#queue.slice(this.#head);
  }

  push(event) {
    if (this.#done) return;
    this.keep(event);
    if (this.#isLast(event)) this.finish();
  }

  keep(event) {
    const waiting = this.#waiting.shift();
    if (waiting) waiting({ value: event, done: false });
    else this.#queue.push(event);
  }

  finish() {
    if (this.#done) return;
    this.#done = true;
    this.#eventStream.unsubscribe(this);
    for (const resolve of this.#waiting.splice(0)) resolve({ value: undefined, done: true });
  }

  async next() {
    if (this.size > 0) {
      const value = this.#queue[this.#head];
      this.#queue[this.#head++] = undefined;
      if (this.size === 0) {
        this.#queue = [];
        this.#head = 0;
      }
      this.#eventStream.drained();
      return { value, done: false };
    }
    if (this.#done) return { value: undefined, done: true };
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Ends listening, not the session: that goes on; `interrupt()` stops it. */
  async return() {
    this.finish();
    this.#queue = [];
    this.#head = 0;
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

/** Whether it is the last event of a session. @param {object} event */
export function isSessionEnd(event) {
  return event.kind === "SESSION_END" && !event.agent_id;
}

/** Whether an input and the follow-ups behind it are done. @param {object} event */
export function endsInput(event) {
  if (event.agent_id) return false;
  if (event.kind === "SESSION_END") return true;
  const { from, to } = event.data;
  return event.kind === "STATE_CHANGED" && from === "PROCESSING" && to !== "CLOSED";
}
