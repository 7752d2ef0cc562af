// The playground in Chromium: the demo, typing, steering, stopping, and what is
// said when something goes wrong.

import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, editorText, menu, playground, say, shows, state, terminal } from "./playground-support.mjs";
import { callStep, serveModel } from "../node/support.mjs";

const { open, url } = playground();

test("the demo fixes its bug and the sandbox's tests are green", async (t) => {
  const { page, problems } = await open(t);
  await terminal(page, "sh test.sh");
  await shows(page, "2 passed, 2 failed");
  await page.click("#run-demo");
  await state(page, "PROCESSING");
  await state(page, "IDLE");
  const cards = await page.locator(".tool").evaluateAll((all) => all.map((card) => [card.dataset.state, card.querySelector(".name").textContent]));
  assert.deepEqual(cards, [["failed", "shell"], ["done", "read_file"], ["done", "edit_file"], ["done", "shell"]]);
  assert.match(await page.locator(".tool").nth(2).innerText(), /slug\.sh\s*\+1\s*−1/);
  assert.match(await page.locator(".answer").last().innerText(), /All four tests pass\./);
  assert.match(await editorText(page), /tr -cs 'a-z0-9' '-'/);
  await terminal(page, "clear");
  await terminal(page, "sh test.sh");
  await shows(page, "4 passed, 0 failed");
  assert.deepEqual(problems, []);
});

test("the demo can be run again, and says what it cannot do", async (t) => {
  const { page, problems } = await open(t);
  await say(page, "write me a poem");
  await page.waitForSelector(".answer:has-text('only plays the repair of the sample')");
  await state(page, "IDLE");
  await menu(page, "New conversation");
  await page.click("#run-demo");
  await page.waitForSelector(".answer:has-text('All four tests pass.')");
  await state(page, "IDLE");
  await menu(page, "New conversation");
  await page.click("#run-demo");
  await page.waitForSelector(".answer:has-text('there is nothing left to fix')");
  await state(page, "IDLE");
  assert.equal(await page.locator(".notice.error").count(), 0);
  assert.deepEqual(problems, []);
});

test("what is typed in the editor is in the sandbox", async (t) => {
  const { page, problems } = await open(t);
  await page.click('.tree [data-path="README.md"]');
  await page.click(".cm-content");
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("Typed by a person. ");
  assert.equal(await page.locator(".tab-box.current .dirty").innerText(), "●");
  await page.keyboard.press("Control+s");
  await page.waitForFunction(() => document.querySelector(".tab-box.current .dirty").innerText === "");
  await terminal(page, "head -n 1 README.md; echo new > made.txt");
  await shows(page, "Typed by a person. # Tide pool");
  await page.click('.tree [data-path="made.txt"]');
  assert.equal((await editorText(page)).trim(), "new");
  assert.deepEqual(problems, []);
});

test("a file that changes underneath unsaved text is asked about", async (t) => {
  const { page } = await open(t);
  await page.click(".cm-content");
  const held = await serveModel(t, { steps: [
    { tool_calls: [{ name: "shell", arguments: { command: "echo theirs > slug.sh" } }], hold: "go", hold_before: "tool_calls", text: "Soon." },
    { text: "Done." },
  ] });
  await choose(page, { baseUrl: held.url });
  await say(page, "change it");
  await page.waitForSelector(".answer:has-text('Soon.')");
  await page.click(".cm-content");
  await page.keyboard.type("mine ");
  await held.release("go");
  await page.waitForSelector(".conflict:not([hidden])");
  await page.click(".conflict button:first-of-type");
  await page.waitForFunction(() => document.querySelector(".cm-content").innerText.trim() === "theirs");
});

test("steering is queued, then delivered", async (t) => {
  const { page, problems } = await open(t);
  const held = await serveModel(t, { steps: [
    { text: "I look around.", tool_calls: [{ name: "shell", arguments: { command: "ls" } }], hold: "go", hold_before: "tool_calls" },
    { expect: { contains: "write it in French" }, text: "Bonjour." },
  ] });
  await choose(page, { baseUrl: held.url });
  await say(page, "greet me");
  await page.waitForSelector(".answer:has-text('I look around.')");
  assert.equal(await page.locator(".send span").innerText(), "Steer");
  await say(page, "write it in French");
  await page.waitForSelector(".queue li:has-text('queued')");
  await held.release("go");
  await page.waitForSelector(".answer:has-text('Bonjour.')");
  assert.match(await page.locator(".item.steering").innerText(), /delivered\s+write it in French/);
  assert.equal(await page.locator(".queue li").count(), 0);
  assert.match(await page.locator(".cost").innerText(), /in · .* out · ≤ \$/);
  assert.deepEqual(problems, []);
});

