// Logs of runs: repeating one, and going on live from one of its rounds.

import { bytesOf } from "../core/jobs.js";
import { Runtime, guardOf, loadedBindings, refuseWithoutLogs } from "../core/runtime.js";
import { attachTo, answersOf } from "../environment/custom-environment.js";
import { macrotask } from "../platform/clock.js";
import { acceptInSession } from "../shared/arguments.js";
import { ReplayError, SessionError, isStackEnd, text, typed } from "../shared/errors.js";
import { EventStream } from "./event-stream.js";
import { sessionAfter } from "./session.js";

/** @import { AbortSignal, Blob } from "../platform.js" */

/**
 * @typedef {Uint8Array | ArrayBuffer | Blob} Log what `recording()` gave, or a file of
 *   `hermitcrab run --record`
 *
 * @typedef {object} ReplayOptions
 * @property {number} [until] stops once the first session has so many answers of its model
 * @property {(event: import("../events.js").SessionEvent) => void} [onEvent] gets the events, in order
 * @property {(files: Uint8Array) => void} [onFiles] gets the working directory of the first
 *   session's sandbox as a tar archive: when the session begins, and with each input and each end of
 *   a tool call behind which the files are others
 * @property {AbortSignal} [signal] ends it
 *
 * @typedef {object} Replayed
 * @property {number} steps
 * @property {number} rounds answers of models, those of subagents included
 * @property {boolean} closed whether who wrote the log closed it; else its last lines may be missing
 * @property {{version: string, hash: string}} core that the log is of
 * @property {string} [session] id of the first session
 * @property {import("../events.js").SessionState} [state] where that stands
 * @property {import("../types.js").Turn[]} [history] its turns
 * @property {number} [round] with `until`: its answers so far
 * @property {boolean} [paused] with `until`: whether it stands still before its next request
 * @property {Uint8Array} [files] the working directory of its sandbox, as a tar archive
 *
 * @typedef {object} OwnForkOptions
 * @property {number} at answers of its model after which the run goes on anew
 * @property {import("../environment/memory-environment.js").Files} [files] files that are other than they were, by path
 * @property {Record<string, import("../environment/program.js").Program>} [programs] those of the run's sandbox
 * @property {import("../environment/custom-environment.js").CustomEnvironment} [env] for a run outside of the core: the
 *   fork has its history, not what its commands changed
 * @property {import("../types.js").ChangeableSettings} [settings] that are other than they were. Keys
 *   go to `settings.baseUrl`, else to the provider's own address, whatever the log says
 *
 * @typedef {OwnForkOptions & Pick<import("./session.js").SessionOptions, "apiKey" | "apiKeys" | "tools" | "approve" | "fetch" | "script" | "signal" | "record">} ForkOptions
 */

/** Steps of a replay before others get their turn. */
const STEPS = 64;
/** After these events files may be others. */
const LOOKED = new Set(["SESSION_START", "USER_INPUT", "TOOL_CALL_END"]);

/**
 * Repeats a log in a fresh core: no request is sent, no tool and no program runs. Rejects with a
 * `ReplayError` at the first event or effect that differs.
 * @param {Log} log @param {ReplayOptions} [options]
 * @returns {Promise<Replayed>}
 */
export async function replay(log, options = {}) {
  acceptInSession("replay", log, options);
  const { until, ...listening } = options;
  return using(await begun(log, until), async ({ enter, repeat }) => {
    await repeated(enter, repeat, listening);
    const { version, hash, sandboxes, remote, environment, ...place } = enter(() => repeat.place());
    const ask = (call) => {
      try {
        return enter(() => repeat.ask({ call }));
      } catch {
        // It is over, and its host has released it.
        return undefined;
      }
    };
    const files = sandboxes.includes(environment) ? { files: enter(() => repeat.exportTar(environment)) } : {};
    const session = place.session === undefined ? {} : { state: ask("state"), history: ask("history") };
    return { ...place, core: { version, hash }, ...session, ...files };
  });
}

