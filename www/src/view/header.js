// The bar above the parts: the project and its menu, the model, the theme.

import { h, icon } from "../page/dom.js";

/** What the page is for, in a line. */
const TAGLINE = "A coding agent and its sandbox, in this tab";
/** Where one reads more. */
const LINKS = [["Docs", `${SOURCE}/blob/main/docs/playground.md`], ["Source", SOURCE]];

/**
 * @param {object} actions
 * @param {([label: string, act: () => void, ofProject?: boolean] | undefined | false)[]} actions.entries
 *   of the project's menu; `undefined`: a line between them, `false`: nothing; `ofProject`: it
 *   changes the open project or hands it out
 * @param {() => void} actions.openSettings @param {(button: HTMLButtonElement) => void} actions.showTheme
 */
export function header(actions) {
  const theme = h("button", { type: "button", class: "icon-button" });
  actions.showTheme(theme);
  const item = ([label, act, ofProject]) => h("button", { type: "button", role: "menuitem", dataset: ofProject ? { ofProject: "" } : {}, onClick: () => { menu.hidePopover(); act(); } }, label);
  const link = ([label, href], props) => h("a", { href, target: "_blank", rel: "noopener noreferrer", ...props }, label);
  const why = h("p", { class: "quiet", hidden: true });
  const menu = h("div", { id: "project-menu", class: "menu", role: "menu", "aria-label": "Project", onKeydown: menuKeys },
    why, actions.entries.map((entry) => (entry === undefined ? h("hr") : entry && item(entry))),
    h("hr"), LINKS.map((each) => link(each, { role: "menuitem" })));
  menu.setAttribute("popover", "auto");
  const button = h("button", { type: "button", class: "quiet-button", id: "project", title: "Project: open, import, export, share", "aria-haspopup": "menu" }, h("span", { id: "project-name" }), icon("down"));
  button.setAttribute("popovertarget", "project-menu");
  menu.addEventListener("toggle", (event) => {
    if (event.newState !== "open") return;
    const box = button.getBoundingClientRect();
    menu.style.left = `${Math.max(8, Math.min(box.left, innerWidth - menu.offsetWidth - 8))}px`;
    menu.style.top = `${box.bottom + 4}px`;
    menu.querySelector("button").focus();
  });
  const element = h("header", { class: "bar" },
    h("h1", { class: "brand", "aria-label": "Hermitcrab" }, h("img", { src: "./icon.svg", alt: "", width: 20, height: 20 }), h("span", null, "Hermitcrab")),
    button, menu, h("span", { id: "not-kept", class: "tag bad", hidden: true }, "not kept"), h("p", { class: "tagline" }, TAGLINE), h("span", { class: "grow" }),
    h("nav", { class: "about-links", "aria-label": "About" }, LINKS.map((each) => link(each))),
    h("button", { type: "button", class: "quiet-button", id: "model", title: "Settings: provider, model, keys, approval", onClick: actions.openSettings }, icon("bot"), h("span")),
    theme);
  return {
    element,
    /** @param {string} [reason] why the project cannot be changed or handed out; none: it can */
    lock(reason) {
      why.textContent = reason ?? "";
      why.hidden = !reason;
      for (const button of menu.querySelectorAll("[data-of-project]")) button.disabled = Boolean(reason);
    },
  };
}

function menuKeys(event) {
  const items = [...event.currentTarget.querySelectorAll("button:enabled, a")];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  items[(to + items.length) % items.length].focus();
}
