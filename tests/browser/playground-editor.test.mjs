// The playground in Chromium: what is typed in the editor stays what was typed,
// whatever else happens to its file, and files that nobody touches stay as they are.

import assert from "node:assert/strict";
import { test } from "node:test";
import { answer, choose, create, editorText, paths, playground, ready, saved, say, shows, terminal } from "./playground-support.mjs";
import { callStep, serveModel } from "../node/support.mjs";

const { open } = playground();

/** A project `mine` with the file `n.txt`, which the editor shows. */
async function begin(t) {
  const opened = await open(t);
  const { page } = opened;
  await create(page, "mine");
  await terminal(page, "echo start > n.txt");
  await page.click('.tree [data-path="n.txt"]');
  await atStart(page);
  return opened;
}

/** Goes to the beginning of the text. */
async function atStart(page) {
  await page.click(".cm-content");
  await page.keyboard.press("Control+Home");
}

/** Reloads, and tells whether the page asked before. */
async function reload(page) {
  let asked = false;
  const onDialog = (dialog) => {
    asked = dialog.type() === "beforeunload";
    void dialog.accept();
  };
  page.on("dialog", onDialog);
  await page.reload();
  await ready(page);
  page.off("dialog", onDialog);
  return asked;
}

const isSaved = (page) => page.waitForFunction(() => document.querySelector(".tab-box.current .dirty").innerText === "");

test("what is typed is saved a moment later, by itself", async (t) => {
  const { page, problems } = await begin(t);
  await page.keyboard.type("PRECIOUS ");
  await isSaved(page);
  await saved(page);
  assert.equal(await reload(page), false);
  await page.waitForSelector('.tab-box.current [data-path="n.txt"]');
  assert.equal((await editorText(page)).trim(), "PRECIOUS start");
  assert.deepEqual(problems, []);
});

test("a page that goes asks while what was typed is not kept, and keeps it for who stays", async (t) => {
  const { page } = await begin(t);
  await saved(page);
  await page.keyboard.type("PRECIOUS ");
  const asked = new Promise((resolve) => page.once("dialog", async (dialog) => {
    await dialog.dismiss();
    resolve(dialog.type());
  }));
  await page.evaluate(() => void setTimeout(() => location.reload()));
  assert.equal(await asked, "beforeunload");
  await isSaved(page);
  await saved(page);
  assert.equal(await reload(page), false);
  assert.equal((await editorText(page)).trim(), "PRECIOUS start");
});

test("a page that goes asks while files of the terminal are not stored", async (t) => {
  const { page } = await begin(t);
  await saved(page);
  await terminal(page, "for i in $(seq 1 300); do echo $i > f$i.txt; done");
  const asked = await reload(page);
  assert.ok(asked || (await paths(page)).includes("f300.txt"));
});

test("a page that goes asks where nothing can be stored", async (t) => {
  const { page } = await open(t, { init: () => {
    StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException("denied", "SecurityError"));
    IDBFactory.prototype.open = () => {
      throw new DOMException("denied", "SecurityError");
    };
  } });
  await terminal(page, "echo here > kept.txt");
  assert.equal(await reload(page), true);
});

