// The playground in Chromium: the log of a run, shared and opened.

import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";

import { NodeEnvironment, createSession } from "../../js/node.js";
import { binary, resummed, textOf } from "../node/logs.mjs";
import { callStep, serveModel } from "../node/support.mjs";
import { choose, chosen, create, downloaded, editorText, menu, paths, playground, ready, saved, say, screenshot, shows, state, terminal } from "./playground-support.mjs";

const { open } = playground();
const LOGS = new URL("../logs/", import.meta.url);
const KEY = "sk-the-key-of-this-page";

const gz = (name, buffer) => ({ name, mimeType: "application/gzip", buffer });
const close = (page) => page.click('[aria-label="Close the run"]');
const said = (page) => page.locator(".replay p").innerText();

/** A log that the binary wrote and that today's core replays. */
async function kept() {
  const departures = JSON.parse(await readFile(new URL("departures.json", LOGS), "utf8"));
  const names = (await readdir(LOGS)).filter((name) => name.endsWith(".log.gz"));
  const name = names.find((name) => departures[name.replace(".log.gz", "")].length === 0);
  return name && { name, log: await readFile(new URL(name, LOGS)) };
}

/** Drops a file on a part of the page. */
function drop(page, selector, { name, buffer }) {
  return page.evaluate(([selector, name, bytes]) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(bytes), (one) => one.charCodeAt(0))], name));
    for (const type of ["dragover", "drop"]) document.querySelector(selector).dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
  }, [selector, name, buffer.toString("base64")]);
}

test("a run is shared as its log, which replays in the binary, opens again and goes on", async (t) => {
  const { page, problems } = await open(t);
  await create(page, "mine");
  await menu(page, "Share run");
  await page.waitForSelector(".toast.error:has-text('There is no run yet; give the agent a task first.')");
  await terminal(page, "echo before > a.txt");
  const model = await serveModel(t, { steps: [
    { text: "I write.", tool_calls: [
      { name: "shell", arguments: { command: "echo $RANDOM > b.txt; printf '\\000\\001' > c.bin; cat a.txt" } },
      { name: "write_file", arguments: { file_path: "a.txt", content: "after\n" } },
    ] },
    { text: "All is written." },
    { expect: { contains: ["write them", "All is written.", "and now"] }, text: "It goes on." },
  ] });
  await choose(page, { baseUrl: model.url, key: KEY });
  await say(page, "write them");
  await page.waitForSelector(".answer:has-text('All is written.')");
  await state(page, "IDLE");
  const random = await page.evaluate(() => document.querySelector(".tree").innerText);
  await terminal(page, "echo user > d.txt");
  await page.waitForSelector('.tree [data-path="d.txt"]');
  const { name, content } = await downloaded(page, "Share run");
  assert.equal(name, "mine.log.gz");
  assert.ok(content.length < 100_000, `${content.length} bytes`);
  assert.ok(random.includes("b.txt"));
  assert.doesNotMatch(textOf(content), new RegExp(KEY));
  const { code, stdout } = await binary(t, content);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /2 answers of models: every event and effect is the same/);

  // What is shared goes on here.
  await create(page, "other");
  await chosen(page, "Open a run…", gz(name, content));
  await page.waitForSelector(".replay");
  assert.equal(await said(page), `A recorded run, of core ${version(content)}. Replayed here: every event is the same.`);
  assert.deepEqual(await page.locator(".item .text, .item .prose").allInnerTexts(), ["write them", "I write.", "All is written."]);
  assert.equal(await page.locator(".tool").count(), 2);
  assert.match(await page.locator(".tool").first().innerText(), /b\.txt[\s\S]*c\.bin/);
  assert.match(await page.locator(".tool").last().innerText(), /a\.txt\s+\+1\s+−1/);
  assert.deepEqual(await paths(page), ["a.txt", "b.txt", "c.bin", "d.txt"]);
  await page.click('.tree [data-path="a.txt"]');
  assert.equal((await editorText(page)).trim(), "after");
  await page.locator('.replay input[type="range"]').fill("1");
  assert.deepEqual(await paths(page), ["a.txt"]);
  assert.equal((await editorText(page)).trim(), "before");
  const slider = page.locator('.replay input[type="range"]');
  await slider.fill(await slider.getAttribute("max"));
  await page.click('.replay button:text-is("Continue from here")');
  await page.waitForSelector("#project-name:text-is('mine-2')");
  await terminal(page, "od -An -tx1 c.bin; cat a.txt");
  await shows(page, "00 01");
  await say(page, "and now");
  await page.waitForSelector(".answer:has-text('It goes on.')");
  assert.deepEqual(problems, []);
});

