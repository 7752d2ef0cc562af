// The playground in Chromium: the demo, the sandbox behind every part, and what
// is kept in the browser.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, serve } from "./support.mjs";

let server;
let browser;
before(async () => {
  server = await serve();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.close();
});

const idle = (page) => page.waitForSelector('.status[data-state="IDLE"]', { timeout: 60_000 });

/** Types a line into the terminal and waits for the next prompt. */
async function terminal(page, line) {
  await page.click(".terminal .screen");
  await page.keyboard.type(line);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => !document.querySelector(".terminal.running"), undefined, { timeout: 60_000 });
}

const screenText = (page) => page.locator(".terminal .xterm-rows").innerText();

test("the demo fixes its bug and the sandbox's tests are green", async () => {
  const { context, page, problems } = await open(browser, server.url);
  await terminal(page, "sh test.sh");
  await page.waitForFunction(() => document.querySelector(".xterm-rows").innerText.includes("2 passed, 2 failed"));
  await page.click("#run-demo");
  await page.waitForSelector('.status[data-state="PROCESSING"]');
  await idle(page);
  const cards = await page.locator(".tool").evaluateAll((all) => all.map((card) => [card.dataset.state, card.querySelector(".name").textContent]));
  assert.deepEqual(cards, [["failed", "shell"], ["done", "read_file"], ["done", "edit_file"], ["done", "shell"]]);
  assert.match(await page.locator(".tool").nth(2).innerText(), /slug\.sh\s*\+1\s*−1/);
  assert.match(await page.locator(".answer").last().innerText(), /All four tests pass\./);
  assert.match(await page.locator(".cm-content").innerText(), /tr -cs 'a-z0-9' '-'/);
  await terminal(page, "clear");
  await terminal(page, "sh test.sh");
  await page.waitForFunction(() => document.querySelector(".xterm-rows").innerText.includes("4 passed, 0 failed"));
  assert.match(await screenText(page), /ok {4}Rock & Roll/);
  assert.deepEqual(problems, []);
  await context.close();
});
