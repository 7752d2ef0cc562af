// What stands where no conversation is yet.

import { h, icon } from "../dom.js";

/** For a visitor, at the sample. @param {(event: Event) => void} runDemo */
export function sampleHello(runDemo) {
  return [
    h("h2", null, "An agent with its own sandbox"),
    h("p", null, "Everything runs in this tab: the agent's loop, a file system and a bash-like shell. This sample project has a bug. A scripted model, which needs no key, plays how an agent finds and fixes it; the tools it calls are real."),
    h("p", null, h("button", { type: "button", class: "primary", id: "run-demo", onClick: runDemo }, icon("play"), "Run the demo")),
    h("p", { class: "quiet" }, "For a task of your own choose a model and paste a key, under “Scripted demo” above."),
  ];
}

/** For any other project. @param {boolean} isScripted whether the model is the scripted one */
export function projectHello(isScripted) {
  return [
    h("h2", null, "What should the agent do?"),
    h("p", null, "It reads and changes the files on this page and runs commands in the sandbox. Nothing leaves the tab but what it asks the model."),
    isScripted && h("p", { class: "quiet" }, "The scripted model plays only the repair of the sample. For a task here choose a model and paste a key, under “Scripted demo” above."),
  ];
}
