// The playground in Chromium: what the agent asks, what becomes of messages to
// it, runs that are cut off, and models of more than one provider.

import assert from "node:assert/strict";
import { test } from "node:test";
import { callStep, serveModel } from "../node/support.mjs";
import { answer, choose, menu, playground, ready, saved, say, screenshot, state, stores, terminal } from "./playground-support.mjs";

const { open } = playground();

/** The last request's body, as text. */
async function lastSent(model) {
  return JSON.stringify((await model.requests()).at(-1).body);
}

const asked = (page) => page.waitForSelector("dialog.approval[open]");
const closed = (page) => page.waitForSelector("dialog.approval[open]", { state: "detached" });

test("a command that does more than read is asked about; it can be allowed once, always or not", async (t) => {
  const { page, problems } = await open(t);
  const make = (name, id) => callStep("shell", { command: `touch ${name}` }, id);
  const model = await serveModel(t, { steps: [
    callStep("shell", { command: "cat README.md" }, "read"),
    make("a.txt", "once"),
    callStep("shell", { command: "rm a.txt" }, "no"),
    callStep("shell", { command: "sh test.sh" }, "always"),
    callStep("shell", { command: "sh test.sh" }, "again"),
    make("a.txt", "another"),
    { text: "Done." },
  ] });
  await choose(page, { baseUrl: model.url, approval: "ask" });
  await say(page, "work");
  await asked(page);
  assert.equal(await page.locator("dialog.approval .call").innerText(), "touch a.txt");
  assert.equal(await page.locator(".tool").last().getAttribute("data-state"), "waiting");
  // What somebody types just then answers nothing.
  await page.keyboard.press("Enter");
  await page.keyboard.press("Space");
  await asked(page);
  await page.click('dialog.approval button:text-is("Allow once")');
  await page.waitForSelector('dialog.approval[open] .call:text-is("rm a.txt")');
  await page.fill("#approval-why", "keep that file");
  await page.click('dialog.approval button:text-is("Deny")');
  await page.waitForSelector('dialog.approval[open] .call:text-is("sh test.sh")');
  assert.match(await lastSent(model), /not approved: keep that file/);
  await page.click('dialog.approval button:text-is("Always allow this command")');
  await page.waitForSelector('dialog.approval[open] .call:text-is("touch a.txt")');
  await page.keyboard.press("Escape");
  await page.waitForSelector(".answer:has-text('Done.')");
  const times = await page.locator(".tool").evaluateAll((all) => all.map((card) => [card.dataset.state, card.querySelector(".time").textContent === "not allowed"]));
  assert.deepEqual(times, [["done", false], ["done", false], ["failed", true], ["failed", false], ["failed", false], ["failed", true]]);
  assert.deepEqual(problems, []);
});

test("approval is chosen for the next call, also while the agent works", async (t) => {
  const { page } = await open(t);
  const model = await serveModel(t, { steps: [
    { text: "First I think.", tool_calls: [{ name: "read_file", arguments: { file_path: "README.md" } }], hold: "go", hold_before: "tool_calls" },
    { text: "Done." },
  ] });
  await choose(page, { baseUrl: model.url });
  await say(page, "read it");
  await page.waitForSelector(".answer:has-text('First I think.')");
  await page.click("#model");
  await page.selectOption("#set-approval", "always");
  await page.click("dialog[open] button.primary");
  await model.release("go");
  await asked(page);
  assert.match(await page.locator("dialog.approval h2").innerText(), /call read_file/);
  await page.click('dialog.approval button:text-is("Always allow read_file")');
  await page.waitForSelector(".answer:has-text('Done.')");
});

test("stopping takes the question back", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [callStep("shell", { command: "rm slug.sh" }, "a"), { text: "Still here." }] });
  await choose(page, { baseUrl: model.url, approval: "always" });
  await say(page, "delete it");
  await asked(page);
  await page.click('dialog.approval button:text-is("Stop the agent")');
  await closed(page);
  await page.waitForSelector(".notice:has-text('Stopped.')");
  await state(page, "IDLE");
  await say(page, "and now");
  await page.waitForSelector(".answer:has-text('Still here.')");
  assert.equal(await page.locator('.tree [data-path="slug.sh"]').count(), 1);
  assert.deepEqual(problems, []);
});

