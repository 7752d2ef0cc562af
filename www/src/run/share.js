// A run as one file: the project as it was, and everything that happened since,
// as JSON; or its log. What comes in may be anything, so it is checked before
// anything is shown.

import { size } from "../page/dom.js";
import { problemOfPath } from "../project/path.js";
import { isLog, openLog } from "./log.js";
import { Agents, Tree, problemOf } from "./run-check.js";
import { Run } from "./run.js";

const FORMAT = "hermitcrab-run";
/** What is written. Version 1, which is read, too, had no parts of texts. */
const VERSION = 2;
/** Bytes of a run that the page opens. */
const MOST_BYTES = 200_000_000;

/** Characters of a key that is looked for: of a shorter one, what is found is something else. */
const LEAST_SECRET = 8;

/** @typedef {{format: "hermitcrab-run", version: 2, name: string, saved: string, files: Record<string, string>, log: import("./run.js").Entry[]}} SharedRun */

/**
 * @param {string} name @param {Record<string, string>} files before the run, base64
 * @param {import("./run.js").Entry[]} log @param {string[]} secrets what may stand nowhere in the log
 */
export function packRun(name, files, log, secrets) {
  const written = (value) => JSON.stringify(value);
  // What an answer repeats in one piece is never shown; in more it is put together here.
  const told = secrets.filter((secret) => secret.length >= LEAST_SECRET)
    .reduce((text, secret) => text.replaceAll(written(secret).slice(1, -1), "[redacted]"), written(log));
  const head = written({ format: FORMAT, version: VERSION, name, saved: new Date().toISOString(), files });
  return `${head.slice(0, -1)},"log":${told}}`;
}

/** What files are called that hold runs. */
export const RUN_FILES = /\.(log\.gz|run\.json)$/i;

/**
 * A run, as a log has it or as `packRun` wrote it.
 * @param {File} file @param {AbortSignal} signal ends the replay of a log
 * @returns {Promise<{name: string, saved: string, files: Record<string, Uint8Array>, log: import("./run.js").Entry[],
 *   contents?: Map<object, Uint8Array>, replayed?: {text: string, isWarning: boolean}}>}
 */
export async function openRun(file, signal) {
  const refuse = (why, cause) => new Error(`the file ${file.name} ${why}`, { cause });
  const damaged = (what) => refuse(`is damaged: ${what}`);
  if (file.size > MOST_BYTES) throw refuse(`has ${size(file.size)}, and the page opens runs of up to ${size(MOST_BYTES)}`);
  let shared;
  if (await isLog(file)) {
    shared = await openLog(file, signal).catch((error) => {
      if (signal.aborted) throw error;
      throw refuse(error instanceof TypeError ? "is damaged: its log is not what was written" : error.message, error);
    });
  } else {
    shared = unpacked(await file.text(), refuse, damaged);
  }
  return { ...shared, log: checked(shared, damaged) };
}

/** A run that `packRun` wrote. @param {string} text */
function unpacked(text, refuse, damaged) {
  let shared;
  try {
    shared = JSON.parse(text);
  } catch {
    const begins = new RegExp(`^\\s*\\{\\s*"format"\\s*:\\s*"${FORMAT}"`).test(text);
    throw refuse(begins ? "is cut off or damaged; get the file once more" : "is not a run: it is not JSON");
  }
  if (shared?.format !== FORMAT) throw refuse("is not a run that the playground has written");
  if (!Number.isFinite(shared.version)) throw damaged(shared.version === undefined ? "it does not say its version" : "its version is no number");
  if (shared.version > VERSION) throw refuse(`is a run of version ${shared.version}, which this page does not know yet; reload the page`);
  if (![1, VERSION].includes(shared.version)) throw refuse(`is a run of version ${shared.version}, and this page reads versions 1 and ${VERSION}`);
  if (!isName(shared.name)) throw damaged("its name is no text of 1 to 100 characters");
  if (typeof (shared.saved ?? "") !== "string") throw damaged("it does not say when it was saved");
  if (!isObject(shared.files)) throw damaged("it has no files");
  if (!Array.isArray(shared.log)) throw damaged("it has no log");
  const { name, saved = "", log } = shared;
  return { name, saved, files: filesOf(shared.files, damaged), log };
}

/** The log of a run whose entries are what the page shows, and fit each other. */
function checked({ files, log }, damaged) {
  const tree = new Tree();
  const clash = tree.apply(Object.keys(files).map((path) => ({ path, after: "" })));
  if (clash) throw damaged(`${clash} is both a file and a directory`);
  const agents = new Agents();
  const trial = new Run(() => undefined);
  return log.map((entry, index) => {
    const problem = problemOf(entry) ?? agents.problemOf(entry);
    if (problem) throw damaged(`entry ${index + 1} of its log ${problem}`);
    const clash = entry.changes && tree.apply(entry.changes);
    if (clash) throw damaged(`entry ${index + 1} of its log makes ${clash} both a file and a directory`);
    try {
      trial.apply(entry);
    } catch {
      throw damaged(`entry ${index + 1} of its log does not fit those before it`);
    }
    // It was another page that could go on with it.
    return entry.note === undefined ? entry : { ...entry, resume: undefined };
  });
}

/** The files of a run as bytes. */
function filesOf(given, damaged) {
  // Any name will do for a file, also `__proto__`.
  const files = Object.create(null);
  for (const [path, content] of Object.entries(given)) {
    const problem = problemOfPath(path);
    if (problem) throw damaged(problem);
    try {
      if (typeof content !== "string") throw new Error("no text");
      files[path] = fromBase64(content);
    } catch {
      throw damaged(`the content of ${path} is not base64`);
    }
  }
  return files;
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isName = (name) => typeof name === "string" && name !== "" && name.length <= 100 && !/\p{Surrogate}/u.test(name);

/** @param {Uint8Array} bytes */
export function toBase64(bytes) {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
