// Models without a session: one request, one answer, in the wire formats that
// sessions speak and with the same care for keys.

import { bindings, init } from "../core/runtime.js";
import { sleep } from "../platform/clock.js";
import { acceptInSession, guardModels, ours } from "../shared/arguments.js";
import { ModelError, SessionError, typed } from "../shared/errors.js";
import { snakeCase } from "../shared/names.js";
import { NotData, plainData } from "../shared/plain-data.js";
import { contentOf } from "../tool/content.js";
import { isSchema, jsonSchema, validated } from "../tool/schema.js";
import { definition } from "../tool/tool.js";
import { checkCredential, createDoor } from "./door.js";
import { Keys } from "./redact.js";
import { scriptedFetch } from "./scripted-model.js";

/** @import { AbortSignal, Response } from "../platform.js" */

/**
 * @typedef {object} ModelOptions
 * @property {import("../types.js").Provider} [provider] default: `anthropic`
 * @property {string | null | (() => string | Promise<string>)} [apiKey] never
 *   enters the core; `null`: what stands at `baseUrl` adds it
 * @property {string} [baseUrl] default: the provider's own
 * @property {import("../types.js").ChangeableSettings["retry"]} [retry] of `generate` and `generateObject`
 * @property {(url: string, init: import("../session/session.js").FetchInit) => Promise<Response>} [fetch] sends the requests
 * @property {string | object} [script] a scripted model plays it: docs/script.md
 *
 * @typedef {object} ModelRequest
 * @property {string} model id or alias
 * @property {import("../tool/content.js").Input} [prompt] what the user says last
 * @property {import("../types.js").ModelMessage[]} [messages] what was said before; `message` of an
 *   answer goes in as it is
 * @property {string | string[]} [system]
 * @property {Pick<import("../session/session.js").Tool, "name" | "description" | "parameters" | "custom" | "strict">[]} [tools]
 *   that the model may call; nobody runs them: the calls are in the answer
 * @property {"auto" | "none" | "required" | {named: string}} [toolChoice]
 * @property {number} [maxTokens]
 * @property {number} [temperature]
 * @property {number} [topP]
 * @property {string[]} [stopSequences]
 * @property {string} [reasoningEffort]
 * @property {boolean} [parallelToolCalls]
 * @property {Record<string, string>} [metadata]
 * @property {Record<string, Record<string, unknown>>} [providerOptions]
 * @property {string} [cacheKey]
 * @property {AbortSignal} [signal] ends the exchange
 *
 * @typedef {import("../types.js").ModelResponse} ModelResponse
 * @typedef {import("../types.js").ModelEvent} ModelEvent
 */

/** Asks the models of one provider. */
export class ModelClient {
  #options;
  /** @type {Promise<any> | undefined} */
  #core;

  /** @param {ModelOptions} [options] */
  constructor(options = {}) {
    acceptInSession("ModelClient", options);
    ours(this);
    this.#options = options;
  }

  /**
   * The answer, whole; what may succeed later is tried again. Rejects with a
   * `ModelError` where there is none.
   * @param {ModelRequest} request @returns {Promise<ModelResponse>}
   */
  async generate(request) {
    const { core, signal, json, prompt } = await this.#begin(request);
    return response(await retried(core, signal, (aborted) => core.generate(json, prompt, signal, aborted)));
  }

  /**
   * The answer as it arrives; leaving the loop cancels the exchange. Nothing is
   * tried again. What goes wrong is thrown as a `ModelError`.
   * @param {ModelRequest} request @returns {AsyncGenerator<ModelEvent, void, undefined>}
   */
  async *stream(request) {
    const { core, signal, json, prompt } = await this.#begin(request);
    const left = new AbortController();
    const end = linked(signal, () => left.abort());
    const aborted = new Promise((resolve) => left.signal.addEventListener("abort", resolve));
    let events;
    try {
      events = await answered(() => core.stream(json, prompt, left.signal, aborted));
      for (let told; (told = await answered(() => events.nextEvent())) !== undefined; ) {
        const event = JSON.parse(told);
        if (event.type === "error") throw new ModelError(event.error);
        yield event.type === "finish" ? { ...event, response: response(event.response) } : event;
      }
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      end();
      events?.free();
    }
  }

