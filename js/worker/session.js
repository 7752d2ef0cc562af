// Session, in the page: the worker has the real one.

import { acceptInSession, guardSession, ours } from "../arguments.js";
import { collected, weakly } from "../collected.js";
import { asyncDispose } from "../disposable.js";
import { EventHub, endsInput, isSessionEnd, late } from "../hub.js";
import { takenOver, withSaved } from "../jobs.js";
import { outcomeOf } from "../prompt.js";
import { definition, runTool } from "../tool.js";
import { complete, connection } from "./connection.js";
import { ROOT, oneWay } from "./link.js";
import { quiet } from "../quiet.js";
import { Scope } from "./outgoing.js";
import { MemoryEnvironment, againOf, place } from "./sandbox.js";
import { playerOf } from "./script.js";

/** @type {typeof import("../api.js").createSession} */
export async function createSession(given = {}) {
  acceptInSession("createSession", given);
  return openIn(await withSaved(given), (options) => MemoryEnvironment.create(options));
}

/**
 * @param {import("../session.js").SessionOptions} given
 * @param {(options: object) => Promise<MemoryEnvironment>} makeEnvironment for one that is given none
 */
export async function openIn(given, makeEnvironment) {
  const { env, fetch, signal, record, ...options } = given;
  signal?.throwIfAborted();
  const { tools, ...rest } = options;
  const told = tools && { tools: tools.map(bound) };
  const link = await connection.link();
  const scope = new Scope();
  const number = connection.nextNumber();
  // Made here, so that another worker has it, too.
  const { saved } = options;
  const made = env ? undefined : await makeEnvironment({ ...(record && { record }), ...(saved && { saved }) });
  const { apiKey, apiKeys, approve, script } = options;
  const own = { apiKey, apiKeys, approve, script, fetch, tools };
  const session = new Session(number, link, scope, { env: env ?? made, made, given: own });
  try {
    // The sandbox that was made for it is recorded already.
    const recorded = record && env ? { record: typeof record === "function" ? oneWay(quiet(record)) : record } : {};
    const asked = { ...rest, ...told, ...recorded, ...(await place(session.env, link)), ...(await playerOf(fetch, link)) };
    session.open(await connection.call(link, ROOT, "createSession", [number, asked], { scope }));
  } catch (error) {
    connection.remove(number);
    link.forget(scope);
    await made?.dispose();
    throw error;
  }
  if (signal) {
    const abort = () => void session.abort().catch(() => {});
    if (signal.aborted) {
      abort();
      signal.throwIfAborted();
    }
    signal.addEventListener("abort", abort, { once: true });
    session.closed.then(() => signal.removeEventListener("abort", abort));
  }
  return session;
}

export class Session {
  id;
  closed;
  #number;
  #link;
  #scope;
  #remote;
  #hub = new EventHub();
  #state = "IDLE";
  #seq = 0;
  #full = false;
  /** What was known of it when its core failed. @type {import("../open-session.js").LastState | undefined} */
  #last;
  #close;
  /**
   * Iterators over the events since a mark of the worker's; none before it has come.
   * @type {Map<number, AsyncIterableIterator<object> | undefined>}
   */
  #marks = new Map();
  /** The sandbox that was made for it. */
  #made;
  /** What a fork of it takes over. @type {Partial<import("../session.js").SessionOptions>} */
  #given;
  env;

