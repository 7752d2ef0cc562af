// Asks before something is lost. Browsers' own questions hold up the page, the
// agent with it, and are answered with no where the page is in a frame of
// another site.

import { showDialog } from "../page/dialogs.js";
import { h } from "../page/dom.js";

/**
 * @param {string} question @param {string} yes what the button does, in a word or two
 * @returns {Promise<boolean>}
 */
export function ask(question, yes) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "question", role: "alertdialog", "aria-labelledby": "question", onClose: () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    } },
    h("form", { method: "dialog" },
      h("p", { id: "question" }, question),
      h("div", { class: "dialog-foot" },
        h("button", { type: "submit", value: "no" }, "Cancel"),
        // What somebody has just asked for is a key away.
        h("button", { type: "submit", value: "yes", class: "primary", autofocus: true }, yes))));
    document.body.append(dialog);
    showDialog(dialog);
  });
}
