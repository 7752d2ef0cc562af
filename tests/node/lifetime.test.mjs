// Thousands of sessions in a row leave nothing: of those that were closed, and of
// those that nobody has any more. In this process and in a worker of it.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Worker } from "node:worker_threads";

import * as here from "../../js/node.js";
import { initSync } from "../../js/wasm/hermitcrab.js";
import * as far from "../../js/worker-node.js";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");
const MB = 1 << 20;
const at = (path) => JSON.stringify(new URL(path, import.meta.url).href);

/** A worker that says how large the core's memory is, and collects garbage. */
const SCRIPT = `const { parentPort } = require("node:worker_threads");
require("node:v8").setFlagsFromString("--expose-gc");
const collect = require("node:vm").runInNewContext("gc");
import(${at("../../js/worker/main-node.js")});
parentPort.on("message", async ({ type }) => {
  if (type !== "measure") return;
  const { initSync } = await import(${at("../../js/wasm/hermitcrab.js")});
  collect();
  parentPort.postMessage({ type: "measured", bytes: initSync().memory.buffer.byteLength });
});`;

let worker;
await far.init({ worker: () => (worker = new Worker(SCRIPT, { eval: true })) });
after(far.terminate);

/** Bytes of the core's memory, by face, once what nobody has is given back. */
const MEASURE = {
  here: async () => {
    await settled();
    return initSync().memory.buffer.byteLength;
  },
  worker: async () => {
    await settled();
    return new Promise((resolve) => {
      // The package lets a worker rest that it has no work for.
      const alive = setInterval(() => {}, 1_000);
      worker.on("message", function listen({ type, bytes }) {
        if (type !== "measured") return;
        worker.off("message", listen);
        clearInterval(alive);
        resolve(bytes);
      });
      worker.postMessage({ type: "measure" });
    });
  },
};

async function settled() {
  for (let round = 0; round < 3; round += 1) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const SCRIPTED = { steps: [{ text: "Done." }] };
const files = { big: new Uint8Array(2 * MB) };
const custom = () => {
  const no = async () => assert.fail("nobody calls it");
  return { read: no, write: no, stat: async () => ({ isDir: true }), list: async () => [], remove: no, rename: no, makeDir: no, exec: no };
};

/** `[what, rounds, use]`: what is used up once. */
const USES = [
  ["sessions that make their own sandbox and are closed", 1_200, async ({ createSession }) => {
    const session = await createSession({ apiKey: null });
    await session.close();
  }],
  ["sessions that work, and whose sandbox holds a file", 60, async ({ createSession }) => {
    const session = await createSession({ script: SCRIPTED });
    await session.env.write("big", files.big);
    await session.prompt("go");
    await session.abort();
  }],
  ["sessions in an object of the caller's", 300, async ({ createSession }) => {
    const session = await createSession({ apiKey: null, env: custom() });
    await session.close();
  }],
  ["sandboxes that nobody has any more", 40, async ({ MemoryEnvironment }) => {
    await MemoryEnvironment.create({ files });
  }],
  ["idle sessions that nobody has any more, nor their sandboxes", 40, async ({ MemoryEnvironment, createSession }) => {
    const session = await createSession({ script: SCRIPTED, env: await MemoryEnvironment.create({ files }) });
    await session.prompt("go");
  }],
];

for (const [face, api] of Object.entries({ here, worker: far })) {
  for (const [what, rounds, use] of USES) {
    test(`${face}: ${what}`, { timeout: 300_000 }, async () => {
      const repeat = async (count) => {
        for (let round = 0; round < count; round += 1) {
          await use(api);
          // Callbacks of what was collected come in a turn of their own.
          if (round % (rounds / 20) === 0) await MEASURE[face]();
        }
        return MEASURE[face]();
      };
      const before = await repeat(10);
      const grown = (await repeat(rounds)) - before;
      assert.ok(grown < 16 * MB, `${grown} bytes more after ${rounds}`);
    });
  }
}

test("here: sandboxes that are disposed of make room for the next, without a pause", { timeout: 300_000 }, async () => {
  const big = new Uint8Array(32 * MB);
  // More than the 4 GiB that a core can have.
  for (let round = 0; round < 150; round += 1) {
    const env = await here.MemoryEnvironment.create({ files: { big } });
    await env.dispose();
  }
});

for (const [face, api] of Object.entries({ here, worker: far })) {
  test(`${face}: a session that works goes on though nobody has it`, { timeout: 60_000 }, async () => {
    const did = [];
    const script = { steps: [{ tool_calls: [{ name: "note", arguments: {} }] }, { text: "Done." }] };
    const begin = async () => {
      const tool = { name: "note", description: "Notes.", parameters: { type: "object" }, execute: () => new Promise((resolve) => setTimeout(() => resolve(did.push("noted")), 300)) };
      const session = await api.createSession({ script, tools: [tool] });
      session.events().return();
      await session.submit("go");
      session.closed.then(() => did.push("closed"));
    };
    await begin();
    for (let round = 0; round < 400 && did.length < 2; round += 1) {
      if (round % 10 === 0) await MEASURE[face]();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    // The page's own promise may have gone with the session.
    assert.equal(did[0], "noted");
  });
}
