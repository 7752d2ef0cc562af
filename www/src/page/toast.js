// Short messages that go away by themselves, later if they are errors or offer
// something; errors that do, and what is under way, stay until it is done. A few are shown at once.

import { h, iconButton } from "./dom.js";

/** How long a message stays at least, and for each of its characters, in ms. */
const CHARACTER_MS = 60;
const STAY_MS = { info: 4_000, error: 15_000, offer: 15_000 };
/** Messages that are shown at once; the oldest make room. */
const MOST = 3;

let place;
/** What closes those that are shown, oldest first. @type {{stays: boolean, close: () => void}[]} */
let shown = [];

/**
 * @param {string} text @param {"info" | "error" | "busy"} [kind]
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
    shown = shown.filter((one) => one !== own);
  };
  const element = h("div", { class: `toast ${kind}`, role: kind === "error" ? "alert" : "status" }, h("span", null, text, " ", action && h("button", { type: "button", class: "link", onClick: () => { close(); action.act(); } }, action.label)), iconButton("close", "Close this message", close));
  const own = { stays: kind === "busy" || (kind === "error" && action !== undefined), close };
  while (shown.length >= MOST) (shown.find(({ stays }) => !stays) ?? shown[0]).close();
  shown.push(own);
  place.append(element);
  if (!own.stays) timer = setTimeout(close, Math.max(STAY_MS[action ? "offer" : kind], text.length * CHARACTER_MS));
  return close;
}
