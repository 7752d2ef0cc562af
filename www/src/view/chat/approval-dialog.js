// Asks the user about a call of the agent's. Opening it moves the focus to no
// button, so that what somebody is typing just then answers nothing.

import { showDialog } from "../../page/dialogs.js";
import { h } from "../../page/dom.js";
import { isCommand } from "../../run/approvals.js";
import { argumentsInFull } from "./items.js";

/** @param {() => void} stop ends what the agent does @returns {import("../../run/approvals.js").Ask} */
export function approvalDialog(stop) {
  const title = h("h2", { id: "approval-title", tabIndex: -1 });
  const reason = h("p", { class: "quiet", id: "approval-reason" });
  const what = h("pre", { class: "call", tabIndex: 0, "aria-label": "The call" });
  const why = h("input", { id: "approval-why", autocomplete: "off", placeholder: "Optional: tell the agent why not", "aria-label": "Why not, for the agent" });
  const always = h("button", { type: "button", onClick: () => settle("always") });
  const form = h("form", { method: "dialog", onSubmit: (event) => { event.preventDefault(); deny(); } },
    title, reason, what, why,
    h("div", { class: "dialog-foot" },
      h("button", { type: "button", class: "quiet-button", onClick: () => { deny(); stop(); } }, "Stop the agent"),
      h("span", { class: "grow" }),
      h("button", { type: "submit" }, "Deny"),
      always,
      h("button", { type: "button", class: "primary", onClick: () => settle("once") }, "Allow once")));
  const dialog = h("dialog", { class: "approval", "aria-labelledby": "approval-title", "aria-describedby": "approval-reason", onCancel: (event) => { event.preventDefault(); deny(); } }, form);
  document.body.append(dialog);

  let settle = () => {};
  const deny = () => settle({ denied: why.value.trim() });

  return (call) => new Promise((resolve) => {
    title.textContent = isCommand(call.arguments) ? "The agent wants to run a command" : `The agent wants to call ${call.name}`;
    reason.textContent = `Asked because ${call.reason}.`;
    what.textContent = isCommand(call.arguments) ? call.arguments.command : argumentsInFull(call.arguments);
    always.textContent = isCommand(call.arguments) ? "Always allow this command" : `Always allow ${call.name}`;
    always.title = "Until the session ends";
    why.value = "";
    const gone = () => settle({ denied: "" });
    settle = (answer) => {
      settle = () => {};
      call.signal.removeEventListener("abort", gone);
      dialog.close();
      resolve(answer);
    };
    call.signal.addEventListener("abort", gone, { once: true });
    showDialog(dialog);
    title.focus();
  });
}