  /**
   * A value that follows `schema`: JSON Schema, or a schema of zod, valibot or
   * arktype, which then makes the value. An answer that does not follow it
   * rejects with the kind `no_object_generated`.
   * @template S
   * @param {ModelRequest & {schema: S}} request
   * @returns {Promise<{object: import("../tool/schema.js").ArgumentsOf<S>, response: ModelResponse}>}
   */
  async generateObject({ schema, ...request }) {
    const { core, signal, json, prompt } = await this.#begin(request);
    const form = JSON.stringify(readable(() => (isSchema(schema) ? jsonSchema(schema, "generateObject") : plainData(schema, "schema"))));
    const [value, told] = await retried(core, signal, (aborted) => core.generateObject(json, prompt, form, signal, aborted));
    const made = isSchema(schema) ? await validated(schema, value) : { value };
    if ("problem" in made) throw new ModelError({ kind: "no_object_generated", message: made.problem, provider: told.provider, retryable: false });
    return { object: made.value, response: response(told) };
  }

  async #begin(request) {
    const { signal = new AbortController().signal, prompt, ...rest } = request;
    signal.throwIfAborted();
    const json = JSON.stringify(readable(() => core(rest)));
    const content = prompt === undefined ? undefined : await contentOf(prompt);
    this.#core ??= create(this.#options);
    const made = await this.#core;
    signal.throwIfAborted();
    return { core: made, signal, json, prompt: content };
  }
}

guardModels(ModelClient);

/** @param {ModelOptions} options */
async function create({ provider = "anthropic", apiKey, baseUrl, fetch, script, retry }) {
  await init();
  const { ModelClient: Core, providerUrl } = bindings();
  const address = baseUrl ?? providerUrl(provider);
  const key = script === undefined ? apiKey : null;
  const held = new Map();
  if (key !== undefined && address !== undefined) {
    const problem = checkCredential(provider, { key, baseUrl: address });
    if (problem) throw new SessionError("invalid_input", problem);
    held.set(provider, { key, baseUrl: address });
  }
  const sending = script === undefined ? (fetch ?? ((url, init) => globalThis.fetch(url, init))) : await scriptedFetch(script);
  const send = createDoor(sending, held, new Keys());
  const settings = { provider, base_url: baseUrl, retry: retry && snakeCase(retry) };
  return called(() => new Core({ fetch: send }, JSON.stringify(settings)));
}

/** A request as the core takes it. @param {Omit<ModelRequest, "prompt" | "signal">} request */
function core({ messages = [], system, tools, ...rest }) {
  return plainData(snakeCase({
    ...rest,
    messages: messages.map(({ content, ...message }) => ({ ...message, content: typeof content === "string" ? [{ type: "text", text: content }] : content })),
    system: typeof system === "string" ? [system] : system,
    // Nobody runs them here.
    tools: tools?.map((tool) => definition({ ...tool, execute: () => {} })),
  }), "request");
}

/** An answer with what callers ask for first. @returns {ModelResponse} */
function response({ finish_reason: finishReason, rate_limit: rateLimit, ...told }) {
  const parts = told.message.content;
  const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  const toolCalls = parts.filter(({ type }) => type === "tool_call").map(({ type, ...call }) => call);
  return { ...told, text, toolCalls, finishReason, rateLimit };
}

/** @template T @param {() => T} make @returns {T} */
function readable(make) {
  try {
    return make();
  } catch (error) {
    if (error instanceof NotData) throw new SessionError("invalid_input", error.message, { cause: error });
    throw error;
  }
}

/** @template T @param {() => T} call @returns {T} */
function called(call) {
  try {
    return call();
  } catch (error) {
    throw typed(error, SessionError);
  }
}

/** What a call of the core resolves to; it rejects with JSON of an error. */
async function answered(call) {
  try {
    return await called(call);
  } catch (error) {
    throw typeof error === "string" ? new ModelError(JSON.parse(error)) : typed(error, SessionError);
  }
}

/**
 * As `answered`, parsed; a call whose failure may pass is made again.
 * @param {any} core @param {AbortSignal} signal @param {(aborted: Promise<void>) => Promise<string>} call
 */
async function retried(core, signal, call) {
  let end;
  const aborted = new Promise((resolve) => (end = linked(signal, resolve)));
  try {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return JSON.parse(await called(() => call(aborted)));
      } catch (error) {
        signal.throwIfAborted();
        const delay = typeof error === "string" ? core.retryDelay(error, attempt, Math.random(), Date.now()) : undefined;
        if (delay === undefined) return await answered(() => Promise.reject(error));
        await sleep(delay, signal);
        signal.throwIfAborted();
      }
    }
  } finally {
    end();
  }
}

/** Calls `then` when `signal` fires, or once what this returns is called. */
function linked(signal, then) {
  signal.addEventListener("abort", then, { once: true });
  return () => {
    signal.removeEventListener("abort", then);
    then();
  };
}
