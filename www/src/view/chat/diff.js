// Line diffs, for the cards of tool calls.

/** Lines that differ, and those between them, beyond which a diff is not computed. */
const MOST_LINES = 4000;
/** Lines around those that differ. */
const CONTEXT = 2;

/**
 * The lines that differ, with `CONTEXT` lines around them.
 * @param {string} before @param {string} after @param {number} [line] lines that stand before both
 * @returns {{added: number, removed: number, rows: {kind: "same" | "added" | "removed" | "gap", text: string, line?: number}[]} | undefined}
 *   `undefined`: too long
 */
export function diff(before, after, line = 0) {
  const a = lines(before);
  const b = lines(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  if (a.length + b.length - 2 * (start + end) > MOST_LINES) return undefined;
  const rows = [];
  const first = Math.max(0, start - CONTEXT);
  line += first;
  for (const text of a.slice(first, start)) rows.push({ kind: "same", text, line: ++line });
  for (const step of script(a.slice(start, a.length - end), b.slice(start, b.length - end))) {
    if (step.kind !== "removed") line++;
    rows.push({ ...step, line: step.kind === "removed" ? undefined : line });
  }
  for (const text of a.slice(a.length - end, a.length - end + CONTEXT)) rows.push({ kind: "same", text, line: ++line });
  return {
    added: rows.filter(({ kind }) => kind === "added").length,
    removed: rows.filter(({ kind }) => kind === "removed").length,
    rows: fold(rows),
  };
}

function lines(text) {
  const all = text.split("\n");
  if (all.at(-1) === "") all.pop();
  return all;
}

/** Longest common subsequence; what is removed comes before what is added. */
function script(a, b) {
  const width = b.length + 1;
  const best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      best[i * width + j] = a[i] === b[j]
        ? best[(i + 1) * width + j + 1] + 1
        : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const steps = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      steps.push({ kind: "same", text: a[i++] });
      j++;
    } else if (i < a.length && (j === b.length || best[(i + 1) * width + j] >= best[i * width + j + 1])) {
      steps.push({ kind: "removed", text: a[i++] });
    } else {
      steps.push({ kind: "added", text: b[j++] });
    }
  }
  return steps;
}

function fold(rows) {
  const near = new Uint8Array(rows.length);
  rows.forEach(({ kind }, index) => {
    if (kind === "same") return;
    near.fill(1, Math.max(0, index - CONTEXT), index + CONTEXT + 1);
  });
  const folded = [];
  rows.forEach((row, index) => {
    if (near[index]) folded.push(row);
    else if (folded.at(-1)?.kind !== "gap" && folded.length > 0) folded.push({ kind: "gap", text: "" });
  });
  if (folded.at(-1)?.kind === "gap") folded.pop();
  return folded;
}