  constructor(number, link, scope, { env, made, given }) {
    ours(this);
    this.#given = given;
    this.#number = number;
    this.#link = link;
    this.#scope = scope;
    this.env = env;
    this.#made = made;
    this.closed = new Promise((resolve) => (this.#close = resolve));
    // Its first events may come before the answer that it is open.
    connection.add(number, { deref: () => this });
    collected(this, leaving(number, link, scope, this.#hub));
  }

  get state() {
    return this.#state;
  }

  /** One that does nothing, and that nobody has, is given back. */
  #become(state) {
    if (state === this.#state || this.#state === "CLOSED") return;
    this.#state = state;
    if (state !== "CLOSED") connection.add(this.#number, state === "PROCESSING" ? { deref: () => this } : weakly(this));
  }

  async prompt(input, options) {
    return outcomeOf(this.run(input, options));
  }

  run(input, options) {
    return this.#begin("submit", [input], options);
  }

  resume(options) {
    return this.#begin("proceed", [], options);
  }

  onActivity(callback) {
    return this.#hub.watch(callback);
  }

  #begin(method, args, { signal } = {}) {
    signal?.throwIfAborted();
    const interrupt = () => void this.interrupt().catch(() => {});
    // What the worker tells before it gets to the call belongs to what was before.
    const mark = connection.nextNumber();
    this.#marks.set(mark, undefined);
    const started = this.#call(method, args, { number: this.#number, mark }).then(
      () => {
        if (signal?.aborted) interrupt();
        else this.#hub.interruptBy(signal, interrupt);
        return this.#marked(mark);
      },
      (error) => {
        const events = this.#marked(mark);
        // A worker that is lost with what was begun ends it, and its last events say so.
        if (events && this.#link.ended) return events;
        // One that is refused has no events.
        if (events) this.#hub.withdraw(events);
        throw error;
      },
    );
    return late(started);
  }

  /** The events since `mark`, which comes before the answer. */
  #marked(mark) {
    const events = this.#marks.get(mark);
    this.#marks.delete(mark);
    return events;
  }

  events() {
    return this.#hub.subscribe();
  }

  async interrupt() {
    connection.hurry();
    await this.#call("interrupt", []);
  }

  async abort() {
    await this.#end("abort");
  }

  async close() {
    await this.#end("close");
  }

  async [asyncDispose]() {
    await this.close();
  }

  async #end(how) {
    if (this.#state !== "CLOSED") {
      if (how === "abort" || this.#state === "PROCESSING") connection.hurry();
      await Promise.race([this.#call(how, []), this.closed]);
      await this.closed;
    }
    const made = this.#made;
    this.#made = undefined;
    await made?.dispose();
  }

  async registerTool(tool) {
    await this.#call("registerTool", [bound(tool)]);
    this.#given = { ...this.#given, tools: [...(this.#given.tools ?? []).filter(({ name }) => name !== tool.name), tool] };
  }

  async unregisterTool(name) {
    const removed = await this.#call("unregisterTool", [name]);
    this.#given = { ...this.#given, tools: (this.#given.tools ?? []).filter((tool) => tool.name !== name) };
    return removed;
  }

  async fork(options = {}) {
    acceptInSession("createSession", options);
    const saved = await this.#call("save", []);
    const again = againOf(this.env);
    const config = await this.#call("config", []);
    return openIn({ ...takenOver(this.#given, config, options), ...(again ? {} : { env: this.env }), ...options, saved }, again);
  }

  async configure(settings) {
    await this.#call("configure", [settings]);
  }

  /** @internal */
  open({ id, session }) {
    this.id = id;
    this.#remote = session;
    connection.add(this.#number, weakly(this));
    complete(Session, session.handle.methods, (self, name, args) => self.#call(name, args));
    guardSession(Session);
  }

  /** @internal */
  publish(events) {
    for (const event of events) {
      this.#seq = event.seq;
      if (event.kind === "STATE_CHANGED" && !event.agent_id) this.#become(event.data.to);
    }
    this.#hub.publish(events);
    if (events.some(isSessionEnd)) return this.#over();
    this.#pace();
  }

  /** @internal */
  mark(mark) {
    this.#marks.set(mark, this.#hub.subscribe(endsInput));
  }

  /** @internal */
  remember(last) {
    this.#last = last;
  }

  /** @internal */
  lost(failure) {
    if (this.id === undefined) return connection.remove(this.#number);
    for (const [mark, events] of this.#marks) if (!events) this.mark(mark);
    const event = (kind, data) => {
      const timestamp = new Date().toISOString();
      return { kind, data, seq: (this.#seq += 1), timestamp, session_id: this.id };
    };
    const error = { code: failure.kind, message: failure.message, retryable: false };
    this.publish([event("ERROR", error), event("SESSION_END", { state: "CLOSED", reason: "error" })]);
  }

  #over() {
    this.#become("CLOSED");
    connection.remove(this.#number);
    this.#hub.end();
    this.#link.forget(this.#scope);
    this.#close();
  }

  /** Tells the worker when a consumer falls behind, and when it has caught up. */
  #pace() {
    const room = this.#hub.room();
    if (!room || this.#full) return;
    this.#full = true;
    connection.tell({ type: "full", session: this.#number, full: true });
    room.then(() => {
      this.#full = false;
      connection.tell({ type: "full", session: this.#number, full: false });
      this.#pace();
    });
  }

  async #call(name, args, begins) {
    if (this.#last && Object.hasOwn(this.#last, name)) return structuredClone(this.#last[name]);
    const { value, state } = await connection.call(
      this.#link,
      ROOT,
      "callSession",
      [this.#remote, name, args, begins],
      { scope: this.#scope },
    );
    this.#become(state);
    connection.watch();
    if (name !== "record") this.#hub.touch();
    return value;
  }
}

guardSession(Session);

/** Nobody has a session any more. The worker closes its own: not made where the session is in sight, because a function keeps all that is. */
const leaving = (number, link, scope, hub) => () => {
  connection.remove(number);
  link.forget(scope);
  hub.end();
};

/** A tool that runs here: its limit, its result and its errors are judged where it is. */
function bound(tool) {
  return { ...definition(tool), timeoutMs: 0, execute: (args, context) => runTool(tool, args, context) };
}
