// Session: a conversation with a model that uses tools.

import { acceptInSession, guardSession } from "./arguments.js";
import { NotData, plainData } from "./data.js";
import { checkAddress, checkCredential, createDoor } from "./door.js";
import { attach } from "./environment.js";
import { SessionError } from "./errors.js";
import { EventHub, endsInput, isSessionEnd, late } from "./hub.js";
import { camelCase, snakeCase } from "./names.js";
import { Keys } from "./redact.js";
import { bindings } from "./runtime.js";
import { scriptedFetch } from "./script.js";
import { definition } from "./tool.js";

/**
 * @typedef {object} ToolContext
 * @property {string} callId
 * @property {AbortSignal} signal fires when nobody waits for the result any more
 * @property {(text: string) => void} progress shows a piece of output before the end
 *
 * @typedef {object} Tool a tool that this page or program executes
 * @property {string} name `[A-Za-z][A-Za-z0-9_]{0,63}`; replaces one of the same name
 * @property {string} description what it does, for the model
 * @property {object} parameters JSON Schema of the arguments; the root is an object. Keywords
 *   that are not checked, such as `pattern` and `$ref`, are refused: js/README.md lists the others
 * @property {number} [timeoutMs] a call that gives no result within it is an
 *   error that the model can read; default 600,000; 0: no limit
 * @property {(args: any, context: ToolContext) => unknown} execute
 *   what it resolves to goes to the model: a string, bytes of UTF-8, `{content,
 *   isError}` with one of these, or anything else as JSON; what it throws is an error that the model can read
 *
 * @typedef {object} ApprovalCall a call that needs approval
 * @property {string} name of the tool
 * @property {any} arguments as the model wrote them
 * @property {string} callId
 * @property {string} reason why it needs approval
 * @property {AbortSignal} signal fires when nobody waits for the answer any more
 *
 * @typedef {object} OwnOptions
 * @property {string | null | (() => string | Promise<string>)} [apiKey] never
 *   enters the core; `null`: what stands at `baseUrl` adds it
 * @property {Record<string, string | null | (() => string | Promise<string>)>} [apiKeys]
 *   by provider: for subagents whose model is another provider's
 * @property {import("./sandbox.js").MemoryEnvironment | import("./environment.js").CustomEnvironment} [env]
 *   default: an empty sandbox
 * @property {Tool[]} [tools]
 * @property {object | object[] | undefined} [history] what `record()` or `history()` of an
 *   earlier session gave: goes on with its conversation; provider, model and
 *   tools may be others
 * @property {(call: ApprovalCall) => boolean | string | Promise<boolean | string>} [approve] `true`:
 *   run it; `false`, or the reason as a string: do not. What it throws is a no whose reason the
 *   model reads
 * @property {(url: string, init: RequestInit) => Promise<Response>} [fetch] sends the requests
 * @property {string | object} [script] a scripted model plays it instead of the provider's
 *   model, in the provider's format and without a key: src/script/mod.rs
 * @property {AbortSignal} [signal] aborts the session
 *
 * @typedef {OwnOptions & import("./types.js").SessionSettings} SessionOptions
 *
 * @typedef {import("./events.js").SessionEvent} SessionEvent
 *
 * @typedef {{record: object, history: object[]}} LastState of a session whose core has failed
 *
 * What a runtime keeps of a session.
 * @typedef {object} SessionPart
 * @property {EventHub} hub
 * @property {Keys} keys its own, to be kept out of what the core is told
 * @property {Map<string, Tool>} tools
 * @property {SessionOptions["approve"]} approve
 * @property {(request: object, signal: AbortSignal) => Promise<Response>} send
 * @property {(events: object[], json: string) => void} publish the same twice
 * @property {(failure: Error, now: number) => void} lost
 */

/**
 * Opens a session.
 * @param {SessionOptions} options
 * @param {() => object | Promise<object>} makeEnvironment for one that is given none
 * @returns {Promise<Session>}
 */
