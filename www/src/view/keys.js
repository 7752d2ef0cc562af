// The keys of the whole page.

import { PANES } from "./layout.js";

/**
 * @param {object} actions
 * @param {() => boolean} actions.isWorking whether the agent works @param {() => void} actions.stop
 * @param {(pane: string) => void} actions.goTo
 */
export function watchKeys({ isWorking, stop, goTo }) {
  // Escape stops the agent, except where it means something else.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || !isWorking()) return;
    if (document.activeElement?.closest(".editor, .terminal, dialog, .menu")) return;
    stop();
  });
  // Alt+1 to Alt+5 go to the parts, before the terminal and the editor, which take most keys.
  document.addEventListener("keydown", (event) => {
    if (!event.altKey || event.ctrlKey || event.metaKey || !/^Digit[1-5]$/.test(event.code)) return;
    goTo(PANES[Number(event.code.at(-1)) - 1][0]);
    event.preventDefault();
    event.stopPropagation();
  }, true);
}
