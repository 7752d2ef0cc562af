// Changes of files as a log keeps them: of a long text only the lines that
// differ, with some around them, so that many edits of one file stay small.

/** @typedef {import("./run.js").FileDiff} FileDiff */

/** Characters of a text, before and after a change, that are kept whole. */
const SHORT = 20_000;
/** Characters that are kept around what differs: some lines, where lines are short. */
const AROUND = 300;

/** Characters of one change that a log keeps, and of all its changes. */
const MOST_CHARS = 1_000_000;
const MOST_ALL = 10_000_000;

/** The room for changes in one log. */
export class Room {
  #chars = 0;
  /** Files whose content the log does not tell: of these the next change that is kept is whole. */
  #untold = new Set();

  /** A change as the log keeps it. @param {FileDiff} change with whole texts @returns {FileDiff} */
  fit(change) {
    const wanted = this.#untold.has(change.path) ? change : excerpt(change);
    const isTooMuch = charsOf(wanted) > MOST_CHARS || this.#chars + charsOf(wanted) > MOST_ALL;
    const kept = isTooMuch ? without(change, "large") : wanted;
    this.note(kept);
    return kept;
  }

  /** The log holds this. @param {FileDiff} change */
  note(change) {
    this.#chars += charsOf(change);
    if ((change.binary || change.large) && !change.gone) this.#untold.add(change.path);
    else this.#untold.delete(change.path);
  }
}

/** @param {FileDiff} change */
function charsOf({ before, after }) {
  return (before?.length ?? 0) + (after?.length ?? 0);
}

/** A change whose texts are left out. @param {{path: string, before?: any, after?: any}} change @param {"binary" | "large"} why @returns {FileDiff} */
export function without({ path, before, after }, why) {
  return { path, [why]: true, ...(before === undefined && { made: true }), ...(after === undefined && { gone: true }) };
}

/** @param {FileDiff} change with both texts whole, if there are two @returns {FileDiff} */
function excerpt(change) {
  const { path, before, after } = change;
  if (before === undefined || after === undefined || before.length + after.length <= SHORT) return change;
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before.charCodeAt(start) === after.charCodeAt(start)) start++;
  let end = 0;
  while (end < most - start && before.charCodeAt(before.length - 1 - end) === after.charCodeAt(after.length - 1 - end)) end++;
  const skipped = startOfPart(before, start);
  const rest = before.length - endOfPart(before, before.length - end);
  return {
    path,
    before: before.slice(skipped, before.length - rest),
    after: after.slice(skipped, after.length - rest),
    skipped,
    rest,
    line: before.slice(0, skipped).split("\n").length - 1,
  };
}

/**
 * The whole text after a change.
 * @param {FileDiff} change as `excerpt` gives it @param {string} text the whole text before it
 */
export function afterwards({ after, skipped = 0, rest = 0 }, text) {
  return text.slice(0, skipped) + after + text.slice(Math.max(skipped, text.length - rest));
}

/** Where the part begins whose first difference is at `at`: where a line does, if one is near. */
function startOfPart(text, at) {
  const from = whole(text, Math.max(0, at - AROUND));
  if (from === 0) return 0;
  const line = text.indexOf("\n", from) + 1;
  return line > 0 && line <= at ? line : from;
}

/** Where the part ends whose last difference is before `at`. */
function endOfPart(text, at) {
  const until = whole(text, Math.min(text.length, at + AROUND));
  if (until === text.length) return until;
  const line = text.lastIndexOf("\n", until - 1) + 1;
  return line >= at && line > 0 ? line : until;
}

/** A place that is not within a character. */
function whole(text, at) {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}
