// Marks lines of the editor that changed from outside, until they are cleared.

import { StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView } from "@codemirror/view";

export const addFlash = StateEffect.define();
export const clearFlashes = StateEffect.define();
const flashLine = Decoration.line({ class: "flash" });

export const flashes = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    let next = marks.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(clearFlashes)) next = Decoration.none;
      if (effect.is(addFlash)) next = Decoration.set(linesOf(transaction.state.doc, effect.value));
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function linesOf(doc, { from, to }) {
  const marks = [];
  for (let at = Math.min(from, doc.length); ; ) {
    const line = doc.lineAt(at);
    marks.push(flashLine.range(line.from));
    if (line.to >= to || line.to >= doc.length) return marks;
    at = line.to + 1;
  }
}
