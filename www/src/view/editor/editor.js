// The editor: tabs over CodeMirror states. What is typed is saved a moment later.
// A clean tab follows the sandbox; a dirty one is asked about when the file
// changes underneath.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { h, iconButton } from "../../page/dom.js";
import { decode } from "../../project/project.js";
import { conflictBar } from "./conflict.js";
import { addFlash, clearFlashes, flashes } from "./flashes.js";
import { languageOf } from "./languages.js";
import { fileText, lineEnds, lineEndsOf, setLineEnds, withoutEnds } from "./line-ends.js";

/** Files that the editor opens; larger ones are for the terminal. */
const MOST_BYTES = 2_000_000;
const EMPTY = "Pick one from the tree. What the agent edits opens here.";
/** Rest after typing before it is saved, in ms. */
const SAVE_MS = 1_000;

/**
 * An open file. `disk`: what the sandbox holds, as far as one has seen, and `saved`: the same
 * as text; `theirs`: what it holds instead, to be settled; `sent`: the text that is being
 * written; `note`: why there is no text; `isVisiting`: it was opened because the agent edits it,
 * and makes room for the next such file until somebody does something in it.
 * @typedef {object} Doc
 * @property {import("../../project/project.js").Project} project
 * @property {EditorState} state
 * @property {string | undefined} saved @property {Uint8Array | undefined} disk
 * @property {{content: Uint8Array | undefined}} [theirs]
 * @property {string} [sent] @property {Promise<void>} [writing] @property {any} [timer]
 * @property {any} [scroll] @property {string} [note] @property {boolean} [isVisiting]
 */

/**
 * @param {object} actions
 * @param {(error: Error) => void} actions.failed a file could not be saved
 * @param {(path: string) => void} actions.shown a tab came to the front; `""`: none
 * @param {() => void} actions.chosen somebody has chosen a tab
 */
