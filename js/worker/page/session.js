// Session, in the page: the worker has the real one.

import { asyncDispose } from "../../platform/disposable.js";
import { collected, weakly } from "../../platform/finalization.js";
import { EventStream, endsInput, isSessionEnd } from "../../session/event-stream.js";
import { inherited, withSaved } from "../../session/options.js";
import { outcomeOf } from "../../session/prompt-result.js";
import { acceptInSession, guardSession, ours } from "../../shared/arguments.js";
import { late } from "../../shared/late-events.js";
import { quiet } from "../../shared/notification.js";
import { definition, runTool } from "../../tool/tool.js";
import { Scope } from "../outgoing.js";
import { ROOT, oneWay } from "../rpc.js";
import { connection } from "./connection.js";
import { MemoryEnvironment, againOf, environmentArgument } from "./memory-environment.js";
import { playerOf } from "./scripted-model.js";
import { ToolEnvironment } from "./tool-environment.js";

/** @type {typeof import("../../api.js").createSession} */
export async function createSession(given = {}) {
  acceptInSession("createSession", given);
  return openIn(await withSaved(given), (options) => MemoryEnvironment.create(options));
}

/**
 * @param {import("../../session/session.js").SessionOptions} given
 * @param {(options: object) => Promise<MemoryEnvironment>} makeEnvironment for one that is given none
 */
