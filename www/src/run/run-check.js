// What may be wrong with the log and the files of a run that comes from
// somewhere: everything that the page shows of it has its type.

import { above, problemOfPath } from "../project/path.js";

const STATES = ["IDLE", "PROCESSING", "AWAITING_INPUT", "CLOSED"];
const KINDS = ["info", "warning", "error"];

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isNone = (value) => value === undefined || value === null;

/** What a field may hold, and what one that does not is said not to be. */
const TYPES = {
  text: [(value) => typeof value === "string", "text"],
  count: [(value) => Number.isFinite(value) && value >= 0, "count"],
  number: [Number.isFinite, "number"],
  flag: [(value) => typeof value === "boolean", "yes or no"],
  state: [(value) => STATES.includes(value), "state of a session"],
  json: [isJson, "value that the page can show"],
};

/** What the page shows of events, `?` where it may be missing; docs/events.schema.json says all of it. */
const DATA = {
  SESSION_START: { provider: "text", model: "text" },
  STATE_CHANGED: { to: "state" },
  USER_INPUT: { content: "text" },
  ASSISTANT_TEXT_DELTA: { text: "text" },
  REASONING_DELTA: { text: "text" },
  ASSISTANT_TEXT_END: { text: "text", reasoning: "text?" },
  USAGE: { input_tokens: "count", output_tokens: "count", cache_read_tokens: "count?", cache_write_tokens: "count?" },
  TOOL_CALL_START: { call_id: "text", tool_name: "text", arguments: "json?" },
  APPROVAL_REQUESTED: { call_id: "text" },
  TOOL_CALL_OUTPUT_DELTA: { call_id: "text", text: "text" },
  TOOL_CALL_END: {
    call_id: "text", output: "text?", error: "text?", is_error: "flag", refusal: "text?", exit_code: "number?",
    timed_out: "flag?", duration_ms: "count", output_bytes: "count", output_complete: "flag",
  },
  STEERING_QUEUED: { id: "count", content: "text" },
  STEERING_INJECTED: { id: "count?", source: "text?", content: "text" },
  STEERING_DROPPED: { id: "count", content: "text" },
  TURN_LIMIT: { limit: "text", value: "count" },
  RETRY: { attempt: "count", message: "text", discard_partial: "flag" },
  WARNING: { message: "text" },
  ERROR: { code: "text", message: "text" },
  PROCESSING_END: { reason: "text" },
};
const EVENT = { timestamp: "text?", agent_id: "text?", parent_id: "text?" };
const CHANGE = {
  path: "text", before: "text?", after: "text?", skipped: "count?", line: "count?", rest: "count?",
  binary: "flag?", large: "flag?", made: "flag?", gone: "flag?",
};
const NOTE = { note: "text", at: "number?", resume: "flag?", cut: "flag?", back: "count?" };

/** What is wrong with an entry of a log, if anything. @returns {string | undefined} */
export function problemOf(entry) {
  if (!isObject(entry)) return "is no object";
  const { event, changes, note, kind, call, calls, terminal } = entry;
  if ([event, changes, note].filter((each) => each !== undefined).length > 1) return "is more than one of an event, changes and a note";
  if (event !== undefined) return problemOfEvent(event);
  if (changes !== undefined) {
    if (!Array.isArray(changes)) return "has no list of changes";
    if (!isNone(calls) && !Array.isArray(calls)) return "has changes without a list of their calls";
    if (![call, ...(calls ?? [])].every((each) => isNone(each) || typeof each === "string")) return "has changes of a call that is no text";
    if (!isNone(terminal) && typeof terminal !== "boolean") return "has changes whose terminal is no yes or no";
    if (!changes.every((each) => isObject(each) && wrongField(each, CHANGE) === undefined)) return "has a change that is no text";
    const [found] = changes.map(({ path }) => path).filter(problemOfPath);
    return found && `has a change, and ${problemOfPath(found)}`;
  }
  if (note === undefined) return "is neither an event nor a change nor a note";
  if (!isNone(kind) && !KINDS.includes(kind)) return "is a note of no known kind";
  const wrong = wrongField(entry, NOTE);
  return wrong && `is a note ${wrong}`;
}

function problemOfEvent(event) {
  if (!isObject(event) || typeof event.kind !== "string" || !isObject(event.data)) return "is no event";
  const wrong = wrongField(event, EVENT) ?? wrongField(event.data, Object.hasOwn(DATA, event.kind) ? DATA[event.kind] : {});
  return wrong && `is an event ${event.kind} ${wrong}`;
}

/** The first field that is not what it should be, then the first that is missing. */
function wrongField(object, fields) {
  for (const [name, type] of Object.entries(fields)) {
    const [is, what] = TYPES[type.replace("?", "")];
    if (!isNone(object[name]) && !is(object[name])) return `whose ${name} is no ${what}`;
  }
  const missing = Object.keys(fields).find((name) => !fields[name].endsWith("?") && isNone(object[name]));
  return missing && `without ${missing}`;
}

/** Values within each other; no session tells more. */
const MOST_NESTED = 128;

/** Whether it is not nested too deeply to be shown. */
function isJson(value) {
  let level = [value];
  for (let depth = 0; depth < MOST_NESTED; depth++) {
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
    if (level.length === 0) return true;
  }
  return false;
}

/** Agents within each other; a page that draws many more of them ends. */
const MOST_DEEP = 50;

/** The agents of a run, each within the one that began it. */
export class Agents {
  /** How deep each one is. @type {Map<string, number>} */
  #depths = new Map();

  /** What is wrong with the agent of an entry, if anything. @param {{event?: any}} entry @returns {string | undefined} */
  problemOf({ event }) {
    const { agent_id: agent, parent_id: parent } = event ?? {};
    if (!agent || this.#depths.has(agent)) return undefined;
    const depth = (this.#depths.get(parent ?? "") ?? 0) + 1;
    this.#depths.set(agent, depth);
    return depth > MOST_DEEP ? `has an agent that is ${depth} deep, and the page shows ${MOST_DEEP}` : undefined;
  }
}

/** The files at a point of a run, where no name is both a file's and a directory's. */
export class Tree {
  #files = new Set();
  /** How many files each directory holds, at any depth. */
  #directories = new Map();

  /**
   * Takes over what an entry changed: all that goes, then all that comes.
   * @param {Partial<import("./run.js").FileDiff>[]} changes
   * @returns {string | undefined} the path of a file that is a directory, too
   */
  apply(changes) {
    const known = changes.filter(({ binary, large, gone }) => gone || !(binary || large));
    for (const { path, after } of known) if (isNone(after)) this.#remove(path);
    for (const { path, after } of known) if (!isNone(after)) this.#add(path);
    return known.flatMap(({ path }) => [path, ...above(path)]).find((path) => this.#files.has(path) && this.#directories.has(path));
  }

  #add(path) {
    if (this.#files.has(path)) return;
    this.#files.add(path);
    for (const directory of above(path)) this.#directories.set(directory, (this.#directories.get(directory) ?? 0) + 1);
  }

  #remove(path) {
    if (!this.#files.delete(path)) return;
    for (const directory of above(path)) {
      const left = this.#directories.get(directory) - 1;
      if (left === 0) this.#directories.delete(directory);
      else this.#directories.set(directory, left);
    }
  }
}
