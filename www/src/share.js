// A run as one file: the project as it was, and everything that happened since.
// What comes in may be anything, so it is checked before anything is shown.

import { size } from "./dom.js";

const FORMAT = "hermitcrab-run";
const VERSION = 1;
/** Bytes of a run that the page opens. */
const MOST_BYTES = 200_000_000;

/** @typedef {{format: "hermitcrab-run", version: 1, name: string, saved: string, files: Record<string, string>, log: import("./run.js").Entry[]}} SharedRun */

/**
 * @param {string} name @param {Record<string, string>} files before the run, base64
 * @param {import("./run.js").Entry[]} log
 */
export function packRun(name, files, log) {
  return JSON.stringify({ format: FORMAT, version: VERSION, name, saved: new Date().toISOString(), files, log });
}

/**
 * @param {File} file
 * @returns {Promise<{name: string, saved: string, files: Record<string, Uint8Array>, log: import("./run.js").Entry[]}>}
 */
export async function openRun(file) {
  const refuse = (why) => new Error(`the file ${file.name} ${why}`);
  if (file.size > MOST_BYTES) throw refuse(`has ${size(file.size)}, and the page opens runs of up to ${size(MOST_BYTES)}`);
  const text = await file.text();
  let shared;
  try {
    shared = JSON.parse(text);
  } catch {
    const begins = new RegExp(`^\\s*\\{\\s*"format"\\s*:\\s*"${FORMAT}"`).test(text);
    throw refuse(begins ? "is cut off or damaged; get the file once more" : "is not a run: it is not JSON");
  }
  if (shared?.format !== FORMAT) throw refuse("is not a run that the playground has written");
  if (shared.version > VERSION) throw refuse(`is a run of version ${shared.version}, which this page does not know yet; reload the page`);
  if (shared.version !== VERSION) throw refuse(`is a run of version ${shared.version}, and this page reads version ${VERSION}`);
  const damaged = (what) => refuse(`is damaged: ${what}`);
  if (!isObject(shared.files)) throw damaged("it has no files");
  if (!Array.isArray(shared.log)) throw damaged("it has no log");
  // Any name will do for a file, also `__proto__`.
  const files = Object.create(null);
  for (const [path, content] of Object.entries(shared.files)) {
    if (!isInside(path)) throw damaged(`the path ${JSON.stringify(path)} does not lie in the project`);
    try {
      files[path] = fromBase64(content);
    } catch {
      throw damaged(`the content of ${path} is not base64`);
    }
  }
  shared.log.forEach((entry, index) => {
    const problem = problemOf(entry);
    if (problem) throw damaged(`entry ${index + 1} of its log ${problem}`);
  });
  return { name: String(shared.name ?? "run"), saved: String(shared.saved ?? ""), files, log: shared.log };
}

/** Texts that the page shows of an event; docs/events.schema.json says all of it. */
const TEXTS = {
  SESSION_START: ["provider", "model"],
  STATE_CHANGED: ["to"],
  USER_INPUT: ["content"],
  ASSISTANT_TEXT_DELTA: ["text"],
  REASONING_DELTA: ["text"],
  ASSISTANT_TEXT_END: ["text"],
  TOOL_CALL_START: ["call_id", "tool_name"],
  TOOL_CALL_OUTPUT_DELTA: ["call_id", "text"],
  TOOL_CALL_END: ["call_id"],
  STEERING_QUEUED: ["content"],
  STEERING_INJECTED: ["content"],
  STEERING_DROPPED: ["content"],
  RETRY: ["message"],
  WARNING: ["message"],
  ERROR: ["code", "message"],
};

/** The same, of texts that may be missing. */
const OPTIONAL = { ASSISTANT_TEXT_END: ["reasoning"], TOOL_CALL_END: ["output", "error"] };

/** What is wrong with an entry of a log, if anything. */
function problemOf(entry) {
  if (!isObject(entry)) return "is no object";
  const { event, changes, note } = entry;
  if (event !== undefined) {
    if (!isObject(event) || !isText(event.kind) || !isObject(event.data)) return "is no event";
    const missing = TEXTS[event.kind]?.find((name) => !isText(event.data[name]));
    if (missing) return `is an event ${event.kind} without ${missing}`;
    const odd = OPTIONAL[event.kind]?.find((name) => event.data[name] !== null && !isTextOrNone(event.data[name]));
    return odd && `is an event ${event.kind} whose ${odd} is no text`;
  }
  if (changes !== undefined) {
    if (!Array.isArray(changes)) return "has no list of changes";
    const isChange = (each) => isObject(each) && isText(each.path) && isInside(each.path) && isTextOrNone(each.before) && isTextOrNone(each.after);
    return changes.every(isChange) ? undefined : "has a change that is no text";
  }
  return isText(note) ? undefined : "is neither an event nor a change nor a note";
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value) => typeof value === "string";
const isTextOrNone = (value) => value === undefined || isText(value);
const isInside = (path) => path !== "" && !path.split("/").some((part) => part === "" || part === "." || part === "..");

/** @param {Uint8Array} bytes */
export function toBase64(bytes) {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
