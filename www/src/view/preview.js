// The preview: an HTML page of the project in a frame of its own origin, which
// sees neither this page nor its keys. Files come along inside the page.

import { assemble } from "../assemble.js";
import { h, icon, iconButton } from "../dom.js";

/** @param {object} actions @param {() => boolean} actions.online @param {(on: boolean) => void} actions.setOnline */
export function previewView(actions) {
  const place = h("div", { class: "preview-place" });
  const page = h("select", { "aria-label": "Page", onChange: () => { chosen = page.value; load(); } });
  const online = h("input", { type: "checkbox", onChange: () => { actions.setOnline(online.checked); load(); } });
  const lines = h("pre", { class: "console", tabIndex: 0, "aria-label": "Console of the preview", hidden: true });
  const element = h(
    "div",
    { class: "preview" },
    h("div", { class: "pane-head" }, icon("eye"), page, h("span", { class: "grow" }),
      h("label", { class: "check", title: "Lets the page load from other sites. Then code in it can also send the project's files there." }, online, "network"),
      iconButton("reload", "Reload the preview", () => load())),
    place, lines,
  );
  const empty = h("div", { class: "empty" }, h("p", null, "No HTML page yet."), h("p", { class: "quiet" }, "As soon as the project has one, it shows up here and follows every change."));
  let project;
  let chosen;
  let frame;
  let shown = false;
  let stale = true;
  let timer;

  addEventListener("message", (event) => {
    if (!frame || event.source !== frame.contentWindow) return;
    const { kind, text, level } = event.data ?? {};
    if (kind === "ready") {
      const content = assemble(project.files, chosen);
      // The frame's origin is opaque: no address names it.
      frame.contentWindow.postMessage({ html: content }, "*");
    } else if (kind === "console" && lines.childElementCount < 500) {
      lines.hidden = false;
      lines.append(h("span", { class: String(level) }, `${String(text).slice(0, 5000)}\n`));
      lines.scrollTop = lines.scrollHeight;
    }
  });

  function pages() {
    return [...project.files.keys()].filter((path) => /\.html?$/i.test(path) && !path.includes("node_modules/")).sort();
  }

  function load() {
    if (!project) return;
    stale = true;
    if (!shown) return;
    stale = false;
    const all = pages();
    if (!all.includes(chosen)) {
      chosen = all.find((path) => path === "index.html") ?? all.find((path) => path.endsWith("/index.html")) ?? all[0];
    }
    page.replaceChildren(...all.map((path) => h("option", { value: path, selected: path === chosen }, path)));
    page.hidden = all.length === 0;
    online.checked = actions.online();
    lines.replaceChildren();
    lines.hidden = true;
    frame?.remove();
    frame = undefined;
    if (!chosen) {
      place.replaceChildren(empty);
      return;
    }
    frame = h("iframe", { title: `Preview of ${chosen}`, src: actions.online() ? "preview-online.html" : "preview.html" });
    frame.setAttribute("sandbox", "allow-scripts allow-forms allow-modals");
    place.replaceChildren(frame);
  }

  return {
    element,
    /** @param {import("../project.js").Project} next */
    show(next) {
      project = next;
      chosen = undefined;
      load();
    },
    /** @param {import("../project.js").Change[]} changes */
    follow(changes) {
      if (!changes.some(({ after, before }) => after || before)) return;
      stale = true;
      clearTimeout(timer);
      timer = setTimeout(load, 250);
    },
    /** @param {boolean} on */
    setShown(on) {
      shown = on;
      if (on && stale) load();
    },
    get hasPage() {
      return pages().length > 0;
    },
  };
}
