// The report of an evaluation run, as a file in Chromium: it lists, opens and scrubs
// trials; nothing that a model wrote is executed or fetched. Times are printed.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

import { launch, wholeFile } from "./page.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TEMPLATE = join(ROOT, "host/src/eval/report.html");
const SCREENSHOTS = join(ROOT, "target/screenshots");
const PLACEHOLDER = "/*DATA*/null";
const HASH = "/*HASH*/";
/** ms after which sorting or filtering counts as hung; what it takes is printed. */
const HANG = 5000;

/** Texts that would do something in a page that took them for more than text. */
const HOSTILE = [
  "</script><script>globalThis.attacked = 'script'</script>",
  "<img src=x onerror=\"globalThis.attacked = 'img'\">",
  "<iframe src=\"https://attack.test/frame\"></iframe><link rel=stylesheet href=https://attack.test/a.css>",
  "\"><svg onload=\"globalThis.attacked = 'svg'\">",
  "javascript:globalThis.attacked='link'",
  "\u001b[31mred\u001b[0m\u001b]0;title\u0007\u0000\u009b2J",
  "invoice\u202Efdp.exe ${globalThis.attacked=1} {{7*7}} $& $1 <!-- <![CDATA[",
  "__proto__",
  "constructor.toString %E0%A4%A #../?&",
];

