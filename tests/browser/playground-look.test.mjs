// How the playground behaves to look at: the preview, what moves and what does
// not, and focus.

import assert from "node:assert/strict";
import { test } from "node:test";
import { answer, choose, chosen, file, menu, playground, preview, say, shows, state, terminal } from "./playground-support.mjs";
import { serveModel } from "../node/support.mjs";

const { open } = playground();

const SIZES = { narrow: { width: 400, height: 800 }, middle: { width: 1024, height: 768 }, wide: { width: 1600, height: 900 } };

test("the preview shows the project and follows it, in an origin of its own", async (t) => {
  const { page, problems } = await open(t, { viewport: SIZES.wide });
  const frame = preview(page);
  await frame.locator("text=/rock---roll").waitFor();
  const inner = page.frameLocator(".preview iframe").locator("iframe");
  assert.equal(await inner.getAttribute("sandbox"), "allow-scripts allow-forms allow-modals");
  await terminal(page, "echo 'document.body.dataset.answer = `${origin} ${1 + 1}`; console.log(\"from the page\")' >> app.js");
  await frame.locator('body[data-answer="null 2"]').waitFor();
  await page.waitForSelector(".console:has-text('from the page')");
  await terminal(page, "printf 'export const word = \"module\";' > part.js; printf '<script type=module>import { word } from \"./part.js\"; document.body.append(word)</script>' > index.html");
  await frame.locator("text=module").waitFor();
  await terminal(page, "printf '<body><script>fetch(\"https://example.com/\").catch(() => document.body.append(\"no network\"))</script>' > index.html");
  await frame.locator("text=no network").waitFor();
  assert.deepEqual(problems.filter((text) => !/Content Security Policy|Content-Security-Policy/.test(text)), []);
});

test("the keyboard reaches every part", async (t) => {
  const { page } = await open(t, { viewport: SIZES.wide });
  const focused = () => page.evaluate(() => document.activeElement.closest("[id^=pane-]")?.id ?? document.activeElement.className);
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "skip");
  await page.keyboard.press("Enter");
  for (const [key, pane] of [["1", "chat"], ["2", "files"], ["3", "editor"], ["4", "terminal"], ["5", "preview"]]) {
    await page.keyboard.press(`Alt+${key}`);
    assert.equal(await focused(), `pane-${pane}`);
  }
  await page.keyboard.press("Alt+2");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  assert.equal(await page.getAttribute(".tab[aria-selected='true']", "data-path"), "test.sh");
});

for (const [size, viewport] of Object.entries(SIZES)) {
  test(`${size}: nothing jumps while the agent works`, async (t) => {
    const { page } = await open(t, { viewport });
    const lines = Array.from({ length: 30 }, (_, index) => `Paragraph ${index} with some words in it.\n\n`);
    const model = await serveModel(t, { steps: [
      { thinking: { text: "First I look.", signature: "ZGVtbw==" }, texts: ["I ", "look."], delta_delay_ms: 15, tool_calls: [
        { name: "shell", arguments: { command: "sh test.sh; for i in 1 2 3 4 5; do echo $i; sleep 0.01; done" } },
        { name: "write_file", arguments: { file_path: "new/file.html", content: "<p>new\n".repeat(40) } },
      ] },
      { texts: lines, delta_delay_ms: 10 },
    ] });
    await choose(page, { baseUrl: model.url });
    await page.waitForTimeout(300);
    const watch = () => {
      window.shifts = [];
      const name = (node) => (node?.nodeType === 1 ? `${node.tagName}.${node.className}` : node?.nodeName);
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) shifts.push({ value: entry.value, what: entry.sources.map(({ node }) => name(node)) });
      }).observe({ type: "layout-shift" });
    };
    await page.evaluate(watch);
    await say(page, "write");
    await page.waitForSelector(".prose p:nth-child(3)");
    const moved = await page.evaluate(() => new Promise((resolve) => {
      const first = [...document.querySelectorAll(".prose")].at(-1).firstChild;
      const scroller = document.querySelector(".scroller");
      const places = new Set();
      const frame = () => {
        places.add(Math.round(first.getBoundingClientRect().top + scroller.scrollTop));
        if (document.querySelector('.status[data-state="PROCESSING"]')) requestAnimationFrame(frame);
        else resolve({ places: places.size, same: first.isConnected });
      };
      frame();
    }));
    assert.deepEqual(moved, { places: 1, same: true });
    const shifts = await page.evaluate(() => shifts);
    const sum = shifts.reduce((total, { value }) => total + value, 0);
    t.diagnostic(`layout shift: ${sum.toFixed(4)}`);
    // 0.1 is what is commonly called good.
    assert.ok(sum < 0.02, JSON.stringify(shifts, undefined, 1));
  });
}

