// Both cores in one program: the slim one first, then the one with a sandbox.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import * as slim from "../../js/slim-node.js";

const answer = "data: " + JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content: "done" }, finish_reason: "stop" }] }) + "\n\ndata: [DONE]\n\n";
const fetch = async () => new Response(answer, { headers: { "content-type": "text/event-stream" } });

/** What a session answers. */
async function said(session) {
  let text;
  for await (const { kind, data } of session.run("go")) if (kind === "ASSISTANT_TEXT_END") text = data.text;
  return text;
}

test("a sandbox can be made after the core without one was loaded, and sessions of that go on", async () => {
  const nothing = async () => {
    throw Object.assign(new Error("nothing is here"), { kind: "not_found" });
  };
  const env = { workingDirectory: "/", read: nothing, write: nothing, stat: nothing, remove: nothing, rename: nothing, makeDir: nothing, list: async () => [], exec: async () => ({ exitCode: 0 }) };
  const options = { provider: "chat", model: "m", apiKey: "key", baseUrl: "http://127.0.0.1:1", fetch };
  let arrive;
  const slow = slim.init({ wasm: new Promise((resolve) => (arrive = resolve)) });
  // Without an address of one's own the core is asked for the provider's.
  const asking = slim.createSession({ provider: "anthropic", model: "m", apiKey: "key", fetch, env: { ...env } });
  const opening = slim.createSession({ ...options, env });
  await assert.rejects(slim.createSession(options), { kind: "invalid_input" });
  const { MemoryEnvironment, createSession, scriptedFetch } = await import("../../js/node.js");
  arrive(await readFile(new URL("../../js/wasm/slim/hermitcrab_bg.wasm", import.meta.url)));
  await slow;
  await (await asking).close();
  const early = await opening;
  const loading = [MemoryEnvironment.create(), slim.createSession({ ...options, env }), scriptedFetch({ rounds: [] }).catch((error) => error.kind)];
  const [sandbox, during, script] = await Promise.all(loading);
  assert.equal((await sandbox.exec("echo hi")).stdout, "hi\n");
  assert.notEqual(script, "core");
  const late = await createSession({ ...options, env: sandbox });
  // Each entry's own: only the one with a sandbox makes one.
  await assert.rejects(slim.createSession(options), { name: "SessionError", kind: "invalid_input", message: "give env: this entry of the package has no sandbox of its own" });
  const own = await createSession(options);
  for (const session of [early, during, late, own]) {
    assert.equal(await said(session), "done");
    await session.close();
  }
});
