// Short messages that go away by themselves; errors stay until closed.

import { h, iconButton } from "./dom.js";

let place;

/**
 * @param {string} text @param {"info" | "error"} [kind]
 * @param {{label: string, act: () => void}} [action] what one can do about it
 * @returns {() => void} what closes it
 */
export function toast(text, kind = "info", action) {
  if (!place) {
    place = h("div", { class: "toasts" });
    document.body.append(place);
  }
  let timer;
  const close = () => {
    clearTimeout(timer);
    element.remove();
  };
  const element = h("div", { class: `toast ${kind}`, role: kind === "error" ? "alert" : "status" }, h("span", null, text, " ", action && h("button", { type: "button", class: "link", onClick: () => { close(); action.act(); } }, action.label)), iconButton("close", "Close this message", close));
  place.append(element);
  if (kind !== "error") timer = setTimeout(close, 4000);
  return close;
}