test("steering that never arrives is shown as dropped", async (t) => {
  const { page } = await open(t);
  const model = await serveModel(t, { steps: [{ hold: "go", error: { status: 401, message: "invalid x-api-key" } }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "begin");
  await model.held("go");
  await say(page, "in French please");
  await page.waitForSelector(".queue li:has-text('in French please')");
  await model.release("go");
  await page.waitForSelector(".item.steering:has-text('dropped')");
  assert.match(await page.locator(".item.steering").innerText(), /dropped\s+in French please/);
  assert.equal(await page.locator(".queue li").count(), 0);
});

/** Begins a task, steers, and stops before the message has reached the model. */
async function stopWithSteering(page, model, text) {
  await choose(page, { baseUrl: model.url });
  await say(page, "begin");
  await page.waitForSelector(".answer:has-text('This takes long.')");
  await say(page, text);
  await page.waitForSelector(`.queue li:has-text("${text}")`);
  await page.click(".stop");
  await page.waitForSelector(".notice:has-text('Stopped.')");
  await state(page, "IDLE");
}

const LONG = { text: "This takes long.", hold: "never", hold_before: "end" };

test("steering that Stop has left waits, says so, and reaches the model behind the next message", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [LONG, { text: "Bonjour." }] });
  await stopWithSteering(page, model, "in French please");
  assert.match(await page.locator(".queue li").innerText(), /^queued\s+in French please$/);
  assert.equal(await page.locator(".queue-note").innerText(), "The agent gets it with your next message.");
  await say(page, "go on");
  await page.waitForSelector(".answer:has-text('Bonjour.')");
  assert.match(await page.locator(".item.steering").innerText(), /delivered\s+in French please/);
  assert.equal(await page.locator(".queue li").count(), 0);
  assert.equal(await page.locator(".queue-note").isVisible(), false);
  assert.match(await lastSent(model), /go on.*in French please/);
  assert.deepEqual(problems, []);
});

test("steering that waits goes over to the session of another model", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [LONG, { text: "Bonjour." }] });
  await stopWithSteering(page, model, "in French please");
  await choose(page, { baseUrl: model.url, name: "claude-opus-4-5" });
  await say(page, "go on");
  await page.waitForSelector(".answer:has-text('Bonjour.')");
  assert.deepEqual(await page.locator(".item.steering .tag").allInnerTexts(), ["delivered"]);
  assert.equal(await page.locator(".queue li").count(), 0);
  assert.match(await lastSent(model), /go on.*in French please/);
  assert.deepEqual(problems, []);
});

test("steering that waits is there after a reload, once, and dropped where nothing goes on", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [{ text: "Hello." }, LONG, { text: "Bonjour." }, LONG] });
  await choose(page, { baseUrl: model.url });
  await say(page, "hello");
  await page.waitForSelector(".answer:has-text('Hello.')");
  await stopWithSteering(page, model, "in French please");
  await saved(page);
  const reload = async () => {
    await page.reload();
    await ready(page);
    assert.equal(await page.locator(".queue li").count(), 1);
  };
  await reload();
  await choose(page, { baseUrl: model.url });
  await say(page, "go on");
  await page.waitForSelector(".answer:has-text('Bonjour.')");
  assert.deepEqual(await page.locator(".item.steering .tag").allInnerTexts(), ["delivered"]);
  assert.equal(await page.locator(".queue li").count(), 0);
  await state(page, "IDLE");
  await say(page, "begin");
  await page.waitForSelector(".answer:has-text('This takes long.') >> nth=1");
  await say(page, "in Greek please");
  await page.waitForSelector(".queue li");
  await page.click(".stop");
  await state(page, "IDLE");
  await saved(page);
  await reload();
  await page.click("#model");
  await page.selectOption("#set-provider", "scripted");
  await page.click("dialog[open] button.primary");
  await say(page, "play");
  await page.waitForSelector(".item.steering:has-text('dropped')");
  assert.match(await page.locator(".item.steering").last().innerText(), /dropped\s+in Greek please/);
  assert.equal(await page.locator(".queue li").count(), 0);
  assert.deepEqual(problems, []);
});