export async function openIn(given, makeEnvironment) {
  const { env, fetch, signal, record, ...options } = given;
  signal?.throwIfAborted();
  const { tools, ...rest } = options;
  const told = tools && { tools: tools.map(bound) };
  const rpc = await connection.rpc();
  const scope = new Scope();
  const number = connection.nextNumber();
  // Made here, so that another worker has it, too.
  const { saved } = options;
  const made = env ? undefined : await makeEnvironment({ ...(record && { record }), ...(saved && { saved }) });
  const { apiKey, apiKeys, approve, script } = options;
  const own = { apiKey, apiKeys, approve, script, fetch, tools };
  const session = new Session(number, rpc, scope, { env: env ?? made, made, given: own });
  try {
    // The sandbox that was made for it is recorded already.
    const recorded = record && env ? { record: typeof record === "function" ? oneWay(quiet(record)) : record } : {};
    const asked = { ...rest, ...told, ...recorded, ...(await environmentArgument(session.env, rpc)), ...(await playerOf(fetch, rpc)) };
    session.open(await connection.call(rpc, ROOT, "createSession", [number, asked], { scope }));
  } catch (error) {
    connection.remove(number);
    rpc.forget(scope);
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

/**
 * A session that is in the worker. Its public methods are those of `Session` in
 * ../../session/session.js, which documents them.
 */
export class Session {
  id;
  closed;
  #number;
  #rpc;
  #scope;
  #remote;
  #eventStream = new EventStream();
  #state = "IDLE";
  #seq = 0;
  #full = false;
  /** What was known of it when its core failed. @type {import("../../session/open-session.js").LastState | undefined} */
  #last;
  #close;
  /**
   * Iterators over the events since a mark of the worker's; none before it has come.
   * @type {Map<number, AsyncIterableIterator<object> | undefined>}
   */
  #marks = new Map();
  /** The sandbox that was made for it. */
  #made;
  /** What a fork of it takes over. @type {Partial<import("../../session/session.js").SessionOptions>} */
  #given;
  env;

  constructor(number, rpc, scope, { env, made, given }) {
    ours(this);
    this.#given = given;
    this.#number = number;
    this.#rpc = rpc;
    this.#scope = scope;
    this.env = env;
    this.#made = made;
    this.closed = new Promise((resolve) => (this.#close = resolve));
    // Its first events may come before the answer that it is open.
    connection.add(number, { deref: () => this });
    collected(this, leaving(number, rpc, scope, this.#eventStream));
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
    return this.#eventStream.watch(callback);
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
        else this.#eventStream.interruptBy(signal, interrupt);
        return this.#marked(mark);
      },
      (error) => {
        const events = this.#marked(mark);
        // A worker that is lost with what was begun ends it, and its last events say so.
        if (events && this.#rpc.ended) return events;
        // One that is refused has no events.
        if (events) this.#eventStream.withdraw(events);
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
    return this.#eventStream.subscribe();
  }

  /** @param {import("../../tool/content.js").Input} input */
  async submit(input) {
    await this.#call("submit", [input]);
  }

  /** @param {import("../../tool/content.js").Input} input */
  async answer(input) {
    await this.#call("answer", [input]);
  }

  /** @param {import("../../tool/content.js").Input} message @returns {Promise<number>} */
  async steer(message) {
    return this.#call("steer", [message]);
  }

  /** @param {import("../../tool/content.js").Input} message */
  async followUp(message) {
    await this.#call("followUp", [message]);
  }

  /** @param {string} content */
  async addSystemTurn(content) {
    await this.#call("addSystemTurn", [content]);
  }

  async proceed() {
    await this.#call("proceed", []);
  }

  /** @param {number} [answers] */
  async pauseAt(answers) {
    await this.#call("pauseAt", [answers]);
  }

  async compact() {
    await this.#call("compact", []);
  }

  /** @returns {Promise<boolean>} */
  async isPaused() {
    return this.#call("isPaused", []);
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
    const saved = await this.save();
    const again = againOf(this.env);
    const config = await this.config();
    return openIn({ ...inherited(this.#given, config, options), ...(again ? {} : { env: this.env }), ...options, saved }, again);
  }

  /** @param {import("../../types.js").ChangeableSettings} settings */
  async configure(settings) {
    await this.#call("configure", [settings]);
  }

  /** @returns {Promise<Record<string, unknown>>} */
  async config() {
    return this.#call("config", []);
  }

  /** @returns {Promise<string[]>} */
  async toolNames() {
    return this.#call("toolNames", []);
  }

  /** @returns {Promise<import("../../types.js").Agent[]>} */
  async agents() {
    return this.#call("agents", []);
  }

  /** @param {string} agent @returns {Promise<import("../../types.js").Turn[]>} */
  async agentHistory(agent) {
    return this.#call("agentHistory", [agent]);
  }

  /** @param {string} agent @param {import("../../tool/content.js").Input} message */
  async steerAgent(agent, message) {
    await this.#call("steerAgent", [agent, message]);
  }

  /** @param {string} agent */
  async interruptAgent(agent) {
    await this.#call("interruptAgent", [agent]);
  }

  /** @param {string} agent */
  async closeAgent(agent) {
    await this.#call("closeAgent", [agent]);
  }

  /** @returns {Promise<import("../../types.js").Turn[]>} */
  async history() {
    return this.#call("history", []);
  }

  /** @returns {Promise<object>} */
  async record() {
    return this.#call("record", []);
  }

  /** @returns {Promise<Uint8Array>} */
  async save() {
    return this.#call("save", []);
  }

  /** @returns {Promise<Uint8Array>} */
  async recording() {
    return this.#call("recording", []);
  }

  /** @internal */
  open({ id, session }) {
    this.id = id;
    this.#remote = session;
    connection.add(this.#number, weakly(this));
  }

  /** @internal */
  publish(events) {
    for (const event of events) {
      this.#seq = event.seq;
      if (event.kind === "STATE_CHANGED" && !event.agent_id) this.#become(event.data.to);
    }
    this.#eventStream.publish(events);
    if (events.some(isSessionEnd)) return this.#over();
    this.#pace();
  }

  /** @internal */
  mark(mark) {
    this.#marks.set(mark, this.#eventStream.subscribe(endsInput));
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
    this.#eventStream.end();
    this.#rpc.forget(this.#scope);
    this.#close();
  }

  /** Tells the worker when a consumer falls behind, and when it has caught up. */
  #pace() {
    const room = this.#eventStream.room();
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
      this.#rpc,
      ROOT,
      "callSession",
      [this.#remote, name, args, begins],
      { scope: this.#scope },
    );
    this.#become(state);
    connection.watch();
    if (name !== "record") this.#eventStream.touch();
    return value;
  }
}

guardSession(Session);

/** Nobody has a session any more. The worker closes its own: not made where the session is in sight, because a function keeps all that is. */
const leaving = (number, rpc, scope, eventStream) => () => {
  connection.remove(number);
  rpc.forget(scope);
  eventStream.end();
};

/** A tool that runs here: its limit, its result and its errors are judged where it is. */
function bound(tool) {
  const execute = (args, { env, ...context }) => runTool(tool, args, { ...context, env: new ToolEnvironment(env) });
  return { ...definition(tool), timeoutMs: 0, execute };
}
