// The playground in Chromium: messages that are sent again, edited and copied,
// answers that break, what is missing before anything is sent, what a server
// that lets no page read it is told from, and the browser's Back.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { callStep, serveModel } from "../node/support.mjs";
import { choose, chosen, create, downloaded, file, menu, playground, preview, ready, saved, say, state, terminal } from "./playground-support.mjs";

const { open } = playground();

/** What the last request told the model. */
async function lastSent(model) {
  return JSON.stringify((await model.requests()).at(-1).body.messages);
}

const texts = (page) => page.locator(".scroller > .items > .item:not(.taken, .empty) :is(.text, .prose)").allInnerTexts();

test("a message is asked again, in place of what came of it", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [
    { text: "Noted." },
    callStep("write_file", { file_path: "made.txt", content: "1\n" }, "w"),
    { text: "A first answer." },
    { text: "A second answer." },
    { text: "A third answer." },
  ] });
  await choose(page, { baseUrl: model.url });
  await say(page, "remember periwinkle");
  await page.waitForSelector(".answer:has-text('Noted.')");
  await state(page, "IDLE");
  await say(page, "what is the word");
  await page.waitForSelector(".answer:has-text('A first answer.')");
  await state(page, "IDLE");
  await page.hover(".item.user:has-text('what is the word')");
  await page.click(".item.user:has-text('what is the word') [aria-label='Ask again']");
  await page.waitForSelector(".answer:has-text('A second answer.')");
  await state(page, "IDLE");
  const sent = await lastSent(model);
  assert.match(sent, /remember periwinkle.*Noted\..*what is the word/);
  assert.doesNotMatch(sent, /A first answer|made\.txt/);
  assert.deepEqual(await texts(page), ["remember periwinkle", "Noted.", "what is the word", "A second answer."]);
  // What was taken out can be read still, and files stay.
  await page.click(".taken summary");
  assert.equal(await page.locator(".taken .answer:has-text('A first answer.')").isVisible(), true);
  assert.equal(await page.locator('.tree [data-path="made.txt"]').count(), 1);
  // It is so after a reload, too.
  await saved(page);
  await page.reload();
  await ready(page);
  assert.deepEqual(await texts(page), ["remember periwinkle", "Noted.", "what is the word", "A second answer."]);
  await say(page, "and now");
  await page.waitForSelector(".answer:has-text('A third answer.')");
  assert.doesNotMatch(await lastSent(model), /A first answer/);
  assert.deepEqual(problems, []);
});

test("a message is edited and sent instead, the first one too; Escape leaves it", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [{ text: "Blue." }, { text: "Red." }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "say blue");
  await page.waitForSelector(".answer:has-text('Blue.')");
  await state(page, "IDLE");
  const edit = async () => {
    await page.hover(".item.user");
    await page.click(".item.user [aria-label='Edit, and send it instead']");
    assert.equal(await page.inputValue("#composer"), "say blue");
    assert.equal(await page.locator(".editing-note").isVisible(), true);
  };
  await edit();
  await page.press("#composer", "Escape");
  assert.equal(await page.inputValue("#composer"), "");
  assert.equal(await page.locator(".editing-note").isVisible(), false);
  await edit();
  await say(page, "say red");
  await page.waitForSelector(".answer:has-text('Red.')");
  assert.doesNotMatch(await lastSent(model), /blue/i);
  assert.deepEqual(await texts(page), ["say red", "Red."]);
  assert.equal(await page.locator(".notice:has-text('A new session begins')").count(), 0);
  assert.deepEqual(problems, []);
});

test("a message is asked again while the agent works on it", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [{ text: "This takes long.", hold: "never", hold_before: "end" }, { text: "Quick." }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "go");
  await page.waitForSelector(".answer:has-text('This takes long.')");
  await page.hover(".item.user");
  await page.click(".item.user [aria-label='Ask again']");
  await page.waitForSelector(".items > .answer:has-text('Quick.')");
  await state(page, "IDLE");
  assert.deepEqual(await texts(page), ["go", "Quick."]);
  assert.deepEqual(problems, []);
});

