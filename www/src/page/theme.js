// Light, dark, or what the system says.

import { icon } from "./dom.js";

const NEXT = { auto: "light", light: "dark", dark: "auto" };
const ICONS = { auto: "auto", light: "sun", dark: "moon" };

/** @param {import("../agent/settings.js").Settings} settings */
export function applyTheme(settings) {
  const theme = settings.get("theme");
  document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event("themechange"));
}

/** @param {import("../agent/settings.js").Settings} settings @param {HTMLButtonElement} button */
export function themeButton(settings, button) {
  const draw = () => {
    const theme = settings.get("theme");
    button.title = `Theme: ${theme}`;
    button.setAttribute("aria-label", `Theme: ${theme}; choose ${NEXT[theme]}`);
    button.replaceChildren(icon(ICONS[theme]));
  };
  button.addEventListener("click", () => {
    settings.set("theme", NEXT[settings.get("theme")]);
    applyTheme(settings);
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("themechange")));
  draw();
}