/** Numbers below 1 that are the same in each run (mulberry32). */
function seeded(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const OUTCOMES = ["passed", "passed", "passed", "passed", "failed", "failed", "limit", "agent_error", "infra_error"];
const REASONS = {
  failed: "the checker ended with exit code 1: expected 42, found 41",
  limit: "the trial used its 20 rounds",
  agent_error: "the model answered 400: messages.3 has no tool result",
  infra_error: "the connection to the model broke 5 times",
};
const PATCH = `diff --git a/sum.py b/sum.py
index 3b18e51..a042389 100644
--- a/sum.py
+++ b/sum.py
@@ -1,6 +1,6 @@
 import sys
 total = 0
 for line in sys.stdin:
-    total += int(line.split(",")[1])
--- not a header, but a removed line
+    total += int(line.split(",")[2])
+++ not a header, but an added line
 print(total)
diff --git a/notes.txt b/notes.txt
new file mode 100644
--- /dev/null
+++ b/notes.txt
@@ -0,0 +1,2 @@
+Column 2 holds the amounts.
+\tColumn 1 holds the dates.
\\ No newline at end of file
`;

/** The data of a run. `kinds` details are made, and shared by trials. */
function runOf({ tasks, perTask, hostile, kinds }) {
  const random = seeded(7);
  const below = (limit) => Math.floor(random() * limit);
  const harm = (text) => (hostile ? `${text} ${HOSTILE[below(HOSTILE.length)]}` : text);
  const details = Array.from({ length: kinds }, (_, index) => gzipSync(JSON.stringify(detail(index))).toString("base64"));

  function detail(index) {
    let now = 0;
    const rounds = Array.from({ length: 3 + (index % 9) }, (_, round) => {
      const model_ms = 200 + below(2500);
      const start_ms = now;
      now += model_ms + 3;
      const calls = Array.from({ length: round % 3 }, (_, call) => {
        const ms = 5 + below(900);
        now += ms;
        const isEdit = call === 1;
        return {
          name: harm(isEdit ? "edit_file" : "shell"),
          arguments: isEdit
            ? { path: "sum.py", old: "[1]", new: harm("[2]"), [harm("key")]: [1, { deep: harm("value") }] }
            : { command: harm("python3 sum.py < data.csv && ls -la") },
          start_ms: now - ms, ms,
          output: harm("2026-01-03,rent,1200\n2026-01-04,food,31\n\u001b[32m1231\u001b[0m\n").repeat(1 + below(12)),
          is_error: below(6) === 0,
          diff: isEdit ? PATCH.slice(PATCH.indexOf("@@"), PATCH.indexOf("diff --git a/notes")) : null,
        };
      });
      return {
        round: round + 1, start_ms, model_ms, tokens: { input: 900 + 310 * round, output: 40 + below(200), cached: 600 },
        cost_usd: 0.004, thinking: harm("The amounts are in the third column.\nI should look at the header first."),
        text: harm(`This is the text of round ${round + 1}.`), calls,
      };
    });
    return { rounds, diff: hostile ? PATCH.replace("import sys", ` ${HOSTILE[0]}`) : PATCH, check: { exit_code: 1, output: harm("expected 42\nfound 41\n"), ms: 12 }, end: harm("natural completion") };
  }

  const trials = Array.from({ length: tasks * perTask }, (_, index) => {
    const outcome = OUTCOMES[below(OUTCOMES.length)];
    const task = Math.floor(index / perTask);
    const model_ms = 500 + below(30_000);
    const tool_ms = below(9000);
    return {
      task: harm(`task-${task}`), trial: 1 + (index % perTask), seed: harm("5eed".repeat(16)), outcome, passed: outcome === "passed",
      rewards: below(3) ? null : { [harm("tests")]: 0.5 }, reason: outcome === "passed" ? null : harm(REASONS[outcome]),
      provider: harm("anthropic"), model: harm("claude-opus-5-5"), rounds: 3 + below(18),
      tokens: { input: 2000 + below(90_000), output: 100 + below(4000), cached: below(2000), reasoning: below(900) },
      cost_usd: below(20) ? 0.002 + random() * 0.4 : null, started_at: "2026-11-25T10:00:00.000Z", wall_ms: model_ms + tool_ms + 90,
      model_ms, tool_ms, check_ms: 4 + below(300), attempts: 1 + (below(9) === 0), lock: "ab".repeat(32), dir: harm(`trials/task-${task}.${index}`),
      detail: details[index % kinds],
    };
  });
  // The same name for all trials of a task.
  trials.forEach((trial, index) => (trial.task = trials[index - (index % perTask)].task));
  const outcomes = Object.fromEntries(Object.keys({ passed: 1, ...REASONS }).map((name) => [name, trials.filter(({ outcome }) => outcome === name).length]));
  return {
    title: harm("arithmetic"), created_at: "2026-11-25T10:00:00.000Z",
    settings: { provider: harm("anthropic"), model: "claude-opus-5-5", trials: perTask, jobs: 8, [harm("note")]: harm("x") },
    summary: {
      tasks, trials: trials.length, outcomes, pass_at: [[1, 0.512, 0.471, 0.553], [2, 0.743, 0.701, 0.781], [perTask, 0.914, 0.879, 0.94]],
      pass_hat: [[1, 0.512, 0.471, 0.553], [2, 0.281, 0.246, 0.32], [perTask, 0.093, 0.071, 0.12]],
      cost_usd: 187.31, tokens: { input: 46_120_000, output: 2_031_000, cached: 990_000, reasoning: 440_000 }, wall_ms: 3_190_000,
    },
    trials,
  };
}

let browser;
let template;
let directory;
const whole = wholeFile();

before(async () => {
  const source = await readFile(TEMPLATE, "utf8");
  template = source.replace(HASH, hashOfScript(source));
  directory = await mkdtemp(join(tmpdir(), "hermitcrab-report-"));
  whole.after(() => rm(directory, { recursive: true }));
  await mkdir(SCREENSHOTS, { recursive: true });
  browser = await launch(whole);
  await write("plain", runOf({ tasks: 200, perTask: 5, hostile: false, kinds: 40 }));
  await write("hostile", runOf({ tasks: 200, perTask: 5, hostile: true, kinds: 1000 }));
});

async function write(name, data) {
  const literal = JSON.stringify(data).replaceAll("<", "\\u003c");
  await writeFile(join(directory, `${name}.html`), template.replace(PLACEHOLDER, () => literal));
}

/** A report in a page; what it fetches, throws or is refused collects in `problems`. */
async function open(t, name, { hash = "", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  t.after(() => context.close());
  const page = await context.newPage();
  const url = `${pathToFileURL(join(directory, `${name}.html`))}`;
  const problems = [];
  page.on("request", (request) => request.url().split("#")[0] !== url && !request.url().startsWith("data:,") && problems.push(`fetched ${request.url()}`));
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => problems.push(message.text()));
  page.on("dialog", (dialog) => (problems.push("a dialog"), dialog.dismiss()));
  page.on("popup", () => problems.push("a popup"));
  await page.goto(url + hash);
  return { page, problems };
}

const texts = (page, selector) => page.locator(selector).allInnerTexts();
const slider = (page) => page.getByRole("slider", { name: "Round" });
const round = (page) => slider(page).getAttribute("aria-valuenow");

/** ms from an act in the page to the frame that shows it. */
function timed(page, act, argument) {
  return page.evaluate(async ([act, argument]) => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    await frame();
    const start = performance.now();
    if (act === "sort") document.querySelector(`#heads [data-key="${argument}"] button`).click();
    if (act === "filter") Object.assign(document.querySelector("#text"), { value: argument }).dispatchEvent(new Event("input"));
    if (act === "group") document.querySelector(argument).click();
    if (act === "scroll") scrollTo(0, argument * document.documentElement.scrollHeight);
    const worked = performance.now() - start;
    await frame();
    return { worked: Math.round(worked), seen: Math.round(performance.now() - start) };
  }, [act, argument]);
}

