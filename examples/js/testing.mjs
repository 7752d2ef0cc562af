// Tests of a program with an agent in it, without a key and without a network: a
// script plays the model (docs/script.md). Run with `node --test testing.mjs`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryEnvironment, RunError, createSession } from "hermitcrab/node";

/** What is tested: it lets an agent fix a script, and says what became of it. */
async function fix(options) {
  const env = await MemoryEnvironment.create({ files: { "app.sh": "echo hi\n" } });
  const session = await createSession({ ...options, env });
  try {
    const { text, usage } = await session.prompt("make it say hello");
    return { text, tokens: usage.input_tokens + usage.output_tokens, file: await env.readText("app.sh") };
  } finally {
    await session.close();
    await env.dispose();
  }
}

test("the script is fixed", async () => {
  const script = {
    steps: [
      { tool_calls: [{ name: "shell", arguments: { command: "sed -i s/hi/hello/ app.sh" } }] },
      // The model is asked again with what the command gave.
      { expect: { contains: "exit code" }, text: "It says hello." },
    ],
  };
  assert.deepEqual(await fix({ script }), { text: "It says hello.", tokens: 240, file: "echo hello\n" });
});

test("a wrong key is an error", async () => {
  const script = { steps: [{ error: { status: 401, message: "invalid x-api-key" } }] };
  await assert.rejects(fix({ script }), (error) => error instanceof RunError && error.kind === "authentication");
});
