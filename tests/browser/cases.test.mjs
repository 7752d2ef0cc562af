// Every session case in Chromium, with the agent in a worker and in the page
// itself, under a strict content security policy, against the scripted model on
// another origin: the transcripts that all faces share.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { caseNames, golden, specOf } from "../node/cases.mjs";
import { STRICT, launch, models, serveFiles, wholeFile } from "./page.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The case that is running. */
let current;
let page;

const whole = wholeFile();

before(async () => {
  const url = await serveFiles(whole, ROOT, { policy: STRICT, answer: models(() => current) });
  const browser = await launch(whole);
  page = await browser.newPage();
  page.on("pageerror", (error) => console.error(error));
  await page.goto(`${url}/tests/browser/cases.html`);
  await page.waitForFunction(() => globalThis.playCase);
});

test("the page is not isolated from other origins, and needs not be", async () => {
  assert.equal(await page.evaluate(() => globalThis.crossOriginIsolated), false);
});

for (const face of ["worker", "page"]) {
  for (const name of await caseNames(["local", "redirects"])) {
    test(`case ${name}, ${face}`, { timeout: 60_000 }, async (t) => {
      current = t;
      const transcript = await page.evaluate(([face, spec]) => globalThis.playCase(face, spec), [face, await specOf(name)]);
      assert.deepEqual(transcript, await golden(name));
    });
  }
}
