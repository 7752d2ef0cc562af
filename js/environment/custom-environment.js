// Environments of the user's: JavaScript objects with a method per call.
//
// An object has `read`, `write`, `stat`, `list`, `remove`, `rename`, `makeDir`
// and `exec`, perhaps `readPart`, `realPath`, `grep`, `glob`, `initialize` and `cleanup`,
// the facts `workingDirectory` and `platform`, perhaps `osVersion`,
// `utcOffsetMinutes`, `bounds` and `warning`, and what it asks to be wrapped in,
// `readOnly` and `log`. What it lacks of `grep` and `glob` is done on top of
// `list` and `read`, without `realPath` every path leads where it says; any
// other missing method answers "unsupported".

import { Runtime } from "../core/runtime.js";
import { sleep } from "../platform/clock.js";
import { acceptOwn, isGone, readInSession } from "../shared/arguments.js";
import { EnvironmentError, SessionError } from "../shared/errors.js";

/** @import { AbortSignal } from "../platform.js" */

/**
 * What an environment may ask for.
 * @typedef {object} Wrapping
 * @property {boolean | "commands" | undefined} [readOnly] reject writes and commands with kind `read_only`;
 *   `"commands"` lets commands run, which could write: then it is a guard, not a boundary
 * @property {((line: string) => void) | undefined} [log] gets each call and how it ended: `write a.txt (14
 *   bytes)`, then `write a.txt (14 bytes): ok`; `exec: ls`, then `exit: 0 in 3 ms`. Contents of
 *   files are not in it, a command is there as it is. What it throws is its own affair
 *
 * @typedef {CustomCalls & Wrapping} CustomEnvironment
 *
 * @typedef {object} CustomCalls
 * @property {string} [workingDirectory] absolute; default `/workspace`
 * @property {string} [platform] `darwin`, `linux`, `windows` or `wasm`; default `linux`
 * @property {string} [osVersion]
 * @property {number} [utcOffsetMinutes]
 * @property {string} [bounds] what tools may not do here, one or two sentences; the model gets them
 * @property {string} [warning] what a person should know before tools run: a `WARNING` event of the code `environment`
 * @property {(path: string, options: {maxBytes: number, signal: AbortSignal}) => Promise<Uint8Array | string>} read
 * @property {(path: string, options: {offset: number, maxBytes: number, signal: AbortSignal}) => Promise<Uint8Array>} [readPart]
 *   `maxBytes` bytes from byte `offset` on, fewer only at the end of the file, none behind it;
 *   without it files of more than 50 MB are not read
 * @property {(path: string, content: Uint8Array, options: {signal: AbortSignal}) => Promise<void>} write
 *   creates parents
 * @property {(path: string, options: {signal: AbortSignal}) => Promise<Stat>} stat
 * @property {(path: string, options: {signal: AbortSignal}) => Promise<string>} [realPath]
 *   where the path leads: absolute, every symbolic link followed, what does not exist kept as it is
 *   named; without it every path leads where it says
 * @property {(path: string, options: {depth: number, signal: AbortSignal}) => Promise<Entry[] | {entries: Entry[], truncated: boolean}>} list
 *   paths relative to `path`; depth 1 is the directory itself
 * @property {(path: string, options: {signal: AbortSignal}) => Promise<void>} remove
 * @property {(from: string, to: string, options: {signal: AbortSignal}) => Promise<void>} rename
 * @property {(path: string, options: {signal: AbortSignal}) => Promise<void>} makeDir creates parents
 * @property {(command: string, options: ExecOptions) => Promise<ExecResult>} exec
 * @property {(query: GrepQuery, options: {signal: AbortSignal}) => Promise<{matches: {path: string, line: number, text: string}[], truncated?: boolean}>} [grep]
 * @property {(query: {pattern: string, path: string, maxResults: number}, options: {signal: AbortSignal}) => Promise<Entry[]>} [glob]
 *   newest first
 * @property {() => Promise<void>} [initialize] before the first session's first use; `abort` does
 *   not wait for it, and after 10 minutes nobody does
 * @property {() => Promise<void>} [cleanup] after the last session closed, whose end waits for it, 10 s at most
 *
 * @typedef {{isDir: boolean, size?: number, modifiedMs?: number}} Stat
 * @typedef {Stat & {path: string}} Entry
 * @typedef {{pattern: string, path: string, globFilter?: string, caseInsensitive: boolean, maxResults: number}} GrepQuery
 * @typedef {object} ExecOptions
 * @property {number} timeoutMs end the command after it, and say `timedOut`; `signal` fires then,
 *   too, and a command that has not ended a second later is given up
 * @property {string} [cwd] @property {Record<string, string>} env variables to add
 * @property {AbortSignal} signal end the command now
 * @property {(stream: "stdout" | "stderr", data: Uint8Array | string) => void} onOutput call it as output arrives
 * @typedef {{exitCode: number, timedOut?: boolean, durationMs?: number}} ExecResult
 *
 * What a runtime asks of an environment.
 * @typedef {object} EnvironmentAnswers
 * @property {(call: object, signal: AbortSignal) => Promise<object | Uint8Array>} call
 * @property {Function} exec
 * @property {import("./program.js").Programs} [programs]
 */

