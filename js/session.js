// Session: a conversation with a model that uses tools.

import { checkCredential, createDoor } from "./door.js";
import { attach } from "./environment.js";
import { SessionError } from "./errors.js";
import { EventHub, endsInput, isSessionEnd } from "./hub.js";
import { snakeCase } from "./names.js";
import { bindings } from "./runtime.js";

/**
 * @typedef {object} Tool a tool that this page or program executes
 * @property {string} name `[A-Za-z][A-Za-z0-9_]{0,63}`; replaces one of the same name
 * @property {string} description what it does, for the model
 * @property {object} parameters JSON Schema of the arguments; the root is an object
 * @property {(args: any, context: {callId: string, signal: AbortSignal, progress: (text: string) => void}) => unknown} execute
 *   what it resolves to goes to the model: a string, `{content, isError}`, or
 *   anything else as JSON; what it throws is an error that the model can read
 *
 * @typedef {object} SessionOptions
 * @property {string} [provider] default `anthropic`
 * @property {string} [model] default: the provider's
 * @property {string | null | (() => string | Promise<string>)} [apiKey] never
 *   enters the core; `null`: what stands at `baseUrl` adds it
 * @property {string} [baseUrl] default: the provider's
 * @property {Record<string, string | null | (() => string | Promise<string>)>} [apiKeys]
 *   by provider: for subagents whose model is another provider's
 * @property {Record<string, {baseUrl?: string, credential?: string, options?: object}>} [endpoints]
 *   how providers are reached, by provider; `options` in the core's own names:
 *   `{openai: {options: {organization: "org-1"}}}`
 * @property {MemoryEnvironment | import("./environment.js").CustomEnvironment} [env]
 *   default: an empty sandbox
 * @property {Tool[]} [tools]
 * @property {(call: {name: string, arguments: object, callId: string, reason: string, signal: AbortSignal}) =>
 *   boolean | string | Promise<boolean | string>} [approve] `true`: run it; `false`, or the reason as a string: do not
 * @property {{tools?: Record<string, "allow" | "ask" | "deny">, writePaths?: string[], commands?: string[]}} [approval]
 *   which calls need it: docs/approval.md
 * @property {typeof globalThis.fetch} [fetch] sends the requests
 * @property {AbortSignal} [signal] aborts the session
 *
 * Every other field of the core's configuration is an option too, in camel
 * case: `maxToolRoundsPerInput`, `reasoningEffort`, `instructions`, ….
 *
 * What a runtime keeps of a session.
 * @typedef {object} SessionPart
 * @property {EventHub} hub
 * @property {Map<string, Tool>} tools
 * @property {SessionOptions["approve"]} approve
 * @property {(request: object, signal: AbortSignal) => Promise<Response>} send
 * @property {(events: object[], json: string) => void} publish the same twice
 * @property {(failure: Error, now: number) => void} lost
 */

/** Where sessions work that are given no environment. */
let defaultEnvironment = () => {
  throw new SessionError("invalid_input", "give env: this core has no sandbox of its own");
};

/** @param {() => Promise<object>} make */
export function setDefaultEnvironment(make) {
  defaultEnvironment = make;
}

/**
 * Opens a session.
 * @param {SessionOptions} [options]
 * @returns {Promise<Session>}
 */
export async function createSession(options = {}) {
  return openSession(options, new EventHub());
}

/**
 * Opens a session whose events go to `hub`.
 * @param {SessionOptions} options
 * @param {Pick<EventHub, "publish" | "end" | "room" | "subscribe">} hub
 */
export async function openSession(options, hub) {
  const { apiKey, apiKeys, env, tools = [], approve, fetch, signal, ...settings } = options;
  signal?.throwIfAborted();
  const { runtime, number } = await attach(env ?? (await defaultEnvironment()));
  // Nothing below waits, so no abort can get lost.
  signal?.throwIfAborted();
  const config = coreNames({
    browser: typeof globalThis.document !== "undefined" || typeof globalThis.importScripts === "function",
    ...settings,
    tools: tools.map(definition),
  });
  const part = {
    hub,
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    approve,
    send: createDoor(fetch ?? ((url, init) => globalThis.fetch(url, init)), credentials(config, apiKey, apiKeys)),
  };
  const core = runtime.call((core) => core.openSession(number, JSON.stringify(config)));
  const session = new Session(runtime, core, part);
  if (signal) {
    const abort = () => void session.abort().catch(() => {});
    signal.addEventListener("abort", abort, { once: true });
    session.closed.then(() => signal.removeEventListener("abort", abort));
  }
  return session;
}

export class Session {
  #runtime;
  #core;
  #part;

  /** Id of the session: a UUID. @type {string} */
  id;