export async function createSessionIn(options, makeEnvironment) {
  acceptInSession("createSession", options);
  return openSession(options, new EventHub(), makeEnvironment);
}

/**
 * Opens a session whose events go to `hub`.
 * @param {SessionOptions} options
 * @param {Pick<EventHub, "publish" | "end" | "room" | "subscribe" | "remember">} hub
 * @param {() => object | Promise<object>} makeEnvironment
 */
export async function openSession(options, hub, makeEnvironment) {
  const { apiKey, apiKeys, env, tools = [], approve, fetch, script, signal, history, ...settings } = options;
  signal?.throwIfAborted();
  // Judged and copied before anything happens.
  const told = { ...taken(settings, "options"), tools: tools.map(definition) };
  const record = history === undefined || history === null ? undefined : JSON.stringify(taken(history, "options.history"));
  const { runtime, number } = await attach(env ?? (await makeEnvironment()));
  const fetching = await sender(fetch, script);
  // Nothing below waits, so no abort can get lost.
  signal?.throwIfAborted();
  const config = coreNames({
    browser: typeof globalThis.document !== "undefined" || typeof globalThis.importScripts === "function",
    ...told,
  });
  const keys = new Keys();
  const part = {
    hub,
    keys,
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    approve,
    send: createDoor(fetching, credentials(config, script ? null : apiKey, apiKeys), keys),
  };
  const core = inNamesOf(settings, () => runtime.call((core) => core.openSession(number, JSON.stringify(config), record)));
  const session = new Session(runtime, core, part);
  if (signal) {
    const abort = () => void session.abort().catch(() => {});
    signal.addEventListener("abort", abort, { once: true });
    session.closed.then(() => signal.removeEventListener("abort", abort));
  }
  return session;
}

function sender(fetch, script) {
  if (script !== undefined) return scriptedFetch(script);
  return fetch ?? ((url, init) => globalThis.fetch(url, init));
}

export class Session {
  #runtime;
  #core;
  #part;
  /** What its last `ERROR` said. */
  #failure;
  /** Why its core is gone. @type {Error | undefined} */
  #lost;
  /** What was known of it then. @type {LastState | undefined} */
  #last;

  /** A UUID. @type {string} @readonly */
  id;

  /** Resolves when the session is over. @type {Promise<void>} @readonly */
  closed;

  /** @private use `createSession` */
  constructor(runtime, core, part) {
    this.#runtime = runtime;
    this.#core = core;
    this.#part = part;
    this.id = core.id;
    let close;
    this.closed = new Promise((resolve) => (close = resolve));
    let seq = 0;
    part.publish = (events, json) => {
      seq = events.at(-1)?.seq ?? seq;
      this.#failure = events.findLast(({ kind, agent_id: agent }) => kind === "ERROR" && !agent)?.data.message ?? this.#failure;
      part.hub.publish(events, json);
      if (!events.some(isSessionEnd)) return;
      part.hub.end();
      runtime.sessions.delete(this.id);
      close();
    };
    part.lost = (failure, now) => {
      this.#lost = failure;
      this.#last = runtime.last(() => ({ record: JSON.parse(core.record()), history: core.history() }));
      part.hub.remember(this.#last);
      // Whatever its core was in the middle of: nothing looks at it again.
      core.__destroy_into_raw();
      const event = (kind, data) => {
        seq += 1;
        return { kind, data, seq, timestamp: new Date(now).toISOString(), session_id: this.id };
      };
      const error = { code: failure.kind, message: failure.message, retryable: false };
      const events = [
        event("ERROR", error),
        event("SESSION_END", { state: "CLOSED", reason: "error" }),
      ];
      part.publish(events, JSON.stringify(events));
    };
    runtime.sessions.set(this.id, part);
  }

  /** What it is doing. @type {"IDLE" | "PROCESSING" | "AWAITING_INPUT" | "CLOSED"} */
  get state() {
    return this.#lost ? "CLOSED" : this.#call((core) => core.state);
  }

  /**
   * Submits an input and iterates over the events until it and the follow-ups
   * behind it are done. The first iterator of a session also gets the events
   * since it was opened. Leaving the loop early ends listening, not the work;
   * whoever holds an iterator and does not read it holds the model's stream up
   * after 1,024 events, so use `submit` where nobody listens. An input that is
   * refused is told to whoever asks for the first event.
   * @param {string} input
   * @param {{signal?: AbortSignal}} [options] `signal` interrupts the input
   * @returns {AsyncIterableIterator<SessionEvent>}
   */
  run(input, options) {
    return this.#begin((core) => core.submit(input), options);
  }

  /**
   * Goes on with what the history leaves open, because its page was closed, or
   * by an error or an interruption: the model is asked with the history as it
   * is. Otherwise as `run`.
   * @param {{signal?: AbortSignal}} [options]
   * @returns {AsyncIterableIterator<SessionEvent>}
   */
  resume(options) {
    return this.#begin((core) => core.resume(), options);
  }

  /** Goes on as `resume` does, where nobody listens. */
  async proceed() {
    this.#call((core) => core.resume());
  }

  #begin(begin, { signal } = {}) {
    signal?.throwIfAborted();
    try {
      this.#call(begin);
    } catch (error) {
      return late(Promise.reject(error));
    }
    const interrupt = () => {
      if (this.state === "PROCESSING") this.#call((core) => core.interrupt());
    };
    this.#part.hub.interruptBy(signal, interrupt);
    return this.#part.hub.subscribe(endsInput);
  }

