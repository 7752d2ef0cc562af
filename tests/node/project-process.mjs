// A process that works on a project, for project.test.mjs to end at any moment.
// Usage: node project-process.mjs DIRECTORY MODEL_URL begin|resume

import { createSession, directoryStorage, openProject } from "../../js/node.js";

const [directory, baseUrl, act] = process.argv.slice(2);
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
let ended = 0;

const project = await openProject("demo", {
  storage: directoryStorage(directory),
  files: { "notes.txt": "first\n" },
});
const session = await createSession({
  apiKey: "sk-test-0000",
  baseUrl,
  env: project.env,
  history: project.history,
  tools: [{ name: "wait", description: "waits", parameters: { type: "object" }, execute: () => new Promise(() => {}) }],
});
project.keep(session);
if (act === "begin") {
  await session.followUp("and then?");
  await session.submit("go");
} else {
  await session.resume();
}
// The pending tool keeps no process alive.
const alive = setInterval(() => {}, 1000);
for await (const { kind, data } of session.events()) {
  if (kind === "TOOL_CALL_END" && (ended += 1) === 2) {
    // Sooner than it would be by itself: the test waits for nothing in vain.
    await project.save();
    say({ kept: true });
  }
  if (kind === "STATE_CHANGED" && data.to === "IDLE" && data.from === "PROCESSING") break;
}
clearInterval(alive);
say({ notes: await project.env.readText("notes.txt") });
await session.close();
await project.close();