test("messages and answers are copied", async (t) => {
  const { context, page } = await open(t);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const model = await serveModel(t, { steps: [{ text: "Use `ls` **now**." }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "how <b>do</b> I list files");
  await page.waitForSelector(".answer:has-text('Use ls now.')");
  await state(page, "IDLE");
  const copied = async (place) => {
    await page.hover(place);
    await page.click(`${place} [aria-label="Copy"]`);
    await page.waitForFunction(() => document.getElementById("live").textContent === "Copied.");
    await page.evaluate(() => (document.getElementById("live").textContent = ""));
    return page.evaluate(() => navigator.clipboard.readText());
  };
  assert.equal(await copied(".item.user"), "how <b>do</b> I list files");
  assert.equal(await copied(".item.answer"), "Use `ls` **now**.");
});

test("what came of an answer stays when it breaks, and the message can be tried again", async (t) => {
  const { page } = await open(t);
  const cut = (hold) => ({ text: "The first half of it", hold, hold_before: "end", disconnect: "before_end" });
  const model = await serveModel(t, { steps: [cut("one"), cut("two"), cut("three"), { text: "The whole of it." }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "write it");
  await page.waitForSelector(".answer:has-text('The first half of it')");
  await model.release("one");
  // While it is tried once more it is read, too.
  await page.waitForSelector(".notice.warning:has-text('Attempt 2 follows')");
  assert.match(await page.locator(".answer").first().innerText(), /^The first half of it/);
  for (const hold of ["two", "three"]) {
    await model.held(hold);
    await page.waitForSelector(".answer:has-text('The first half of it')");
    await model.release(hold);
  }
  const notice = page.locator(".notice.error");
  await notice.waitFor({ timeout: 60_000 });
  assert.equal(await page.locator(".answer").count(), 1);
  // It is marked in the frame behind the one that shows the notice.
  await page.waitForFunction(() => /^The first half of it\s+cut off/.test(/** @type {HTMLElement} */ (document.querySelector(".answer")).innerText));
  await notice.locator("button:text-is('Try again')").click();
  await page.waitForSelector(".answer:has-text('The whole of it.')");
  assert.match(await page.locator(".answer").first().innerText(), /The first half of it/);
  await state(page, "IDLE");
  assert.equal(await page.locator(".notice.error .again").isVisible(), false);
});

test("a run goes on from the point that one looks at, with its conversation", async (t) => {
  const { page, problems } = await open(t);
  const model = await serveModel(t, { steps: [
    callStep("write_file", { file_path: "page.html", content: "<p>one</p>\n" }, "w"),
    { text: "Page one is made." },
    callStep("shell", { command: "echo '<p>two</p>' > page.html" }, "x"),
    { text: "Page two is made." },
  ] });
  await create(page, "theirs");
  await choose(page, { baseUrl: model.url });
  for (const [task, answer] of [["make page one", "Page one is made."], ["make page two", "Page two is made."]]) {
    await say(page, task);
    await page.waitForSelector(`.answer:has-text("${answer}")`);
    await state(page, "IDLE");
  }
  const { content } = await downloaded(page, "Share run as JSON");
  const { log } = JSON.parse(content);
  const at = log.findIndex(({ event }) => event?.kind === "PROCESSING_END") + 1;
  const other = await serveModel(t, { steps: [{ text: "I know page one." }, { text: "Still." }] });
  await choose(page, { baseUrl: other.url });
  await chosen(page, "Open a run…", file("theirs.run.json", content.toString()));
  await page.waitForSelector(".replay");
  await page.fill(".replay input[type=range]", String(at));
  await page.click("text=Continue from here");
  await page.waitForSelector("#project-name:text-is('theirs-2')");
  const before = ["make page one", "Page one is made."];
  assert.deepEqual(await texts(page), before);
  assert.match(await page.locator(".notice.info").last().innerText(), /^Continued from the run theirs\./);
  // Also when the page was loaded anew in between.
  await saved(page);
  await page.reload();
  await ready(page);
  assert.deepEqual(await texts(page), before);
  await say(page, "what do you know");
  await page.waitForSelector(".answer:has-text('I know page one.')");
  const sent = await lastSent(other);
  assert.match(sent, /make page one.*write_file.*page\.html.*Page one is made\..*what do you know/);
  assert.doesNotMatch(sent, /page two/i);
  assert.equal(await page.locator(".notice:has-text('A new session begins')").count(), 0);
  await page.click('.tree [data-path="page.html"]');
  assert.match(await page.innerText(".cm-content"), /<p>one<\/p>/);
  // It can be handed on, and shows what was changed since.
  await state(page, "IDLE");
  const again = JSON.parse((await downloaded(page, "Share run as JSON")).content);
  assert.deepEqual(Object.keys(again.files), []);
  assert.deepEqual(problems, []);
});

test("a missing key is said before anything is sent, and what was typed stays", async (t) => {
  const { context, page } = await open(t);
  const asked = [];
  await context.route("https://api.anthropic.com/**", (route) => {
    asked.push(route.request().url());
    return route.fulfill({ status: 500, body: "" });
  });
  assert.equal(await page.locator(".need").isVisible(), false);
  await choose(page, { key: "a-key-of-mine" });
  assert.equal(await page.locator(".need").isVisible(), false);
  await page.reload();
  await ready(page);
  assert.match(await page.innerText(".need"), /^The key for Anthropic is missing\. .*paste it in the settings.* Open settings$/);
  await say(page, "a long task");
  assert.equal(await page.inputValue("#composer"), "a long task");
  assert.equal(await page.locator(".item").count(), 0);
  assert.match(await page.innerText("#live"), /^The key for Anthropic is missing/);
  // The demo's button, too.
  if (await page.locator("#run-demo").count()) {
    await page.click("#run-demo");
    await page.waitForSelector(".toast.error:has-text('The key for Anthropic is missing')");
    assert.equal(await page.isDisabled("#run-demo"), false);
  }
  assert.deepEqual(asked, []);
  await page.click(".need button");
  await page.fill("#set-key", "a-key-of-mine");
  await page.click("dialog[open] button.primary");
  assert.equal(await page.locator(".need").isVisible(), false);
});

test("a wrong key, a server that lets no page read it, and none at all are told apart", async (t) => {
  const { page } = await open(t);
  let requests = 0;
  const open_ = createServer((request, response) => {
    requests += 1;
    response.writeHead(request.method === "OPTIONS" ? 404 : 200).end();
  });
  await new Promise((resolve) => open_.listen(0, "127.0.0.1", resolve));
  const { port } = open_.address();
  t.after(() => new Promise((resolve) => {
    open_.closeAllConnections();
    open_.close(resolve);
  }));
  const failing = await serveModel(t, { steps: [{ error: { status: 401, message: "invalid x-api-key" } }], repeat_last: true });
  const told = async (baseUrl) => {
    await menu(page, "New conversation");
    await choose(page, { baseUrl });
    await say(page, "hello");
    await page.waitForSelector(".notice.error", { timeout: 60_000 });
    await state(page, "CLOSED").catch(() => {});
    return page.innerText(".notice.error");
  };
  assert.match(await told(failing.url), /^The server answered, and it refused the key \(401: .*invalid x-api-key/);
  assert.match(await told(`http://127.0.0.1:${port}`), new RegExp(`^http://127\\.0\\.0\\.1:${port} is there, but it does not let web pages read its answers \\(CORS\\)\\. .*proxy.*settings`));
  assert.ok(requests > 1);
  // Before the last attempt, too.
  assert.match(await page.innerText(".notice.warning"), /\(CORS\)\. Attempt \d follows/);
  await new Promise((resolve) => {
    open_.closeAllConnections();
    open_.close(resolve);
  });
  assert.match(await told(`http://127.0.0.1:${port}`), new RegExp(`^Nothing answers at http://127\\.0\\.0\\.1:${port}\\. Check the address`));
});

test("the browser's Back closes a dialog and leaves the page where it is", async (t) => {
  const { page, problems } = await open(t);
  const address = page.url();
  const length = () => page.evaluate(() => history.length);
  await page.click("#model");
  await page.waitForSelector("dialog.settings[open]");
  await page.goBack();
  await page.waitForSelector("dialog[open]", { state: "detached" });
  assert.equal(page.url(), address);
  assert.equal(await page.locator("body[data-ready]").count(), 1);
  // One that is closed otherwise leaves no entry behind that Back would have to leave first.
  await page.click("#model");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog[open]", { state: "detached" });
  await page.waitForFunction(() => !history.state?.dialog);
  assert.ok((await length()) <= 3);
  // Forward leads to no dialog, and back again.
  await page.goForward();
  await page.waitForFunction(() => !history.state?.dialog);
  // The topmost of two, then the other.
  await menu(page, "Open the sample");
  await page.waitForSelector("#project-name:text-is('tide-pool-2')");
  await menu(page, "Projects…");
  await page.click('[aria-label="Delete tide-pool"]');
  await page.waitForSelector("dialog.question[open]");
  await page.goBack();
  await page.waitForSelector("dialog.question", { state: "detached" });
  assert.equal(await page.locator("dialog.projects[open]").count(), 1);
  await page.waitForFunction(() => history.state?.dialog);
  await page.goBack();
  await page.waitForSelector("dialog[open]", { state: "detached" });
  await menu(page, "Projects…");
  await page.waitForSelector("dialog.projects[open]");
  assert.equal(await page.locator(".shelf li").count(), 2);
  await page.keyboard.press("Escape");
  // Back denies what the agent asks.
  const model = await serveModel(t, { steps: [callStep("shell", { command: "rm slug.sh" }, "a"), { text: "Not done." }] });
  await choose(page, { baseUrl: model.url, approval: "always" });
  await say(page, "delete it");
  await page.waitForSelector("dialog.approval[open]");
  await page.goBack();
  await page.waitForSelector(".answer:has-text('Not done.')");
  assert.equal(await page.locator('.tree [data-path="slug.sh"]').count(), 1);
  assert.equal(page.url(), address);
  assert.deepEqual(problems, []);
});

test("an empty project offers templates that run, and tasks", async (t) => {
  const { page, problems } = await open(t);
  await create(page, "fresh");
  assert.match(await page.innerText(".hello"), /This project is empty/);
  await page.click(".starts .task >> nth=0");
  assert.match(await page.inputValue("#composer"), /pomodoro/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "composer");
  await page.click(".starts button:text-is('Web page')");
  await preview(page).locator("button:text-is('Pressed 0 times')").click();
  await preview(page).locator("button:text-is('Pressed 1 time')").waitFor();
  assert.equal(await page.getAttribute(".tab[aria-selected='true']", "data-path"), "index.html");
  // Of a project with files, other tasks are offered.
  assert.doesNotMatch(await page.innerText(".hello"), /This project is empty/);
  for (const [name, template, command, expected] of [
    ["node", "Node script with tests", "node --test 2>&1 | grep -E 'pass [0-9]'; node words.js package.json", "pass 2"],
    ["python", "Python script with tests", "python3 -m unittest 2>&1 | tail -n 1; python3 words.py words.py", "OK"],
  ]) {
    await create(page, name);
    await page.click(`.starts button:text-is("${template}")`);
    await page.waitForSelector(".tab[aria-selected='true']");
    await terminal(page, command);
    await page.waitForFunction((text) => document.querySelector(".xterm-rows").innerText.replaceAll("\u00a0", " ").includes(text), expected);
  }
  assert.deepEqual(problems, []);
});
