// The preview: an HTML page of the project in a frame of its own origin, which
// sees neither this page nor its keys. Files come along inside the page.
//
// There are two frames. The outer one is a document of the playground's own that
// runs no script; its policy says what may be reached. The inner one shows the
// page as `srcdoc`, and so takes over that policy, whatever the page does: it
// cannot go to a document that may do more.

import { h, icon, iconButton, perFrame } from "../../page/dom.js";
import { assemble } from "./assemble.js";

/** How long a page that loads itself again may be away, in ms. */
const AWAY_MS = 300;
/** Lines of the page's console that are shown. */
const MOST_LINES = 500;

export function previewView() {
  const place = h("div", { class: "preview-place" });
  const page = h("select", { "aria-label": "Page", onChange: () => { chosen = page.value; load(); } });
  const online = h("input", { type: "checkbox", onChange: () => { allow(online.checked); load(); } });
  const lines = h("pre", { class: "console", tabIndex: 0, "aria-label": "Console of the preview", hidden: true });
  const element = h(
    "div",
    { class: "preview" },
    h("div", { class: "pane-head" }, icon("eye"), page, h("span", { class: "grow" }),
      h("label", { class: "check", title: "Lets this project's page load from other sites, until the playground is closed. Then code in it can also send the project's files there." }, online, "network"),
      iconButton("reload", "Reload the preview", () => load())),
    place, lines,
  );
  const none = message(h("p", null, "No HTML page yet."), h("p", { class: "quiet" }, "As soon as the project has one, it shows up here and follows every change."));
  const broken = message(h("p", null, "The preview's frame cannot be loaded."), h("p", { class: "quiet" }, "Without a network it is there as soon as the playground has been loaded once with one."));
  const left = message(h("p", null, "The page went to another address."), h("p", { class: "quiet" }, "Only pages of the project are shown here."),
    h("button", { type: "button", onClick: () => load() }, "Show the page again"));
  /** Projects and runs whose page may reach the network: never the next one. */
  const allowed = new WeakSet();
  let project;
  let chosen;
  /** `pages`: of them that came, and did not go. @type {{outer: HTMLIFrameElement, inner?: HTMLIFrameElement, fragment: string, pages: number} | undefined} */
  let frame;
  let shown = false;
  let stale = true;
  let timer;
  let judging;
  const scroll = perFrame(() => void (lines.scrollTop = lines.scrollHeight));

  addEventListener("message", (event) => {
    if (!frame?.inner || event.source !== frame.inner.contentWindow) return;
    const { kind, text, level, page: next, fragment } = event.data ?? {};
    if (kind === "shown") {
      count(frame, 1);
      const own = frame;
      // Of a page that has gone, no message tells where it came from.
      event.ports[0]?.addEventListener("message", () => count(own, -1), { once: true });
      event.ports[0]?.start();
    } else if (kind === "console" && lines.childElementCount < MOST_LINES) {
      lines.hidden = false;
      lines.append(h("span", { class: String(level) }, `${String(text).slice(0, 5000)}\n`));
      scroll();
    } else if (kind === "go" && pages().includes(next)) {
      chosen = next;
      load(String(fragment));
    }
  });

  function allow(on) {
    if (on) allowed.add(project);
    else allowed.delete(project);
  }

  function pages() {
    return [...project.files.keys()].filter((path) => /\.html?$/i.test(path) && !path.includes("node_modules/")).sort();
  }

  /** @param {string} [fragment] the place in the page to begin at */
  function load(fragment = "") {
    clearTimeout(timer);
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
    online.checked = allowed.has(project);
    lines.replaceChildren();
    lines.hidden = true;
    frame = undefined;
    if (chosen) begin(fragment);
    else place.replaceChildren(none);
  }

  function begin(fragment) {
    const network = online.checked;
    const outer = h("iframe", { title: `Preview of ${chosen}`, src: network ? "preview-online.html" : "preview.html" });
    const own = { outer, fragment, pages: 0 };
    frame = own;
    outer.addEventListener("load", () => own === frame && fill(own, network), { once: true });
    place.replaceChildren(outer);
  }

  /** The document with the policy is there: now the page may come. */
  function fill(own, network) {
    const holder = own.outer.contentDocument;
    if (holder?.documentElement.dataset.network !== (network ? "yes" : "no")) {
      place.replaceChildren(broken);
      return;
    }
    const inner = holder.createElement("iframe");
    inner.title = own.outer.title;
    inner.setAttribute("sandbox", "allow-scripts allow-forms allow-modals");
    inner.srcdoc = assemble(project.files, chosen, { network, fragment: own.fragment });
    own.inner = inner;
    holder.body.replaceChildren(inner);
  }

  /** One page of the frame's came or went. */
  function count(own, change) {
    own.pages += change;
    clearTimeout(judging);
    judging = setTimeout(() => own === frame && judge(own), AWAY_MS);
  }

  function judge({ outer, pages }) {
    outer.hidden = pages === 0;
    if (outer.hidden) place.append(left);
    else left.remove();
  }

  return {
    element,
    /** @param {import("../../project/project.js").Project} next */
    show(next) {
      project = next;
      chosen = undefined;
      load();
    },
    /** @param {import("../../project/project.js").Change[]} changes */
    follow(changes) {
      if (!changes.some(({ after, before }) => after || before)) return;
      stale = true;
      clearTimeout(timer);
      timer = setTimeout(() => load(), 250);
    },
    /** A page that nobody sees does not run. @param {boolean} on */
    setShown(on) {
      shown = on;
      if (on) {
        if (stale) load();
        return;
      }
      stale = true;
      frame = undefined;
      place.replaceChildren();
    },
    get hasPage() {
      return pages().length > 0;
    },
  };
}

function message(...content) {
  return h("div", { class: "empty" }, content);
}