function hashOfScript(page) {
  const [, script] = /<script>([^]*?)<\/script>/.exec(page);
  return createHash("sha256").update(script).digest("base64");
}

test("the template has one placeholder, no markup from text, and one script of which it gets the hash", () => {
  assert.equal(template.split(PLACEHOLDER).length, 2);
  assert.doesNotMatch(template.replace(/<!--[^]*?-->/g, ""), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|setHTML|\beval\(|new Function|https?:/);
  assert.equal(template.split("<script>").length, 2);
  assert.ok(template.includes(`script-src 'sha256-${hashOfScript(template)}'`));
});

test("head and summary: what ran, rates with intervals, what is not scored", async (t) => {
  const { page, problems } = await open(t, "plain");
  assert.equal(await page.title(), "arithmetic – evaluation");
  assert.equal(await page.innerText("#when"), "2026-11-25 10:00:00 UTC · 200 tasks · 1,000 trials");
  const summary = await page.innerText("#summary");
  for (const part of ["pass@k", "pass^k", "51.2%", "47.1–55.3%", "$187.31", "46,120,000", "53m 10s", "Not scored"]) {
    assert.ok(summary.includes(part), `${part} is not in: ${summary}`);
  }
  assert.match(await page.innerText(".apart"), /infra error/);
  assert.deepEqual(problems, []);
});

test("sorting, by pointer and by keys, with trials that are not scored apart", async (t) => {
  const { page, problems } = await open(t, "plain");
  const column = (key) => texts(page, `#rows .c-${key}`);
  const money = (values) => values.map((value) => Number(value.replace(/[$,]/g, "")));
  // By task, as a person counts, and by trial.
  const names = await texts(page, "#rows .c-task");
  assert.deepEqual(names, names.toSorted((a, b) => Number(a.slice(5)) - Number(b.slice(5))));
  assert.equal(names[0], "task-0");
  await page.click("#heads [data-key=cost] button");
  const costs = money(await column("cost"));
  assert.deepEqual(costs, costs.toSorted((a, b) => b - a));
  assert.equal(await page.getAttribute("#heads [data-key=cost]", "aria-sort"), "descending");
  await page.focus("#heads [data-key=cost] button");
  await page.keyboard.press("Enter");
  assert.equal(await page.getAttribute("#heads [data-key=cost]", "aria-sort"), "ascending");
  const rising = money(await column("cost"));
  assert.deepEqual(rising, rising.toSorted((a, b) => a - b));
  assert.equal(await page.locator("#heads [aria-sort]").count(), 1);
  for (const key of ["outcome", "task", "trial", "rounds", "tokens", "wall", "model", "tools", "check", "reason"]) {
    await page.click(`#heads [data-key=${key}] button`);
    assert.ok(await page.getAttribute(`#heads [data-key=${key}]`, "aria-sort"), key);
  }
  // All that is not scored is behind its own heading, whatever the order.
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await page.waitForSelector("#rows tr:last-child .infra-error");
  assert.equal(await page.locator("#rows tr:last-child").getAttribute("aria-rowindex"), await page.getAttribute("#table", "aria-rowcount"));
  await page.selectOption("#outcome", "infra_error");
  assert.match(await page.innerText("#rows tr:first-child"), /^Not scored: \d+ trials/);
  assert.deepEqual(problems, []);
});

test("filters by text, outcome and task; groups by task", async (t) => {
  const { page, problems } = await open(t, "plain");
  await page.keyboard.press("/");
  await page.keyboard.type("TASK-17.3");
  assert.equal(await page.innerText("#count"), "1 of 1,000 trials");
  await page.fill("#text", "");
  await page.click(".legend[data-outcome=failed]");
  assert.deepEqual([...new Set(await texts(page, "#rows .word"))], ["failed"]);
  assert.equal(await page.inputValue("#outcome"), "failed");
  await page.selectOption("#outcome", "not passed");
  assert.ok(!(await texts(page, "#rows .word")).some((outcome) => /passed|infra/.test(outcome)));
  await page.selectOption("#outcome", "");
  await page.selectOption("#task", "task-9");
  assert.deepEqual((await texts(page, "#rows .c-trial")).toSorted(), ["1", "2", "3", "4", "5"]);
  await page.fill("#text", "no such text");
  assert.ok(await page.isVisible("#empty"));
  await page.click("#clear");
  assert.equal(await page.innerText("#count"), "1,000 trials");
  await page.click("#tasks");
  assert.equal(await page.innerText("#count"), "200 tasks, means of scored trials · 1,000 trials");
  assert.equal(await page.locator("#rows tr:first-child .c-marks a").count(), 5);
  await page.click("#heads [data-key=share] button");
  assert.equal(await page.innerText("#rows tr:first-child .c-share"), "5 of 5");
  await page.click("#rows tr:first-child .c-marks a:nth-child(2)");
  assert.match(new URL(page.url()).hash, /^#task-\d+\.2$/);
  assert.deepEqual(problems, []);
});

test("a trial opens from its row; Back and Escape close it where the list was", async (t) => {
  const { page, problems } = await open(t, "plain");
  await page.selectOption("#outcome", "failed");
  await page.evaluate(() => scrollTo(0, 3000));
  await page.waitForFunction(() => document.querySelector("#rows").rows[0].ariaRowIndex !== "2");
  const scrolled = await page.evaluate(() => scrollY);
  await page.locator("#rows tr .c-reason").nth(20).click();
  await slider(page).waitFor();
  const { hash } = new URL(page.url());
  assert.match(hash, /^#task-\d+\.\d$/);
  assert.match(await page.innerText(".reason"), /exit code 1/);
  assert.match(await page.innerText(".verdict .box:nth-child(1)"), /exit code 1[^]*found 41/);
  // The removed and added lines that look like headers are lines.
  assert.deepEqual(await texts(page, ".verdict .diff h3"), ["sum.py", "notes.txt"]);
  assert.deepEqual([await page.locator(".verdict .diff .del").count(), await page.locator(".verdict .diff .add").count()], [2, 4]);
  await page.goBack();
  await page.waitForSelector("#list:not([hidden])");
  assert.equal(await page.evaluate(() => scrollY), scrolled);
  assert.equal(await page.evaluate(() => document.activeElement.hash), hash);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await slider(page).waitFor();
  const below = new URL(page.url()).hash;
  assert.notEqual(below, hash);
  await page.keyboard.press("j");
  await page.waitForFunction((below) => location.hash !== below, below);
  await slider(page).waitFor();
  await page.keyboard.press("Escape");
  await page.waitForSelector("#list:not([hidden])");
  assert.equal(new URL(page.url()).hash, "");
  assert.deepEqual(problems, []);
});

test("the rounds of a trial are scrubbed by keys and pointer", async (t) => {
  const { page, problems } = await open(t, "plain", { hash: "#task-1.3" });
  const bar = slider(page);
  await bar.waitFor();
  assert.ok(await page.isHidden("#list"));
  const last = await bar.getAttribute("aria-valuemax");
  assert.equal(last, "10");
  assert.equal(await round(page), "1");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.equal(await round(page), "3");
  assert.match(await page.innerText(".round"), /text of round 3\.[^]*shell[^]*edit_file/);
  assert.match(await page.innerText(".usage"), /this round\s+1,520\s[^]*so far\s+3,630\s[^]*1,800\s+\$0\.0120/);
  assert.equal(await page.locator(".round .diff .add").count(), 2);
  await bar.focus();
  await page.keyboard.press("End");
  assert.equal(await round(page), last);
  assert.ok(await page.getByRole("button", { name: "Next round" }).isDisabled());
  await page.keyboard.press("Home");
  assert.equal(await round(page), "1");
  const { x, y, width, height } = await bar.boundingBox();
  await page.mouse.move(x + width * 0.2, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.6, y + height / 2, { steps: 4 });
  const middle = Number(await round(page));
  assert.ok(middle > 2 && middle < 10, `round ${middle}`);
  await page.mouse.move(x + width + 90, y, { steps: 2 });
  await page.mouse.up();
  assert.equal(await round(page), last);
  assert.ok((await page.locator(".run .by-model").count()) === 10 && (await page.locator(".run .by-tool").count()) > 0);
  // Deep links close too.
  await page.keyboard.press("Escape");
  await page.waitForSelector("#list:not([hidden])");
  assert.deepEqual(problems, []);
});

test("details that are missing, damaged or empty are said, and names of no trial open the list", async (t) => {
  const data = runOf({ tasks: 1, perTask: 4, hostile: false, kinds: 1 });
  data.trials[0].detail = null;
  data.trials[1].detail = "AAAA";
  data.trials[2].detail = gzipSync(JSON.stringify({ rounds: [] })).toString("base64");
  await write("damaged", data);
  for (const [trial, said] of [[1, /No run was kept/], [2, /cannot be read/], [3, /no round/]]) {
    const { page } = await open(t, "damaged", { hash: `#task-0.${trial}` });
    await page.getByText(said).waitFor();
  }
  for (const hash of ["#task-0.99", "#%E0%A4%A", "#__proto__"]) {
    const { page, problems } = await open(t, "damaged", { hash });
    assert.ok(await page.isVisible("#list"));
    assert.deepEqual(problems, []);
  }
  await writeFile(join(directory, "template.html"), template);
  const { page, problems } = await open(t, "template");
  assert.equal(await page.innerText("h1"), "Template without data");
  assert.deepEqual(problems, []);
});

test("hostile text stays text in the list and in trials", async (t) => {
  const { page, problems } = await open(t, "hostile");
  const looks = async () => {
    assert.equal(await page.evaluate(() => globalThis.attacked), undefined);
    assert.equal(await page.locator("img, iframe, svg, object, embed, script:not(body > script), body link, [onerror], [onload], [style*=url]").count(), 0);
    assert.deepEqual(await page.evaluate(() => [...document.links].map(({ href }) => href.split("#")[0]).filter((href) => href !== location.href.split("#")[0])), []);
    const controls = await page.evaluate(() => /[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]/.exec(document.body.innerText)?.[0]);
    assert.equal(controls, undefined);
  };
  await looks();
  for (const text of HOSTILE) {
    await page.fill("#text", text);
    await page.waitForTimeout(20);
  }
  await page.fill("#text", "");
  await page.click("#tasks");
  await looks();
  await page.click("#trials");
  await page.fill("#text", "onerror");
  await page.locator("#rows .c-task a").first().click();
  for (let trial = 0; trial < 25; trial++) {
    await slider(page).waitFor();
    for (let step = 0; step < 12; step++) await page.keyboard.press("ArrowRight");
    await looks();
    await page.keyboard.press("j");
    await page.waitForTimeout(20);
  }
  await page.waitForFunction(() => document.querySelector("#trial").innerText.length > 500);
  // Every hostile task name leads to its trial by its address.
  const names = await page.evaluate(() => [...new Set([...document.querySelectorAll("#task option")].map(({ value }) => value))].slice(1));
  for (const name of HOSTILE.map((text) => names.find((each) => each.endsWith(text))).filter(Boolean)) {
    await page.evaluate((name) => (location.hash = `${encodeURIComponent(name)}.2`), name);
    await page.locator("h1", { hasText: "trial 2" }).waitFor();
    await slider(page).waitFor();
    await looks();
  }
  assert.deepEqual(problems, []);
});

/** Texts in sight that are too small, too faint or cut off. */
function faults(page) {
  return page.evaluate(() => {
    const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
    const parse = (color) => {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = color;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      return [r, g, b, a / 255];
    };
    const over = ([r, g, b, a], below) => [r, g, b].map((part, index) => part * a + below[index] * (1 - a));
    const groundOf = (element) => {
      const layers = [];
      for (let each = element; each; each = each.parentElement) layers.push(parse(getComputedStyle(each).backgroundColor));
      return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const light = (parts) => {
      const [r, g, b] = parts.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (walker.currentNode.data.trim() === "" || !element.checkVisibility() || element.closest(":disabled, option, script, .dim")) continue;
      const { color, fontSize } = getComputedStyle(element);
      const { top, bottom } = element.getBoundingClientRect();
      if (fontSize === "0px" || bottom < 0 || top > innerHeight) continue;
      const name = `“${walker.currentNode.data.trim().slice(0, 30)}” in ${element.localName}.${element.className}`;
      if (parseFloat(fontSize) < 12) found.add(`${name}: ${fontSize}`);
      const ground = groundOf(element);
      const [more, less] = [light(over(parse(color), ground)), light(ground)].sort((a, b) => b - a);
      if ((more + 0.05) / (less + 0.05) < 4.5) found.add(`${name}: contrast ${((more + 0.05) / (less + 0.05)).toFixed(2)}`);
    }
    return [...found];
  });
}

for (const width of [400, 820, 1280, 1600]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`${width} pixels, ${colorScheme}: nothing is wider than the page, too small or too faint`, async (t) => {
      const wrong = [];
      for (const name of ["plain", "hostile"]) {
        const { page, problems } = await open(t, name, { viewport: { width, height: 800 }, colorScheme });
        const look = async (part) => {
          await page.waitForTimeout(100);
          if (name === "plain") await page.screenshot({ path: join(SCREENSHOTS, `report-${width}-${colorScheme}-${part}.png`) });
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          if (wide > width) wrong.push(`${name} ${part}: ${wide} wide`);
          for (const fault of await faults(page)) wrong.push(`${name} ${part}: ${fault}`);
        };
        await look("list");
        await page.evaluate(() => scrollTo(0, 1200));
        await look("scrolled");
        await page.click("#tasks");
        await look("tasks");
        await page.evaluate(() => scrollTo(0, 0));
        await page.click("#trials");
        await page.selectOption("#outcome", "failed");
        await page.locator("#rows .c-task a").nth(7).click();
        await slider(page).waitFor();
        await look("trial");
        await page.keyboard.press("ArrowRight");
        await page.keyboard.press("ArrowRight");
        await look("round");
        await page.evaluate(() => scrollTo(0, 500));
        await look("deep");
        assert.deepEqual(problems, []);
      }
      assert.deepEqual(wrong, []);
    });
  }
}

for (const [tasks, perTask] of [[200, 5], [2000, 5]]) {
  test(`times of ${tasks * perTask} trials`, async (t) => {
    const name = tasks === 200 ? "hostile" : "many";
    if (name === "many") await write(name, runOf({ tasks, perTask, hostile: true, kinds: 200 }));
    const start = performance.now();
    const { page, problems } = await open(t, name);
    const times = { load: { seen: Math.round(performance.now() - start) } };
    times["sort by cost"] = await timed(page, "sort", "cost");
    times["sort by task"] = await timed(page, "sort", "task");
    times["sort by reason"] = await timed(page, "sort", "reason");
    times["sort by reason again"] = await timed(page, "sort", "reason");
    times["filter: 1"] = await timed(page, "filter", "1");
    times["filter: 17"] = await timed(page, "filter", "17");
    times["filter: none"] = await timed(page, "filter", "");
    times["scroll to the middle"] = await timed(page, "scroll", 0.5);
    times["group by task"] = await timed(page, "group", "#tasks");
    times["back to trials"] = await timed(page, "group", "#trials");
    const bytes = (await readFile(join(directory, `${name}.html`))).length;
    const took = ({ worked, seen }) => (worked === undefined ? `${seen} ms` : `${worked} ms of script, ${seen} ms until shown`);
    for (const [act, time] of Object.entries(times)) {
      t.diagnostic(`${act}: ${took(time)}`);
      if (act !== "load") assert.ok(time.seen < HANG, `${act}: ${took(time)}`);
    }
    t.diagnostic(`${(bytes / 1e6).toFixed(1)} MB; ${await page.locator("#rows tr").count()} rows in the page`);
    assert.deepEqual(problems, []);
  });
}
