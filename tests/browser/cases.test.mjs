// Every session case in Chromium, with the agent in a worker and in the page
// itself, under a strict content security policy, against the scripted model on
// another origin: the transcripts that all faces share.

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { caseNames, golden, specOf } from "../node/cases.mjs";
import { STRICT, launch, models, serveFiles, wholeFile } from "./page.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** How often each log is replayed: it must be the same each time. */
const REPEAT = Number(process.env.HERMITCRAB_REPEAT ?? 1);

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

// The logs of tests/logs, which the binary wrote (host/tests/logs.rs).
for (const name of (await readdir(new URL("../logs/", import.meta.url))).filter((name) => name.endsWith(".log.gz"))) {
  test(`log ${name} replays in the page`, { timeout: 60_000 }, async () => {
    for (let time = 0; time < REPEAT; time += 1) {
      const { rounds, closed } = await page.evaluate((name) => globalThis.replayLog(name), name);
      assert.ok(closed && rounds > 1, `${rounds} rounds`);
    }
  });
}

for (const face of ["worker", "page"]) {
  for (const name of await caseNames(["local", "redirects"])) {
    test(`case ${name}, ${face}`, { timeout: 60_000 }, async (t) => {
      current = t;
      const transcript = await page.evaluate(([face, spec]) => globalThis.playCase(face, spec), [face, await specOf(name)]);
      assert.deepEqual(transcript, await golden(name));
    });
  }
}
