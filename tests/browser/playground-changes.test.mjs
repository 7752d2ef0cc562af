// The playground in Chromium: which call a change is shown at.

import assert from "node:assert/strict";
import { test } from "node:test";
import { callStep, serveModel } from "../node/support.mjs";
import { choose, chosen, downloaded, file, playground, ready, saved, say, shows, state, terminal } from "./playground-support.mjs";

const { open } = playground();

/** The cards: what was called, the files shown there, and what is said of them. */
async function cards(page) {
  // What the last call changed is looked for when it has ended.
  await terminal(page, "true");
  return page.locator(".tool").evaluateAll((all) => all.map((card) => [
    card.querySelector(".brief").textContent,
    [...card.querySelectorAll(".path")].map((path) => path.textContent),
    [...card.querySelectorAll(".among:not([hidden])")].map((note) => note.textContent).join(" "),
  ]));
}

/** The lines that a card's diffs add and remove. */
function rows(page, index) {
  return page.locator(".tool").nth(index).locator(".row:is(.added, .removed)").evaluateAll((all) => all.map((row) => row.querySelector(".sign").textContent + row.querySelector(".code").textContent));
}

const shell = (command, id) => ({ name: "shell", id, arguments: { command } });
const edit = (old_string, new_string, id) => ({ name: "edit_file", id, arguments: { file_path: "list.txt", old_string, new_string } });

/** Plays `steps` in a project that holds `list.txt`. */
async function play(t, steps) {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [...steps, { text: "Done." }] });
  await terminal(page, "printf 'one\\ntwo\\nthree\\n' > list.txt");
  await choose(page, { baseUrl: model.url });
  await say(page, "work");
  return { page, model, problems, end: () => page.waitForSelector(".answer:has-text('Done.')").then(() => state(page, "IDLE")) };
}

test("commands that follow each other at once each show what they changed", async (t) => {
  const numbers = [1, 2, 3, 4, 5, 6];
  const { page, end, problems } = await play(t, numbers.map((number) => callStep("shell", { command: `echo ${number} > ${number}.txt` }, `call-${number}`)));
  await end();
  assert.deepEqual(await cards(page), numbers.map((number) => [`echo ${number} > ${number}.txt`, [`${number}.txt`], ""]));
  assert.deepEqual(problems, []);
});

test("edits of one file in one answer each show their own lines", async (t) => {
  const { page, end, problems } = await play(t, [
    { tool_calls: [edit("one", "ONE", "a"), edit("three", "THREE", "b"), edit("nowhere", "x", "c"), edit("two", "TWO", "d")] },
  ]);
  await end();
  await cards(page);
  assert.deepEqual([await rows(page, 0), await rows(page, 1), await rows(page, 2), await rows(page, 3)], [
    ["−one", "+ONE"], ["−three", "+THREE"], [], ["−two", "+TWO"],
  ]);
  assert.deepEqual(problems, []);
});

test("commands that run at once are shown as who may have done it, also in a run that is shared", async (t) => {
  const { page, end, problems } = await play(t, [
    { tool_calls: [shell("echo a > a.txt", "a"), shell("echo b > b.txt", "b"), edit("one", "ONE", "c")] },
  ]);
  await end();
  const expected = [
    ["echo a > a.txt", [], "What changed while this ran is shown at shell echo b > b.txt, which ran at the same time."],
    ["echo b > b.txt", ["a.txt", "b.txt"], "Changed while these ran, by one or more of them: this call, shell echo a > a.txt."],
    ["list.txt", ["list.txt"], ""],
  ];
  assert.deepEqual(await cards(page), expected);
  // Nobody's alone.
  assert.deepEqual(await page.locator(".tool .changed").allInnerTexts(), ["", "", "+1 −1"]);
  await saved(page);
  await page.reload();
  await ready(page);
  assert.deepEqual(await cards(page), expected);
  const { content } = await downloaded(page, "Share run as JSON");
  await chosen(page, "Open a run…", [file("shared.json", content)]);
  await page.waitForSelector("body.replaying");
  await page.waitForFunction(() => document.querySelectorAll(".tool .path").length === 3);
  assert.deepEqual(await page.locator(".among:not([hidden])").allInnerTexts(), [expected[0][2], expected[1][2]]);
  assert.deepEqual(problems, []);
});

test("what the user writes while the agent works is not the agent's", async (t) => {
  const { page, model, end, problems } = await play(t, [
    { ...callStep("shell", { command: "echo a > agent.txt" }, "a"), text: "Now I write.", hold: "go", hold_before: "tool_calls" },
    { ...callStep("read_file", { file_path: "list.txt" }, "b"), text: "Now I read.", hold: "on", hold_before: "tool_calls" },
  ]);
  await page.waitForSelector(".answer:has-text('Now I write.')");
  await terminal(page, "echo before > before.txt");
  await model.release("go");
  await page.waitForSelector(".answer:has-text('Now I read.')");
  await terminal(page, "echo after > after.txt");
  assert.equal(await page.locator('.tree [data-path="after.txt"].recent').count(), 0);
  await model.release("on");
  await end();
  assert.deepEqual(await cards(page), [["echo a > agent.txt", ["agent.txt"], ""], ["list.txt", [], ""]]);
  assert.deepEqual(problems, []);
});

test("what changes while a command of the agent and one of the terminal run is neither's for sure", async (t) => {
  const { page, end, problems } = await play(t, [
    callStep("shell", { command: "for i in $(seq 60000); do :; done; echo a > agent.txt" }, "a"),
  ]);
  await page.waitForSelector(".tool[data-state=running]");
  await terminal(page, "echo mine > mine.txt; cat mine.txt", { wait: false });
  await shows(page, "\nmine");
  await end();
  const [[, files, said]] = await cards(page);
  assert.ok(files.includes("mine.txt"), files.join());
  assert.equal(said, "Changed while these ran, by one or more of them: this call, a command in the terminal.");
  assert.deepEqual(problems, []);
});

test("a call that waits for approval has changed nothing yet", async (t) => {
  const { page } = await open(t);
  const model = await serveModel(t, { steps: [
    { tool_calls: [shell("touch a.txt", "asks"), shell("echo b > b.txt", "free")] },
    { text: "Done." },
  ] });
  await choose(page, { baseUrl: model.url, approval: "ask" });
  await say(page, "work");
  // It does not wait for the other one.
  await page.waitForSelector('.tree [data-path="b.txt"]');
  await page.click('dialog.approval button:text-is("Allow once")');
  await page.waitForSelector(".answer:has-text('Done.')");
  await state(page, "IDLE");
  assert.deepEqual(await cards(page), [["touch a.txt", ["a.txt"], ""], ["echo b > b.txt", ["b.txt"], ""]]);
});
