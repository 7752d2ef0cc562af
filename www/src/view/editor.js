// The editor: tabs over CodeMirror states. A clean tab follows the sandbox; a
// dirty one is asked about when the file changes underneath.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { h, icon, iconButton } from "../dom.js";
import { decode } from "../project.js";
import { languageOf } from "../languages.js";

/** Files that the editor opens; larger ones are for the terminal. */
const MOST_BYTES = 2_000_000;

/**
 * @param {object} actions
 * @param {(path: string, text: string) => Promise<void>} actions.save
 * @param {(path: string) => void} actions.shown a tab came to the front; `""`: none
 */
export function editorView(actions) {
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Open files", onKeydown: onTabKey });
  const conflict = h("div", { class: "conflict", role: "alert", hidden: true });
  const place = h("div", { class: "code", id: "editor", role: "tabpanel" });
  const empty = h("div", { class: "empty" }, h("p", null, "No file is open."), h("p", { class: "quiet" }, "Pick one from the tree. What the agent edits shows up here as it happens."));
  const element = h("div", { class: "editor" }, conflict, place, empty);

  /** @type {Map<string, {state: EditorState, saved: string, theirs?: string, scroll?: any, note?: string}>} */
  const docs = new Map();
  const readOnly = new Compartment();
  let current = "";
  let project;
  let locked = false;

  const view = new EditorView({
    parent: place,
    dispatchTransactions(transactions, view) {
      view.update(transactions);
      const doc = docs.get(current);
      if (!doc) return;
      const was = isDirty(doc);
      doc.state = view.state;
      if (isDirty(doc) !== was) drawTabs();
    },
  });
  view.contentDOM.addEventListener("blur", () => void save(current));

  const base = [
    lineNumbers(), foldGutter(), highlightActiveLine(), highlightActiveLineGutter(), drawSelection(),
    history(), bracketMatching(), indentOnInput(), search({ top: true }), highlightSelectionMatches(),
    EditorState.allowMultipleSelections.of(true),
    syntaxHighlighting(classHighlighter), flashes,
    keymap.of([
      { key: "Mod-s", preventDefault: true, run: () => (void save(current), true) },
      // Tab indents; Escape first, then Tab leaves the editor.
      ...defaultKeymap, ...historyKeymap, ...foldKeymap, ...searchKeymap, indentWithTab,
    ]),
  ];

  function makeState(path, text) {
    const language = new Compartment();
    const state = EditorState.create({
      doc: text,
      extensions: [
        base, language.of([]), readOnly.of(EditorState.readOnly.of(locked)),
        EditorView.contentAttributes.of({ "aria-label": `Text of ${path}; Escape, then Tab leaves it` }),
      ],
    });
    const colour = (support) => {
      const doc = docs.get(path);
      if (!support || !doc) return;
      const spec = { effects: language.reconfigure(support) };
      if (path === current) view.dispatch(spec);
      else doc.state = doc.state.update(spec).state;
    };
    // What cannot be downloaded now leaves the text without colours.
    languageOf(path).then(colour, () => {});
    return state;
  }

  const textOf = (doc) => doc.state.doc.toString();
  function isDirty(doc) {
    return !doc.note && doc.state.doc.length !== doc.saved.length ? true : !doc.note && textOf(doc) !== doc.saved;
  }

  function open(path) {
    const bytes = project.files.get(path);
    if (!bytes) return;
    if (!docs.has(path)) {
      const text = bytes.length > MOST_BYTES ? undefined : decode(bytes);
      const note = text !== undefined ? undefined : bytes.length > MOST_BYTES ? "too large for the editor" : "not text";
      // CodeMirror keeps lines; a file's own line endings are put back when saved.
      const crlf = text?.includes("\r\n") ?? false;
      const shown = (text ?? "").replaceAll("\r\n", "\n");
      const doc = { saved: shown, note, crlf, bytes: bytes.length };
      docs.set(path, doc);
      doc.state = makeState(path, shown);
    }
    show(path);
  }

  function show(path) {
    const before = docs.get(current);
    if (before && before !== docs.get(path)) {
      before.scroll = view.scrollSnapshot();
      void save(current);
    }
    current = path;
    const doc = docs.get(path);
    empty.hidden = Boolean(doc);
    place.hidden = !doc || Boolean(doc.note);
    if (doc?.note) {
      empty.hidden = false;
      empty.replaceChildren(h("p", null, `${path} is ${doc.note}.`), h("p", { class: "quiet" }, `${doc.bytes} bytes`));
    } else if (doc) {
      view.setState(doc.state);
      if (doc.scroll) view.dispatch({ effects: doc.scroll });
      // The lock may have changed while the tab was in the back.
      view.dispatch({ effects: readOnly.reconfigure(EditorState.readOnly.of(locked)) });
    } else {
      empty.replaceChildren(h("p", null, "No file is open."), h("p", { class: "quiet" }, "Pick one from the tree. What the agent edits shows up here as it happens."));
    }
    drawTabs();
    drawConflict();
    actions.shown(path);
  }

  function close(path) {
    const names = [...docs.keys()];
    const at = names.indexOf(path);
    void save(path);
    docs.delete(path);
    if (path === current) {
      current = "";
      show(names[at + 1] ?? names[at - 1] ?? "");
    } else {
      drawTabs();
    }
  }

  async function save(path) {
    const doc = docs.get(path);
    if (!doc || locked || doc.theirs !== undefined || !isDirty(doc)) return;
    const text = textOf(doc);
    doc.saved = text;
    drawTabs();
    await actions.save(path, doc.crlf ? text.replaceAll("\n", "\r\n") : text);
  }

  function drawTabs() {
    const names = [...docs.keys()];
    const short = (path) => path.slice(path.lastIndexOf("/") + 1);
    const twice = new Set(names.map(short).filter((name, index, all) => all.indexOf(name) !== index));
    const hadFocus = tabs.contains(document.activeElement);
    tabs.replaceChildren(...names.map((path) => {
      const dirty = isDirty(docs.get(path));
      const label = twice.has(short(path)) ? path : short(path);
      const tab = h("button", {
        type: "button", role: "tab", class: "tab", dataset: { path }, title: path,
        "aria-selected": path === current, tabIndex: path === current ? 0 : -1, "aria-controls": "editor",
        onClick: () => show(path),
        onAuxclick: (event) => event.button === 1 && close(path),
      }, h("span", null, label), h("span", { class: "dirty", title: dirty ? "not saved yet" : "", "aria-label": dirty ? "not saved" : "" }, dirty ? "●" : ""));
      return h("div", { class: `tab-box ${path === current ? "current" : ""}`, role: "none" }, tab,
        iconButton("close", `Close ${label}`, () => close(path), { tabIndex: -1 }));
    }));
    tabs.querySelector(".current")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (hadFocus) tabs.querySelector('[aria-selected="true"]')?.focus();
  }

  function onTabKey(event) {
    const names = [...docs.keys()];
    const at = names.indexOf(current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (event.key === "Delete") close(current);
    else if (to === undefined || !names[to]) return;
    else show(names[to]);
    event.preventDefault();
  }

  function drawConflict() {
    const doc = docs.get(current);
    conflict.hidden = doc?.theirs === undefined;
    if (conflict.hidden) return;
    const settle = (text) => {
      doc.theirs = undefined;
      if (text !== undefined) {
        doc.saved = text;
        replace(current, text, true);
      }
      drawConflict();
      drawTabs();
      void save(current);
    };
    conflict.replaceChildren(
      icon("warn"),
      h("span", null, "This file changed in the sandbox while you were editing it."),
      h("button", { type: "button", onClick: () => settle(doc.theirs) }, "Take the new text"),
      h("button", { type: "button", onClick: () => settle() }, "Keep mine"),
    );
  }

  /** Changes only what differs, so that cursor and scroll position stay. */
  function replace(path, text, flash) {
    const doc = docs.get(path);
    const old = textOf(doc);
    let from = 0;
    while (from < old.length && from < text.length && old[from] === text[from]) from++;
    let end = 0;
    while (end < old.length - from && end < text.length - from && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
    const changes = { from, to: old.length - end, insert: text.slice(from, text.length - end) };
    const range = { from, to: text.length - end };
    const spec = { changes, effects: flash ? addFlash.of(range) : [] };
    if (path !== current) {
      doc.state = doc.state.update(spec).state;
      return;
    }
    view.dispatch(spec);
    view.dispatch({ effects: EditorView.scrollIntoView(Math.min(from, view.state.doc.length), { y: "nearest", yMargin: 40 }) });
    setTimeout(() => view.dispatch({ effects: clearFlashes.of(null) }), 1600);
  }

  return {
    element,
    tabs,
    open,
    /** @param {import("../project.js").Project} next */
    show(next) {
      project = next;
      docs.clear();
      show("");
    },
    /** Saves every file that is not. */
    async saveAll() {
      for (const path of docs.keys()) await save(path);
    },
    /** Follows the sandbox. @param {import("../project.js").Change[]} changes */
    follow(changes) {
      for (const { path, after } of changes) {
        const doc = docs.get(path);
        if (!doc) continue;
        if (after === undefined) {
          docs.delete(path);
          if (path === current) {
            current = "";
            show([...docs.keys()].at(-1) ?? "");
          }
          continue;
        }
        const text = decode(after)?.replaceAll("\r\n", "\n");
        if (text === undefined || doc.note) {
          docs.delete(path);
          if (path === current) open(path);
          continue;
        }
        doc.crlf = decode(after).includes("\r\n");
        if (text === textOf(doc)) doc.saved = text;
        else if (isDirty(doc)) doc.theirs = text;
        else {
          doc.saved = text;
          replace(path, text, true);
        }
      }
      drawTabs();
      drawConflict();
    },
    /** Keeps tabs of files that were renamed. @param {string} from @param {string} to */
    renamed(from, to) {
      const wasOpen = [...docs.keys()].filter((path) => path === from || path.startsWith(`${from}/`));
      return () => wasOpen.map((path) => to + path.slice(from.length)).forEach(open);
    },
    /** @param {boolean} on nothing can be changed */
    lock(on) {
      locked = on;
      if (docs.get(current)?.state) view.dispatch({ effects: readOnly.reconfigure(EditorState.readOnly.of(on)) });
    },
    focus: () => view.focus(),
    get current() {
      return current;
    },
  };
}

const addFlash = StateEffect.define();
const clearFlashes = StateEffect.define();
const flashLine = Decoration.line({ class: "flash" });

/** Marks lines that changed from outside, until they are cleared. */
const flashes = StateField.define({
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
