// The file tree: open, create, rename, delete, and files dropped from outside.

import { h, icon, iconButton, perFrame } from "../page/dom.js";

/** Rows that are drawn; a tree with more says so. */
const MOST_ROWS = 2000;
/** How long files that the agent changed are marked, in ms. */
const RECENT_MS = 6000;

/**
 * @param {object} actions
 * @param {(path: string) => void} actions.open
 * @param {(path: string, isDirectory: boolean) => Promise<void>} actions.create
 * @param {(from: string, to: string) => Promise<void>} actions.rename
 * @param {(path: string) => Promise<void>} actions.remove
 * @param {(items: DataTransferItemList, into: string) => Promise<void>} actions.drop
 * @param {() => void} actions.refused something was wanted of a tree that is locked
 * @param {(path: string) => void} actions.gone this is gone while somebody typed a name for it or for something in it
 */
export function filesView(actions) {
  const list = h("ul", { class: "tree", role: "tree", "aria-label": "Files", onKeydown, onDblclick });
  const adding = [iconButton("newFile", "New file", () => startNew(false)), iconButton("newFolder", "New folder", () => startNew(true))];
  const element = h(
    "div",
    { class: "files", onDragover, onDragleave, onDrop },
    h("div", { class: "pane-head" }, h("h2", null, "Files"), h("span", { class: "grow" }), adding),
    list,
  );
  const open = new Set();
  /** Files that the agent has changed just now, each with the last call of `mark` that named it. */
  const recent = new Map();
  let project;
  let selected = "";
  let current = "";
  /** The row in which a name is typed. @type {{path?: string, parent: string, directory: boolean, row: HTMLElement, input: HTMLInputElement} | undefined} */
  let editing;
  let locked = false;

  /** A run may change many files at once. */
  const drawSoon = perFrame(() => draw());
  const isDirectory = (path) => project.directories.has(path);
  const isThere = (path) => project.files.has(path) || isDirectory(path);
  const parentOf = (path) => path.slice(0, Math.max(0, path.lastIndexOf("/")));

  function children() {
    const tree = new Map([["", []]]);
    const place = (path, directory) => {
      const parent = parentOf(path);
      if (!tree.has(parent)) tree.set(parent, []);
      tree.get(parent).push({ path, directory, name: path.slice(parent ? parent.length + 1 : 0) });
    };
    for (const path of project.directories) place(path, true);
    for (const path of project.files.keys()) place(path, false);
    for (const entries of tree.values()) {
      entries.sort((a, b) => b.directory - a.directory || (a.name < b.name ? -1 : 1));
    }
    return tree;
  }

  /** Paths of the rows as they were drawn last. @type {string[]} */
  let order = [];

  /** The row that takes the place of one that is gone: the next, else the one before. */
  function neighbour(path) {
    const at = order.indexOf(path);
    return order.slice(at + 1).find(isThere) ?? order.slice(0, Math.max(0, at)).findLast(isThere) ?? "";
  }

  function draw() {
    const hadFocus = list.contains(document.activeElement);
    endIfGone();
    if (selected && !isThere(selected)) selected = neighbour(selected);
    const tree = children();
    const rows = [];
    const walk = (parent, depth) => {
      if (editing?.parent === parent && !editing.path) rows.push(editRow(depth));
      for (const entry of tree.get(parent) ?? []) {
        if (rows.length >= MOST_ROWS) return;
        rows.push(editing?.path === entry.path ? editRow(depth) : row(entry, depth));
        if (entry.directory && open.has(entry.path)) walk(entry.path, depth + 1);
      }
    };
    walk("", 0);
    if (rows.length >= MOST_ROWS) rows.push(h("li", { class: "quiet", role: "none" }, `only ${MOST_ROWS} rows are shown`));
    if (rows.length === 0) rows.push(h("li", { class: "quiet", role: "none" }, "No files. Drop some here, or let the agent write them."));
    const focusable = rows.find((row) => row.dataset.path && row.dataset.path === selected) ?? rows[0];
    focusable.tabIndex = 0;
    place(rows);
    order = rows.map((row) => row.dataset.path).filter(Boolean);
    if (drawn.size > 2 * rows.length) forget();
    if (hadFocus && !editing) focusRow();
  }

  /** The rows, around the one in which a name is typed: taken out, it would lose the focus and what is being composed. */
  function place(rows) {
    const at = rows.indexOf(editing?.row);
    // Behind the last row that is shown.
    if (at < 0) endWithout();
    if (at < 0 || editing.row.parentNode !== list) return list.replaceChildren(...rows);
    for (const row of [...list.children]) if (row !== editing.row) row.remove();
    editing.row.before(...rows.slice(0, at));
    editing.row.after(...rows.slice(at + 1));
    return undefined;
  }

  /** Rows as they were drawn last: making one anew costs much more than placing it. @type {Map<string, {look: string, row: HTMLElement}>} */
  const drawn = new Map();

  /** Rows of files that are gone. */
  function forget() {
    for (const path of drawn.keys()) if (!isThere(path)) drawn.delete(path);
  }

  function row(entry, depth) {
    const { path, directory } = entry;
    const look = [depth, directory, open.has(path), path === current].join();
    if (drawn.get(path)?.look !== look) drawn.set(path, { look, row: makeRow(entry, depth) });
    const { row } = drawn.get(path);
    row.tabIndex = -1;
    row.classList.toggle("recent", recent.has(path));
    return row;
  }

  function makeRow({ path, directory, name }, depth) {
    const isOpen = open.has(path);
    return h(
      "li",
      {
        role: "treeitem", class: "row", dataset: { path }, tabIndex: -1,
        style: `--depth:${depth}`, "aria-level": depth + 1,
        "aria-expanded": directory ? isOpen : undefined,
        "aria-selected": path === current,
        onClick: () => { selected = path; activate(path); },
      },
      icon(directory ? "chevron" : "file"),
      h("span", { class: "name", title: name }, name),
      h("span", { class: "dot", title: "changed by the agent" }),
      h("span", { class: "row-actions" },
        iconButton("edit", `Rename ${name}`, (event) => { event.stopPropagation(); startRename(path); }, { tabIndex: -1 }),
        iconButton("trash", `Delete ${name}`, (event) => { event.stopPropagation(); void actions.remove(path); }, { tabIndex: -1 })),
    );
  }

  /** The row in which a name is typed, at its place. @param {number} depth */
  function editRow(depth) {
    editing.row.style.setProperty("--depth", String(depth));
    return editing.row;
  }

  /**
   * Begins to ask for a name: of what is at `path`, or of something new in `parent`.
   * @param {{path?: string, parent: string, directory: boolean, name?: string}} what
   */
  function edit({ path, parent, directory, name: old = "" }) {
    endWithout();
    const end = (keep) => {
      if (editing !== own) return;
      editing = undefined;
      const name = input.value.trim().replace(/(?<=.)\/+$/, "");
      draw();
      if (!keep || name === "" || input.value === old) return;
      // A path from the root is none of the project's, which says so.
      const target = parent && !name.startsWith("/") ? `${parent}/${name}` : name;
      if (path === undefined) void select(target, actions.create(target, directory));
      else void select(target, actions.rename(path, target));
    };
    const input = h("input", {
      value: old, "aria-label": path ? `New name of ${path}` : "Name", spellcheck: false,
      onKeydown: (event) => {
        event.stopPropagation();
        if (event.isComposing) return;
        if (event.key === "Enter") end(true);
        if (event.key === "Escape") end(false);
      },
      onBlur: () => end(true),
    });
    const row = h("li", { class: "row editing", role: "none" }, icon(directory ? "folder" : "file"), input);
    const own = { path, parent, directory, row, input };
    editing = own;
    draw();
    input.focus();
  }

  /** What gets a name may be gone by then, or the folder of what is made. */
  function endIfGone() {
    const what = editing?.path ?? editing?.parent;
    if (!what || isThere(what)) return;
    endWithout();
    actions.gone(what);
  }

  /** Asks for no name any more, and does nothing with the one that was typed. */
  function endWithout() {
    const row = editing?.row;
    editing = undefined;
    row?.remove();
  }

  /** Goes to what `making` makes, if it does. */
  async function select(path, making) {
    await making;
    if (!isThere(path)) return;
    selected = path;
    draw();
  }

  function startNew(directory) {
    const parent = selected && isDirectory(selected) ? selected : parentOf(selected || current);
    if (parent) open.add(parent);
    edit({ parent, directory });
  }

  function startRename(path) {
    selected = path;
    const parent = parentOf(path);
    edit({ path, parent, directory: isDirectory(path), name: path.slice(parent ? parent.length + 1 : 0) });
  }

  function activate(path) {
    if (isDirectory(path)) {
      if (!open.delete(path)) open.add(path);
      draw();
    } else {
      actions.open(path);
    }
  }

  const rowOf = (target) => target.closest?.("[data-path]");
  function focusRow() {
    (list.querySelector(`[data-path="${CSS.escape(selected)}"]`) ?? list.querySelector("[data-path]"))?.focus();
  }

  function onDblclick(event) {
    const path = rowOf(event.target)?.dataset.path;
    if (path && !isDirectory(path)) actions.open(path);
  }

  function onKeydown(event) {
    const rows = [...list.querySelectorAll("[data-path]")];
    const at = rows.indexOf(rowOf(event.target));
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const path = rows[at].dataset.path;
    const go = (to) => {
      if (!rows[to]) return;
      selected = rows[to].dataset.path;
      rows[at].tabIndex = -1;
      rows[to].tabIndex = 0;
      rows[to].focus();
    };
    const keys = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      ArrowRight: () => isDirectory(path) && !open.has(path) ? activate(path) : go(at + 1),
      ArrowLeft: () => isDirectory(path) && open.has(path) ? activate(path) : go(rows.findIndex((row) => row.dataset.path === parentOf(path))),
      Enter: () => { selected = path; activate(path); },
      " ": () => { selected = path; activate(path); },
      F2: () => locked ? actions.refused() : startRename(path),
      Delete: () => locked ? actions.refused() : void actions.remove(path),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  function onDragover(event) {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = locked ? "none" : "copy";
    if (locked) return;
    element.classList.add("dropping");
  }
  function onDragleave(event) {
    if (!element.contains(event.relatedTarget)) element.classList.remove("dropping");
  }
  function onDrop(event) {
    event.preventDefault();
    element.classList.remove("dropping");
    if (locked) return actions.refused();
    const path = rowOf(event.target)?.dataset.path ?? "";
    void actions.drop(event.dataTransfer.items, isDirectory(path) ? path : parentOf(path));
  }

  return {
    element,
    /** @param {import("../project/project.js").Project} next */
    show(next) {
      project = next;
      endWithout();
      drawn.clear();
      open.clear();
      recent.clear();
      order = [];
      selected = "";
      // A small project is seen whole.
      if (project.files.size <= 60) for (const path of project.directories) open.add(path);
      draw();
    },
    draw: drawSoon,
    /** @param {string} [reason] why nothing can be changed; none: it can */
    lock(reason) {
      locked = Boolean(reason);
      endWithout();
      element.classList.toggle("locked", locked);
      for (const button of adding) {
        button.disabled = locked;
        button.title = reason ?? button.ariaLabel;
      }
    },
    /** Marks the file that the editor shows. @param {string} path */
    setCurrent(path) {
      current = path;
      if (!selected || !isDirectory(selected)) selected = path;
      for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) open.add(path.slice(0, at));
      draw();
    },
    /** Marks files that the agent changed, for a while. @param {string[]} paths */
    mark(paths) {
      const call = Symbol("mark");
      for (const path of paths) {
        recent.set(path, call);
        drawn.get(path)?.row.classList.add("recent");
      }
      setTimeout(() => {
        for (const path of paths) {
          if (recent.get(path) !== call) continue;
          recent.delete(path);
          drawn.get(path)?.row.classList.remove("recent");
        }
      }, RECENT_MS);
    },
  };
}
