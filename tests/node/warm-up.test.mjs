// What is done for first commands while nobody waits for one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryEnvironment, warmUp } from "../../js/node.js";
import * as worker from "../../js/worker-node.js";

/** The module anew: it warms up once. */
const fresh = async () => (await import(`../../js/core/warm-up.js?${Math.random()}`)).warmUp;

test("it runs a command that this sandbox knows, once, and leaves nothing", async () => {
  const results = [];
  let disposals = 0;
  const create = async (options) => {
    const env = await MemoryEnvironment.create(options);
    return {
      async exec(command) {
        results.push(await env.exec(command));
      },
      async dispose() {
        disposals += 1;
        await env.dispose();
      },
    };
  };
  const warm = await fresh();
  await Promise.all([warm(create), warm(create)]);
  await warm(create);
  assert.equal(results.length, 1);
  const [{ exitCode, stdout, stderr }] = results;
  assert.deepEqual([exitCode, stderr], [0, ""]);
  // Of 256 KiB of zeros.
  assert.match(stdout, /^8a39d2abd3999ab73c34db2476849cddf303ce389b35826850f9a700589b4a90 /);
  assert.equal(disposals, 1);
});

test("it lets messages through before it begins and before the command", async () => {
  const order = [];
  const message = () => setImmediate(() => order.push("message"));
  const env = {
    exec: async () => order.push("command"),
    dispose: async () => order.push("end"),
  };
  message();
  await (await fresh())(async () => {
    order.push("sandbox");
    message();
    return env;
  });
  assert.deepEqual(order, ["message", "sandbox", "message", "command", "end"]);
});

test("what fails is nobody's business, and the next call tries again", async () => {
  const warm = await fresh();
  let attempts = 0;
  const none = async () => {
    attempts += 1;
    throw new Error("no core");
  };
  await warm(none);
  await warm(none);
  assert.equal(attempts, 2);
  let disposed = false;
  const exec = async () => {
    throw new Error("the core failed");
  };
  await warm(async () => ({ exec, dispose: async () => void (disposed = true) }));
  assert.ok(disposed);
});

test("a host may ask for it, also of a worker that does not start", { timeout: 60_000 }, async () => {
  assert.equal(await warmUp(), undefined);
  assert.equal(await worker.warmUp(), undefined);
  const env = await worker.MemoryEnvironment.create();
  assert.equal((await env.exec("echo hi")).stdout, "hi\n");
  await worker.terminate();
  await assert.rejects(worker.init({ worker: () => assert.fail("no worker here") }), { name: "CoreError" });
  assert.equal(await worker.warmUp(), undefined);
  await worker.terminate();
});