test("stopping ends the input, and the conversation goes on", async (t) => {
  const { page, problems } = await open(t);
  const held = await serveModel(t, { steps: [
    { text: "This takes long.", hold: "never", hold_before: "end" },
    { text: "I am still here." },
    { text: "Once more.", hold: "never", hold_before: "end" },
  ] });
  await choose(page, { baseUrl: held.url });
  await say(page, "work");
  await page.waitForSelector(".answer:has-text('This takes long.')");
  await page.click(".stop");
  await page.waitForSelector(".notice:has-text('Stopped.')");
  await state(page, "IDLE");
  await say(page, "are you there");
  await page.waitForSelector(".answer:has-text('I am still here.')");
  await say(page, "again");
  await page.waitForSelector(".answer:has-text('Once more.')");
  await page.keyboard.press("Escape");
  await state(page, "IDLE");
  assert.deepEqual(problems, []);
});

test("thinking is folded, a card has its duration and all of its output, and the bar the use of the context", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [
    { thinking: { text: "Let me count.", signature: "ZGVtbw==" }, ...callStep("shell", { command: "seq 8000" }, "count") },
    { text: "Counted.", usage: { input_tokens: 49_000, output_tokens: 1_000 } },
  ] });
  await choose(page, { baseUrl: model.url, name: "claude-sonnet-4-5" });
  await say(page, "count");
  await page.waitForSelector(".answer:has-text('Counted.')");
  await state(page, "IDLE");
  const thoughts = page.locator(".thoughts:has-text('Let me count.')");
  assert.equal(await thoughts.isVisible(), false);
  await page.click(".thinking summary:has-text('Thought')");
  assert.equal(await thoughts.isVisible(), true);
  assert.match(await page.locator(".tool .time").innerText(), /^(< )?\d+ ms$|^[\d.]+ s$/);
  const output = page.locator(".tool .output");
  assert.equal(await output.isVisible(), false);
  await page.click(".tool summary");
  assert.equal((await output.textContent()).length, 20_000);
  await page.click(".tool button:has-text('Show everything')");
  assert.equal((await output.textContent()).trim().split("\n").at(-2), "8000");
  // 200,000 tokens fit the model; a million cost $3 in and $15 out.
  assert.equal(await page.locator(".usage .context").getAttribute("title"), "Context: 50k of 200k tokens");
  assert.equal(await page.locator("[role=meter]").getAttribute("aria-valuenow"), "25");
  assert.equal(await page.locator(".cost").innerText(), "49k in · 1.0k out · ≤ $0.1626");
  assert.deepEqual(problems, []);
});

