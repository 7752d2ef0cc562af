// The playground in Chromium: what is pressed is large enough for a finger, on
// the narrowest page (WCAG 2.2, 2.5.8).

import assert from "node:assert/strict";
import { test } from "node:test";
import { serveModel } from "../node/support.mjs";
import { choose, chosen, file, menu, playground, say, screenshot, state, terminal } from "./playground-support.mjs";

const { open } = playground();

/** What is visible, can be pressed, and is smaller than `least` CSS pixels either way. */
function small(page, least) {
  return page.evaluate((least) => {
    const found = [];
    for (const each of document.querySelectorAll("button, summary, select, input, a, [role=treeitem]")) {
      if (!each.checkVisibility({ visibilityProperty: true })) continue;
      // A label is pressed with what it names.
      const { width, height } = (each.closest("label") ?? each).getBoundingClientRect();
      if (width > 1 && (width < least || height < least)) found.push(`${each.ariaLabel ?? each.textContent.trim()} <${each.localName} class="${each.className}"> ${width.toFixed(1)} × ${height.toFixed(1)}`);
    }
    return found;
  }, least);
}

const POINTERS = { mouse: { least: 24, options: {} }, finger: { least: 32, options: { hasTouch: true, isMobile: true } } };
for (const [name, { least, options }] of Object.entries(POINTERS)) {
  test(`everything that is pressed with a ${name} is ${least} pixels wide and high`, async (t) => {
    const { page, problems } = await open(t, { viewport: { width: 400, height: 800 }, ...options });
    assert.equal(await page.evaluate(() => matchMedia("(pointer: coarse)").matches), name === "finger");
    const found = {};
    const look = async (where) => {
      const all = await small(page, least);
      if (all.length > 0) found[where] = all;
      await screenshot(page, `targets-${name}-${where.replaceAll(" ", "-")}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 400, `${where} is ${wide} wide`);
    };
    await look("start");
    await page.click("#project");
    await look("menu");
    await page.keyboard.press("Escape");
    await page.click("#run-demo");
    await page.waitForSelector(".answer:has-text('All four tests pass.')");
    await state(page, "IDLE");
    await page.evaluate(() => document.querySelectorAll(".chat details").forEach((details) => (details.open = true)));
    await look("conversation");
    for (const pane of ["files", "editor", "terminal", "preview"]) {
      await page.click(`.dock [data-pane="${pane}"]`);
      await look(pane);
    }
    await page.click('.dock [data-pane="editor"]');
    await page.click(".cm-content");
    await page.keyboard.press("Control+f");
    await page.waitForSelector(".cm-search");
    await look("search");
    await page.keyboard.press("Escape");
    await page.click('.dock [data-pane="chat"]');
    await page.click("#model");
    await page.selectOption("#set-provider", "anthropic");
    await page.evaluate(() => (document.querySelector("dialog .more").open = true));
    await look("settings");
    await page.keyboard.press("Escape");
    await menu(page, "Projects…");
    await page.waitForSelector(".shelf .name");
    await look("projects");
    await page.keyboard.press("Escape");
    const model = await serveModel(t, { steps: [
      { text: "I wait.", tool_calls: [{ name: "shell", arguments: { command: "rm slug.sh" } }], hold: "go", hold_before: "tool_calls" },
      { error: { status: 401, message: "invalid x-api-key" } },
    ] });
    await choose(page, { baseUrl: model.url, approval: "always" });
    await say(page, "work");
    await page.waitForSelector(".answer:has-text('I wait.')");
    await say(page, "a message that waits");
    await page.waitForSelector(".queue li");
    await look("working");
    await model.release("go");
    await page.waitForSelector("dialog.approval[open]");
    await look("approval");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".notice.error button");
    await look("failed");
    await chosen(page, "Import files or archives…", [file("README.md", "other\n")]);
    await page.waitForSelector(".toast button");
    await look("toast");
    await chosen(page, "Open a run…", [file("x.json", JSON.stringify({ format: "hermitcrab-run", version: 1, name: "x", files: {}, log: [{ note: "A note." }] }))]);
    await page.waitForSelector(".replay");
    await look("run");
    await page.click('[aria-label="Close the run"]');
    await page.click('.dock [data-pane="editor"]');
    await page.click(".cm-content");
    await terminalBehind(page);
    await look("conflict");
    assert.deepEqual(found, {});
    assert.deepEqual(problems, []);
  });
}

/** A file changes while its text is typed. */
async function terminalBehind(page) {
  await page.click('.dock [data-pane="terminal"]');
  // Each writing meets what is not saved yet, or is taken over; a busy page saves each letter.
  const line = "for n in $(seq 50); do for i in $(seq 20000); do :; done; echo theirs $n > slug.sh; done";
  await terminal(page, line, { wait: false });
  await page.click('.dock [data-pane="editor"]');
  await page.click(".cm-content");
  // What is typed is saved soon, so the typing goes on until the command has written.
  const conflict = page.locator(".conflict:not([hidden])");
  for (let letters = 0; letters < 5_000 && !(await conflict.isVisible()); letters += 1) await page.keyboard.type("m");
  await conflict.waitFor();
}
