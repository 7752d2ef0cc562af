// Session: a conversation with a model that uses tools.

import { bindings } from "../core/runtime.js";
import { againOf, enter } from "../environment/custom-environment.js";
import { createDoor } from "../model/door.js";
import { Keys } from "../model/redact.js";
import { scriptedFetch } from "../model/scripted-model.js";
import { asyncDispose } from "../platform/disposable.js";
import { collected } from "../platform/finalization.js";
import { acceptInSession, guardSession, ours } from "../shared/arguments.js";
import { SessionError } from "../shared/errors.js";
import { late } from "../shared/late-events.js";
import { contentOf } from "../tool/content.js";
import { definition } from "../tool/tool.js";
import { EventStream, endsInput } from "./event-stream.js";
import { OpenSession } from "./open-session.js";
import { coreNames, credentials, inNamesOf, inherited, taken, withSaved } from "./options.js";
import { outcomeOf } from "./prompt-result.js";

/** @import { AbortSignal, Blob, Response } from "../platform.js" */

/**
 * @template [Input=unknown] @template [Output=Input]
 * @typedef {import("../tool/schema.js").StandardSchema<Input, Output>} StandardSchema
 */

/**
 * @typedef {object} ToolContext
 * @property {string} callId
 * @property {string} [agentId] of the subagent whose model calls, if it is one's
 * @property {string} workingDirectory that relative paths start at
 * @property {import("../core/tool-environment.js").ToolEnvironment} env the session's environment, until
 *   the call ends
 * @property {AbortSignal} signal fires when nobody waits for the result any more
 * @property {(text: string) => void} progress shows a piece of output before the end
 */

/**
 * @template [P=any] what `parameters` is
 * @typedef {object} Tool a tool that this page or program executes
 * @property {string} name `[A-Za-z][A-Za-z0-9_]{0,63}`; replaces one of the same name
 * @property {string} description what it does, for the model
 * @property {P & object} parameters a schema of zod, valibot or arktype (Standard Schema), which
 *   checks the arguments and whose defaults and transforms reach `execute`; or JSON Schema, which
 *   the core checks. The root is an object. Keywords that are not checked, such as
 *   `unevaluatedProperties`, are refused unless the tool is `unchecked`: js/README.md
 * @property {boolean} [unchecked] `parameters` goes to the model as it is and `execute` checks the
 *   arguments itself
 * @property {boolean} [strict] asks the provider to enforce `parameters`, where it can
 * @property {CustomFormat} [custom] freeform: the model writes a text instead of JSON, where its
 *   provider has such tools; `execute` gets it as the first required property of `parameters`, or
 *   else as `input`
 * @property {number} [timeoutMs] a call that gives no result within it is an
 *   error that the model can read; default 600,000; 0: no limit
 * @property {(args: import("../tool/schema.js").ArgumentsOf<P>, context: ToolContext) => unknown} execute
 *   what it resolves to goes to the model: a string, bytes of UTF-8, a stream or an async iterator
 *   of these, a list of content as MCP servers give it (`text`, `image`, `resource`, …; also
 *   `document`), `{content, isError}` with one of these, or anything else as JSON; what it throws is
 *   an error that the model can read
 */