test("a hidden page keeps what was typed", async (t) => {
  const { page } = await begin(t);
  await page.keyboard.type("PRECIOUS ");
  // As phones do it before they end a page.
  await page.evaluate(() => {
    Object.defineProperty(document, "visibilityState", { get: () => "hidden" });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.waitForFunction(() => document.querySelector(".tab-box.current .dirty").innerText === "", undefined, { timeout: 900 });
});

test("typing on while it is saved is no conflict", async (t) => {
  const { page, problems } = await begin(t);
  for (let time = 0; time < 12; time += 1) {
    await page.keyboard.type("ab");
    await page.keyboard.press("Control+s");
    await page.keyboard.type("c");
  }
  await isSaved(page);
  assert.equal(await page.locator(".conflict").isVisible(), false);
  await terminal(page, "cat n.txt");
  await shows(page, `${"abc".repeat(12)}start`);
  assert.deepEqual(problems, []);
});

/** An agent that runs `command` when it is told to; until then text is typed. */
async function agentRuns(t, page, command) {
  const agent = await serveModel(t, { steps: [
    { text: "Soon.", tool_calls: [{ name: "shell", arguments: { command } }], hold: "go", hold_before: "tool_calls" },
    { text: "Done." },
  ] });
  await choose(page, { baseUrl: agent.url });
  await say(page, "do it");
  await page.waitForSelector(".answer:has-text('Soon.')");
  return agent;
}

for (const [button, left] of [["Keep mine", "PRECIOUS start"], ["Close it", undefined]]) {
  test(`a file with unsaved text that is deleted stays to be asked about: ${button}`, async (t) => {
    const { page, problems } = await begin(t);
    const agent = await agentRuns(t, page, "rm n.txt");
    await atStart(page);
    await page.keyboard.type("PRECIOUS ");
    await agent.release("go");
    await page.waitForSelector(".conflict:has-text('This file was deleted in the sandbox while you were editing it.')");
    assert.equal((await editorText(page)).trim(), "PRECIOUS start");
    await page.click(`.conflict button:text-is("${button}")`);
    await page.waitForSelector(".conflict", { state: "hidden" });
    await page.waitForSelector(".answer:has-text('Done.')");
    await terminal(page, "clear; cat n.txt");
    await shows(page, left ?? "n.txt: No such file");
    assert.equal(await page.locator('.tab[data-path="n.txt"]').count(), left ? 1 : 0);
    assert.deepEqual(problems, []);
  });
}

test("a file that its user deletes is closed, with what was not saved", async (t) => {
  const { page, problems } = await begin(t);
  await page.keyboard.type("PRECIOUS ");
  await page.hover('.tree [data-path="n.txt"]');
  await page.click('[aria-label="Delete n.txt"]');
  assert.equal(await answer(page, "Delete"), "Delete n.txt?");
  await page.waitForSelector('.tab[data-path="n.txt"]', { state: "detached" });
  assert.equal(await page.locator(".conflict").isVisible(), false);
  await page.waitForSelector('.tree [data-path="n.txt"]', { state: "detached" });
  assert.deepEqual(problems, []);
});

test("a save does not overwrite what a running command has written", async (t) => {
  const { page, problems } = await begin(t);
  const agent = await serveModel(t, { steps: [
    callStep("shell", { command: "echo AGENT > n.txt; echo written; while [ ! -e go ]; do :; done; cat n.txt" }, "a"),
    { text: "Done." },
  ] });
  await choose(page, { baseUrl: agent.url });
  await say(page, "do it");
  await page.waitForSelector(".tool[data-state='running']");
  await page.waitForFunction(() => document.querySelector(".tool .output").textContent.includes("written"));
  await atStart(page);
  await page.keyboard.type("MINE ");
  await page.keyboard.press("Control+s");
  await page.waitForSelector(".conflict:has-text('This file changed in the sandbox while you were editing it.')");
  await terminal(page, "touch go");
  await page.waitForSelector(".answer:has-text('Done.')");
  assert.match(await page.locator(".tool .output").evaluate((element) => element.textContent), /^written\nAGENT\n/);
  await page.click('.conflict button:text-is("Take the new text")');
  await page.waitForFunction(() => document.querySelector(".cm-content").innerText.trim() === "AGENT");
  assert.deepEqual(problems, []);
});

// As `printf` has them; what `x` typed at the very end leaves, and after a line break typed before it.
const ENDS = {
  "lone carriage returns": ["a\\rb\\nc\\n", "a\\rb\\nc\\nx", "a\\rb\\nc\\n\\nx"],
  "mixed ends, mostly of Windows": ["a\\r\\nb\\nc\\r\\n", "a\\r\\nb\\nc\\r\\nx", "a\\r\\nb\\nc\\r\\n\\r\\nx"],
  "mixed ends, mostly of Unix": ["a\\nb\\r\\nc\\n", "a\\nb\\r\\nc\\nx", "a\\nb\\r\\nc\\n\\nx"],
  "every end there is": ["\\r\\r\\n\\n\\r\\ra\\r\\n\\nb", "\\r\\r\\n\\n\\r\\ra\\r\\n\\nbx", "\\r\\r\\n\\n\\r\\ra\\r\\n\\nb\\rx"],
  "a mark at its beginning": ["\\357\\273\\277a\\r\\nb", "\\357\\273\\277a\\r\\nbx", "\\357\\273\\277a\\r\\nb\\r\\nx"],
};
for (const [name, [content, typed, broken]] of Object.entries(ENDS)) {
  test(`a file with ${name} keeps them`, async (t) => {
    const { page, problems } = await begin(t);
    const same = async (expected) => {
      await terminal(page, "clear");
      await terminal(page, `printf '${expected}' | cmp - odd.txt && echo sa''me`);
      await shows(page, "same");
    };
    await terminal(page, `printf '${content}' > odd.txt`);
    await page.click('.tree [data-path="odd.txt"]');
    assert.equal(await page.locator(".tab-box.current .dirty").innerText(), "");
    await page.click(".cm-content");
    await page.click('.tree [data-path="n.txt"]');
    await same(content);
    await page.click('.tree [data-path="odd.txt"]');
    await page.click(".cm-content");
    await page.keyboard.press("Control+End");
    await page.keyboard.type("x");
    await same(typed);
    await page.click(".cm-content");
    await page.keyboard.press("Control+End");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    await same(broken);
    // All of it goes, and comes back as it was.
    await page.click(".cm-content");
    await page.keyboard.press("Control+a");
    await page.keyboard.press("Delete");
    await same("");
    await page.click(".cm-content");
    await page.keyboard.press("Control+z");
    await same(broken);
    assert.deepEqual(problems, []);
  });
}
