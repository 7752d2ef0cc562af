// What `init` is given: the other core of the package is refused, and the right
// one may follow. The entry with a sandbox takes the place of the slim one, so
// that comes first.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const ENTRIES = [
  ["hermitcrab/slim", "slim-node.js", "hermitcrab/slim.wasm", "with a sandbox"],
  ["hermitcrab/node", "node.js", "hermitcrab/hermitcrab.wasm", "without a sandbox"],
  ["hermitcrab/worker", "worker-node.js", "hermitcrab/hermitcrab.wasm", "without a sandbox"],
];
const module = (name) => readFile(new URL(`../../js/wasm/${name}`, import.meta.url));
const full = await module("hermitcrab_bg.wasm");
const slim = await module("slim/hermitcrab_bg.wasm");

/** What a module may be given as. */
const FORMS = {
  bytes: (bytes) => bytes,
  "a module": (bytes) => new WebAssembly.Module(bytes),
  "a response": (bytes) => new Response(bytes, { headers: { "content-type": "application/wasm" } }),
  "a response of another type": (bytes) => new Response(bytes),
};
/** The least module that there is. */
const EMPTY = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);

for (const [entry, file, wanted, what] of ENTRIES) {
  test(`${entry} takes its own core only`, { timeout: 60_000 }, async () => {
    const { CoreError, createSession, init, terminate } = await import(`../../js/${file}`);
    const [right, wrong] = wanted.endsWith("slim.wasm") ? [slim, full] : [full, slim];
    const refused = async (wasm, said) => {
      const error = await init({ wasm }).catch((error) => error);
      assert.ok(error instanceof CoreError, String(error));
      assert.equal(error.message, `the core cannot be loaded: what was given is ${said}`);
    };
    for (const form of Object.values(FORMS)) await refused(form(wrong), `the core ${what}; this entry of the package wants ${wanted}`);
    await refused(EMPTY, `not the WebAssembly module of this package; say with init({ wasm }) where ${wanted} is`);
    const failed = await init({ wasm: new Response("none", { status: 404 }) }).catch((error) => error);
    assert.ok(failed instanceof CoreError, String(failed));
    assert.match(failed.message, /^the core cannot be loaded: what was given answered with status 404; .*init\(\{ wasm \}\)/);
    await init({ wasm: right });
    const calls = ["read", "write", "stat", "list", "remove", "rename", "makeDir", "exec"];
    const env = Object.fromEntries(calls.map((call) => [call, () => {}]));
    const session = await createSession({ apiKey: "key", model: "m", env });
    await session.close();
    await terminate?.();
  });
}
