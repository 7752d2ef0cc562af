// Callbacks that only hear something: what they throw or reject with is uncaught,
// and the work that they hear of goes on. That of a command's output ends it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryEnvironment, createSession } from "./face.mjs";
import { collect, dataOf, uncaughtIn } from "./support.mjs";

/** Where a callback is given, and work that calls it: `[what, work, what comes of it]`. */
const CALLBACKS = [
  [
    "of a session's activity",
    async (env, boom) => {
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
    async (env, boom) => {
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
    async (_, boom) => {
      const logged = await MemoryEnvironment.create({ log: boom });
      const { stdout } = await logged.exec("echo on");
      await logged.dispose();
      return stdout;
    },
    "on\n",
  ],
  [
    "of a terminal's output",
    async (env, boom) => {
      const shell = await env.openShell({ onData: boom });
      await shell.write("echo hi > out\r");
      await shell.close();
      return [await shell.closed, await env.readText("out")];
    },
    [0, "hi\n"],
  ],
];

const WAYS = {
  throw: () => {
    throw new Error("boom");
  },
  reject: async () => {
    throw new Error("boom");
  },
};

for (const [way, boom] of Object.entries(WAYS)) {
  for (const [what, work, expected] of CALLBACKS) {
    test(`a callback ${what} may ${way}`, { timeout: 30_000 }, async (t) => {
      const uncaught = uncaughtIn(t);
      // A listener of events is told so, too: no rejection that only some hosts tell.
      const rejected = [];
      const listener = (error) => rejected.push(error.message);
      process.on("unhandledRejection", listener);
      t.after(() => process.off("unhandledRejection", listener));
      const env = await MemoryEnvironment.create();
      assert.deepEqual(await work(env, boom), expected);
      await env.dispose();
      await new Promise(setImmediate);
      assert.ok(uncaught.length > 0);
      assert.deepEqual(uncaught.filter((message) => message !== "boom"), []);
      assert.deepEqual(rejected, []);
    });
  }

  test(`a callback of a command's output that may ${way} ends the command with that`, { timeout: 30_000 }, async (t) => {
    const uncaught = uncaughtIn(t);
    const env = await MemoryEnvironment.create();
    for (const command of ["echo hi", "while :; do echo; done"]) {
      await assert.rejects(env.exec(command, { onOutput: boom }), { message: "boom" });
    }
    await env.dispose();
    await new Promise(setImmediate);
    assert.deepEqual(uncaught, []);
  });
}

test("a command waits for a callback of its output that is async", async () => {
  const env = await MemoryEnvironment.create();
  const heard = [];
  const onOutput = async (stream, data) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    heard.push([stream, new TextDecoder().decode(data)]);
  };
  const { stdout } = await env.exec("echo hi", { onOutput });
  assert.deepEqual([stdout, heard], ["hi\n", [["stdout", "hi\n"]]]);
  await env.dispose();
});

test("a callback of output that never ends holds no command up that is aborted or timed out", { timeout: 30_000 }, async () => {
  const env = await MemoryEnvironment.create();
  const onOutput = () => new Promise(() => {});
  const { timedOut, stdout } = await env.exec("echo hi; sleep 100", { onOutput, timeoutMs: 1_000 });
  assert.deepEqual([timedOut, stdout], [true, "hi\n"]);
  const stop = new AbortController();
  const ended = env.exec("echo hi", { onOutput, signal: stop.signal });
  setTimeout(() => stop.abort(), 200);
  assert.equal((await ended).stdout, "hi\n");
  await env.dispose();
});

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
