// The log of a run, as “Share run” and `hermitcrab run --record` write it, made into a run that the
// page plays. What was said and done stands in its lines; the files are those of a replay in this
// page's core, which compares every event on the way.

import { replay, tarEntries } from "../agent/agent.js";
import { equal } from "../project/project.js";
import { Ran } from "../project/ran.js";
import { entriesOf, mayChange } from "./attribution.js";
import { Room } from "./excerpt.js";
import { eventsOf } from "./history.js";
import { problemOf } from "./run-check.js";
import { callOf, joined } from "./run.js";

/** Whether a file may be a log: it is packed with gzip, or named so. @param {File} file */
export async function isLog(file) {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  return (first === 0x1f && second === 0x8b) || /\.gz$/i.test(file.name);
}

/**
 * @param {File} file @param {AbortSignal} signal ends the replay
 * @returns {Promise<{name: string, saved: string, files: Record<string, Uint8Array>, log: import("./run.js").Entry[],
 *   contents: Map<object, Uint8Array>, replayed: {text: string, isWarning: boolean}}>}
 *   `contents`: what files hold after changes whose texts are left out
 */
export async function openLog(file, signal) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const { first, trees, result, difference } = await replayed(bytes, signal);
  const { log, contents, header, outside } = await read(bytes, trees);
  if (!log.some(({ event }) => event?.kind === "SESSION_START")) throw new Error("has no conversation: nothing was asked in it");
  return {
    name: file.name.replace(/(\.log)?(\.gz)?$/i, "").slice(0, 100) || "run",
    saved: log.findLast(({ event }) => event)?.event.timestamp ?? "",
    files: first ?? Object.create(null),
    log,
    contents,
    replayed: verdict({ header, result, difference, outside: first ? undefined : outside }),
  };
}

/**
 * Replays a log. `trees` are the changes of files, each with the number of events before it.
 * @param {Uint8Array} bytes @param {AbortSignal} signal
 */
async function replayed(bytes, signal) {
  let events = 0;
  let first;
  let files = Object.create(null);
  const trees = [];
  const onFiles = (archive) => {
    const now = filesIn(archive);
    if (first) trees.push({ events, changes: changesOf(files, now) });
    else first = now;
    files = now;
  };
  try {
    const result = await replay(bytes, { onEvent: () => void (events += 1), onFiles, signal });
    if (result.files) onFiles(result.files);
    return { first, trees, result };
  } catch (error) {
    if (signal.aborted) throw error;
    if (error.kind !== "differs") throw new Error(reason(error.message), { cause: error });
    return { first, trees, difference: error };
  }
}