/**
 * Where an environment lives: the promise of its runtime and number, and how
 * many sessions use it or are being opened in it.
 * @typedef {{runtime: Runtime, number: number}} Place
 * `again` makes another one of what a session of it saved.
 * @typedef {(options: {record?: import("../core/recording.js").Record, saved?: Uint8Array}) => Promise<object>} Again
 * @type {WeakMap<object, {place: Promise<Place>, users: number, isSandbox?: boolean, again?: Again}>}
 */
const attached = new WeakMap();

const PLATFORMS = ["darwin", "linux", "windows", "wasm"];
/** Time for a command to end once its limit is over, in ms. */
const GRACE_MS = 1_000;
/** The core gives up a command that was cancelled before so many ms have passed. */
const GIVEN_UP_MS = 3_000;
/** Time for what nobody can cancel, in ms. */
const PATIENCE_MS = { initialize: 600_000, cleanup: 10_000 };
/** What shells call a command that its limit ended. */
const TIMED_OUT = 124;

/**
 * The runtime and number of an environment; sessions that are given the same
 * object share them.
 * @param {CustomEnvironment} environment
 * @returns {Promise<Place>}
 */
export function attach(environment) {
  return held(environment).place;
}

function held(environment, record) {
  let entry = attached.get(environment);
  if (!entry) {
    entry = { place: add(environment, record), users: 0 };
    attached.set(environment, entry);
    entry.place.catch(() => attached.delete(environment));
  }
  return entry;
}

/**
 * `attach` for a session, which calls `leave` once it needs the environment no
 * more. The core of an object that no session uses is given back: it holds nothing.
 * @param {CustomEnvironment} environment
 * @param {import("../core/recording.js").Record} [record]
 * @returns {{entered: Promise<Place>, leave: () => void}}
 */
export function enter(environment, record) {
  const entry = held(environment, record);
  entry.users += 1;
  const leave = () => {
    entry.users -= 1;
    if (entry.users > 0 || entry.isSandbox) return;
    attached.delete(environment);
    entry.place.then(({ runtime }) => runtime.free(), () => {});
  };
  return { entered: entry.place, leave };
}

/** Remembers where an environment of the core lives. @param {object} environment @param {Place} place @param {Again} [again] */
export function attachTo(environment, place, again) {
  attached.set(environment, { place: Promise.resolve(place), users: 0, isSandbox: true, again });
}

/** What makes another sandbox like this one; none for an environment of the user's. @param {object} environment */
export function againOf(environment) {
  return attached.get(environment)?.again;
}

async function add(environment, record) {
  acceptOwn(environment);
  const { info, wrapping } = readInSession("options.env", () => ({ info: facts(environment), wrapping: wrappingOf(environment) }));
  const runtime = await Runtime.create(record);
  const number = runtime.add(answersOf(environment, info));
  runtime.wrap(number, wrapping);
  return { runtime, number };
}

/** What a runtime keeps of an environment. @param {CustomEnvironment} environment @param {object} info */
export function answersOf(environment, info) {
  return {
    add: (core) => core.addEnvironment(info),
    call: (call, signal) => answer(environment, call, signal),
    exec: (request, signal, onOutput) => exec(environment, request, signal, onOutput),
  };
}

/** @param {unknown} holds @param {string} name @param {string} what */
function must(holds, name, what) {
  if (!holds) throw new SessionError("invalid_input", `createSession: options.env.${name} must be ${what}`);
}