const version = (log) => JSON.parse(textOf(log).split("\n")[0]).core.version;

test("a log that begins after a reload has what was said before, and one conversation behind the other", async (t) => {
  const { page, problems } = await open(t);
  await create(page, "mine");
  const model = await serveModel(t, { steps: [callStep("shell", { command: "echo 1 > one.txt" }, "a"), { text: "One." }, { text: "Two." }, { text: "Three." }] });
  await choose(page, { baseUrl: model.url, key: KEY, remember: true });
  await say(page, "first");
  await page.waitForSelector(".answer:has-text('One.')");
  await state(page, "IDLE");
  await saved(page);
  await page.reload();
  await ready(page);
  await page.waitForSelector(".answer:has-text('One.')");
  await menu(page, "Share run");
  await page.waitForSelector(".toast.error:has-text('The log begins where the project was opened in this tab, and nothing was asked since')");
  await say(page, "second");
  await page.waitForSelector(".answer:has-text('Two.')");
  await state(page, "IDLE");
  const texts = async () => (await page.locator(".item .text, .item .prose").allInnerTexts()).filter(Boolean);
  const { content } = await downloaded(page, "Share run");
  await chosen(page, "Open a run…", gz("mine.log.gz", content));
  await page.waitForSelector(".replay");
  assert.deepEqual(await texts(), ["first", "One.", "second", "Two."]);
  assert.equal(await page.locator(".tool").count(), 1);
  assert.deepEqual(await paths(page), ["one.txt"]);
  await close(page);
  await menu(page, "New conversation");
  await say(page, "third");
  await page.waitForSelector(".answer:has-text('Three.')");
  await state(page, "IDLE");
  const next = await downloaded(page, "Share run");
  await chosen(page, "Open a run…", gz("mine.log.gz", next.content));
  await page.waitForSelector("text=A new conversation begins here");
  assert.equal(await page.locator(".answer:visible").count(), 1);
  assert.match(await said(page), /Replayed here: every event is the same\.$/);
  const { code, stdout } = await binary(t, next.content);
  assert.equal(code, 0, stdout);
  assert.deepEqual(problems, []);
});