test("two messages that are sent at once are one conversation", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [{ text: "Heard.", hold: "go" }, { text: "Heard, too." }] });
  await choose(page, { baseUrl: model.url });
  await page.evaluate(() => {
    const input = document.getElementById("composer");
    for (const text of ["the first", "the second"]) {
      input.value = text;
      input.form.requestSubmit();
    }
  });
  // The second steers: it comes before the first request, or waits for the next input.
  await page.waitForSelector(":is(.queue, .items):has-text('the second')");
  await model.held("go");
  await model.release("go");
  await state(page, "IDLE");
  await say(page, "the third");
  await page.waitForSelector(".answer:has-text('Heard, too.')");
  const sent = await lastSent(model);
  for (const text of ["the first", "the second", "the third"]) assert.ok(sent.includes(text), sent);
  assert.deepEqual(problems, []);
});

test("a demo that is begun twice runs once", async (t) => {
  const { page, problems } = await open(t);
  await page.evaluate(() => {
    const button = document.getElementById("run-demo");
    button.click();
    button.click();
  });
  await page.waitForSelector(".answer:has-text('run the tests')");
  await state(page, "IDLE");
  assert.equal(await page.locator(".item.user").count(), 1);
  assert.equal(await page.locator(".tool").count(), 4);
  assert.deepEqual(problems, []);
});

test("a subagent's model is another provider's, with that provider's key", async (t) => {
  const { context, page } = await open(t);
  // The model's servers tell no keys.
  const keys = new Map();
  context.on("request", (request) => {
    const { authorization, "x-api-key": key } = request.headers();
    const sent = authorization ?? key;
    if (sent) keys.set(new URL(request.url()).origin, sent);
  });
  const [parent, child] = [
    await serveModel(t, { steps: [
      callStep("spawn_agent", { task: "count the posts", model: "gpt-5.2" }, "a"),
      callStep("wait", { agent_id: "agent-1" }, "b"),
      { text: "The helper counted three." },
    ] }),
    await serveModel(t, { steps: [callStep("shell", { command: "ls posts | wc -l" }, "c"), { text: "Three posts." }] }),
  ];
  await choose(page, { baseUrl: parent.url, others: { openai: { key: "second-key", baseUrl: child.url } } });
  await say(page, "ask a helper");
  await page.waitForSelector(".answer:has-text('The helper counted three.')");
  assert.deepEqual(Object.fromEntries(keys), { [parent.url]: "page-key", [child.url]: "Bearer second-key" });
});

test("keys are kept only if the user asks, and then every one", async (t) => {
  const { page } = await open(t);
  const stored = () => page.evaluate(async () => {
    const texts = [JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage })];
    const walk = async (directory) => {
      for await (const handle of directory.values()) {
        if (handle.kind === "directory") await walk(handle);
        else texts.push(await (await handle.getFile()).text());
      }
    };
    await walk(await navigator.storage.getDirectory());
    return texts.join("\n");
  });
  const others = { openai: { key: "key-of-openai" }, gemini: { key: "key-of-gemini" } };
  await choose(page, { key: "key-of-anthropic", others });
  await saved(page);
  assert.doesNotMatch(await stored(), /key-of/);
  await choose(page, { key: "key-of-anthropic", others, remember: true });
  assert.match(await stored(), /key-of-anthropic/);
  await page.reload();
  await ready(page);
  await page.click("#model");
  assert.equal(await page.inputValue("#set-key"), "key-of-anthropic");
  assert.equal(await page.inputValue('[data-provider="openai"][data-name="key"]'), "key-of-openai");
  assert.equal(await page.inputValue('[data-provider="gemini"][data-name="key"]'), "key-of-gemini");
  await page.uncheck("#set-remember");
  await page.click("dialog[open] button.primary");
  assert.doesNotMatch(await stored(), /key-of/);
});