test("a text that opens much and closes nothing is shown, and is not read out piece by piece", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [{ text: `Look: ${"`".repeat(12_000)}\n${"[".repeat(50_000)}\n\nThe end.`, hold: "go", hold_before: "end" }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "repeat yourself");
  await page.waitForSelector(".answer:has-text('The end.')");
  assert.equal(await page.locator(".items[role=log]").getAttribute("aria-busy"), "true");
  await model.release("go");
  await state(page, "IDLE");
  assert.equal(await page.locator(".items[role=log]").getAttribute("aria-busy"), "false");
  assert.deepEqual(problems, []);
});

test("what is sent at once after Stop stands in the order in which it was typed", async (t) => {
  const { page, problems } = await open(t);
  // Each awk hears nothing for some tenths of a second, so the stop takes a while.
  const command = "for i in $(seq 1000); do awk 'BEGIN { while (i < 1000000) i++ }'; done";
  const held = await serveModel(t, { steps: [
    callStep("shell", { command }, "long"),
    { ...callStep("read_file", { file_path: "README.md" }, "look"), hold: "go", hold_before: "tool_calls" },
    { text: "All is read." },
  ] });
  await choose(page, { baseUrl: held.url });
  await say(page, "work");
  await page.waitForSelector(".tool[data-state=running]");
  await page.evaluate(async () => {
    const composer = document.querySelector("#composer");
    document.querySelector(".chat .stop").click();
    for (const text of ["one", "two", "three"]) {
      composer.value = text;
      composer.form.requestSubmit();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  await page.waitForFunction(() => document.querySelectorAll(".queue li.queued").length === 2);
  await held.release("go");
  await page.waitForSelector(".answer:has-text('All is read.')");
  assert.deepEqual(await page.locator(".item.user .text").allInnerTexts(), ["work", "one", "two", "three"]);
  assert.match(JSON.stringify((await held.requests()).at(-1).body.messages), /work.*one.*two.*three/);
  assert.deepEqual(problems, []);
});

test("a subagent's events stand in a card of their own", async (t) => {
  const { page } = await open(t);
  const parent = { not_contains: "You are a subagent" };
  const child = { contains: "You are a subagent" };
  const scripted = await serveModel(t, { steps: [
    { match: parent, tool_calls: [{ name: "spawn_agent", arguments: { task: "count the posts" } }] },
    { match: parent, tool_calls: [{ name: "wait", arguments: { agent_id: "agent-1" } }] },
    { match: child, tool_calls: [{ name: "shell", arguments: { command: "ls posts | wc -l" } }] },
    { match: child, text: "Three posts." },
    { match: parent, text: "My helper counted three." },
  ] });
  await choose(page, { baseUrl: scripted.url });
  await say(page, "ask a helper");
  await page.waitForSelector(".answer:has-text('My helper counted three.')");
  assert.equal(await page.locator(".item.agent .tool[data-state='done']").count(), 1);
  assert.match(await page.locator(".item.agent summary").first().innerText(), /subagent\s+count the posts/);
});

const FAILURES = {
  "a wrong key": [{ error: { status: 401, message: "invalid x-api-key" } }, /key/i, true],
  "no credit": [{ error: { status: 402, message: "credit balance is too low" } }, /credit|quota|balance/i, true],
  "an unknown model": [{ error: { status: 404, message: "model: nope" } }, /nope/, true],
};
for (const [name, [step, expected, settings]] of Object.entries(FAILURES)) {
  test(`${name} is said in one sentence`, async (t) => {
    const { page } = await open(t);
    const failing = await serveModel(t, { steps: [step], repeat_last: true });
    await choose(page, { baseUrl: failing.url });
    await say(page, "hello");
    const notice = page.locator(".notice.error");
    await notice.waitFor({ timeout: 60_000 });
    assert.match(await notice.innerText(), expected);
    assert.deepEqual(await notice.locator("button").allInnerTexts(), [...(settings ? ["Open settings"] : []), "Try again"]);
  });
}

test("a server that refuses the page (CORS) is told from the rest by saying what a proxy is for", async (t) => {
  const { page } = await open(t);
  // The page's own server answers, but never allows another origin.
  const other = url().replace("127.0.0.1", "localhost");
  await choose(page, { baseUrl: other });
  await say(page, "hello");
  const notice = page.locator(".notice.error");
  await notice.waitFor({ timeout: 60_000 });
  assert.match(await notice.innerText(), /CORS.*proxy/);
});

test("without a network the way out is to connect", async (t) => {
  const { context, page } = await open(t);
  await choose(page, { baseUrl: "https://model.example" });
  await context.setOffline(true);
  await say(page, "hello");
  const notice = page.locator(".notice.error");
  await notice.waitFor({ timeout: 60_000 });
  assert.equal(await notice.locator("span").innerText(), "There is no network; connect and send the message again. Open settings Try again");
});

test("settings are checked before they are used, and the key stays in the tab", async (t) => {
  const { page } = await open(t);
  await page.click("#model");
  await page.selectOption("#set-provider", "openai");
  await page.click("dialog[open] button.primary");
  assert.match(await page.locator("dialog[open] .problem").innerText(), /Paste a key/);
  await page.fill("#set-key", "sk-secret-of-mine");
  await page.click("dialog[open] button.primary");
  await page.waitForSelector("dialog[open]", { state: "detached" });
  const kept = await page.evaluate(async () => {
    const databases = await indexedDB.databases();
    return JSON.stringify({ ...localStorage }) + JSON.stringify(databases);
  });
  assert.ok(!kept.includes("sk-secret-of-mine"));
  assert.ok(kept.includes("openai"));
  await page.reload();
  await page.waitForSelector("body[data-ready]", { state: "attached" });
  await page.click("#model");
  assert.equal(await page.inputValue("#set-provider"), "openai");
  assert.equal(await page.inputValue("#set-key"), "");
});
