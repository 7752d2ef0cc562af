// The playground in Chromium: the cards of tool calls, and the parts that follow
// what the agent does.

import assert from "node:assert/strict";
import { test } from "node:test";
import { callStep, serveModel } from "../node/support.mjs";
import { choose, create, editorText, playground, preview, say, state, terminal } from "./playground-support.mjs";

const { open } = playground();

async function plays(t, page, steps) {
  const model = await serveModel(t, { steps });
  await choose(page, { baseUrl: model.url });
  return model;
}

test("output has the colours that commands give it, and stays text", async (t) => {
  const { page, problems } = await open(t);
  const escape = "\\033";
  const command = `printf 'plain ${escape}[1;31mred${escape}[0m ${escape}[38;5;46mgreen${escape}[39m ${escape}[38;2;1;2;3mown${escape}[m ${escape}[44mon blue${escape}[49m ${escape}]0;title\\007${escape}[2K<img src=x onerror=alert(1)>\\n'`;
  await plays(t, page, [callStep("shell", { command }, "c"), { text: "Done." }]);
  await say(page, "colours");
  await page.waitForSelector(".answer:has-text('Done.')");
  await page.click(".tool summary");
  const output = page.locator(".tool .output");
  assert.equal((await output.innerText()).split("\n")[0], "plain red green own on blue <img src=x onerror=alert(1)>");
  assert.equal(await output.locator("img").count(), 0);
  const looks = await output.locator("span").evaluateAll((all) => all.map((span) => {
    const { color, fontWeight, backgroundColor } = getComputedStyle(span);
    return { text: span.textContent.trim(), color, bold: fontWeight === "700", ground: backgroundColor !== "rgba(0, 0, 0, 0)" };
  }));
  const of = (text) => looks.find((each) => each.text === text);
  assert.equal(of("red").bold, true);
  assert.equal(of("plain").bold, false);
  assert.equal(of("on blue").ground, true);
  assert.equal(new Set(["plain", "red", "green", "own"].map((text) => of(text).color)).size, 4);
  assert.deepEqual(problems, []);
});

test("colours that come in pieces while a command runs are the same", async (t) => {
  const { page } = await open(t);
  const command = "printf '\\033[3'; sleep 0.3; printf '2mgreen'; sleep 0.3; printf ' more\\033[0m end\\n'; while :; do :; done";
  await plays(t, page, [callStep("shell", { command }, "c"), { text: "Done." }]);
  await say(page, "colours");
  await page.waitForSelector(".tool .output:has-text('end')", { state: "attached" });
  const spans = await page.locator(".tool .output span").evaluateAll((all) => all.map((span) => [span.className, span.textContent.trim()]));
  assert.deepEqual(spans, [["ansi-color-2", "green more"], ["", "end"]]);
  await page.click(".chat .stop");
  await state(page, "IDLE");
});

test("a card that failed is open, one that did not is not, and a new file is folded", async (t) => {
  const { page, problems } = await open(t);
  const long = `const line = "${"wide ".repeat(80)}";\n`;
  await plays(t, page, [
    callStep("shell", { command: "echo fine" }, "a"),
    callStep("shell", { command: "echo broken >&2; exit 3" }, "b"),
    callStep("write_file", { file_path: "new.js", content: long.repeat(3) }, "c"),
    callStep("edit_file", { file_path: "slug.sh", old_string: "tr -c 'a-z0-9' '-'", new_string: `tr -cs 'a-z0-9' '-' # ${"long ".repeat(60)}` }, "d"),
    { text: "Done." },
  ]);
  await say(page, "work");
  await page.waitForSelector(".answer:has-text('Done.')");
  await state(page, "IDLE");
  await page.waitForFunction(() => document.querySelectorAll(".tool .path").length === 2);
  const open_ = await page.locator(".tool > details").evaluateAll((all) => all.map((details) => details.open));
  assert.deepEqual(open_, [false, true, false, false]);
  assert.equal(await page.locator(".output:has-text('broken')").isVisible(), true);
  const fresh = page.locator(".tool").nth(2).locator("details.diff");
  assert.equal(await fresh.evaluate((details) => details.open), false);
  assert.match(await fresh.locator("summary").innerText(), /new\.js\s+new\s+\+3/);
  await fresh.locator("summary").click({ position: { x: 5, y: 5 } });
  assert.equal(await fresh.locator(".row").first().isVisible(), true);
  // Long lines wrap: nothing has to be scrolled sideways.
  const wide = await page.locator(".diff-rows").evaluateAll((all) => all.map((rows) => rows.scrollWidth > rows.clientWidth));
  assert.deepEqual(wide, [false, false]);
  const height = await page.locator(".tool").nth(3).locator(".row.added").evaluate((row) => row.getBoundingClientRect().height);
  assert.ok(height > 60, `${height}`);
  assert.deepEqual(problems, []);
});