/** The files of an archive. @param {Uint8Array} archive */
function filesIn(archive) {
  // Any name will do for a file, also `__proto__`.
  const files = Object.create(null);
  for (const { name, type, data, stored } of tarEntries(archive)) {
    if (type === "0") files[name.replace(/^\.\//, "")] = data.subarray(0, stored);
  }
  return files;
}

function changesOf(before, after) {
  const paths = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changes = paths.map((path) => ({ path, before: before[path], after: after[path] }));
  return changes.filter(({ before, after }) => !equal(before, after));
}

/** The entries that the lines of a log make, with the changes of files where they came. */
async function read(bytes, trees) {
  const log = [];
  const contents = new Map();
  const room = new Room();
  const ran = new Ran();
  let header;
  let outside;
  /** What the session that is opened next goes on with. @type {any[] | undefined} */
  let turns;
  let isOpen = false;
  let inputs = 0;
  let events = 0;
  let lines = 0;
  const add = (entry) => void (joined(log.at(-1), entry) || log.push(entry));
  const begin = (timestamp) => {
    const known = turns?.filter(({ turn }) => turn === "user").length ?? 0;
    if (!isOpen) for (const event of eventsOf(turns ?? [])) add({ event });
    else if (known < inputs) add({ note: known === 0 ? ANEW : TAKEN, kind: "info", at: Date.parse(timestamp), back: inputs - known });
    isOpen = true;
    inputs = known;
  };
  for await (const { core, call, output } of linesOf(bytes)) {
    lines += 1;
    header ??= core;
    if (call?.call === "add_remote_environment") outside = call.info?.working_directory;
    if (call?.call === "open_session") turns = Array.isArray(call.record) ? call.record : call.record?.turns;
    for (const event of output?.events ?? []) {
      const problem = problemOf({ event });
      if (problem) throw new Error(`is damaged: what its line ${lines} tells ${problem}`);
      if (event.kind === "SESSION_START" && !event.agent_id) begin(event.timestamp);
      if (event.kind === "USER_INPUT" && !event.agent_id) inputs += 1;
      add({ event });
      watch(ran, event);
      events += 1;
      while (trees[0]?.events === events) {
        const { changes } = trees.shift();
        const after = new Map(changes.map((change) => [change.path, change.after]));
        for (const entry of entriesOf(changes, ran.take(), room)) {
          add(entry);
          for (const change of entry.changes) if (change.binary || change.large) contents.set(change, after.get(change.path));
        }
      }
    }
  }
  return { log, contents, header, outside };
}

const ANEW = "A new conversation begins here; it knows the files, not what was said before.";
const TAKEN = "Taken out of the conversation; what it did to files stays.";

/** Says which calls may have changed files. @param {Ran} ran */
function watch(ran, event) {
  const { kind, data } = event;
  if (kind === "TOOL_CALL_START" && mayChange(data.arguments)) ran.begin(callOf(event), data.arguments);
  if (kind === "TOOL_CALL_END" && data.refusal) ran.drop(callOf(event));
  else if (kind === "TOOL_CALL_END") ran.end(callOf(event));
}

/** Bytes that are unpacked at once. */
const PIECE = 65_536;

/** The lines of a log that are whole, as values; the replay has proven them as far as it got. */
async function* linesOf(bytes) {
  const { readable, writable } = new DecompressionStream("gzip");
  const writer = writable.getWriter();
  const reader = readable.getReader();
  const decoder = new TextDecoder();
  // A log that was not closed has no end: to close the stream would be an error that takes along
  // what has not been read yet. So it ends where nothing more comes of the last piece.
  const over = (async () => {
    for (let at = 0; at < bytes.length; at += PIECE) await writer.write(bytes.subarray(at, at + PIECE));
    await new Promise((resolve) => setTimeout(resolve));
    return { done: true };
  })();
  let line = [];
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), over]);
      if (done) return;
      const [end, ...rest] = decoder.decode(value, { stream: true }).split("\n");
      line.push(end);
      for (const next of rest) {
        yield JSON.parse(line.join(""));
        line = [next];
      }
    }
  } catch {
    // Torn or damaged behind what was replayed: what came before stays.
  }
}

/** What the page says about the replay. */
function verdict({ header, result, difference, outside }) {
  const sentences = [`A recorded run, of core ${header?.version}.`];
  if (difference) {
    const { step, round } = difference;
    const answers = round === 0 ? "before the first answer of the model" : round === 1 ? "after 1 answer of the model" : `after ${round} answers of the model`;
    const where = step ? `at step ${step}, ${answers}` : "on the way";
    sentences.push(`The core of this page departs from it ${where}: files are shown up to there, the conversation as it was recorded.`);
  } else {
    sentences.push("Replayed here: every event is the same.");
  }
  if (outside) sentences.push(`The agent worked in ${outside}, outside of the sandbox, so the log has no files.`);
  // Of a page's log it is nothing to speak of: who shares a run goes on with it.
  if (result?.closed === false && header?.hash !== "web") sentences.push("The log was not closed: its last lines may be missing.");
  return { text: sentences.join(" "), isWarning: sentences.length > 2 || difference !== undefined };
}

/** Why a log cannot be used, as the end of a sentence. @param {string} message of the core's */
function reason(message) {
  const version = message.match(/a log of version (\d+)/)?.[1];
  if (version) return `is a log of version ${version}, which this page does not know yet; reload the page`;
  const line = message.match(/damaged: line (\d+)/)?.[1];
  if (line) return `is damaged: line ${line} of the log is not what was written; get the file once more`;
  if (/not a log of a run|log is empty/.test(message)) return "is not the log of a run";
  return `cannot be replayed: ${message}`;
}