test("the end of the conversation is followed, except by who looks at something else", async (t) => {
  const { page } = await open(t);
  const long = Array.from({ length: 40 }, (_, index) => `Paragraph ${index}.\n\n`);
  const call = { name: "shell", arguments: { command: "seq 60" } };
  const model = await serveModel(t, { steps: [
    { texts: long, tool_calls: [call] },
    { texts: long, delta_delay_ms: 40 },
  ] });
  const isAtEnd = () => page.evaluate(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector(".scroller");
    return scrollHeight - scrollTop - clientHeight < 24;
  });
  await choose(page, { baseUrl: model.url });
  await say(page, "write");
  await page.waitForSelector(".answer:has-text('Paragraph 1.') >> nth=1");
  assert.equal(await isAtEnd(), true);
  // Opened by the visitor: it stays in sight while the rest is written.
  const top = (element) => Math.round(element.getBoundingClientRect().top);
  const card = page.locator(".tool summary");
  const opened = await card.evaluate((element) => {
    element.click();
    return Math.round(element.getBoundingClientRect().top);
  });
  await page.waitForSelector(".answer:has-text('Paragraph 20.') >> nth=1");
  assert.equal(await card.evaluate(top), opened);
  await page.click(".down");
  await state(page, "IDLE");
  assert.equal(await isAtEnd(), true);
  assert.equal(await page.locator(".down").isVisible(), false);
  // Browsers tell of scrolling a frame later, when more may have been added already.
  await page.evaluate(async () => {
    const [scroller, items] = [".scroller", ".items"].map((each) => document.querySelector(each));
    const add = () => Object.assign(items.appendChild(document.createElement("div")), { style: "height: 300px" });
    add();
    scroller.scrollTop = scroller.scrollHeight;
    add();
    for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
  });
  assert.equal(await page.locator(".down").isVisible(), false);
  await page.mouse.move(200, 400);
  await page.mouse.wheel(0, -500);
  await page.waitForSelector(".down:not([hidden])");
});

test("narrow: a shared run shows no empty part, and messages leave the buttons free", async (t) => {
  const { page, problems } = await open(t, { viewport: SIZES.narrow });
  const event = { kind: "USER_INPUT", data: { content: "hello" } };
  const run = { format: "hermitcrab-run", version: 1, name: "seen", saved: "2026-01-01T00:00:00Z", files: { "a.txt": "YQ==" }, log: [{ event }] };
  await page.click('.dock [data-pane="terminal"]');
  await chosen(page, "Open a run…", file("seen.run.json", JSON.stringify(run)));
  await page.waitForSelector(".replay");
  assert.equal(await page.locator('.dock [data-pane="terminal"]').isVisible(), false);
  await page.keyboard.press("Alt+4");
  assert.equal(await page.locator(".pane-chat").isVisible(), true);
  await page.click("#project");
  const { width } = await page.locator(".menu").boundingBox();
  assert.ok(width < 320, `the menu is ${width} wide`);
  await page.keyboard.press("Escape");
  await page.click('[aria-label="Close the run"]');
  assert.equal(await page.locator('.dock [data-pane="terminal"]').isVisible(), true);
  await page.click('.dock [data-pane="files"]');
  for (const name of ["../a", "../b"]) {
    // Playwright clicks nothing that is covered.
    await page.click('[aria-label="New file"]', { timeout: 5_000 });
    await page.keyboard.type(name);
    await page.keyboard.press("Enter");
    await page.waitForSelector(`.toast.error:has-text("${name}")`);
  }
  assert.deepEqual(problems, []);
});

