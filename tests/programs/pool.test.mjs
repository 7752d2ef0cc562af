// The workers of a lent program: who waits for one, and who has its turn.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";

import { nodeWorker } from "../../js/platform/machine-node.js";
import { Pool } from "../../js/programs/pool.js";

/** A program that prints its argument after as many ms. */
const SCRIPT = `const { parentPort } = require("node:worker_threads");
parentPort.on("message", ({ call }) => setTimeout(() => {
  parentPort.postMessage({ kind: "end", exitCode: 0, stderr: call.args[0], changes: [] });
}, Number(call.args[0])));`;

const pool = new Pool({
  start: async () => nodeWorker(new Worker(SCRIPT, { eval: true }), (said) => said),
  workers: 1,
  idleMs: 60_000,
});
after(() => pool.close());

let states = 0;

/** A call that brings all files, of a sandbox of its own; and what ends it. */
function call(ms) {
  const stop = new AbortController();
  states += 1;
  const request = { name: "wait", args: [String(ms)], env: {}, cwd: "/", stdin: new Uint8Array(), changes: [], state: `s${states}/wait/1` };
  const result = pool.run({ ...request, signal: stop.signal }).then(({ exitCode, stderr }) => [exitCode, new TextDecoder().decode(stderr)]);
  return { stop, result };
}

test("a call that is ended while it waits leaves its turn to the next one", { timeout: 20_000 }, async () => {
  const calls = [200, 1, 2, 3].map(call);
  await new Promise((resolve) => setTimeout(resolve, 50));
  calls[1].stop.abort();
  calls[2].stop.abort();
  assert.deepEqual(await Promise.all(calls.map(({ result }) => result)), [[0, "200"], [143, ""], [143, ""], [0, "3"]]);
});

test("a call that is ended while it runs makes room for the next one", { timeout: 20_000 }, async () => {
  const calls = [60_000, 1].map(call);
  await new Promise((resolve) => setTimeout(resolve, 50));
  calls[0].stop.abort();
  assert.deepEqual(await Promise.all(calls.map(({ result }) => result)), [[143, ""], [0, "1"]]);
});
