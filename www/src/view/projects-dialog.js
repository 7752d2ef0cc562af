// The projects of this browser: begin one, open one, delete one.

import { showDialog } from "../page/dialogs.js";
import { h, icon, iconButton } from "../page/dom.js";
import { sentence } from "../page/explain.js";
import { ask } from "./question.js";

/**
 * @param {object} actions
 * @param {() => Promise<string[]>} actions.names @param {() => string} actions.current
 * @param {(name: string) => Promise<void>} actions.open @param {(name: string) => Promise<void>} actions.create
 * @param {(name: string) => Promise<void>} actions.remove
 */
export function projectsDialog(actions) {
  const name = h("input", { id: "new-project", "aria-label": "Name of the new project", placeholder: "Name of a new project", autocomplete: "off", spellcheck: false, required: true });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const list = h("ul", { class: "shelf", "aria-label": "Projects" });
  const dialog = h("dialog", { class: "projects", "aria-labelledby": "projects-title" },
    h("div", { class: "dialog-body" },
      h("div", { class: "dialog-head" }, h("h2", { id: "projects-title" }, "Projects"), iconButton("close", "Close", () => dialog.close())),
      h("form", { class: "create", onSubmit: (event) => { event.preventDefault(); void attempt(() => actions.create(name.value.trim())); } },
        name, h("button", { type: "submit", class: "primary" }, "Create")),
      problem, list,
      h("p", { class: "quiet" }, "They lie in this browser's storage, which the browser may clear; export what you want to keep.")));
  document.body.append(dialog);

  async function attempt(act, stay) {
    problem.hidden = true;
    try {
      await act();
      if (!stay) return dialog.close();
      await draw();
      // The button that had the focus is gone.
      list.querySelector("button")?.focus();
    } catch (error) {
      problem.hidden = false;
      problem.textContent = sentence(error.message);
    }
  }

  async function draw() {
    const names = await actions.names();
    list.replaceChildren(...names.map((each) => {
      const isOpen = each === actions.current();
      return h("li", null,
        h("button", { type: "button", class: "open", "aria-current": isOpen ? "true" : undefined, onClick: () => isOpen ? dialog.close() : void attempt(() => actions.open(each)) },
          icon("folder"), h("span", { class: "name" }, each), isOpen && h("span", { class: "tag" }, "open")),
        !isOpen && iconButton("trash", `Delete ${each}`, async () => {
          if (await ask(`Delete the project ${each} with all its files?`, "Delete")) void attempt(() => actions.remove(each), true);
        }));
    }));
    list.hidden = names.length === 0;
  }

  return {
    async open() {
      problem.hidden = true;
      name.value = "";
      await draw();
      showDialog(dialog);
      name.focus();
    },
  };
}
