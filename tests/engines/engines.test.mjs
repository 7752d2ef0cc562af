// Firefox and WebKit: every session case in a worker and in the page, and the
// playground from its demo to its terminal. The rest is tested in Chromium.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { STRICT, models, serveFiles, wholeFile } from "../browser/page.mjs";
import { policy } from "../browser/playground-support.mjs";
import { caseNames, golden, specOf } from "../node/cases.mjs";
import { ENTER, INTERRUPT, firefox, webkit } from "./drive.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DIST = fileURLToPath(new URL("../../www/dist", import.meta.url));

const whole = wholeFile();
const names = await caseNames(["local", "redirects"]);

for (const [engine, start] of Object.entries({ firefox, webkit })) {
  describe(engine, () => {
    let page;
    /** The case that is running. */
    let current;
    before(async () => {
      page = await start(whole);
    });

    describe("session cases", () => {
      before(async () => {
        await page.goto(`${await serveFiles(whole, ROOT, { policy: STRICT, answer: models(() => current) })}/tests/browser/cases.html`);
        await until(page, () => Boolean(globalThis.playCase));
      });
      for (const face of ["worker", "page"]) {
        for (const name of names) {
          test(`case ${name}, ${face}`, { timeout: 60_000 }, async (t) => {
            current = t;
            const transcript = await page.evaluate((face, spec) => globalThis.playCase(face, spec), face, await specOf(name));
            assert.deepEqual(transcript, await golden(name));
          });
        }
      }
    });

    test("the playground: demo, reload, terminal, lent programs, a loop that is stopped", { timeout: 180_000 }, async (t) => {
      await page.goto(await serveFiles(t, DIST, { policy }));
      await until(page, () => document.body.dataset.ready !== undefined);
      await page.evaluate(() => document.querySelector("#run-demo").click());
      await until(page, () => [...document.querySelectorAll(".answer")].some((it) => it.textContent.includes("All four tests pass.")));
      await until(page, () => document.body.dataset.unsaved === undefined);
      await page.goto(await page.evaluate(() => location.href));
      await until(page, () => document.body.dataset.ready !== undefined);
      assert.equal(await page.evaluate(() => document.querySelectorAll(".tool").length), 4, "the conversation is kept");
      for (const [typed, shown] of [
        [`sh test.sh${ENTER}`, "4 passed, 0 failed"],
        [`python3 -c 'print(6 * 7)'${ENTER}`, "\n42"],
        [`node -p '[1, 2].map((x) => x * 21)'${ENTER}`, "[ 21, 42 ]"],
        [`while :; do :; done${ENTER}`, "do :; done"],
        [INTERRUPT, "^C"],
        [`echo still $((40 + 2))${ENTER}`, "still 42"],
      ]) {
        await page.type(".xterm-helper-textarea", typed);
        await until(page, (shown) => document.querySelector(".xterm-rows").innerText.includes(shown), shown);
      }
      for (const [name, text] of Object.entries(PAGE)) await page.type(".xterm-helper-textarea", `echo '${text}' > ${name}${ENTER}`);
      await page.evaluate(() => document.querySelector(".preview-toggle[aria-pressed=false]")?.click());
      await until(page, (lines) => [...document.querySelectorAll(".console span")].map((it) => it.textContent).join("") === lines, "turn 0\nturn 1\n7 kept 12\n");
    });
  });
}

/** A page whose scripts, modules, data, storage and images the preview has. */
const PAGE = {
  "a.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="12" height="12"/>',
  "data.json": '{ "n": 7 }',
  "count.js": "export const n = async () => (await (await fetch(`data.json`)).json()).n;",
  "main.js": 'import { n } from "./count.js"; localStorage.a = "kept"; const image = new Image(); image.onload = async () => console.log(await n(), localStorage.a, image.width); image.src = "a.svg";',
  "first.js": 'const scripts = [1, 2]; for (let i = 0; i<scripts.length; i++) console.log("turn", i);',
  "index.html": '<script src="first.js"></script><script type="module" src="main.js"></script>',
};

/** Asks until it is true; the test's time limit is the guard. */
async function until(page, condition, ...given) {
  while (!(await page.evaluate(condition, ...given))) await new Promise((resolve) => setTimeout(resolve, 50));
}