  /**
   * Iterates over the events from now on, to `SESSION_END`. The first iterator
   * of a session also gets the events since it was opened, up to 1,024.
   * @returns {AsyncIterableIterator<SessionEvent>}
   */
  events() {
    return this.#part.hub.subscribe();
  }

  /** Starts an input, or answers the model's question. @param {string} input */
  async submit(input) {
    this.#call((core) => core.submit(input));
  }

  /** Answers the model's question. @param {string} input */
  async answer(input) {
    this.#call((core) => core.answer(input));
  }

  /**
   * Queues a message for the next gap between tool rounds.
   * @param {string} message
   * @returns {Promise<number>} the number that its events bear
   */
  async steer(message) {
    return this.#call((core) => core.steer(message));
  }

  /** Queues an input for when the current one is done. @param {string} message */
  async followUp(message) {
    this.#call((core) => core.followUp(message));
  }

  /** Queues instructions of the developer's. @param {string} content */
  async addSystemTurn(content) {
    this.#call((core) => core.addSystemTurn(content));
  }

  /** Ends the current input only; the session goes on. */
  async interrupt() {
    this.#call((core) => core.interrupt());
  }

  /** Ends the session from any state, gracefully; resolves when it is over. */
  async abort() {
    if (!this.#lost) this.#call((core) => core.abort());
    await this.closed;
  }

  /** Closes a session that is not processing; resolves when it is over. */
  async close() {
    if (!this.#lost) this.#call((core) => core.close());
    await this.closed;
  }

  /**
   * Changes settings from the next model or tool call on.
   * @param {import("./types.js").ChangeableSettings} settings
   */
  async configure(settings) {
    const patch = coreNames(taken(settings, "settings"));
    inNamesOf(settings, () => this.#call((core) => core.configure(patch)));
  }

  /** The settings in force, in the core's own names. @returns {Promise<Record<string, unknown>>} */
  async config() {
    return this.#call((core) => core.config());
  }

  /** Adds a tool from the next model call on. @param {Tool} tool */
  async registerTool(tool) {
    const told = definition(tool);
    this.#call((core) => core.registerTool(told));
    this.#part.tools.set(told.name, tool);
  }

  /** Removes a tool; says whether there was one. @param {string} name @returns {Promise<boolean>} */
  async unregisterTool(name) {
    const removed = this.#call((core) => core.unregisterTool(name));
    this.#part.tools.delete(name);
    return removed;
  }

  /** Names of the tools that the model is offered. @returns {Promise<string[]>} */
  async toolNames() {
    return this.#call((core) => core.toolNames());
  }

  /** The turns so far, also of a session that ended with its core. @returns {Promise<import("./types.js").Turn[]>} */
  async history() {
    return structuredClone(this.#last?.history) ?? this.#call((core) => core.history());
  }

  /**
   * Calls `callback` whenever something happens in the session; returns what
   * ends that.
   * @param {() => void} callback @returns {() => void}
   */
  onActivity(callback) {
    return this.#part.hub.watch(callback);
  }

  /**
   * The session as it is now, also in the middle of a round, as plain data: turns,
   * results so far and queues; of one that ended with its core, as it was then.
   * `createSession({ history })` goes on with it.
   * @returns {Promise<object>}
   */
  async record() {
    return structuredClone(this.#last?.record) ?? JSON.parse(this.#call((core) => core.record()));
  }

  #call(call) {
    if (this.#lost) throw this.#lost;
    try {
      return this.#runtime.call(() => call(this.#core));
    } catch (error) {
      // It may have ended before anybody listened.
      if (error.kind !== "closed" || this.#failure === undefined) throw error;
      throw new SessionError("closed", `${error.message}; it ended with an error: ${this.#failure}`, { cause: error });
    }
  }
}

guardSession(Session);

function credentials(config, apiKey, apiKeys = {}) {
  const held = new Map();
  for (const { base_url: address } of [config, ...Object.values(config.endpoints ?? {})]) {
    const problem = address === undefined || address === null ? undefined : checkAddress(address);
    if (problem) throw new SessionError("invalid_input", problem);
  }
  const own = config.provider ?? "anthropic";
  const keys = apiKey === undefined ? apiKeys : { ...apiKeys, [own]: apiKey };
  for (const [provider, key] of Object.entries(keys)) {
    const known = config.endpoints?.[provider];
    const first = provider === own ? config : undefined;
    const name = first?.credential ?? known?.credential ?? provider;
    const baseUrl = first?.base_url ?? known?.base_url ?? bindings().providerUrl(provider);
    if (baseUrl === undefined) {
      // Opening the session says so, by name.
      if (provider === own) continue;
      throw new SessionError("unknown_provider", `createSession: options.apiKeys has a key for ${JSON.stringify(provider)}, which is no provider; check the name, or leave the key out`);
    }
    const problem = checkCredential(name, { key, baseUrl });
    if (problem) throw new SessionError("invalid_input", problem);
    held.set(name, { key, baseUrl });
  }
  return held;
}

/** A copy of what a caller gave. */
function taken(value, name) {
  try {
    return plainData(value, name);
  } catch (error) {
    if (error instanceof NotData) throw new SessionError("invalid_input", error.message);
    throw error;
  }
}

/**
 * Calls the core; what it refuses of `settings` bears the names of this API.
 * @template T @param {object} settings @param {() => T} call @returns {T}
 */
function inNamesOf(settings, call) {
  try {
    return call();
  } catch (error) {
    if (error?.kind !== "invalid_config") throw error;
    const names = [settings, settings.retry, settings.approval].flatMap((given) => Object.keys(given ?? {}));
    const given = new Map(names.map((name) => [Object.keys(snakeCase({ [name]: 0 }))[0], name]));
    // Behind it stand the names of all settings.
    const [said, ...known] = error.message.split(/(?<=, expected one of )/);
    const ours = said.replace(/(?<=[`.])[a-z_0-9]+(?=[`.])/g, (name) => given.get(name) ?? name);
    throw new SessionError(error.kind, ours + known.map(camelCase).join(""), { cause: error });
  }
}

/** Settings in the core's names. Keys inside, such as tool names, stay as they are. */
function coreNames(settings) {
  const named = snakeCase(settings);
  for (const name of ["retry", "approval"]) {
    if (named[name]) named[name] = snakeCase(named[name]);
  }
  for (const [provider, endpoint] of Object.entries(named.endpoints ?? {})) {
    named.endpoints = { ...named.endpoints, [provider]: snakeCase(endpoint) };
  }
  return named;
}