  /** Resolves when the session is over. @type {Promise<void>} */
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
      part.hub.publish(events, json);
      if (!events.some(isSessionEnd)) return;
      part.hub.end();
      runtime.sessions.delete(this.id);
      close();
    };
    part.lost = (failure, now) => {
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

  /** `IDLE`, `PROCESSING`, `AWAITING_INPUT` or `CLOSED`. @type {string} */
  get state() {
    return this.#runtime.failed ? "CLOSED" : this.#core.state;
  }

  /**
   * Submits an input and iterates over the events until it and the follow-ups
   * behind it are done. The first iterator of a session also gets the events
   * since it was opened. Leaving the loop early ends listening, not the work;
   * whoever holds an iterator and does not read it holds the model's stream up
   * after 1,024 events, so use `submit` where nobody listens.
   * @param {string} input
   * @param {{signal?: AbortSignal}} [options] `signal` interrupts the input
   * @returns {AsyncIterableIterator<object>}
   */
  run(input, { signal } = {}) {
    signal?.throwIfAborted();
    this.#call((core) => core.submit(String(input)));
    const interrupt = () => {
      if (this.state === "PROCESSING") this.#call((core) => core.interrupt());
    };
    signal?.addEventListener("abort", interrupt, { once: true });
    return this.#part.hub.subscribe((event) => {
      const last = endsInput(event);
      if (last) signal?.removeEventListener("abort", interrupt);
      return last;
    });
  }

  /**
   * Iterates over the events from now on, to `SESSION_END`. The first iterator
   * of a session also gets the events since it was opened, up to 1,024.
   * @returns {AsyncIterableIterator<object>}
   */
  events() {
    return this.#part.hub.subscribe();
  }

  /** Starts an input, or answers the model's question. @param {string} input */
  async submit(input) {
    this.#call((core) => core.submit(String(input)));
  }

  /** Answers the model's question. @param {string} input */
  async answer(input) {
    this.#call((core) => core.answer(String(input)));
  }

  /**
   * Queues a message for the next gap between tool rounds.
   * @param {string} message
   * @returns {Promise<number>} the number that its events bear
   */
  async steer(message) {
    return this.#call((core) => core.steer(String(message)));
  }

  /** Queues an input for when the current one is done. @param {string} message */
  async followUp(message) {
    this.#call((core) => core.followUp(String(message)));
  }

  /** Queues instructions of the developer's. @param {string} content */
  async addSystemTurn(content) {
    this.#call((core) => core.addSystemTurn(String(content)));
  }

  /** Ends the current input only; the session goes on. */
  async interrupt() {
    this.#call((core) => core.interrupt());
  }

  /** Ends the session from any state, gracefully; resolves when it is over. */
  async abort() {
    if (!this.#runtime.failed) this.#call((core) => core.abort());
    await this.closed;
  }

  /** Closes a session that is not processing; resolves when it is over. */
  async close() {
    if (!this.#runtime.failed) this.#call((core) => core.close());
    await this.closed;
  }

  /** Changes settings from the next model or tool call on. @param {object} settings in camel case */
  async configure(settings) {
    this.#call((core) => core.configure(coreNames(settings)));
  }

  /** The settings in force, in the core's own names. */
  async config() {
    return this.#call((core) => core.config());
  }

  /** Adds a tool from the next model call on. @param {Tool} tool */
  async registerTool(tool) {
    this.#call((core) => core.registerTool(definition(tool)));
    this.#part.tools.set(tool.name, tool);
  }

  /** Removes a tool; says whether there was one. @param {string} name */
  async unregisterTool(name) {
    const removed = this.#call((core) => core.unregisterTool(name));
    this.#part.tools.delete(name);
    return removed;
  }

  /** Names of the tools that the model is offered. @returns {Promise<string[]>} */
  async toolNames() {
    return this.#call((core) => core.toolNames());
  }

  /** The turns so far. @returns {Promise<object[]>} */
  async history() {
    return this.#call((core) => core.history());
  }

  #call(call) {
    return this.#runtime.call(() => call(this.#core));
  }
}

function credentials(config, apiKey, apiKeys = {}) {
  const held = new Map();
  const own = config.provider ?? "anthropic";
  const keys = apiKey === undefined ? apiKeys : { ...apiKeys, [own]: apiKey };
  for (const [provider, key] of Object.entries(keys)) {
    const known = config.endpoints?.[provider];
    const first = provider === own ? config : undefined;
    const name = first?.credential ?? known?.credential ?? provider;
    const baseUrl = first?.base_url ?? known?.base_url ?? bindings().providerUrl(provider);
    // An unknown provider: opening the session says so, by name.
    if (baseUrl === undefined) continue;
    const problem = checkCredential(name, { key, baseUrl });
    if (problem) throw new SessionError("invalid_input", problem);
    held.set(name, { key, baseUrl });
  }
  return held;
}

function definition({ execute, ...tool }) {
  if (typeof execute !== "function") {
    throw new SessionError("invalid_tool", `tool \`${tool.name}\` has no execute function`);
  }
  return tool;
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