test("a log of the binary opens where it is dropped; what is no such log is refused in one sentence", async (t) => {
  const { page, problems } = await open(t);
  await create(page, "mine");
  await terminal(page, "echo mine > mine.txt");
  await page.click('.tree [data-path="mine.txt"]');
  const found = await kept();
  assert.ok(found, "all kept logs depart from today's core; record them anew");
  const { name, log } = found;
  // The editor would take the text of a file.
  await drop(page, ".cm-content", { name, buffer: log });
  await page.waitForSelector(".replay");
  assert.match(await said(page), /^A recorded run, of core [\d.]+\. Replayed here: every event is the same\.$/);
  assert.equal(await page.innerText(".replay strong"), name.replace(".log.gz", ""));
  assert.ok((await page.locator(".tool").count()) >= 2);
  assert.ok((await page.locator(".diffs > *").count()) >= 1);
  assert.ok(!(await paths(page)).includes("mine.txt"));
  assert.match(await page.innerText(".usage"), /\d/);
  await screenshot(page, "share-wide");
  await page.setViewportSize({ width: 400, height: 800 });
  await screenshot(page, "share-narrow");
  await page.setViewportSize({ width: 1280, height: 800 });
  await close(page);

  const text = gunzipSync(log).toString();
  const newer = resummed(text.replace(/"hermitcrab_log":\d+/, '"hermitcrab_log":99'));
  const flipped = Buffer.from(log);
  flipped[Math.floor(flipped.length / 2)] ^= 4;
  for (const [buffer, expected] of [
    [Buffer.from("hello"), /^The file x\.log\.gz is not the log of a run\.$/],
    [gzipSync("127.0.0.1 GET /\n"), /^The file x\.log\.gz is (not the log of a run|damaged: line 1 of the log is not what was written; get the file once more)\.$/],
    [Buffer.alloc(0), /^The file x\.log\.gz is not the log of a run\.$/],
    [flipped, /^The file x\.log\.gz is damaged: line \d+ of the log is not what was written; get the file once more\.$/],
    [newer, /^The file x\.log\.gz is a log of version 99, which this page does not know yet; reload the page\.$/],
    [resummed(text.split("\n").slice(0, 2).join("\n")), /^The file x\.log\.gz has no conversation: nothing was asked in it\.$/],
  ]) {
    await drop(page, ".chat", { name: "x.log.gz", buffer });
    assert.match(await page.locator(".toast.error span").innerText(), expected);
    await page.click('.toast [aria-label="Close this message"]');
    assert.equal(await page.locator(".replay").count(), 0);
  }
  await drop(page, ".chat", { name: "notes.txt", buffer: Buffer.from("hello") });
  assert.match(await page.locator(".toast.error span").innerText(), /^Files go into the project where they are dropped on its tree/);
  await page.click('.toast [aria-label="Close this message"]');

  // Of one that was cut off, what came before; of one that departs, all that was said.
  await drop(page, ".chat", { name: "torn.log.gz", buffer: log.subarray(0, Math.floor(log.length * 0.8)) });
  await page.waitForSelector(".replay strong:text-is('torn')");
  assert.match(await said(page), /Replayed here: every event is the same\. The log was not closed: its last lines may be missing\.$/);
  await page.waitForSelector(".notice:has-text('This run was saved in the middle of the work')");
  const departed = resummed(changedLine(text));
  await drop(page, ".chat", { name: "other.log.gz", buffer: departed });
  await page.waitForSelector(".replay strong:text-is('other')");
  assert.match(await said(page), /The core of this page departs from it at step \d+, after \d+ answers of the model: files are shown up to there, the conversation as it was recorded\.$/);
  assert.equal(await page.locator(".notice:has-text('in the middle of the work')").count(), 0);
  await drop(page, ".chat", { name: "local.log.gz", buffer: await localLog(t) });
  await page.waitForSelector(".replay strong:text-is('local')");
  assert.match(await said(page), /The agent worked in \S+, outside of the sandbox, so the log has no files\.$/);
  await page.waitForSelector(".answer:has-text('Seen.')");
  assert.deepEqual(await paths(page), []);
  await close(page);
  assert.deepEqual(await paths(page), ["mine.txt"]);
  assert.deepEqual(problems, []);
});

/** A log whose last request is another one than this core's. */
function changedLine(text) {
  const lines = text.trimEnd().split("\n");
  const requests = lines.flatMap((line, index) => (line.includes('"keep_end":') ? [index] : []));
  lines[requests.at(-1)] = lines[requests.at(-1)].replace(/"keep_end":\d+/, '"keep_end":1');
  return lines.join("\n");
}

/** The log of a session that works on this disk. */
async function localLog(t) {
  const directory = await mkdtemp(join(tmpdir(), "playground-share-"));
  t.after(() => rm(directory, { recursive: true }));
  const env = new NodeEnvironment({ root: directory });
  const session = await createSession({ script: { steps: [callStep("shell", { command: "echo hi > x.txt" }, "a"), { text: "Seen." }] }, env, record: true });
  await session.prompt("look");
  await session.close();
  return Buffer.from(await session.recording());
}
