// The playground in Chromium: how it loads. Here it lies in a folder of its host,
// as it may with any host, and nothing above that folder is served.

import assert from "node:assert/strict";
import { readFile, readdir, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { downloaded, editorText, playground, preview, ready, saved, showPreview, shows, state, terminal } from "./playground-support.mjs";

const FOLDER = "some/where/";
const DIST = fileURLToPath(new URL("../../www/dist/", import.meta.url));

/** While set, the core comes in halves: `halfway` resolves between them, `goOn` sends the rest. */
let slow;
/** While set, Python comes in halves, of a length that nobody is told: as `slow`. */
let unknown;
/** While set, the core does not come at all. */
let broken = false;
/** While set, the host has the next version of the page, and no file of this one. */
let updated = false;
/** While set, the page's own script does not come; `everything`: nothing beside the page does. @type {"script" | "everything" | undefined} */
let scriptless;
/** While set, browsers may keep the page for ten minutes. */
let cacheable = false;
const asked = [];

async function answer(request, response) {
  const { pathname } = new URL(request.url, "http://x");
  asked.push(pathname);
  if (updated && pathname.includes("/assets/")) {
    response.writeHead(404).end();
    return true;
  }
  if (updated && pathname.endsWith("/sw.js")) {
    const content = await readFile(`${DIST}sw.js`, "utf8");
    response.writeHead(200, { "content-type": "text/javascript", "cache-control": "no-store" });
    response.end(content.replace(/const VERSION = .*/, 'const VERSION = "next";').replace(/const FILES = .*/, "const FILES = [];"));
    return true;
  }
  if (scriptless && pathname !== `/${FOLDER}` && (scriptless === "everything" || /assets\/index-.*\.js$/.test(pathname))) {
    response.writeHead(404).end();
    return true;
  }
  if (!pathname.startsWith(`/${FOLDER}`)) {
    response.writeHead(404).end();
    return true;
  }
  if (cacheable && pathname === `/${FOLDER}`) {
    response.writeHead(200, { "content-type": "text/html", "cache-control": "max-age=600" });
    response.end(await readFile(`${DIST}index.html`));
    return true;
  }
  request.url = request.url.slice(FOLDER.length);
  if (broken && pathname.endsWith(".wasm")) {
    response.writeHead(503).end();
    return true;
  }
  if (unknown && pathname.endsWith(".gz")) {
    const content = await readFile(DIST + request.url.slice(1));
    response.writeHead(200, { "content-type": "application/gzip" });
    response.write(content.subarray(0, content.length / 2));
    await unknown.rest;
    if (unknown.fails) response.destroy();
    else response.end(content.subarray(content.length / 2));
    return true;
  }
  if (!slow || !pathname.endsWith(".wasm")) return false;
  const content = await readFile(DIST + request.url.slice(1));
  response.writeHead(200, { "content-type": "application/wasm", "content-length": content.length });
  response.write(content.subarray(0, content.length / 2));
  await slow.rest;
  response.end(content.subarray(content.length / 2));
  return true;
}

const { open } = playground({ answer });

test("it works in a folder of any host", async (t) => {
  const { page, problems } = await open(t, { at: FOLDER });
  await page.click("#run-demo");
  await page.waitForSelector(".answer:has-text('All four tests pass.')");
  await state(page, "IDLE");
  await terminal(page, "node -p '6 * 7' && python3 -c 'print(\"six\", 7)'");
  await shows(page, "42");
  await shows(page, "six 7");
  await showPreview(page);
  await preview(page).locator("text=/rock-roll").waitFor();
  assert.equal((await downloaded(page, "Export as zip")).name, "tide-pool.zip");
  assert.deepEqual(asked.filter((path) => !path.startsWith(`/${FOLDER}`)), []);
  assert.deepEqual(problems, []);
});

test("the first load shows how far it is", async (t) => {
  let goOn;
  slow = { rest: new Promise((resolve) => (goOn = resolve)) };
  t.after(() => {
    slow = undefined;
    goOn();
  });
  const { page } = await open(t, { at: FOLDER, wait: false });
  await page.waitForFunction(() => {
    const bar = document.getElementById("boot-bar");
    return bar && bar.value > 0.4 && bar.value < 0.6;
  });
  const assets = await readdir(`${DIST}assets`);
  const core = assets.find((name) => name.endsWith(".wasm"));
  const { size } = await stat(`${DIST}assets/${core}`);
  const [said, loaded, total] = /^Loading the sandbox… (\d+\.\d) of (\d+\.\d) MB$/.exec(await page.innerText("#boot-label")) ?? [];
  assert.ok(said);
  assert.equal(total, (size / 1e6).toFixed(1));
  assert.ok(loaded > 0.4 * total && loaded < 0.6 * total, said);
  goOn();
  await ready(page);
  assert.equal(await page.locator("#boot").count(), 0);
});

test("a load that fails says what is missing", async (t) => {
  broken = true;
  t.after(() => (broken = false));
  const { page } = await open(t, { at: FOLDER, wait: false });
  await page.waitForSelector("#boot-label.failed");
  assert.match(await page.innerText("#boot-label"), /^The playground cannot start: .*hermitcrab_bg.*503.*\.$/);
  broken = false;
  await page.click("#boot button:text-is('Try again')");
  await ready(page);
});

test("a script that does not come is named, at once", async (t) => {
  scriptless = "script";
  t.after(() => (scriptless = undefined));
  const { page } = await open(t, { at: FOLDER, wait: false });
  await page.waitForSelector("#boot-label.failed", { timeout: 5_000 });
  assert.match(await page.innerText("#boot-label"), /^The page's script index-\S+\.js did not come: .*Reload the page\.$/);
  assert.equal(await page.locator("#boot-late").count(), 0);
  scriptless = undefined;
  await page.click("#boot button:text-is('Try again')");
  await ready(page);
});

test("where no script comes at all, the page says so after a while", async (t) => {
  scriptless = "everything";
  t.after(() => (scriptless = undefined));
  const { page } = await open(t, { at: FOLDER, wait: false });
  await page.waitForSelector("#boot-late", { state: "attached" });
  assert.equal(await page.locator("#boot-late").isVisible(), false);
  await page.waitForSelector("#boot-late", { timeout: 20_000 });
  assert.match(await page.innerText("#boot-late"), /^The page's script has not come yet\. .*check the network and reload/);
});

test("a script that old browsers cannot read says so", async (t) => {
  const { page } = await open(t, { at: FOLDER, wait: false, init: "globalThis.Map = undefined" });
  await page.waitForSelector("#boot-label.failed", { timeout: 10_000 });
  assert.match(await page.innerText("#boot-label"), /^The page's script does not run here: .*A newer browser may be needed\.$/);
});

/** Waits until the service worker keeps the page and answers for it. */
async function kept(page) {
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
}

test("what is kept for later is not the page that the browser happens to have", async (t) => {
  cacheable = true;
  t.after(() => (cacheable = false));
  asked.length = 0;
  const { page } = await open(t, { at: FOLDER });
  await kept(page);
  assert.equal(asked.filter((path) => path === `/${FOLDER}`).length, 2);
});

test("a reload without a network works", async (t) => {
  const { context, page } = await open(t, { at: FOLDER });
  await kept(page);
  await terminal(page, "echo offline > kept.txt");
  await saved(page);
  await context.setOffline(true);
  await page.reload();
  await ready(page);
  await terminal(page, "cat kept.txt");
  await shows(page, "offline");
  await page.click("#run-demo");
  await page.waitForSelector(".answer:has-text('All four tests pass.')", { timeout: 60_000 });
  await showPreview(page);
  await preview(page).locator("text=/rock-roll").waitFor();
  await terminal(page, "node -p '6 * 7'");
  await shows(page, "42");
});

test("a tab that is open while its host gets the next version goes on with its own files", async (t) => {
  const { context, page, problems } = await open(t, { at: FOLDER });
  await kept(page);
  updated = true;
  t.after(() => (updated = false));
  await page.evaluate(async () => {
    const registration = await navigator.serviceWorker.getRegistration();
    await registration.update();
    const next = registration.installing ?? registration.waiting ?? registration.active;
    while (!["installed", "activated"].includes(next.state)) await new Promise((resolve) => next.addEventListener("statechange", resolve, { once: true }));
  });
  await (await context.newCDPSession(page)).send("Network.clearBrowserCache");
  await terminal(page, "node -p '6 * 7'");
  await shows(page, "42");
  assert.deepEqual(problems, []);
});

for (const fails of [true, false]) {
  test(`a download of unknown length shows what has come, until it ${fails ? "breaks" : "is there"}`, async (t) => {
    let goOn;
    unknown = { fails, rest: new Promise((resolve) => (goOn = resolve)) };
    t.after(() => {
      goOn();
      unknown = undefined;
    });
    const { page } = await open(t, { at: FOLDER, serviceWorkers: "block" });
    await terminal(page, "python3 -c 'print(\"six\", 7)' || echo is not there", { wait: false });
    await page.waitForFunction(() => /^Downloading Python: \d\.\d MB$/.test(document.querySelector(".download").textContent));
    goOn();
    await shows(page, fails ? "\nis not there" : "\nsix 7");
    assert.equal(await page.innerText(".download"), "");
  });
}

test("what was used once is there without a network: python", async (t) => {
  const { context, page } = await open(t, { at: FOLDER });
  await kept(page);
  await terminal(page, "python3 -c 'print(\"six\", 7)'");
  await shows(page, "six 7");
  await page.waitForFunction(async () => (await (await caches.open("hermitcrab-large")).keys()).length === 1);
  await saved(page);
  // The browser's own cache may hold it, too.
  const session = await context.newCDPSession(page);
  await session.send("Network.clearBrowserCache");
  await context.setOffline(true);
  await page.reload();
  await ready(page);
  await terminal(page, "python3 -c 'print(\"seven\", 8)'");
  await shows(page, "seven 8");
});

test("what never came says so without a network: python", async (t) => {
  const { context, page } = await open(t, { at: FOLDER });
  await kept(page);
  await saved(page);
  await context.setOffline(true);
  await page.reload();
  await ready(page);
  await terminal(page, "python3 -c 1 2> told.txt");
  await page.click('.tree [data-path="told.txt"]');
  assert.match(await editorText(page), /^python3: cannot download \S+python\.tar\S*\.gz: .+; check the network and try again\s*$/);
});

test("a host without the preview's frame says so", async (t) => {
  const { page } = await open(t, { at: FOLDER, serviceWorkers: "block" });
  await page.route("**/preview.html", (route) => route.fulfill({ status: 404, body: "nothing" }));
  if ((await page.getAttribute(".preview-toggle", "aria-pressed")) === "true") await page.click(".preview-toggle");
  await page.click(".preview-toggle");
  await page.waitForSelector(".preview >> text=frame cannot be loaded.");
  assert.equal(await page.locator(".preview iframe").count(), 0);
});

test("a language that cannot be downloaded leaves its text without colours", async (t) => {
  const { page, problems } = await open(t, { at: FOLDER, serviceWorkers: "block" });
  await page.route("**/assets/*.js", (route) => route.abort());
  const asked = page.waitForEvent("requestfailed");
  await page.click('.tree [data-path="style.css"]');
  await asked;
  await page.waitForFunction(() => document.querySelector(".cm-content").innerText.includes("{"));
  assert.deepEqual(problems.filter((problem) => !problem.startsWith("Failed to load resource")), []);
});