export function editorView(actions) {
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Open files", onKeydown: onTabKey });
  const conflict = conflictBar({ takeTheirs: () => takeTheirs(current), keepMine: () => keepMine(current) });
  const place = h("div", { class: "code", id: "editor", role: "tabpanel" });
  const empty = h("div", { class: "empty" }, h("p", null, "No file is open."), h("p", { class: "quiet" }, EMPTY));
  const element = h("div", { class: "editor" }, conflict.element, place, empty);

  /** @type {Map<string, Doc>} */
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
      if (transactions.some((each) => each.isUserEvent("input") || each.isUserEvent("select") || each.isUserEvent("delete"))) doc.isVisiting = false;
      const is = isDirty(doc);
      if (is !== was) drawTabs();
      if (is && transactions.some(({ docChanged }) => docChanged)) saveSoon(current, doc);
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
      doc: withoutEnds(text),
      extensions: [
        base, lineEnds(text), language.of([]), readOnly.of(EditorState.readOnly.of(locked)),
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

  function isDirty(doc) {
    return !doc.note && !locked && fileText(doc.state) !== doc.saved;
  }

  function open(path) {
    const bytes = project.files.get(path);
    if (!bytes) return;
    if (!docs.has(path)) openAs(path, bytes);
    docs.get(path).isVisiting = false;
    show(path);
  }

  /**
   * Shows what the agent has edited, unless somebody is at work in the editor: then
   * it is a tab behind.
   * @param {import("../../project/project.js").Change} change
   */
  function reveal({ path, before, after }) {
    if (!after || textIn(after) === undefined) return;
    const isBusy = view.hasFocus || [...docs.values()].some(isOpenStill);
    if (!docs.has(path)) {
      const visitor = [...docs].find(([each, doc]) => doc.isVisiting && !isOpenStill(doc) && !(isBusy && each === current));
      const isKnown = before !== undefined && textIn(before) !== undefined;
      // From what it was, so that one sees what changes.
      openAs(path, isKnown ? before : after);
      docs.get(path).isVisiting = true;
      if (!isBusy) show(path);
      if (isKnown) takeOver(path, after);
      if (visitor) drop(visitor[0]);
      drawTabs();
    } else if (!isBusy) {
      show(path);
    }
  }

  /** @param {string} path @param {Uint8Array} bytes what it holds */
  function openAs(path, bytes) {
    const text = textIn(bytes);
    const note = text !== undefined ? undefined : bytes.length > MOST_BYTES ? "too large for the editor" : "not text";
    const doc = { project, saved: text, disk: bytes, note };
    docs.set(path, doc);
    doc.state = makeState(path, text ?? "");
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
      empty.replaceChildren(h("p", null, `${path} is ${doc.note}.`), h("p", { class: "quiet" }, `${doc.disk.length} bytes`));
    } else if (doc) {
      view.setState(doc.state);
      if (doc.scroll) view.dispatch({ effects: doc.scroll });
      // The lock may have changed while the tab was in the back.
      view.dispatch({ effects: readOnly.reconfigure(EditorState.readOnly.of(locked)) });
    } else {
      empty.replaceChildren(h("p", null, "No file is open."), h("p", { class: "quiet" }, EMPTY));
    }
    drawTabs();
    drawConflict();
    actions.shown(path);
  }

  /** What cannot be saved stays open. */
  async function close(path) {
    const doc = docs.get(path);
    if (isOpenStill(doc)) {
      await save(path);
      if (docs.get(path) !== doc) return;
      if (isOpenStill(doc)) return show(path);
    }
    drop(path);
  }

  /** Without its text. */
  function drop(path) {
    const names = [...docs.keys()];
    const at = names.indexOf(path);
    clearTimeout(docs.get(path)?.timer);
    docs.delete(path);
    if (path === current) {
      current = "";
      show(names[at + 1] ?? names[at - 1] ?? "");
    } else {
      drawTabs();
    }
  }

  /** Whether a file has text that would be lost with the page. */
  const isOpenStill = (doc) => doc !== undefined && (doc.theirs !== undefined || isDirty(doc));

  function saveSoon(path, doc) {
    clearTimeout(doc.timer);
    doc.timer = setTimeout(() => void save(path), SAVE_MS);
  }

  async function save(path) {
    const doc = docs.get(path);
    // One write after the other: each goes by what the one before has left.
    while (doc?.writing) await doc.writing;
    if (!doc || doc !== docs.get(path) || locked || doc.theirs || !isDirty(doc)) return;
    doc.writing = write(path, doc);
    await doc.writing;
  }

  async function write(path, doc) {
    clearTimeout(doc.timer);
    doc.sent = fileText(doc.state);
    try {
      const content = new TextEncoder().encode(doc.sent);
      const theirs = await doc.project.save(path, content, doc.disk);
      if (theirs) doc.theirs = theirs;
      else Object.assign(doc, { saved: doc.sent, disk: content });
    } catch (error) {
      actions.failed(error);
    }
    doc.sent = undefined;
    doc.writing = undefined;
    drawTabs();
    drawConflict();
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
        "aria-selected": path === current, tabIndex: path === current ? 0 : -1, "aria-controls": "editor", "aria-keyshortcuts": "Delete",
        onClick: () => {
          // Before it is drawn anew.
          actions.chosen();
          docs.get(path).isVisiting = false;
          show(path);
        },
        onAuxclick: (event) => event.button === 1 && close(path),
      }, h("span", null, label), h("span", { class: "dirty", title: dirty ? "not saved yet" : "", "aria-label": dirty ? "not saved" : "" }, dirty ? "●" : ""));
      return h("div", { class: `tab-box ${path === current ? "current" : ""}`, role: "none" }, tab,
        iconButton("close", `Close ${label}`, () => close(path), { tabIndex: -1, "aria-hidden": "true" }));
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
    conflict.show(docs.get(current)?.theirs);
  }

  function takeTheirs(path) {
    const { content } = docs.get(path).theirs;
    if (content === undefined) return drop(path);
    takeOver(path, content);
    drawConflict();
    drawTabs();
  }

  function keepMine(path) {
    const doc = docs.get(path);
    // Whatever it holds, it is not this.
    Object.assign(doc, { disk: doc.theirs.content, saved: undefined, theirs: undefined });
    drawConflict();
    drawTabs();
    void save(path);
  }

  /** Shows what a file holds now. */
  function takeOver(path, content) {
    const doc = docs.get(path);
    const text = textIn(content);
    if (text === undefined || doc.note) {
      docs.delete(path);
      openAs(path, content);
      if (path === current) show(path);
      return;
    }
    Object.assign(doc, { saved: text, disk: content, theirs: undefined });
    replace(path, text);
  }

  /** A file has changed in the sandbox. */
  function followOne(path, content) {
    const doc = docs.get(path);
    const text = content && textIn(content);
    // What was written comes back, maybe behind what has been typed since.
    if (text !== undefined && text === doc.sent) return;
    if (text !== undefined && text === fileText(doc.state)) Object.assign(doc, { saved: text, disk: content, theirs: undefined });
    else if (isOpenStill(doc)) doc.theirs = { content };
    else if (content === undefined) drop(path);
    else takeOver(path, content);
  }

  /** Changes only what differs, so that cursor and scroll position stay. */
  function replace(path, content) {
    const doc = docs.get(path);
    const old = doc.state.doc.toString();
    const text = withoutEnds(content);
    let from = 0;
    while (from < old.length && from < text.length && old[from] === text[from]) from++;
    let end = 0;
    while (end < old.length - from && end < text.length - from && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
    const changes = { from, to: old.length - end, insert: text.slice(from, text.length - end) };
    const range = { from, to: text.length - end };
    const spec = { changes, effects: [addFlash.of(range), setLineEnds.of(lineEndsOf(content))] };
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
    /** @param {import("../../project/project.js").Project} next */
    show(next) {
      project = next;
      for (const { timer } of docs.values()) clearTimeout(timer);
      docs.clear();
      show("");
    },
    /** Saves every file that is not. */
    async saveAll() {
      for (const path of docs.keys()) await save(path);
    },
    /** Follows the sandbox. @param {import("../../project/project.js").Change[]} changes */
    follow(changes) {
      for (const { path, after } of changes) if (docs.has(path)) followOne(path, after);
      drawTabs();
      drawConflict();
    },
    /** Shows what the agent has edited, the last of it in front. @param {import("../../project/project.js").Change[]} changes */
    reveal(changes) {
      const texts = changes.filter(({ after }) => after);
      if (texts.length > 0) reveal(texts.at(-1));
    },
    /** Closes what is gone because somebody wanted it to be. @param {string} path a file, or a directory */
    discard(path) {
      for (const each of [...docs.keys()]) if (each === path || each.startsWith(`${path}/`)) drop(each);
    },
    /** The files with text that is not in the sandbox. @returns {string[]} */
    get unsaved() {
      return [...docs].filter(([, doc]) => isOpenStill(doc)).map(([path]) => path);
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

/** The text of a file, if the editor shows it. @param {Uint8Array} bytes */
function textIn(bytes) {
  return bytes.length > MOST_BYTES ? undefined : decode(bytes);
}
