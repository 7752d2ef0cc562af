// Line ends of a file in the editor. CodeMirror knows lines, not what ends them:
// here stands what does, so that lines which nobody touches are written as they were.

import { invertedEffects } from "@codemirror/commands";
import { RangeSet, RangeSetBuilder, RangeValue, StateEffect, StateField } from "@codemirror/state";

/** What ends lines, the commonest first where a file has as many of the one as of the other. */
const ENDS = ["\n", "\r\n", "\r"];
const END = /\r\n?|\n/g;

/** An end that is not the file's usual one, over the line break that stands for it. */
class OddEnd extends RangeValue {
  // What is typed beside it is not in it; without its line break it goes.
  startSide = 1;
  endSide = -1;

  /** @param {string} text */
  constructor(text) {
    super();
    this.text = text;
  }

  eq(other) {
    return other.text === this.text;
  }
}

const ODD = new Map(ENDS.map((text) => [text, new OddEnd(text)]));

/** Takes over the ends of another text. @type {import("@codemirror/state").StateEffectType<LineEnds>} */
export const setLineEnds = StateEffect.define();

/** @typedef {{usual: string, odd: RangeSet<OddEnd>}} LineEnds `usual`: of lines that are new, too */

const field = StateField.define({
  create: () => ({ usual: "\n", odd: RangeSet.empty }),
  update(ends, transaction) {
    let next = transaction.docChanged && ends.odd.size > 0 ? { ...ends, odd: ends.odd.map(transaction.changes) } : ends;
    for (const effect of transaction.effects) if (effect.is(setLineEnds)) next = effect.value;
    return next;
  },
});

/** Undoing brings the ends back with their lines. */
const undone = invertedEffects.of((transaction) => {
  const ends = transaction.startState.field(field);
  return transaction.docChanged && ends.odd.size > 0 ? [setLineEnds.of(ends)] : [];
});

/** What an editor state with the text `text` of a file needs. @param {string} text */
export const lineEnds = (text) => [field.init(() => lineEndsOf(text)), undone];

/** A file's text as the editor shows it. @param {string} text */
export const withoutEnds = (text) => text.replace(/\r\n?/g, "\n");

/** @param {string} text of a file @returns {LineEnds} */
export function lineEndsOf(text) {
  const all = text.match(END) ?? [];
  const counts = new Map(ENDS.map((end) => [end, 0]));
  for (const end of all) counts.set(end, counts.get(end) + 1);
  const usual = ENDS.reduce((best, end) => (counts.get(end) > counts.get(best) ? end : best));
  const odd = new RangeSetBuilder();
  // Each end is one character in the editor.
  let longer = 0;
  if (counts.get(usual) < all.length) {
    for (const { 0: end, index } of text.matchAll(END)) {
      if (end !== usual) odd.add(index - longer, index - longer + 1, ODD.get(end));
      longer += end.length - 1;
    }
  }
  return { usual, odd: odd.finish() };
}

/** The text of a state as its file holds it. @param {import("@codemirror/state").EditorState} state */
export function fileText(state) {
  const text = state.doc.toString();
  const { usual, odd } = state.field(field);
  const ended = (part) => (usual === "\n" ? part : part.replaceAll("\n", usual));
  const pieces = [];
  let at = 0;
  for (const mark = odd.iter(); mark.value; mark.next()) {
    pieces.push(ended(text.slice(at, mark.from)), mark.value.text);
    at = mark.to;
  }
  return pieces.join("") + ended(text.slice(at));
}