/**
 * What a freeform text looks like.
 * @typedef {{type: "text"} | {type: "grammar", syntax: "lark" | "regex", definition: string}} CustomFormat
 *
 * @typedef {object} ApprovalCall a call that needs approval
 * @property {string} name of the tool
 * @property {any} arguments as the model wrote them
 * @property {string} callId
 * @property {string} reason why it needs approval
 * @property {AbortSignal} signal fires when nobody waits for the answer any more
 *
 * What a `fetch` is given: plain data, but for the signal.
 * @typedef {object} FetchInit
 * @property {string} method
 * @property {Record<string, string>} headers names in lower case
 * @property {string} [body]
 * @property {"manual"} redirect
 * @property {AbortSignal} signal
 *
 * @typedef {object} OwnOptions
 * @property {string | null | (() => string | Promise<string>)} [apiKey] never
 *   enters the core; `null`: what stands at `baseUrl` adds it
 * @property {Record<string, string | null | (() => string | Promise<string>)>} [apiKeys]
 *   by provider: for subagents whose model is another provider's
 * @property {import("../environment/memory-environment.js").MemoryEnvironment | import("../environment/custom-environment.js").CustomEnvironment} [env]
 *   default: an empty sandbox, which ends with `close()` or `abort()`
 * @property {Tool[]} [tools]
 * @property {object | object[] | undefined} [history] what `record()` or `history()` of an
 *   earlier session gave: goes on with its conversation; provider, model and
 *   tools may be others
 * @property {Uint8Array | ArrayBuffer | Blob} [saved] what `save()` of an earlier session, or
 *   `hermitcrab run --save`, gave: goes on with it, in a sandbox like its own unless there is `env`;
 *   settings that are given here win over its own
 * @property {(call: ApprovalCall) => boolean | string | Promise<boolean | string>} [approve] `true`:
 *   run it; `false`, or the reason as a string: do not. What it throws is a no whose reason the
 *   model reads
 * @property {(url: string, init: FetchInit) => Promise<Response>} [fetch] sends the requests;
 *   `globalThis.fetch` takes the same
 * @property {string | object} [script] a scripted model plays it instead of the provider's
 *   model, in the provider's format and without a key: docs/script.md
 * @property {AbortSignal} [signal] aborts the session
 * @property {import("../core/recording.js").Record} [record] writes the log of the session and its
 *   environment: `true` keeps it for `recording()`, a function gets it piece by piece. A
 *   `MemoryEnvironment` that is given must be created with `record`
 *
 * @typedef {OwnOptions & import("../types.js").SessionSettings} SessionOptions
 *
 * @typedef {import("../events.js").SessionEvent} SessionEvent
 *
 * What a runtime keeps of a session.
 * @typedef {object} SessionPart
 * @property {EventStream} eventStream
 * @property {object} env kept as long as the session is open
 * @property {Keys} keys its own, to be kept out of the core's inputs
 * @property {Map<string, Tool>} tools
 * @property {SessionOptions["approve"]} approve
 * @property {Pick<SessionOptions, "apiKey" | "apiKeys" | "approve" | "fetch" | "script">} given what a fork of it takes over
 * @property {(request: object, signal: AbortSignal) => Promise<Response>} send
 * @property {(events: object[], json: string) => void} publish the same twice
 * @property {(failure: Error, now: number) => void} lost
 */

/**
 * Opens a session.
 * @param {SessionOptions} options
 * @param {(options: {record?: import("../core/recording.js").Record, saved?: Uint8Array}) => object | Promise<object>} makeEnvironment
 *   for one that is given none
 * @returns {Promise<Session>}
 */
export async function createSessionIn(options, makeEnvironment) {
  acceptInSession("createSession", options);
  return openSession(await withSaved(options), new EventStream(), makeEnvironment);
}

/**
 * Opens a session whose events go to `eventStream`.
 * @param {SessionOptions} options
 * @param {Pick<EventStream, "publish" | "end" | "room" | "subscribe" | "remember">} eventStream
 * @param {(options: {record?: import("../core/recording.js").Record, saved?: Uint8Array}) => any} [makeEnvironment]
 *   for one that is given none
 */
export async function openSession(options, eventStream, makeEnvironment) {
  const { env, tools = [], signal, history, saved, apiKey, apiKeys, approve, fetch, script, record: recorded, ...settings } = options;
  signal?.throwIfAborted();
  // Judged and copied before anything happens.
  const told = { ...taken(settings, "options"), tools: tools.map(definition) };
  const record = history === undefined || history === null ? undefined : JSON.stringify(taken(history, "options.history"));
  const made = env ? undefined : await makeEnvironment({ ...(recorded && { record: recorded }), ...(saved && { saved }) });
  const place = enter(env ?? made, recorded);
  try {
    const { runtime, number } = await place.entered;
    if (recorded && !runtime.isRecorded) {
      throw new SessionError("invalid_input", "createSession: options.record comes too late, since a log begins with its environment; create that with record");
    }
    const fetching = await sender(fetch, script);
    // Nothing below waits, so no abort can get lost.
    signal?.throwIfAborted();
    const config = coreNames({
      browser: typeof globalThis.document !== "undefined" || typeof globalThis.importScripts === "function",
      ...told,
    });
    const keys = new Keys();
    const settled = JSON.stringify(config);
    const opened = (core) => (saved ? core.openSaved(number, saved, settled) : core.openSession(number, settled, record));
    const inForce = saved ? inNamesOf(settings, () => runtime.call(() => bindings().savedConfig(saved, settled))) : config;
    const part = {
      eventStream,
      keys,
      env: env ?? made,
      tools: new Map(tools.map((tool) => [tool.name, tool])),
      approve,
      send: createDoor(fetching, credentials(inForce, script ? null : apiKey, apiKeys), keys),
      given: { apiKey, apiKeys, approve, fetch, script },
    };
    const core = inNamesOf(settings, () => runtime.call(opened));
    const open = new OpenSession(runtime, core, part, { made, leave: place.leave });
    abortBy(signal, open);
    return new Session(open, part);
  } catch (error) {
    place.leave();
    await made?.dispose();
    throw error;
  }
}

