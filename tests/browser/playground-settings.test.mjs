// The settings in Chromium: where keys are, with two tabs and without https; which
// servers the page may ask; what is reported while it is tried again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, playground, ready, say, saved, shows, terminal } from "./playground-support.mjs";
import { serveModel } from "../node/support.mjs";

const { open, url } = playground();

const KEY = "sk-of-two-tabs";

/** Whether the key lies in the browser's storage. */
function isKept(page, key = KEY) {
  return page.evaluate((key) => JSON.stringify({ ...localStorage }).includes(key), key);
}

async function forget(page) {
  await page.click("#model");
  await page.uncheck("#set-remember");
  await page.click("dialog[open] button.primary");
  await page.waitForSelector("dialog[open]", { state: "detached" });
}

/** The key that the settings of a tab show. */
async function keyIn(page) {
  await page.click("#model");
  await page.selectOption("#set-provider", "anthropic");
  const key = await page.inputValue("#set-key");
  await page.keyboard.press("Escape");
  return key;
}

const theme = (page) => page.click('header button[aria-label*="heme"]');

/** A second tab in the same profile. */
async function second(context) {
  const page = await context.newPage();
  await page.goto(`${url()}`);
  await ready(page);
  return page;
}

test("a key that is forgotten in one tab is not stored again by another", async (t) => {
  const { page, context } = await open(t);
  await choose(page, { key: KEY, remember: true });
  const other = await second(context);
  await forget(page);
  assert.equal(await isKept(page), false);
  await theme(other);
  await theme(page);
  assert.equal(await isKept(other), false);
  // Both still work with it until they are closed.
  assert.deepEqual([await keyIn(page), await keyIn(other)], [KEY, KEY]);
});

test("a dialog that was open meanwhile does not remember a key again", async (t) => {
  const { page, context } = await open(t);
  await choose(page, { key: KEY, remember: true });
  const other = await second(context);
  await other.click("#model");
  await forget(page);
  await other.click("dialog[open] button.primary");
  await other.waitForSelector("dialog[open]", { state: "detached" });
  assert.equal(await isKept(other), false);
});

test("a key that is remembered in one tab is known in another and stays", async (t) => {
  const { page, context } = await open(t);
  const other = await second(context);
  await choose(page, { key: KEY, remember: true });
  await theme(other);
  assert.equal(await isKept(other), true);
  assert.equal(await keyIn(other), KEY);
  await choose(page, { key: "", baseUrl: "https://proxy.test", remember: true });
  await theme(other);
  assert.equal(await isKept(other), false);
  assert.equal(await keyIn(other), "");
});

test("over plain http it starts, keeps the project, and says what is missing", async (t) => {
  const { page, problems } = await open(t, { wait: false });
  await page.goto(url().replace("127.0.0.1", "play.test"));
  await ready(page);
  assert.equal(await page.evaluate(() => isSecureContext), false);
  await page.waitForSelector(".toast:has-text('open a project in one tab only')");
  await terminal(page, "echo plain > kept.txt; node -p '6 * 7'; python3 -c 'print(\"six\", 7)'");
  await shows(page, "42");
  await shows(page, "six 7");
  await saved(page);
  await page.reload();
  await ready(page);
  await terminal(page, "cat kept.txt");
  await shows(page, "plain");
  assert.deepEqual(problems, []);
});

for (const [base, name] of [["http://192.0.2.1:11434/v1", "http://192.0.2.1:11434"], ["http://ollama.lan/v1", "http://ollama.lan"]]) {
  test(`the settings do not take ${base}, which the page may not ask`, async (t) => {
    const { page } = await open(t);
    await page.click("#model");
    await page.selectOption("#set-provider", "chat");
    await page.fill("#set-model", "m");
    await page.fill("#set-base", base);
    await page.click("dialog[open] button.primary");
    const problem = await page.innerText("dialog[open] .problem");
    assert.ok(problem.startsWith(`This page may ask https:// addresses and this computer (localhost, 127.0.0.1) only, and not ${name}:`), problem);
  });
}

test("this computer's IPv6 address is asked by its name", async (t) => {
  const { page } = await open(t);
  const model = await serveModel(t, { steps: [{ text: "Answered." }] });
  await choose(page, { baseUrl: model.url.replace("127.0.0.1", "[::1]") });
  await page.click("#model");
  assert.equal(await page.inputValue("#set-base"), model.url.replace("127.0.0.1", "localhost"));
  await page.keyboard.press("Escape");
  await say(page, "hello");
  await page.waitForSelector(".answer:has-text('Answered.')");
});

test("a server that does not answer is reported once, and shortly, until it is given up", async (t) => {
  const { page } = await open(t);
  await choose(page, { baseUrl: "http://127.0.0.1:9" });
  await say(page, "hello");
  await page.waitForSelector(".notice.warning:has-text('No connection to http://127.0.0.1:9 yet. Attempt 2 follows')");
  await page.waitForSelector(".notice.error:has-text('Nothing answers at http://127.0.0.1:9.')", { timeout: 60_000 });
  assert.equal(await page.locator(".notice.warning").count(), 1);
});

test("a provider that asks to wait is reported with its wait", async (t) => {
  const { page } = await open(t);
  const model = await serveModel(t, { steps: [{ error: { status: 429, message: "slow down", headers: { "retry-after": "30" } } }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "hello");
  await page.waitForSelector(".notice.warning:has-text('Attempt 2 follows in 30 s.')");
});

test("a file that misses the tree does not take the page's place", async (t) => {
  const { page } = await open(t);
  const told = await page.evaluate(() => ["dragover", "drop"].map((kind) => {
    const data = new DataTransfer();
    data.items.add(new File(["x"], "x.html", { type: "text/html" }));
    const event = new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
    document.querySelector("header").dispatchEvent(event);
    return event.defaultPrevented;
  }));
  assert.deepEqual(told, [true, true]);
});

test("a browser that has no storage says so in words for people", async (t) => {
  const init = () => {
    Object.defineProperty(Navigator.prototype, "storage", { get: () => undefined });
    Object.defineProperty(globalThis, "indexedDB", { get: () => undefined });
  };
  const { page } = await open(t, { init });
  const told = await page.innerText(".toast.error span");
  assert.ok(told.startsWith("Nothing can be stored here (there is no private file system; there is no IndexedDB): "), told);
});