test("a run that its page's end cut off goes on after the reload", async (t) => {
  const { page } = await open(t);
  const model = await serveModel(t, { steps: [
    callStep("write_file", { file_path: "half.txt", content: "half done\n" }, "a"),
    { text: "Now the rest.", hold: "never", hold_before: "end" },
    { expect: { contains: "half done" }, text: "The rest is done." },
  ] });
  await choose(page, { baseUrl: model.url, remember: true });
  await say(page, "do it");
  await page.waitForSelector(".answer:has-text('Now the rest.')");
  await saved(page);
  page.on("dialog", (dialog) => void dialog.accept().catch(() => {}));
  await page.reload();
  await ready(page);
  assert.equal(await page.locator('.tree [data-path="half.txt"]').count(), 1);
  assert.match(await page.locator(".notice.warning").last().innerText(), /The page was closed, or lost the project, while the agent worked/);
  await page.click('.notice button:text-is("Go on")');
  await page.waitForSelector(".answer:has-text('The rest is done.')");
  await state(page, "IDLE");
});

test("what had come of an answer is there after the reload, and is said to be cut off", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [
    { thinking: { text: "Two halves.", signature: "ZGVtbw==" }, texts: ["This is", " the first half"], delta_delay_ms: 700, hold: "never", hold_before: "end" },
    { text: "Both halves." },
  ] });
  await choose(page, { baseUrl: model.url, remember: true });
  await say(page, "write it");
  await page.waitForSelector(".answer:has-text('This is the first half')");
  // Nothing more comes that it could be kept with: what is not kept by then is not kept at all.
  await stores(page, "tide-pool", " the first half");
  page.on("dialog", (dialog) => void dialog.accept().catch(() => {}));
  const reload = async () => {
    await page.reload();
    await ready(page);
    return page.locator(".answer").evaluateAll((all) => all.map((one) => [one.querySelector(".prose").innerText, one.querySelector(".cut")?.checkVisibility()]));
  };
  const half = ["This is the first half", true];
  assert.deepEqual(await reload(), [half]);
  assert.match(await page.locator(".notice.warning").innerText(), /what it had done by then is here\. The answer that was cut off is asked for again when you go on\. Go on$/);
  await page.click('.notice button:text-is("Go on")');
  await page.waitForSelector(".answer:has-text('Both halves.')");
  await state(page, "IDLE");
  await saved(page);
  assert.deepEqual(await reload(), [half, ["Both halves.", false]]);
  assert.deepEqual(problems, []);
});

test("a call that was cut off stays so, also when the run has gone on", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [callStep("shell", { command: "while :; do :; done" }, "long"), { text: "I went on." }] });
  await choose(page, { baseUrl: model.url, remember: true });
  await say(page, "work");
  await page.waitForSelector(".tool[data-state=running]");
  await saved(page);
  page.on("dialog", (dialog) => void dialog.accept().catch(() => {}));
  await page.reload();
  await ready(page);
  await page.click('.notice button:text-is("Go on")');
  await page.waitForSelector(".answer:has-text('I went on.')");
  await state(page, "IDLE");
  await saved(page);
  await page.reload();
  await ready(page);
  assert.equal(await page.locator(".tool .time").innerText(), "cut off");
  assert.equal(await page.locator(".tool").getAttribute("data-state"), "failed");
  assert.deepEqual(problems, []);
});