test("the file that the agent edits opens, and the next one takes its place", async (t) => {
  const { page, problems } = await open(t);
  await plays(t, page, [
    callStep("write_file", { file_path: "one.txt", content: "one\n" }, "a"),
    callStep("shell", { command: "echo noise > noise.txt" }, "b"),
    callStep("edit_file", { file_path: "README.md", old_string: "# Tide pool", new_string: "# Rock pool" }, "c"),
    { text: "Done." },
  ]);
  await say(page, "write");
  await page.waitForSelector(".answer:has-text('Done.')");
  await state(page, "IDLE");
  await page.waitForSelector('.tab[aria-selected="true"][data-path="README.md"]');
  assert.match(await editorText(page), /# Rock pool/);
  // What was open stays, what the agent has left does not, and what commands write does not open.
  assert.deepEqual(await page.locator(".tabs .tab").evaluateAll((all) => all.map((tab) => tab.dataset.path)), ["slug.sh", "README.md"]);
  assert.deepEqual(problems, []);
});

test("who types in the editor is left alone; what the agent edits is a tab behind", async (t) => {
  const { page, problems } = await open(t);
  const model = await plays(t, page, [
    { text: "Soon.", hold: "go", hold_before: "tool_calls", tool_calls: [{ name: "write_file", id: "a", arguments: { file_path: "one.txt", content: "one\n" } }] },
    { text: "Done." },
  ]);
  await say(page, "write");
  await page.waitForSelector(".answer:has-text('Soon.')");
  await page.click(".cm-content");
  await page.keyboard.type("# mine\n");
  await model.release("go");
  await page.waitForSelector('.tab[data-path="one.txt"]');
  assert.equal(await page.getAttribute(".tab[aria-selected='true']", "data-path"), "slug.sh");
  await page.keyboard.type("# still mine\n");
  await page.waitForSelector(".answer:has-text('Done.')");
  assert.match(await editorText(page), /# mine\s+# still mine/);
  assert.deepEqual(problems, []);
});

test("at 1,280 pixels the preview of a new page shows beside its text", async (t) => {
  const { page, problems } = await open(t, { viewport: { width: 1280, height: 800 } });
  await create(page, "fresh");
  assert.equal(await page.locator(".empty").first().innerText(), "No file is open.\n\nPick one from the tree. What the agent edits opens here.");
  await plays(t, page, [callStep("write_file", { file_path: "index.html", content: "<h1>Made by the agent</h1>\n" }, "a"), { text: "Done." }]);
  await say(page, "make a page");
  await preview(page).locator("h1:text-is('Made by the agent')").waitFor();
  assert.match(await editorText(page), /<h1>Made by the agent/);
  for (const part of [".cm-editor", ".preview iframe", ".pane-chat"]) {
    const { width } = await page.locator(part).first().boundingBox();
    assert.ok(width >= (part === ".pane-chat" ? 1280 / 3 : 280), `${part} is ${width} wide`);
  }
  // Who has closed it does not get it again.
  await page.click(".preview-toggle");
  await terminal(page, "echo '<h1>Once more</h1>' > other.html");
  await page.waitForSelector('.tree [data-path="other.html"]');
  assert.equal(await page.locator(".preview").isVisible(), false);
  assert.deepEqual(problems, []);
});
