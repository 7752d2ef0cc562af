// The playground in Chromium: a name that somebody types in the tree is theirs,
// whatever happens to the files meanwhile.

import assert from "node:assert/strict";
import { test } from "node:test";
import { callStep, serveModel } from "../node/support.mjs";
import { choose, create, paths, playground, say, terminal } from "./playground-support.mjs";

const { open } = playground();

/** A project `mine` with some files. */
async function begin(t) {
  const opened = await open(t);
  await create(opened.page, "mine");
  await terminal(opened.page, "mkdir dir; touch a.txt b.txt dir/c.txt");
  await opened.page.waitForSelector('.tree [data-path="dir"]');
  return opened;
}

/** An agent that runs a command when it may go. */
async function works(t, page, command) {
  const model = await serveModel(t, { steps: [{ ...callStep("shell", { command }, "a"), hold: "go", hold_before: "tool_calls" }, { text: "Done." }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "work");
  return { go: () => model.release("go") };
}

/** Goes to a row and asks for its new name. */
async function rename(page, path) {
  await page.locator(`.tree [data-path="${path}"]`).focus();
  await page.keyboard.press("F2");
  await page.keyboard.press("Control+A");
}

/** What the row in which a name is typed holds; `null`: there is none, or the focus is elsewhere. */
const typed = (page) => page.evaluate(() => (document.activeElement.matches(".tree input") ? document.activeElement.value : null));

const isThere = (page, path) => page.waitForSelector(`.tree [data-path="${path}"]`);

/** The command ends when the name is half typed, and the tree is drawn anew. */
for (const [name, begins, half, rest, expected] of [
  ["a file", (page) => rename(page, "b.txt"), "hal", "f.md", ["dir", "a.txt", "early.txt", "half.md", "later.txt"]],
  ["a folder", (page) => rename(page, "dir"), "hal", "f", ["half", "a.txt", "b.txt", "early.txt", "later.txt"]],
  ["a new file", (page) => page.click('[aria-label="New file"]'), "hal", "f.md", ["dir", "a.txt", "b.txt", "early.txt", "half.md", "later.txt"]],
  ["a new folder", (page) => page.click('[aria-label="New folder"]'), "hal", "f", ["dir", "half", "a.txt", "b.txt", "early.txt", "later.txt"]],
]) {
  test(`a name that is half typed is not used when files come: ${name}`, async (t) => {
    const { page, problems } = await begin(t);
    const agent = await works(t, page, "touch early.txt later.txt");
    await begins(page);
    await page.keyboard.type(half);
    await page.evaluate(() => (globalThis.row = document.querySelector(".tree input")));
    await agent.go();
    await isThere(page, "later.txt");
    assert.equal(await typed(page), half);
    assert.equal(await page.evaluate(() => globalThis.row === document.activeElement), true);
    await page.keyboard.type(rest);
    await page.keyboard.press("Enter");
    await isThere(page, half + rest);
    assert.deepEqual((await paths(page)).filter((path) => !path.includes("/")), expected);
    assert.deepEqual(problems, []);
  });
}

test("a name for what is gone by then is used for nothing, which is said", async (t) => {
  const { page, problems } = await begin(t);
  const agent = await works(t, page, "rm b.txt");
  await rename(page, "b.txt");
  await page.keyboard.type("half");
  await agent.go();
  await page.waitForSelector(".toast:has-text('B.txt is gone by now, so the name that you typed was not used.')");
  assert.deepEqual(await paths(page), ["dir", "a.txt"]);
  assert.equal(await page.locator(".tree input").count(), 0);
  assert.deepEqual(problems, []);
});

test("what is left as it was, or left with Escape, is not renamed", async (t) => {
  const { page, problems } = await begin(t);
  await terminal(page, "touch ' spaced.txt '");
  await isThere(page, " spaced.txt ");
  await page.locator('.tree [data-path=" spaced.txt "]').focus();
  await page.keyboard.press("F2");
  await page.click(".chat");
  await rename(page, "a.txt");
  await page.keyboard.type("other.txt");
  await page.keyboard.press("Escape");
  assert.deepEqual((await paths(page)).filter((path) => !path.includes("/")), ["dir", " spaced.txt ", "a.txt", "b.txt"]);
  // The keyboard goes on in the tree.
  assert.equal(await page.evaluate(() => document.activeElement.dataset.path), "a.txt");
  await rename(page, "a.txt");
  await page.keyboard.type("other.txt");
  await page.click(".chat");
  await isThere(page, "other.txt");
  assert.deepEqual(problems, []);
});