test("a demo that is stopped or cut off does not pretend to go on", async (t) => {
  const { page, problems } = await open(t);
  page.on("dialog", (dialog) => void dialog.accept());
  await page.click("#run-demo");
  // Before the repair.
  await page.waitForSelector(".answer:has-text('Each character')");
  await page.keyboard.press("Escape");
  await state(page, "IDLE");
  await say(page, "go on");
  await page.waitForSelector(".answer:has-text('This model only plays the repair of the sample.')");
  assert.equal(await page.locator(".tool").count(), 2);
  await menu(page, "New conversation");
  // A question holds the demo where it is until the page is closed.
  const approval = async (id) => {
    await page.click("#model");
    await page.selectOption("#set-approval", id);
    await page.click("dialog[open] button.primary");
    await page.waitForSelector("dialog[open]", { state: "detached" });
  };
  await approval("ask");
  await page.click("#run-demo");
  await page.waitForSelector("dialog[open]");
  await saved(page);
  await page.reload();
  await ready(page);
  const notice = page.locator(".notice.warning");
  assert.equal(await notice.innerText(), "The page was closed, or lost the project, while the agent worked; what it had done by then is here. The scripted model cannot go on with it; “New conversation” in the project's menu begins anew.");
  assert.equal(await notice.locator("button").count(), 0);
  await approval("never");
  await menu(page, "New conversation");
  await page.click("#run-demo");
  await page.waitForSelector(".answer:has-text('All four tests pass')");
  assert.deepEqual(problems, []);
});

test("a new conversation knows nothing of the one before, and the files stay", async (t) => {
  const { page } = await open(t);
  const model = await serveModel(t, { steps: [
    callStep("write_file", { file_path: "one.txt", content: "1\n" }, "a"),
    { text: "First done." },
    { expect: { not_contains: "remember periwinkle" }, text: "I know nothing." },
  ] });
  await choose(page, { baseUrl: model.url, remember: true });
  await say(page, "remember periwinkle");
  await page.waitForSelector(".answer:has-text('First done.')");
  await state(page, "IDLE");
  await menu(page, "New conversation");
  await page.waitForSelector(".hello:not([hidden])");
  await saved(page);
  await page.reload();
  await ready(page);
  assert.equal(await page.locator(".item").count(), 0);
  assert.equal(await page.locator('.tree [data-path="one.txt"]').count(), 1);
  await say(page, "what do you know");
  await page.waitForSelector(".answer:has-text('I know nothing.')");
});

test("calls that run in parallel each show what they changed", async (t) => {
  const { page } = await open(t);
  const write = (name) => ({ name: "write_file", id: name, arguments: { file_path: `${name}.txt`, content: `${name}\n` } });
  const model = await serveModel(t, { steps: [
    { tool_calls: [write("one"), write("two"), write("three"), { name: "shell", id: "sh", arguments: { command: "echo 4 > four.txt" } }] },
    { text: "Done." },
  ] });
  await choose(page, { baseUrl: model.url });
  await say(page, "write them");
  await state(page, "IDLE");
  await page.waitForFunction(() => document.querySelectorAll(".diff .path").length === 4);
  const shown = await page.locator(".tool").evaluateAll((all) => all.map((card) => [card.querySelector(".brief").textContent, [...card.querySelectorAll(".path")].map((path) => path.textContent)]));
  assert.deepEqual(shown, [
    ["one.txt", ["one.txt"]], ["two.txt", ["two.txt"]], ["three.txt", ["three.txt"]],
    ["echo 4 > four.txt", ["four.txt"]],
  ]);
});

