// Where the parts stand: side by side on wide screens, one at a time on narrow
// ones. The borders between them can be moved, with the keyboard too.

import { h, icon } from "../page/dom.js";

/** Name, label and icon of each part, in the order of their shortcuts. */
export const PANES = [
  ["chat", "Chat", "chat"],
  ["files", "Files", "folder"],
  ["editor", "Editor", "edit"],
  ["terminal", "Terminal", "terminal"],
  ["preview", "Preview", "eye"],
];

const PLACE = "hermitcrab.layout";
/** What a part may have of the room, in percent. */
const SMALLEST = 8;
const LARGEST = 75;

/** @param {Record<string, any>} views @param {HTMLElement} header */
export function layout(views, header) {
  const sizes = { chat: 34, files: 13, terminal: 30, preview: 46, ...read() };
  const previewTab = h("button", { type: "button", class: "tab preview-toggle", "aria-pressed": "false", onClick: () => setPreviewOpen(!previewOpen) }, icon("eye"), h("span", null, "Preview"));
  const strip = h("div", { class: "strip" }, views.editor.tabs, previewTab);
  const replay = h("div", { class: "replay-place" });
  const pane = (name, label, ...children) => h("section", { class: `pane pane-${name}`, id: `pane-${name}`, "aria-label": label, tabIndex: -1 }, children);
  const stage = h("div", { class: "stage" },
    pane("editor", "Editor", strip, views.editor.element),
    splitter("preview", "Width of the preview", "x", true),
    pane("preview", "Preview", views.preview.element));
  const work = h("div", { class: "work" }, stage, splitter("terminal", "Height of the terminal", "y", true),
    pane("terminal", "Terminal", h("div", { class: "pane-head" }, h("h2", null, "Terminal"), views.terminal.download, h("span", { class: "grow" }), views.terminal.stop), views.terminal.element));
  const main = h("main", { class: "panes" },
    pane("chat", "Conversation", replay, views.chat.element),
    splitter("chat", "Width of the conversation", "x", false),
    pane("files", "Files", views.files.element),
    splitter("files", "Width of the file tree", "x", false),
    work);
  const dock = h("nav", { class: "dock", "aria-label": "Parts" }, PANES.map(([name, label, shape]) =>
    h("button", { type: "button", dataset: { pane: name }, title: `${label} (Alt+${PANES.findIndex(([each]) => each === name) + 1})`, onClick: () => show(name) }, icon(shape), h("span", null, label))));
  document.body.append(header, main, dock);

  let previewOpen = false;
  let wanted;
  const narrow = matchMedia("(max-width: 819px)");
  narrow.addEventListener("change", () => views.preview.setShown(isPreviewVisible()));
  applySizes();
  show("chat");

  function splitter(name, label, axis, fromEnd) {
    const element = h("div", {
      class: `splitter ${axis}`, role: "separator", tabIndex: 0, "aria-label": label,
      "aria-orientation": axis === "x" ? "vertical" : "horizontal", "aria-valuemin": SMALLEST, "aria-valuemax": LARGEST,
      dataset: { name },
    });
    const set = (value) => {
      sizes[name] = Math.max(SMALLEST, Math.min(LARGEST, value));
      applySizes();
      write(sizes);
    };
    element.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      element.setPointerCapture(event.pointerId);
      const box = element.parentElement.getBoundingClientRect();
      const start = name === "files" ? main.querySelector(".pane-files").getBoundingClientRect().left : axis === "x" ? box.left : box.top;
      const length = axis === "x" ? box.width : box.height;
      const move = ({ clientX, clientY }) => {
        const at = axis === "x" ? clientX : clientY;
        const end = axis === "x" ? box.right : box.bottom;
        set(((fromEnd ? end - at : at - start) / length) * 100);
      };
      const stop = () => {
        element.removeEventListener("pointermove", move);
        document.body.classList.remove("resizing");
      };
      document.body.classList.add("resizing");
      element.addEventListener("pointermove", move);
      element.addEventListener("pointerup", stop, { once: true });
      element.addEventListener("pointercancel", stop, { once: true });
    });
    element.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -2, ArrowUp: -2, ArrowRight: 2, ArrowDown: 2 }[event.key];
      if (!step) return;
      event.preventDefault();
      set(sizes[name] + (fromEnd ? -step : step));
    });
    return element;
  }

  function applySizes() {
    for (const [name, value] of Object.entries(sizes)) main.style.setProperty(`--${name}-size`, `${value}%`);
    for (const each of main.querySelectorAll(".splitter")) each.setAttribute("aria-valuenow", String(Math.round(sizes[each.dataset.name])));
  }

  /** Brings a part to the front where only one fits. */
  function show(name) {
    // Of a run that is looked at there is none.
    if (name === "terminal" && document.body.classList.contains("replaying")) return;
    main.dataset.pane = name;
    for (const button of dock.children) button.setAttribute("aria-current", String(button.dataset.pane === name));
    if (name === "preview") setPreviewOpen(true, true);
    else if (name === "editor" && isOneAtATime()) setPreviewOpen(false, true);
    views.preview.setShown(isPreviewVisible());
  }

  /** Whether the preview would take the place of the editor's text. */
  function isOneAtATime() {
    return getComputedStyle(stage).getPropertyValue("--one").trim() === "yes";
  }

  function isPreviewVisible() {
    return narrow.matches ? main.dataset.pane === "preview" : previewOpen;
  }

  function setPreviewOpen(on, byUser = true) {
    previewOpen = on;
    if (byUser) wanted = on;
    stage.classList.toggle("with-preview", on);
    previewTab.setAttribute("aria-pressed", String(on));
    views.preview.setShown(isPreviewVisible());
  }

  return {
    show,
    /** @param {string} name */
    focus(name) {
      const place = document.getElementById(`pane-${name}`);
      if (name === "terminal") views.terminal.focus();
      else if (name === "editor") views.editor.focus();
      else (place.querySelector('#composer, [tabindex="0"][role="treeitem"]') ?? place.querySelector("select, button") ?? place).focus();
    },
    /** Whether there is something to preview; opens it where there is room. @param {boolean} possible */
    setPreview(possible) {
      previewTab.hidden = !possible;
      if (wanted === undefined && possible && !narrow.matches && !isOneAtATime()) setPreviewOpen(true, false);
      if (!possible && previewOpen) setPreviewOpen(false, false);
    },
    /** @param {HTMLElement | undefined} element the bar of a replay */
    setReplay(element) {
      replay.replaceChildren(...(element ? [element] : []));
      document.body.classList.toggle("replaying", Boolean(element));
    },
  };
}

function read() {
  try {
    return JSON.parse(localStorage.getItem(PLACE) ?? "{}");
  } catch {
    return {};
  }
}

function write(sizes) {
  try {
    localStorage.setItem(PLACE, JSON.stringify(sizes));
  } catch {
    // Storage is denied: the sizes hold until the page is closed.
  }
}
