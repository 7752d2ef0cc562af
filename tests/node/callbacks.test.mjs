// Callbacks that only hear something: what they throw is uncaught, and the work
// that they hear of goes on.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryEnvironment, createSession } from "./face.mjs";
import { collect, dataOf, uncaughtIn } from "./support.mjs";

const boom = () => {
  throw new Error("boom");
};

/** Where a callback is given, and work that calls it: `[what, work, what comes of it]`. */
const CALLBACKS = [
  [
    "of a session's activity",
    async (env) => {
      const session = await createSession({ env, script: { steps: [{ text: "Done." }] } });
      session.onActivity(boom);
      const texts = dataOf(await collect(session.run("go")), "ASSISTANT_TEXT_END").map(({ text }) => text);
      await session.close();
      return texts;
    },
    ["Done."],
  ],
  [
    "of a sandbox's activity",
    async (env) => {
      let heard = 0;
      env.onActivity(boom);
      env.onActivity(() => void (heard += 1));
      const { stdout } = await env.exec("for i in 1 2 3; do echo $i | tee f$i; done");
      return [stdout, heard > 0];
    },
    ["1\n2\n3\n", true],
  ],
  [
    "of a log",
    async () => {
      const logged = await MemoryEnvironment.create({ log: boom });
      const { stdout } = await logged.exec("echo on");
      await logged.dispose();
      return stdout;
    },
    "on\n",
  ],
  [
    "of a terminal's output",
    async (env) => {
      const shell = await env.openShell({ onData: boom });
      await shell.write("echo hi > out\r");
      await shell.close();
      return [await shell.closed, await env.readText("out")];
    },
    [0, "hi\n"],
  ],
];

for (const [what, work, expected] of CALLBACKS) {
  test(`a callback ${what} may throw`, { timeout: 30_000 }, async (t) => {
    const uncaught = uncaughtIn(t);
    const env = await MemoryEnvironment.create();
    assert.deepEqual(await work(env), expected);
    await env.dispose();
    assert.ok(uncaught.length > 0);
    assert.deepEqual(uncaught.filter((message) => message !== "boom"), []);
  });
}

test("a callback that is given twice is ended once at a time", async () => {
  const env = await MemoryEnvironment.create();
  let heard = 0;
  const hear = () => void (heard += 1);
  const [end] = [env.onActivity(hear), env.onActivity(hear)];
  end();
  await env.exec("touch f");
  assert.ok(heard > 0);
  await env.dispose();
});
