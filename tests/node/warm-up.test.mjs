// What a worker does for its first commands while it has nothing to do.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryEnvironment } from "../../js/node.js";
import { warmUp } from "../../js/worker/warm-up.js";

/** The module anew: it warms up once. */
const fresh = async () => (await import(`../../js/worker/warm-up.js?${Math.random()}`)).warmUp;

test("it runs commands that this sandbox knows, once, and leaves nothing", async () => {
  const results = [];
  let disposals = 0;
  const create = async () => {
    const env = await MemoryEnvironment.create();
    return {
      async exec(command) {
        results.push([command, await env.exec(command)]);
      },
      async dispose() {
        disposals += 1;
        await env.dispose();
      },
    };
  };
  await warmUp(create);
  await warmUp(create);
  assert.ok(results.length > 0);
  for (const [command, { exitCode, stderr }] of results) assert.deepEqual([exitCode, stderr], [0, ""], command);
  assert.equal(new Set(results.map(([command]) => command)).size, results.length, "each once");
  assert.equal(disposals, 1);
});

test("it lets messages through after each command", async () => {
  const order = [];
  const exec = async () => {
    order.push("command");
    setImmediate(() => order.push("message"));
  };
  await (await fresh())(async () => ({ exec, dispose: async () => order.push("end") }));
  assert.deepEqual(order.slice(0, 4), ["command", "message", "command", "message"]);
  assert.equal(order.at(-1), "end");
});

test("what fails is nobody's business", async () => {
  await (await fresh())(async () => {
    throw new Error("no core");
  });
  let disposed = false;
  const exec = async () => {
    throw new Error("the core failed");
  };
  await (await fresh())(async () => ({ exec, dispose: async () => void (disposed = true) }));
  assert.ok(disposed);
});
