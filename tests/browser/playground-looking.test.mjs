// The playground in Chromium: a shared run that is open, and what it leaves alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { answer, choose, chosen, create, file, paths, playground, ready, saved, say, state, stores, terminal } from "./playground-support.mjs";
import { serveModel } from "../node/support.mjs";

const { open } = playground();

const RUN = {
  format: "hermitcrab-run", version: 1, name: "theirs", saved: "2026-01-01T00:00:00Z",
  files: { "index.html": Buffer.from("<h1>theirs</h1>").toString("base64") },
  log: [{ event: { kind: "USER_INPUT", data: { content: "hello" } } }],
};

async function look(page) {
  await chosen(page, "Open a run…", { name: "x.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(RUN)) });
  await page.waitForSelector(".replay");
}

const close = (page) => page.click('[aria-label="Close the run"]');

/** What the files of the open project hold, as its sandbox tells. */
async function contents(page) {
  await terminal(page, "clear; for f in *; do echo \"$f=$(cat $f)\"; done; echo e''nd");
  await page.waitForFunction(() => document.querySelector(".xterm-rows").innerText.includes("end"));
  const rows = await page.evaluate(() => document.querySelector(".xterm-rows").innerText.replaceAll("\u00a0", " "));
  return rows.split("\n").filter((row) => /^\S+=/.test(row));
}

test("a run that is open leaves the project of its reader alone", async (t) => {
  const { page, problems } = await open(t);
  await create(page, "mine");
  await terminal(page, "echo MINE > index.html; echo app > app.js");
  await page.waitForSelector('.tree [data-path="app.js"]');
  await look(page);
  await page.click('.tree [data-path="index.html"]');
  for (const key of ["Delete", "F2"]) {
    await page.focus('.tree [data-path="index.html"]');
    await page.keyboard.press(key);
    await page.waitForSelector(".toast.error:has-text('A shared run is open, which is only looked at.')");
    await page.click('.toast [aria-label="Close this message"]');
  }
  assert.equal(await page.locator(".tree .editing").count(), 0);
  for (const name of ["New file", "New folder"]) {
    assert.equal(await page.isDisabled(`[aria-label="${name}"]`), true, name);
    assert.match(await page.getAttribute(`[aria-label="${name}"]`, "title"), /^A shared run is open/);
  }
  await page.hover('.tree [data-path="index.html"]');
  assert.equal(await page.locator('[aria-label="Delete index.html"]').isVisible(), false);
  await page.click("#project");
  assert.match(await page.innerText(".menu p"), /^A shared run is open/);
  const disabled = await page.locator(".menu button:disabled").allInnerTexts();
  await page.keyboard.press("Escape");
  assert.deepEqual(disabled.filter((label) => label !== "Export to a folder…"), ["Import files or archives…", "Import a folder…", "Export as zip", "New conversation", "Share run", "Share run as JSON"]);
  assert.equal(await page.locator(".pane-terminal").isVisible(), false);
  await close(page);
  await page.waitForSelector('.tree [data-path="app.js"]');
  assert.equal(await page.isDisabled('[aria-label="New file"]'), false);
  assert.deepEqual(await contents(page), ["app.js=app", "index.html=MINE"]);
  await page.click("#project");
  assert.equal(await page.locator(".menu button:disabled").count(), 0);
  assert.deepEqual(problems, []);
});

test("files that are dropped on a run that is open go nowhere", async (t) => {
  const { page, problems } = await open(t);
  await create(page, "mine");
  await look(page);
  await page.evaluate(() => {
    const data = new DataTransfer();
    data.items.add(new File(["x"], "dropped.txt"));
    for (const type of ["dragover", "drop"]) document.querySelector(".tree").dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
  });
  await page.waitForSelector(".toast.error:has-text('A shared run is open')");
  assert.equal(await page.locator(".files.dropping").count(), 0);
  await close(page);
  await page.waitForSelector(".tree .quiet:has-text('No files.')");
  assert.deepEqual(problems, []);
});

test("an import is not taken back while a run is open", async (t) => {
  const { page, problems } = await open(t);
  await chosen(page, "Import files or archives…", [file("README.md", "other\n")]);
  await page.waitForSelector('.toast button:text-is("Undo")');
  await look(page);
  assert.equal(await page.locator('.toast button:text-is("Undo")').count(), 0);
  assert.deepEqual(problems, []);
});

test("a run is not opened over text that waits to be settled", async (t) => {
  const { page, problems } = await open(t);
  await create(page, "mine");
  await terminal(page, "echo start > n.txt");
  await page.click('.tree [data-path="n.txt"]');
  const agent = await serveModel(t, { steps: [
    { text: "Soon.", tool_calls: [{ name: "shell", arguments: { command: "echo theirs > n.txt" } }], hold: "go", hold_before: "tool_calls" },
    { text: "Done." },
  ] });
  await choose(page, { baseUrl: agent.url });
  await say(page, "do it");
  await page.waitForSelector(".answer:has-text('Soon.')");
  await page.click(".cm-content");
  await page.keyboard.type("PRECIOUS ");
  await agent.release("go");
  await page.waitForSelector(".conflict:not([hidden])");
  await chosen(page, "Open a run…", { name: "x.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(RUN)) });
  await page.waitForSelector(".toast.error:has-text('The text of n.txt is not saved, because the file changed in the sandbox; settle that first.')");
  assert.equal(await page.locator(".replay").count(), 0);
  assert.match(await page.innerText(".cm-content"), /PRECIOUS/);
  // Another project does not take its place unasked, either.
  await state(page, "IDLE");
  await page.click("#project");
  await page.click('.menu button:text-is("Open the sample")');
  assert.match(await answer(page, "Cancel"), /^The text of n\.txt is not saved/);
  await page.waitForFunction(() => document.querySelector(".conflict:not([hidden])"));
  assert.equal(await page.innerText("#project-name"), "mine");
  assert.deepEqual(problems, []);
});

test("what the agent does while a run is open is kept", async (t) => {
  const { page } = await open(t);
  page.on("dialog", (dialog) => void dialog.accept());
  await create(page, "mine");
  const agent = await serveModel(t, { steps: [{ text: "It is done now.", hold: "go", hold_before: "end" }] });
  await choose(page, { baseUrl: agent.url });
  await say(page, "my task");
  await page.waitForSelector(".answer:has-text('It is done now.')");
  await look(page);
  await agent.release("go");
  // Its end is what is kept last: nothing is left to be asked about.
  await stores(page, "mine", "PROCESSING_END");
  await saved(page);
  await page.reload();
  await ready(page);
  await page.waitForSelector(".answer:has-text('It is done now.')");
  assert.equal(await page.locator(".notice").count(), 0);
  assert.deepEqual(await paths(page), []);
});

test("a conversation that is shown again shows each message once", async (t) => {
  const { page, problems } = await open(t);
  await create(page, "mine");
  const agent = await serveModel(t, { steps: [{ text: "First answer." }, { text: "Second answer." }] });
  await choose(page, { baseUrl: agent.url });
  await say(page, "one");
  await page.waitForSelector(".answer:has-text('First answer.')");
  for (let count = 0; count < 2; count += 1) {
    await look(page);
    await close(page);
  }
  await say(page, "two");
  await page.waitForSelector(".answer:has-text('Second answer.')");
  await state(page, "IDLE");
  assert.deepEqual(await page.locator(".item .text, .item .prose").allInnerTexts(), ["one", "First answer.", "two", "Second answer."]);
  assert.deepEqual(problems, []);
});
