// What stands where no conversation is yet.

import { h, icon } from "../../page/dom.js";
import { TEMPLATES } from "../../templates/index.js";

/** Tasks for a project that has files, and for one that has none yet. */
const TASKS = ["Explain what this project does and how its parts fit together.", "Find a bug, fix it, and add a test that fails without the fix."];
const FIRST_TASKS = [
  "Make a web page with a pomodoro timer: start, pause, reset, and a count of finished rounds.",
  "Write a script that turns a CSV file into a Markdown table, with tests, and run them.",
];

/** For a visitor, at the sample. @param {(event: Event) => void} runDemo */
export function sampleHello(runDemo) {
  return [
    h("h2", null, "An agent with its own sandbox"),
    h("p", null, "Describe a task, and the agent reads and edits the files on this page and runs commands until it is done. All of it runs in this tab: the agent's loop, a file system and a bash-like shell."),
    h("p", null, "This sample project has a bug. A scripted model, which needs no key, plays how an agent finds and fixes it; the tools it calls are real."),
    h("p", null, h("button", { type: "button", class: "primary", id: "run-demo", onClick: runDemo }, icon("play"), "Run the demo")),
    h("p", { class: "quiet" }, "For a task of your own choose a model and paste a key, under “Scripted demo” above."),
  ];
}

/**
 * For any other project.
 * @param {object} state @param {boolean} state.isScripted whether the model is the scripted one
 * @param {boolean} state.isEmpty whether the project has no files
 * @param {(task: string) => void} state.suggest @param {(template: import("../../templates/index.js").Template) => void} state.begin
 */
export function projectHello({ isScripted, isEmpty, suggest, begin }) {
  const list = (label, buttons) => h("ul", { class: "starts", "aria-label": label }, buttons.map((button) => h("li", null, button)));
  const template = (each) => h("button", { type: "button", title: each.about, onClick: () => begin(each) }, icon("folder"), each.name);
  const task = (text) => h("button", { type: "button", class: "task", onClick: () => suggest(text) }, text);
  return [
    h("h2", null, "What should the agent do?"),
    h("p", null, "It reads and changes the files on this page and runs commands in the sandbox. Nothing leaves the tab but what it asks the model."),
    isEmpty && h("p", null, "This project is empty. Let the agent write it, begin with a template, or drop files on the tree."),
    isEmpty && list("Templates", TEMPLATES.map(template)),
    list("Tasks to begin with", (isEmpty ? FIRST_TASKS : TASKS).map(task)),
    isScripted && h("p", { class: "quiet" }, "The scripted model plays only the repair of the sample. For a task here choose a model and paste a key, under “Scripted demo” above."),
  ];
}
