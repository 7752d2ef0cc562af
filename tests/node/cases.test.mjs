// Every session case that the sandbox can play, against the transcript that
// all faces share.

import assert from "node:assert/strict";
import { test } from "node:test";

import { caseNames, golden, play } from "./cases.mjs";

for (const name of await caseNames()) {
  test(`case ${name}`, { timeout: 60_000 }, async (t) => {
    assert.deepEqual(await play(t, name), await golden(name));
  });
}