/**
 * A session that was opened before its core was taken over.
 * @param {import("../core/runtime.js").Runtime} runtime @param {string} id
 * @param {Pick<SessionOptions, "apiKey" | "apiKeys" | "tools" | "approve" | "fetch" | "script" | "signal">} options
 * @param {{eventStream: EventStream, env: object, made: {dispose: () => Promise<void>}, seq: number, baseUrl?: string}} place
 *   keys go to `baseUrl`, or to where the provider itself is: who wrote a log does not decide that
 */
export async function sessionAfter(runtime, id, options, { eventStream, env, made, seq, baseUrl }) {
  const { tools = [], signal, apiKey, apiKeys, approve, fetch, script } = options;
  const core = runtime.call((core) => core.sessionOf(id));
  const config = runtime.call(() => core.call({ call: "config" }));
  const keys = new Keys();
  const fetching = await sender(fetch, script);
  signal?.throwIfAborted();
  const part = {
    eventStream,
    keys,
    env,
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    approve,
    // A scripted model has no key, and is wherever it is asked.
    send: createDoor(fetching, script ? credentials(config, null) : credentials({ ...config, base_url: baseUrl, endpoints: {} }, apiKey, apiKeys), keys),
    given: { apiKey, apiKeys, approve, fetch, script },
  };
  const open = new OpenSession(runtime, core, part, { made, leave: () => {}, seq });
  abortBy(signal, open);
  return new Session(open, part);
}

/** @param {AbortSignal | undefined} signal @param {OpenSession} open */
function abortBy(signal, open) {
  if (!signal) return;
  const abort = () => void open.end("abort").catch(() => {});
  signal.addEventListener("abort", abort, { once: true });
  open.closed.then(() => signal.removeEventListener("abort", abort));
}

/** Not made where the `Session` is in sight: a function keeps all that is. @param {OpenSession} open */
const leaving = (open) => () => open.leave();

function sender(fetch, script) {
  if (script !== undefined) return scriptedFetch(script);
  return fetch ?? ((url, init) => globalThis.fetch(url, init));
}

export class Session {
  #open;
  #part;

  /** A UUID. @type {string} @readonly */
  id;

  /** Resolves when the session is over. @type {Promise<void>} @readonly */
  closed;

  /**
   * What it works in: the environment that it was given, or the sandbox that was made for it.
   * @type {import("../environment/memory-environment.js").MemoryEnvironment | import("../environment/custom-environment.js").CustomEnvironment} @readonly
   */
  env;

  /** @private use `createSession` @param {OpenSession} open @param {SessionPart} part */
  constructor(open, part) {
    ours(this);
    this.#open = open;
    this.#part = part;
    this.id = open.id;
    this.closed = open.closed;
    this.env = part.env;
    collected(this, leaving(open));
  }

  /** What it is doing. @type {"IDLE" | "PROCESSING" | "AWAITING_INPUT" | "CLOSED"} */
  get state() {
    return this.#open.state;
  }

  /**
   * Submits an input and resolves when it and the follow-ups behind it are done.
   * Rejects with a `RunError` where the run failed; a limit, an interruption and
   * a question of the model's are results, whose `reason` says so.
   * @param {import("../tool/content.js").Input} input a text, or texts, images and documents
   * @param {{signal?: AbortSignal}} [options] `signal` interrupts the input
   * @returns {Promise<import("./prompt-result.js").PromptResult>}
   */
  async prompt(input, options) {
    return outcomeOf(this.run(input, options));
  }

  /**
   * Submits an input and iterates over the events until it and the follow-ups
   * behind it are done. The first iterator of a session also gets the events
   * since it was opened. Leaving the loop early ends listening, not the work;
   * whoever holds an iterator and does not read it holds the model's stream up
   * after 1,024 events, so use `submit` where nobody listens. An input that is
   * refused is thrown to whoever asks for the first event.
   * @param {import("../tool/content.js").Input} input a text, or texts, images and documents
   * @param {{signal?: AbortSignal}} [options] `signal` interrupts the input
   * @returns {AsyncIterableIterator<SessionEvent>}
   */
  run(input, options) {
    const content = contentOf(input);
    const begin = (content) => this.#begin({ call: "submit" }, options, content);
    return content instanceof Promise ? late(content.then(begin)) : begin(content);
  }

