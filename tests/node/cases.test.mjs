// Every session case that the sandbox can play, against the transcript that
// all faces share: here, and with the agent in a worker.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import * as here from "../../js/node.js";
import * as worker from "../../js/worker-node.js";
import { caseNames, golden, playHere } from "./cases.mjs";

after(() => worker.terminate());

for (const [face, api] of [["", here], [" in a worker", worker]]) {
  for (const name of await caseNames()) {
    test(`case ${name}${face}`, { timeout: 60_000 }, async (t) => {
      assert.deepEqual(await playHere(t, name, api), await golden(name));
    });
  }
}
