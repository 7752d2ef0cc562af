// The bar over a text that is not saved while its file changed in the sandbox.

import { h, icon } from "../../page/dom.js";

/**
 * @param {object} actions
 * @param {() => void} actions.takeTheirs @param {() => void} actions.keepMine
 */
export function conflictBar(actions) {
  const text = h("span");
  const take = h("button", { type: "button", onClick: actions.takeTheirs });
  const element = h("div", { class: "conflict", role: "alert", hidden: true },
    icon("warn"), text, take, h("button", { type: "button", onClick: actions.keepMine }, "Keep mine"));
  return {
    element,
    /** @param {{content: Uint8Array | undefined} | undefined} theirs what the sandbox holds; none: nothing to settle */
    show(theirs) {
      element.hidden = theirs === undefined;
      if (!theirs) return;
      const isGone = theirs.content === undefined;
      text.textContent = `This file ${isGone ? "was deleted" : "changed"} in the sandbox while you were editing it.`;
      take.textContent = isGone ? "Close it" : "Take the new text";
    },
  };
}