test("calls of agents that count alike stand at their own agent, with their changes", async (t) => {
  const { page, problems } = await open(t);
  const child = (name) => ({ contains: `make ${name}` });
  const parent = { not_contains: "You are a subagent" };
  const names = ["left", "right"];
  const model = await serveModel(t, { steps: [
    { match: parent, tool_calls: names.map((name) => ({ name: "spawn_agent", arguments: { task: `make ${name}` } })) },
    { match: parent, tool_calls: names.map((_, index) => ({ name: "wait", arguments: { agent_id: `agent-${index + 1}` } })) },
    ...names.flatMap((name) => [
      { match: child(name), tool_calls: [{ name: "write_file", id: "call-1", arguments: { file_path: `${name}.txt`, content: name } }] },
      { match: child(name), tool_calls: [{ name: "shell", id: "call-2", arguments: { command: `echo ${name} > ${name}-too.txt; echo told by ${name}; sleep 1` } }] },
      { match: child(name), text: `${name} is made.` },
    ]),
    { match: parent, text: "Both are made." },
  ] });
  await choose(page, { baseUrl: model.url });
  await say(page, "make two");
  await page.waitForSelector(".answer:has-text('Both are made.')");
  await state(page, "IDLE");
  // What the last calls changed is looked for when they have ended.
  await terminal(page, "true");
  await page.waitForFunction(() => document.querySelectorAll(".tool .path").length === 4);
  for (const [index, name] of names.entries()) {
    const card = page.locator(".item.agent").nth(index);
    await card.locator("details").first().evaluate((details) => (details.open = true));
    const tools = card.locator(".tool");
    assert.equal(await tools.count(), 2);
    assert.deepEqual(await tools.nth(0).locator(".path").allTextContents(), [`${name}.txt`]);
    assert.match(await tools.nth(1).locator(".output").textContent(), new RegExp(`^told by ${name}\\n`));
    for (const at of [0, 1]) assert.equal(await tools.nth(at).getAttribute("data-state"), "done");
  }
  // Which of two commands at once wrote a file is not known: it is shown once, and said.
  const shown = await page.locator(".tool .path").evaluateAll((all) => all.map((path) => {
    const card = path.closest(".tool");
    return [path.textContent, card.querySelector(".arguments").textContent.includes(path.textContent) || card.querySelector(".among:not([hidden])") !== null];
  }));
  assert.deepEqual(shown.sort(), [["left-too.txt", true], ["left.txt", true], ["right-too.txt", true], ["right.txt", true]]);
  assert.deepEqual(problems, []);
});

test("steering that a command keeps from the agent waits, and stays so after Stop", async (t) => {
  const { page, problems } = await open(t);
  // It hears nothing until its work bound ends it, some seconds later.
  const deaf = callStep("shell", { command: "awk 'BEGIN { while (1); }'" }, "deaf");
  const model = await serveModel(t, { steps: [deaf, { text: "Bonjour." }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "work");
  await page.waitForSelector(".tool[data-state=running]");
  await say(page, "in French please");
  await page.waitForSelector(".queue li.sending:has-text('in French please')");
  await page.click(".chat .stop");
  await page.waitForSelector(".queue-note:has-text('The agent gets it with your next message.')");
  assert.match(await page.locator(".queue li").innerText(), /^queued\s+in French please$/);
  assert.deepEqual(await page.locator(".item.user .text").allInnerTexts(), ["work"]);
  await stores(page, "tide-pool", '"kind":"steering"');
  await saved(page);
  await page.reload();
  await ready(page);
  assert.match(await page.locator(".queue li").innerText(), /^queued\s+in French please$/);
  await choose(page, { baseUrl: model.url });
  await say(page, "go on");
  await page.waitForSelector(".answer:has-text('Bonjour.')");
  assert.match(await page.locator(".item.steering").innerText(), /delivered\s+in French please/);
  assert.equal(await page.locator(".queue li").count(), 0);
  assert.match(await lastSent(model), /go on.*in French please/);
  assert.deepEqual(problems, []);
});

test("a project whose agent works is left only when that is confirmed, and works on until then", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [{ texts: ["Begun.", " Went on."], hold: "go", hold_before: "end", delta_delay_ms: 50 }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "work");
  await page.waitForSelector(".status[data-state='PROCESSING']");
  await menu(page, "Open the sample");
  await page.waitForSelector("dialog.question[open]");
  // A question of the browser's would hold this up.
  await page.waitForSelector(".answer:has-text('Begun. Went on.')", { state: "attached" });
  await screenshot(page, "question");
  assert.equal(await answer(page, "Cancel"), "The agent is still working. Stop it?");
  assert.equal(await page.innerText("#project-name"), "tide-pool");
  await menu(page, "Open the sample");
  await answer(page, "Stop it");
  await page.waitForSelector("#project-name:text-is('tide-pool-2')");
  assert.deepEqual(problems, []);
});
