// The declarations that are written by hand know what the core knows.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { createSession } from "../../js/node.js";

const text = await readFile(new URL("../../js/types.d.ts", import.meta.url), "utf8");

/** Names of the properties that an interface declares itself, sorted. */
function namesOf(name) {
  const body = new RegExp(`export interface ${name}\\b[^{]*\\{\\n([^]*?)\\n\\}`).exec(text)[1];
  return [...body.matchAll(/^ {2}(\w+)\?:/gm)].map(([, property]) => property).sort();
}

const camelCase = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

test("the settings of a session are declared, all and no others", async () => {
  const session = await createSession({ apiKey: "test-key" });
  const config = await session.config();
  const changeable = [];
  const fixed = [];
  for (const [name, value] of Object.entries(config)) {
    // Tools are an option of their own.
    if (name === "tools") continue;
    const refusal = await session.configure({ [name]: value }).then(
      () => undefined,
      (error) => error.message,
    );
    if (refusal?.includes("is fixed once")) fixed.push(camelCase(name));
    else changeable.push(camelCase(name));
  }
  assert.deepEqual(namesOf("ChangeableSettings"), changeable.sort());
  assert.deepEqual(namesOf("SessionSettings"), fixed.sort());
  await session.close();
});
