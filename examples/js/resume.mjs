// A task that outlives its process: after each event that matters the session's
// record and the files are saved. Stop it (Ctrl-C) and start it again: it goes on
// where it was.
//
//   ANTHROPIC_API_KEY=… node resume.mjs

import { readFile, rename, rm, writeFile } from "node:fs/promises";

import { MemoryEnvironment, createSession } from "hermitcrab/node";

const STATE = "state.json";
const TASK = "write the numbers from 1 to 3, each into a separate file";

const saved = await readFile(STATE, "utf8").then(JSON.parse, () => undefined);
const env = await MemoryEnvironment.create();
if (saved) await env.importTar(Buffer.from(saved.files, "base64"));

const session = await createSession({ apiKey: process.env.ANTHROPIC_API_KEY, env, history: saved?.record });

async function save() {
  const files = Buffer.from(await env.exportTar()).toString("base64");
  // Renamed when it is whole: stopped in the middle of writing, the state before it stays.
  await writeFile(`${STATE}.new`, JSON.stringify({ record: await session.record(), files }));
  await rename(`${STATE}.new`, STATE);
}

// `resume` asks the model with the history as it is: the task is in it.
for await (const { kind, data } of saved ? session.resume() : session.run(TASK)) {
  if (kind === "TOOL_CALL_END") {
    console.log(`${data.tool_name}: ${data.is_error ? data.error : "ok"}`);
    await save();
  }
}
for (const { path } of await env.list()) console.log(`${path}: ${await env.readText(path)}`);
await session.close();
await env.dispose();
await rm(STATE, { force: true });