  /**
   * Goes on with what the history leaves open, because its page was closed, or
   * by an error or an interruption: the model is asked with the history as it
   * is. Otherwise as `run`.
   * @param {{signal?: AbortSignal}} [options]
   * @returns {AsyncIterableIterator<SessionEvent>}
   */
  resume(options) {
    return this.#begin(undefined, options);
  }

  /** Goes on as `resume` does, where nobody listens. */
  async proceed() {
    this.#goOn();
  }

  /** One that stands still before a request, as a fork does, sends it. */
  #goOn() {
    const isPaused = this.#call({ call: "is_paused" });
    this.#call(isPaused ? { call: "pause_at", answers: null } : { call: "resume" });
  }

  /**
   * Sends no request once the conversation has so many answers of the model; what came before that
   * is done. Without a number it goes on.
   * @param {number} [answers]
   */
  async pauseAt(answers) {
    this.#call({ call: "pause_at", answers: answers ?? null });
  }

  /**
   * Has the model summarise the older part of the conversation, which from then on it reads in its
   * place: before the next request, or at once where no input is processed. The event
   * `COMPACTION_END` tells what came of it; the turns stay in `history()`.
   */
  async compact() {
    this.#call({ call: "compact" });
  }

  /** Whether it stands still before a request. @returns {Promise<boolean>} */
  async isPaused() {
    return this.#call({ call: "is_paused" });
  }

  #begin(call, { signal } = {}, content) {
    signal?.throwIfAborted();
    try {
      if (call) this.#call(call, content);
      else this.#goOn();
    } catch (error) {
      return late(Promise.reject(error));
    }
    const open = this.#open;
    this.#part.eventStream.interruptBy(signal, () => open.call({ call: "interrupt" }));
    return this.#part.eventStream.subscribe(endsInput);
  }

  /**
   * Iterates over the events from now on, to `SESSION_END`. The first iterator
   * of a session also gets the events since it was opened, up to 1,024.
   * @returns {AsyncIterableIterator<SessionEvent>}
   */
  events() {
    return this.#part.eventStream.subscribe();
  }

  /** Starts an input, or answers the model's question. @param {import("../tool/content.js").Input} input */
  async submit(input) {
    await this.#say({ call: "submit" }, input);
  }

  /** Answers the model's question. @param {import("../tool/content.js").Input} input */
  async answer(input) {
    await this.#say({ call: "answer" }, input);
  }

  /**
   * Queues a message for the next gap between tool rounds.
   * @param {import("../tool/content.js").Input} message
   * @returns {Promise<number>} the number that its events bear
   */
  async steer(message) {
    return this.#say({ call: "steer" }, message);
  }

  /** Queues an input for when the current one is done. @param {import("../tool/content.js").Input} message */
  async followUp(message) {
    await this.#say({ call: "follow_up" }, message);
  }

  /** Queues instructions of the developer's. @param {string} content */
  async addSystemTurn(content) {
    this.#call({ call: "add_system_turn", content });
  }

  /** Ends the current input only; the session goes on. Where no input is worked on, nothing happens. */
  async interrupt() {
    this.#call({ call: "interrupt" });
  }

  /** Ends the session from any state, gracefully; resolves when it is over. A sandbox that was made for it ends, too. */
  async abort() {
    await this.#open.end("abort");
  }

  /** Closes the session; one that works is aborted first. Otherwise as `abort`. */
  async close() {
    await this.#open.end("close");
  }

  /** `close()`, for `await using`. @returns {Promise<void>} */
  async [asyncDispose]() {
    await this.close();
  }

  /**
   * Changes settings from the next model or tool call on.
   * @param {import("../types.js").ChangeableSettings} settings
   */
  async configure(settings) {
    const patch = coreNames(taken(settings, "settings"));
    inNamesOf(settings, () => this.#call({ call: "configure", patch }));
  }

  /** The settings in force, in the core's own names. @returns {Promise<Record<string, unknown>>} */
  async config() {
    return structuredClone(this.#open.remains?.config) ?? this.#call({ call: "config" });
  }

  /**
   * Adds a tool from the next model call on.
   * @template P
   * @param {Tool<P>} tool
   */
  async registerTool(tool) {
    const told = definition(tool);
    this.#call({ call: "register_tool", definition: told });
    this.#part.tools.set(told.name, tool);
  }

  /** Removes a tool; says whether there was one. @param {string} name @returns {Promise<boolean>} */
  async unregisterTool(name) {
    const removed = this.#call({ call: "unregister_tool", name });
    this.#part.tools.delete(name);
    return removed;
  }

  /**
   * The subagents, those of subagents too: each after the one that started it.
   * @returns {Promise<import("../types.js").Agent[]>}
   */
  async agents() {
    return this.#call({ call: "agents" }).map(({ parent_id: parentId, ...agent }) => ({ ...agent, parentId }));
  }

  /** The turns of a subagent so far, also of one that is closed. @param {string} agent its id @returns {Promise<import("../types.js").Turn[]>} */
  async agentHistory(agent) {
    return this.#call({ call: "agent_history", agent });
  }

  /**
   * Tells a subagent something: at the next gap between tool rounds of one that
   * works, as the next input of one that rests.
   * @param {string} agent its id @param {import("../tool/content.js").Input} message
   */
  async steerAgent(agent, message) {
    await this.#say({ call: "tell_agent", agent, tell: { steer: "" } }, message);
  }

  /** Ends what a subagent is doing; it takes new messages. @param {string} agent its id */
  async interruptAgent(agent) {
    this.#call({ call: "tell_agent", agent, tell: "interrupt" });
  }

  /** Ends a subagent for good. @param {string} agent its id */
  async closeAgent(agent) {
    this.#call({ call: "tell_agent", agent, tell: "close" });
  }

  /** Names of the tools that the model is offered. @returns {Promise<string[]>} */
  async toolNames() {
    return structuredClone(this.#open.remains?.toolNames) ?? this.#call({ call: "tool_names" });
  }

  /** The turns so far, also of a session that is over. @returns {Promise<import("../types.js").Turn[]>} */
  async history() {
    return structuredClone(this.#open.remains?.history) ?? this.#call({ call: "history" });
  }

  /**
   * Calls `callback` whenever something happens in the session; returns what
   * ends that.
   * @param {() => void} callback @returns {() => void}
   */
  onActivity(callback) {
    return this.#part.eventStream.watch(callback);
  }

  /**
   * The session as it is now, also in the middle of a round, as plain data: turns,
   * results so far and queues; of one that is over, as it was then.
   * `createSession({ history })` goes on with it.
   * @returns {Promise<object>}
   */
  async record() {
    return structuredClone(this.#open.remains?.record) ?? this.#call({ call: "record" });
  }

  /**
   * The session as a file, with all files of its sandbox: `createSession({ saved })` goes on with
   * it in any process or page, and `hermitcrab run --restore FILE` does. It is a tar archive.
   * Rejects where the session does not stand still, and while a subagent works. It holds no key.
   * @returns {Promise<Uint8Array>}
   */
  async save() {
    return this.#open.save();
  }

  /**
   * A session more that goes on where this one stands still, in a sandbox like its own: the same
   * as `createSession({ saved: await session.save(), ...options })`, with the tools, keys, programs
   * and callbacks of this one where `options` has none. One with an environment of yours shares it.
   * @param {Omit<SessionOptions, "history" | "saved">} [options]
   * @returns {Promise<Session>}
   */
  async fork(options = {}) {
    acceptInSession("createSession", options);
    const saved = await this.save();
    const again = againOf(this.env);
    const config = await this.config();
    const own = { ...inherited(this.#part.given, config, options), tools: [...this.#part.tools.values()], ...(again ? {} : { env: this.env }) };
    return openSession({ ...own, ...options, saved }, new EventStream(), again);
  }

  /**
   * The log so far, with `record: true`; whole once the session's environment is closed.
   * `replay`, `fork` and `hermitcrab replay FILE` read it. It holds what the model, the tools and
   * the files said, and no key.
   * @returns {Promise<Uint8Array>}
   */
  async recording() {
    return this.#open.recording();
  }

  /** Calls with `input` as the core takes it; at once, where nothing of it must be read first. */
  #say(call, input) {
    const content = contentOf(input);
    const said = (content) => this.#call(call, content);
    return content instanceof Promise ? content.then(said) : said(content);
  }

  /** Makes a call, see `SessionCall` in src/session/call.rs; `content` is what is said to a model. */
  #call(call, content) {
    return this.#open.call(call, content);
  }
}

guardSession(Session);