/** What an environment asks to be wrapped in. @param {CustomEnvironment} environment @returns {Wrapping} */
function wrappingOf(environment) {
  const { readOnly, log } = environment;
  must([undefined, false, true, "commands"].includes(readOnly), "readOnly", 'true, false or "commands"');
  must(log === undefined || typeof log === "function", "log", "a function");
  return { readOnly, log: log?.bind(environment) };
}

/** What the core gets of an environment. */
function facts({ workingDirectory, platform, osVersion, utcOffsetMinutes, bounds, warning }) {
  const info = {
    working_directory: workingDirectory ?? "/workspace",
    platform: platform ?? "linux",
    os_version: osVersion ?? "",
    utc_offset_minutes: utcOffsetMinutes ?? 0,
    bounds: bounds ?? "",
    warning: warning ?? "",
  };
  must(PLATFORMS.includes(info.platform), "platform", `one of ${PLATFORMS.join(", ")}`);
  const absolute = info.platform === "windows" ? /^(?:[A-Za-z]:)?[\\/]/ : /^\//;
  must(typeof info.working_directory === "string" && absolute.test(info.working_directory), "workingDirectory", "an absolute path");
  must(typeof info.os_version === "string", "osVersion", "a string");
  must(typeof info.bounds === "string", "bounds", "a string");
  must(typeof info.warning === "string", "warning", "a string");
  must(Number.isFinite(info.utc_offset_minutes), "utcOffsetMinutes", "a number of minutes");
  return info;
}

/** One call, from the core's shape to a method and back. */
async function answer(environment, call, signal) {
  const options = { signal };
  switch (call.call) {
    case "initialize":
    case "cleanup":
      await within(PATIENCE_MS[call.call], call.call, async () => environment[call.call]?.());
      return DONE;
    case "read":
      return bytes(await method(environment, "read")(call.path, { maxBytes: call.max_bytes, signal }), call);
    case "read_part":
      return bytes(
        await method(environment, "readPart")(call.path, { offset: call.offset, maxBytes: call.max_bytes, signal }),
        call,
      );
    case "write":
      await method(environment, "write")(call.path, call.content, options);
      return DONE;
    case "stat":
      return { reply: "stat", value: stat(await method(environment, "stat")(call.path, options), call) };
    case "real_path":
      return { reply: "path", value: text(await method(environment, "realPath")(call.path, options), call) };
    case "list":
      return entries(
        await method(environment, "list")(call.path, { depth: call.depth, signal }),
        `list(${call.path})`,
        byPath,
      );
    case "remove":
      await method(environment, "remove")(call.path, options);
      return DONE;
    case "rename":
      await method(environment, "rename")(call.from, call.to, options);
      return DONE;
    case "make_dir":
      await method(environment, "makeDir")(call.path, options);
      return DONE;
    case "grep":
      return matches(
        await method(environment, "grep")(
          {
            pattern: call.pattern,
            path: call.path,
            globFilter: call.glob_filter ?? undefined,
            caseInsensitive: call.case_insensitive,
            maxResults: call.max_results,
          },
          options,
        ),
      );
    case "glob":
      return entries(
        await method(environment, "glob")(
          { pattern: call.pattern, path: call.path, maxResults: call.max_results },
          options,
        ),
        `glob(${call.pattern})`,
      );
    default:
      throw new EnvironmentError("unsupported", `environments have no call \`${call.call}\``);
  }
}

async function exec(environment, { command, timeoutMs, cwd, env }, signal, onOutput) {
  const start = performance.now();
  const run = method(environment, "exec");
  const { over, result } = await withLimit(timeoutMs, signal, (signal) => run(command, { timeoutMs, cwd, env, signal, onOutput }));
  // Given up: what it says now, if anything, nobody hears.
  const { exitCode, timedOut, durationMs } = over && !isObject(result) ? {} : shaped(result, "exec", isObject, "{exitCode}");
  return {
    // Its limit ended it, whatever the signal made of that.
    exit_code: over && !timedOut ? TIMED_OUT : integer(exitCode, "exitCode"),
    timed_out: Boolean(timedOut) || over,
    cancelled: false,
    duration_ms: whole(durationMs ?? performance.now() - start),
  };
}

/** What never ends must not hold up the end of its sessions. */
async function within(ms, name, work) {
  const done = new AbortController();
  const late = sleep(ms, done.signal).then(() => {
    if (!done.signal.aborted) throw new EnvironmentError("io", `the environment's ${name} did not end within ${ms} ms`);
  });
  try {
    await Promise.race([work(), late]);
  } finally {
    done.abort();
  }
}