test("the focus goes where the keyboard goes on", async (t) => {
  const { page } = await open(t, { viewport: SIZES.wide });
  const focused = () => page.evaluate(() => {
    const { id, dataset, tagName } = document.activeElement;
    return id || dataset.path || tagName;
  });
  const waitFor = (wanted) => page.waitForFunction((wanted) => document.activeElement.dataset.path === wanted, wanted);
  await page.focus("#run-demo");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".hello[hidden]", { state: "attached" });
  assert.equal(await focused(), "composer");
  await page.waitForSelector(".answer:has-text('All four tests pass.')");
  await state(page, "IDLE");
  await page.focus("#model");
  await page.keyboard.press("Enter");
  assert.equal(await focused(), "set-provider");
  await page.keyboard.press("Escape");
  assert.equal(await focused(), "model");
  // In the tree, to what was renamed and to the neighbour of what is gone.
  await page.keyboard.press("Alt+2");
  await page.keyboard.press("End");
  await page.keyboard.press("F2");
  await page.keyboard.press("Home");
  await page.keyboard.type("z-");
  await page.keyboard.press("Enter");
  await waitFor("z-test.sh");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await waitFor("slug.sh");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Delete");
  await page.waitForSelector("dialog.question[open]");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Delete");
  await page.keyboard.press("Enter");
  await waitFor("slug.sh");
  await page.keyboard.press("End");
  await page.keyboard.press("Delete");
  await page.waitForSelector("dialog.question[open]");
  // Nothing is lost by Escape, and the focus is where it was.
  await page.keyboard.press("Escape");
  await waitFor("z-test.sh");
  await page.keyboard.press("Delete");
  await answer(page, "Delete");
  await waitFor("style.css");
  // Of a list that has lost one, to the list.
  await menu(page, "Open the sample");
  await page.waitForSelector("#project-name:text-is('tide-pool-2')");
  await menu(page, "Projects…");
  await page.focus('[aria-label="Delete tide-pool"]');
  await page.keyboard.press("Enter");
  assert.equal(await answer(page, "Delete"), "Delete the project tide-pool with all its files?");
  await page.waitForFunction(() => document.querySelectorAll(".shelf li").length === 1);
  assert.equal(await page.evaluate(() => document.activeElement.closest(".shelf") !== null), true);
});

test("the main path needs no mouse", async (t) => {
  const { page, problems } = await open(t, { viewport: SIZES.wide });
  const model = await serveModel(t, { steps: [
    { tool_calls: [{ name: "shell", arguments: { command: "mkdir made" } }] },
    { text: "It is made.", hold: "never", hold_before: "end" },
    { text: "Once more." },
  ] });
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim().slice(0, 40));
  /** Goes on with Tab until the focus is there, as a person does. */
  const tabTo = async (wanted, key = "Tab") => {
    for (let count = 0; count < 60; count++) {
      if ((await focused()) === wanted) {
        const { width, style } = await page.evaluate(() => ({ width: parseFloat(getComputedStyle(document.activeElement).outlineWidth), style: getComputedStyle(document.activeElement).outlineStyle }));
        assert.ok((width > 0 && style !== "none") || wanted === "composer", `${wanted} shows no focus`);
        return;
      }
      await page.keyboard.press(key);
    }
    assert.fail(`${key} never reaches ${wanted}; it is at ${await focused()}`);
  };
  // The demo.
  await tabTo("run-demo");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".answer:has-text('All four tests pass.')");
  await state(page, "IDLE");
  // Another model, with a key and approval.
  await page.keyboard.press("Alt+1");
  await tabTo("model", "Shift+Tab");
  await page.keyboard.press("Enter");
  await tabTo("set-provider");
  await page.keyboard.type("Anthropic");
  for (const [field, text] of [["set-key", "k"], ["set-base", model.url]]) {
    await tabTo(field);
    await page.keyboard.type(text);
  }
  await tabTo("set-approval");
  await page.keyboard.type("Ask before every");
  await page.keyboard.press("Enter");
  if (await page.locator("dialog.settings[open]").count()) {
    await tabTo("Save");
    await page.keyboard.press("Enter");
  }
  await page.waitForSelector("dialog[open]", { state: "detached" });
  // A task, an approval, steering, stop.
  await page.keyboard.press("Alt+1");
  assert.equal(await focused(), "composer");
  await page.keyboard.type("make it");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog.approval[open]");
  await tabTo("Allow once");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".answer:has-text('It is made.')");
  assert.equal(await focused(), "composer");
  await page.keyboard.type("in French");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".queue li");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".notice:has-text('Stopped.')");
  // A file in the tree, changed in the editor, seen in the terminal.
  await page.keyboard.press("Alt+2");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Alt+3");
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("# typed\n");
  await page.keyboard.press("Control+s");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Alt+4");
  await page.keyboard.type("head -n 1 test.sh; ls -d made");
  await page.keyboard.press("Enter");
  await shows(page, "# typed");
  await shows(page, "made");
  await page.keyboard.press("Control+Shift+KeyM");
  assert.equal(await focused(), "composer");
  // The menu.
  await tabTo("project", "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.closest(".menu"));
  // From the other end: two links, three entries about runs.
  for (let count = 0; count < 6; count += 1) await page.keyboard.press("ArrowUp");
  assert.equal(await focused(), "New conversation");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".hello:not([hidden])");
  assert.deepEqual(problems, []);
});

test("python3 and node run in the terminal", async (t) => {
  const { page } = await open(t);
  await terminal(page, "python3 -c 'print(\"six times\", 7)'");
  await shows(page, "six times 7");
  await terminal(page, "node -e 'console.log([1, 2, 3].map((n) => n * n).join())'");
  await shows(page, "1,4,9");
});