/**
 * Goes on live from a round of a run: the log is repeated up to there, with its files as they
 * were. The session stands still before its next request: `resume()` or `proceed()` lets it go on,
 * with what it heard meanwhile. Where the round was the last of its input, it waits for the next
 * one. Its request begins with the same bytes as that of the run did.
 * @param {Log} log @param {ForkOptions} options
 * @param {(runtime: Runtime, number: number, programs: Record<string, import("../environment/program.js").Program>) => object} adopt
 * @returns {Promise<import("./session.js").Session>}
 */
export async function forkIn(log, options, adopt) {
  acceptInSession("fork", log, options);
  const { at, files, programs = {}, env, settings, record, ...own } = options;
  const { enter, repeat } = await begun(log, at, Boolean(record));
  let runtime;
  try {
    await repeated(enter, repeat, { signal: own.signal });
    const place = enter(() => repeat.place());
    if (place.remote.length > 0 && !env) {
      const [[, { working_directory: directory }]] = place.remote;
      throw new SessionError("invalid_input", `fork: the run worked in ${directory}, outside of the core; give the fork options.env`);
    }
    const seq = JSON.parse(enter(() => repeat.lastEvent()) ?? "{}").seq ?? 0;
    runtime = new Runtime(enter.bindings, record, (host) => enter.bindings.Core.after(host, repeat));
    const sandboxes = new Map(place.sandboxes.map((number) => [number, adopt(runtime, number, programs)]));
    for (const [number, info] of place.remote) runtime.environments.set(number, answersOf(env, info));
    const made = sandboxes.get(place.environment);
    if (!made) attachTo(env, { runtime, number: place.environment });
    if (files) await (made ?? refuseFiles()).importFiles(files);
    const session = await sessionAfter(runtime, place.session, own, { eventStream: new EventStream(), env: made ?? env, made: made ?? { dispose: () => runtime.free() }, seq, baseUrl: settings?.baseUrl });
    if (settings) await session.configure(settings);
    runtime.call((core) => core.goOn());
    return session;
  } catch (error) {
    if (runtime) runtime.free();
    else repeat.free();
    throw error;
  }
}

function refuseFiles() {
  throw new SessionError("invalid_input", "fork: options.files are for runs in a sandbox; change the files of options.env itself");
}

/** @param {Log} log @param {number} [until] @param {boolean} [record] */
async function begun(log, until, record = false) {
  const bindings = await loadedBindings();
  refuseWithoutLogs(bindings, "a log");
  const bytes = await bytesOf(log);
  const guarded = guardOf(bindings);
  const enter = (call) => {
    try {
      return guarded(call);
    } catch (error) {
      throw error?.kind === "differs" ? new ReplayError(error) : typed(error, SessionError);
    }
  };
  enter.bindings = bindings;
  const contain = (work) => {
    try {
      guarded(work);
    } catch (error) {
      return isStackEnd(error) ? "stack" : text(error);
    }
  };
  return { enter, repeat: enter(() => new bindings.Replay({ contain }, bytes, until, record)) };
}

/** Repeats all that is to be repeated. @param {Pick<ReplayOptions, "onEvent" | "onFiles" | "signal">} listening */
async function repeated(enter, repeat, { onEvent, onFiles, signal }) {
  // Files are those of a step only before the next one.
  const each = onFiles ? 1 : STEPS;
  let last;
  for (let steps = each; ; steps += each) {
    signal?.throwIfAborted();
    const { events, done } = enter(() => repeat.advance(each));
    const told = onEvent || onFiles ? JSON.parse(events) : [];
    if (onEvent) for (const event of told) onEvent(event);
    if (onFiles && told.some(({ kind }) => LOOKED.has(kind))) {
      const { sandboxes, environment } = enter(() => repeat.place());
      const files = sandboxes.includes(environment) ? enter(() => repeat.exportTar(environment)) : undefined;
      if (files && !same(files, last)) onFiles((last = files).slice());
    }
    if (done) return;
    if (steps % STEPS === 0) await new Promise((resolve) => macrotask(() => resolve(undefined)));
  }
}

/** @param {Uint8Array} one @param {Uint8Array | undefined} other */
function same(one, other) {
  if (one.length !== other?.length) return false;
  for (let at = 0; at < one.length; at += 1) if (one[at] !== other[at]) return false;
  return true;
}

async function using(held, use) {
  try {
    return await use(held);
  } finally {
    held.repeat.free();
  }
}