/** The limit holds also for a command that does not end itself; 0: there is none. */
async function withLimit(ms, signal, run) {
  if (ms === 0) return { over: false, result: await run(signal) };
  const stopping = new AbortController();
  const done = new AbortController();
  const waiting = new AbortController();
  const stop = () => {
    stopping.abort(signal.reason);
    // A timer that nobody waits for would keep a process.
    waiting.abort();
  };
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  let over = false;
  const late = sleep(ms, waiting.signal).then(async () => {
    over = !waiting.signal.aborted;
    if (over) stopping.abort(new EnvironmentError("cancelled", `the command did not end within ${ms} ms`));
    await sleep(over ? GRACE_MS : GIVEN_UP_MS, done.signal);
    return undefined;
  });
  try {
    // Whatever it throws after the signal is how it ended.
    const ran = (async () => run(stopping.signal))().catch((error) => {
      if (!over) throw error;
    });
    const result = await Promise.race([ran, late]);
    return { result, over };
  } finally {
    done.abort();
    waiting.abort();
    signal.removeEventListener("abort", stop);
  }
}

const DONE = { reply: "done" };

function method(environment, name) {
  if (typeof environment[name] !== "function") {
    throw new EnvironmentError("unsupported", `the environment has no method \`${name}\``);
  }
  return environment[name].bind(environment);
}

function bytes(content, { path, max_bytes: limit }) {
  const data = typeof content === "string" ? new TextEncoder().encode(content) : content;
  if (!(data instanceof Uint8Array)) {
    throw new EnvironmentError("io", `read(${path}) returned neither a Uint8Array nor a string`);
  }
  if (isGone(data)) throw new EnvironmentError("io", `read(${path}) returned bytes whose buffer was moved or made smaller`);
  if (data.length > limit) {
    throw new EnvironmentError("too_large", `${path} has ${data.length} bytes, more than ${limit}`);
  }
  return data;
}

function text(path, call) {
  if (typeof path !== "string" || !path.startsWith("/")) {
    throw new EnvironmentError("io", `realPath(${call.path}) returned no absolute path`);
  }
  return path;
}

const isObject = (value) => typeof value === "object" && value !== null;
const isEntry = (value) => isObject(value) && typeof value.path === "string";
const isMatch = (value) => isEntry(value) && typeof value.text === "string";

/** `value`, if it is what `call` must return. */
function shaped(value, call, holds, what) {
  if (!holds(value)) throw new EnvironmentError("io", `the environment's ${call} must return ${what}, and returned something else`);
  return value;
}

function stat(value, { path }) {
  const { isDir, size, modifiedMs } = shaped(value, `stat(${path})`, isObject, "{isDir, size}");
  return { is_dir: Boolean(isDir), size: whole(size ?? 0), modified_ms: maybeWhole(modifiedMs) };
}

function entries(value, call, order) {
  const { entries: list, truncated } = Array.isArray(value) ? { entries: value } : Object(value);
  shaped(list, call, (list) => Array.isArray(list) && list.every(isEntry), "a list of {path, isDir}");
  const found = list.map(({ path, isDir, size, modifiedMs }) => ({
    path,
    is_dir: Boolean(isDir),
    size: isDir ? null : maybeWhole(size),
    modified_ms: maybeWhole(modifiedMs),
  }));
  if (order) found.sort(order);
  return { reply: "entries", value: { entries: found, truncated: Boolean(truncated) } };
}

function matches(found) {
  const holds = (value) => Array.isArray(value?.matches) && value.matches.every(isMatch);
  const { matches: list, truncated } = shaped(found, "grep", holds, "{matches}, a list of {path, line, text}");
  const value = {
    matches: list.map(({ path, line, text }) => ({ path, line: whole(line), text })),
    truncated: Boolean(truncated),
  };
  return { reply: "matches", value };
}

/** By code point, as the core sorts; `localeCompare` would depend on the machine. */
function byPath(a, b) {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}

function integer(value, name) {
  if (!Number.isInteger(value)) {
    throw new EnvironmentError("io", `exec returned no integer \`${name}\``);
  }
  return value;
}

function whole(value) {
  return Math.max(0, Math.round(Number(value))) || 0;
}

function maybeWhole(value) {
  return value === undefined || value === null ? null : whole(value);
}
