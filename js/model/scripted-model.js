// The scripted model: a `fetch` that plays a script in the wire format of
// whichever provider is asked. For demonstrations and tests without a key.
// docs/script.md says what a script is.

import { bindings, init } from "../core/runtime.js";
import { sleep } from "../platform/clock.js";
import { acceptInSession } from "../shared/arguments.js";
import { SessionError, typed } from "../shared/errors.js";

/** @import { Response } from "../platform.js" */

/**
 * A `fetch` for `createSession` that answers from `script`, in order.
 * @param {string | object} script
 * @returns {Promise<(url: string, init: import("../session/session.js").FetchInit) => Promise<Response>>}
 */
export async function scriptedFetch(script) {
  acceptInSession("scriptedFetch", script);
  await init();
  const model = create(typeof script === "string" ? script : JSON.stringify(script));
  return async function play(url, { body = new Uint8Array(), signal } = {}) {
    const { pathname, search } = new URL(url);
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    const { status, headers, chunks, complete } = model.respond(pathname + search, bytes);
    const stop = signal ?? new AbortController().signal;
    await sleep(chunks[0].delayMs, stop);
    stop.throwIfAborted();
    if (!complete && chunks[0].bytes.length === 0) {
      throw new TypeError("the script breaks the connection");
    }
    chunks[0].delayMs = 0;
    return new Response(stream(chunks, complete, stop), { status, headers });
  };
}

function create(json) {
  const { ScriptedModel } = bindings();
  if (!ScriptedModel) throw new SessionError("invalid_input", "the core without a sandbox has no scripted model");
  try {
    return new ScriptedModel(json);
  } catch (error) {
    throw typed(error, SessionError);
  }
}

function stream(chunks, complete, signal) {
  let index = 0;
  return new ReadableStream({
    async pull(controller) {
      if (index === chunks.length) {
        if (complete) controller.close();
        else controller.error(new TypeError("the script breaks the connection"));
        return;
      }
      const { delayMs, bytes } = chunks[index++];
      if (delayMs > 0) await sleep(delayMs, signal);
      if (signal.aborted) controller.error(signal.reason);
      else controller.enqueue(bytes);
    },
  });
}
