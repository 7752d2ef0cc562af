// Which call a change is shown at. A call that says what it writes is credited
// with that; what else has changed is a command's if only that one can have
// done it. Where several can, the change is shown as theirs together.

import { ROOT } from "../agent/agent.js";
import { above } from "../project/path.js";
import { decode } from "../project/project.js";
import { isCommand } from "./approvals.js";
import { without } from "./excerpt.js";

/** @typedef {import("./run.js").FileDiff} FileDiff */

/** Arguments that hold what is to be written. */
const WRITTEN = ["content", "new_string"];

/** Whether a call can change files. @param {any} given its arguments */
export function mayChange(given) {
  return isCommand(given) || filesIn(given).size > 0;
}

/** Whether an entry's changes are the agent's, whichever call's. @param {import("./run.js").Entry} entry */
export function isAgents({ call, calls, terminal }) {
  return typeof call === "string" || (Array.isArray(calls) && !terminal);
}

/**
 * Changed files as entries of a log.
 * @param {import("../project/project.js").Change[]} files @param {import("../project/ran.js").Who} who
 * @param {import("./excerpt.js").Room} room of the log
 */
export function entriesOf(files, who, room) {
  const diffs = files.map(({ path, before, after }) => {
    const texts = { before: decode(before), after: decode(after) };
    const binary = (before && texts.before === undefined) || (after && texts.after === undefined);
    return binary ? without({ path, before, after }, "binary") : { path, ...texts };
  });
  return credited(diffs, who).map(({ changes, ...rest }) => ({ changes: changes.map((change) => room.fit(change)), ...rest }));
}

/**
 * What has changed, with whole texts, as entries of a log, in an order in which they can be done again.
 * @param {FileDiff[]} diffs @param {import("../project/ran.js").Who} who
 * @returns {{changes: FileDiff[], call?: string, calls?: string[], terminal?: boolean}[]}
 */
function credited(diffs, { calls, terminal }) {
  const commands = calls.filter(([, given]) => isCommand(given));
  const writers = calls.filter(([, given]) => !isCommand(given));
  const shared = (possible) => {
    const ids = possible.map(([call]) => call);
    if (ids.length === 0) return {};
    return ids.length === 1 && !terminal ? { call: ids[0] } : { calls: ids, ...(terminal && { terminal }) };
  };
  const paths = new Set(diffs.map(({ path }) => path));
  // A file that became a directory, or the other way round, has but one order.
  if (diffs.some(({ path }) => above(path).some((each) => paths.has(each)))) return [{ changes: diffs, ...shared(calls) }];

  const own = new Map(calls.map(([call]) => [call, []]));
  /** By who it may have been. @type {Map<string, object>} */
  const others = new Map();
  for (const diff of diffs) {
    const named = writers.filter(([, given]) => filesIn(given).has(diff.path));
    const steps = stepsOf(diff, named);
    if (steps) {
      for (const { call, ...step } of steps) own.get(call).push(step);
      continue;
    }
    const unnamed = commands.length > 0 || terminal ? commands : writers;
    const owner = shared(named.length > 0 ? [...named, ...commands] : unnamed);
    if (owner.call !== undefined) {
      own.get(owner.call).push(diff);
      continue;
    }
    const key = JSON.stringify(owner);
    if (!others.has(key)) others.set(key, { changes: [], ...owner });
    others.get(key).changes.push(diff);
  }
  const credits = [...own].filter(([, changes]) => changes.length > 0).map(([call, changes]) => ({ changes, call }));
  return [...credits, ...others.values()];
}

/**
 * A change as the calls that name its file say that they made it, one after
 * the other; `undefined`: they say something else, or do not say it.
 * @param {FileDiff} diff @param {[string, any][]} named
 */
function stepsOf({ path, before, after, binary }, named) {
  if (binary || named.length === 0) return undefined;
  const steps = [];
  let text = before;
  for (const [call, given] of named) {
    const next = written(given, text);
    if (next === undefined) return undefined;
    if (next !== text) steps.push({ call, path, before: text, after: next });
    text = next;
  }
  return text === after ? steps : undefined;
}

/** What a call makes of a text, if its arguments say that to the letter. @param {any} given @param {string | undefined} text */
function written({ content, old_string: old, new_string: made }, text) {
  if (typeof content === "string") return content;
  if (typeof made !== "string" || !old || !text?.includes(old)) return undefined;
  return text.split(old).join(made);
}

/** Files that a call says it will change. @param {any} given its arguments */
function filesIn(given) {
  const patch = [given, given?.input, given?.patch].find((text) => typeof text === "string") ?? "";
  const paths = [...patch.matchAll(/^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$/gm)].map(([, path]) => path);
  if (WRITTEN.some((name) => typeof given?.[name] === "string")) paths.push(String(given.file_path));
  return new Set(paths.map(inProject));
}

/** A path as a call may name it, relative to the project. @param {string} path */
function inProject(path) {
  const names = [];
  for (const name of path.trim().replace(`${ROOT}/`, "").split("/")) {
    if (name === "..") names.pop();
    else if (name !== "." && name !== "") names.push(name);
  }
  return names.join("/");
}
