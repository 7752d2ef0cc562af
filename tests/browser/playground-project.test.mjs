// The playground in Chromium: what is kept, taken in and handed out, and what
// happens when a command does not end.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { choose, editorText, menu, playground, ready, saved, say, shows, state, terminal } from "./playground-support.mjs";
import { serveModel } from "../node/support.mjs";
import { packZip } from "../node/archives.mjs";

const { open, url } = playground();

const paths = (page) => page.locator(".tree [data-path]").evaluateAll((rows) => rows.map((row) => row.dataset.path));

/** What a menu entry downloads, as bytes. */
async function downloaded(page, label) {
  const [file] = await Promise.all([page.waitForEvent("download"), menu(page, label)]);
  return { name: file.suggestedFilename(), content: await readFile(await file.path()) };
}

/** Gives files to the menu entry that asks for them. */
async function chosen(page, label, files) {
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), menu(page, label)]);
  await chooser.setFiles(files);
}

/** Begins an empty project. */
async function create(page, name) {
  await menu(page, "Projects…");
  await page.fill("#new-project", name);
  await page.press("#new-project", "Enter");
  await page.waitForSelector(`#project-name:text-is("${name}")`);
}

test("a reload keeps the project and the conversation", async (t) => {
  const { page, problems } = await open(t);
  await page.click("#run-demo");
  await state(page, "PROCESSING");
  await state(page, "IDLE");
  await terminal(page, "mkdir -p kept && echo here > kept/note.txt");
  await saved(page);
  await page.reload();
  await ready(page);
  assert.equal(await page.locator(".tool").count(), 4);
  assert.ok((await paths(page)).includes("kept/note.txt"));
  await terminal(page, "cat kept/note.txt && sh test.sh");
  await shows(page, "here");
  await shows(page, "4 passed, 0 failed");
  assert.deepEqual(problems, []);
});

test("after a reload the model still knows the conversation", async (t) => {
  const { page } = await open(t);
  const answering = await serveModel(t, { steps: [
    { text: "I will." },
    { expect: { contains: ["remember the word periwinkle", "I will."] }, text: "It was periwinkle." },
  ] });
  await choose(page, { baseUrl: answering.url });
  await say(page, "remember the word periwinkle");
  await page.waitForSelector(".answer:has-text('I will.')");
  await state(page, "IDLE");
  await saved(page);
  await page.reload();
  await ready(page);
  await choose(page, { baseUrl: answering.url });
  await say(page, "which word was it");
  await page.waitForSelector(".answer:has-text('It was periwinkle.')");
});

test("an exported project, imported again, is the same", async (t) => {
  const { page } = await open(t);
  await terminal(page, "printf 'caf\\303\\251\\000\\377' > bytes.bin; mkdir -p 'deep/er dir'; echo x > 'deep/er dir/ü.txt'; find . -type f | sort | xargs -d '\\n' sha256sum > /tmp/sums; sha256sum /tmp/sums");
  const before = await page.evaluate(() => document.querySelector(".xterm-rows").innerText.match(/[0-9a-f]{64}(?=\s+\/tmp\/sums)/)[0]);
  const { name, content } = await downloaded(page, "Export as zip");
  assert.equal(name, "tide-pool.zip");
  const file = join(tmpdir(), `playground-${process.pid}.zip`);
  await writeFile(file, content);
  const second = await open(t);
  await create(second.page, "again");
  await second.page.waitForSelector(".tree .quiet");
  await chosen(second.page, "Import files or archives…", file);
  await second.page.waitForSelector('.tree [data-path="bytes.bin"]');
  await terminal(second.page, "find . -type f | sort | xargs -d '\\n' sha256sum > /tmp/sums; sha256sum /tmp/sums");
  const after = await second.page.evaluate(() => document.querySelector(".xterm-rows").innerText.match(/[0-9a-f]{64}(?=\s+\/tmp\/sums)/)[0]);
  assert.equal(after, before);
  assert.deepEqual(second.problems, []);
});

test("files are created, renamed and deleted in the tree", async (t) => {
  const { page, problems } = await open(t);
  page.on("dialog", (dialog) => void dialog.accept());
  await page.click('[aria-label="New file"]');
  await page.keyboard.type("notes.txt");
  await page.keyboard.press("Enter");
  await page.waitForSelector('.tab-box.current [data-path="notes.txt"]');
  await page.focus('.tree [data-path="notes.txt"]');
  await page.keyboard.press("F2");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("moved.txt");
  await page.keyboard.press("Enter");
  await page.waitForSelector('.tree [data-path="moved.txt"]');
  await terminal(page, "ls");
  await shows(page, "moved.txt");
  await page.focus('.tree [data-path="moved.txt"]');
  await page.keyboard.press("Delete");
  await page.waitForSelector('.tree [data-path="moved.txt"]', { state: "detached" });
  assert.ok(!(await paths(page)).includes("notes.txt"));
  assert.deepEqual(problems, []);
});

test("a project of 1,000 files loads", async (t) => {
  const { page, problems } = await open(t);
  await terminal(page, "for d in $(seq 1 25); do mkdir -p many/$d; for f in $(seq 1 40); do echo \"line $d $f\" > many/$d/$f.txt; done; done; find many -type f | wc -l");
  await shows(page, "1000");
  await saved(page);
  await page.reload();
  await ready(page);
  await page.click('.tree [data-path="many"]');
  await page.click('.tree [data-path="many/25"]');
  await page.click('.tree [data-path="many/25/40.txt"]');
  assert.equal((await editorText(page)).trim(), "line 25 40");
  await terminal(page, "grep -rl 'line 7 ' many | wc -l");
  await shows(page, "40");
  assert.deepEqual(problems, []);
});

for (const command of ["while :; do :; done", "awk 'BEGIN{while(1);}'"]) {
  test(`\`${command}\` leaves the page responsive and can be stopped`, async (t) => {
    const { page } = await open(t);
    await terminal(page, "echo before > state.txt");
    await terminal(page, `echo during >> state.txt; ${command}`, { wait: false });
    await page.waitForSelector(".terminal.running");
    // The page draws frames meanwhile.
    const frames = await page.evaluate(() => new Promise((resolve) => {
      let count = 0;
      const end = performance.now() + 500;
      const frame = () => (count++, performance.now() < end ? requestAnimationFrame(frame) : resolve(count));
      requestAnimationFrame(frame);
    }));
    assert.ok(frames > 3, `${frames} frames in half a second`);
    await page.click('.tree [data-path="README.md"]');
    await page.waitForSelector('.tab-box.current [data-path="README.md"]');
    await page.click(".terminal .screen");
    await page.keyboard.press("Control+c");
    await page.waitForFunction(() => !document.querySelector(".terminal.running"), undefined, { timeout: 60_000 });
    await terminal(page, "cat state.txt; sh test.sh");
    await shows(page, "before");
    await shows(page, "2 passed, 2 failed");
  });
}

test("a reload without a network works", async (t) => {
  const { context, page } = await open(t);
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(async () => {
    const [name] = await caches.keys();
    return name && (await (await caches.open(name)).keys()).length > 10;
  });
  await terminal(page, "echo offline > kept.txt");
  await saved(page);
  await context.setOffline(true);
  await page.reload();
  await ready(page);
  await terminal(page, "cat kept.txt");
  await shows(page, "offline");
  await page.click("#run-demo");
  await page.waitForSelector(".answer:has-text('All four tests pass.')", { timeout: 60_000 });
});

test("of two tabs one keeps the project, and the other can take it over", async (t) => {
  const { context, page } = await open(t);
  await terminal(page, "echo first > first.txt");
  await saved(page);
  const second = await context.newPage();
  await second.goto(url());
  await ready(second);
  assert.match(await second.locator(".toast.error").innerText(), /^tide-pool is open in another tab, which keeps it; changes made here are not kept\./);
  assert.equal(await second.locator("#not-kept").isVisible(), true);
  await second.click('.toast button:text-is("Take it over")');
  await page.waitForSelector(".toast.error:has-text('taken over by another tab')");
  assert.equal(await page.locator("#not-kept").isVisible(), true);
  await second.waitForSelector("#not-kept", { state: "hidden" });
  await terminal(second, "echo second > second.txt");
  await saved(second);
  await second.reload();
  await ready(second);
  const kept = await paths(second);
  assert.deepEqual(["first.txt", "second.txt"].map((path) => kept.includes(path)), [true, true]);
});

test("a run is shared as one file and played again", async (t) => {
  const { page, problems } = await open(t);
  await page.click("#run-demo");
  await state(page, "PROCESSING");
  await state(page, "IDLE");
  const { name, content } = await downloaded(page, "Share this run…");
  assert.equal(name, "tide-pool.run.json");
  const file = join(tmpdir(), `playground-${process.pid}.run.json`);
  await writeFile(file, content);
  const second = await open(t);
  await chosen(second.page, "Open a run…", file);
  await second.page.waitForSelector(".replay");
  assert.equal(await second.page.locator(".tool").count(), 4);
  assert.match(await editorText(second.page), /tr -cs/);
  await second.page.locator('.replay input[type="range"]').fill("0");
  assert.equal(await second.page.locator(".tool").count(), 0);
  await second.page.click('.tree [data-path="slug.sh"]');
  assert.match(await editorText(second.page), /tr -c /);
  await second.page.click('.replay [aria-label="Play"]');
  await second.page.waitForSelector(".answer:has-text('run the tests')");
  const slider = second.page.locator('.replay input[type="range"]');
  await slider.fill(await slider.getAttribute("max"));
  await second.page.click('.replay button:text-is("Continue from here")');
  await second.page.waitForSelector(".replay", { state: "detached" });
  await terminal(second.page, "sh test.sh");
  await shows(second.page, "4 passed, 0 failed");
  assert.deepEqual([...problems, ...second.problems], []);
});

test("a file that is no run is refused in one sentence", async (t) => {
  const { page } = await open(t);
  await chosen(page, "Open a run…", { name: "x.json", mimeType: "application/json", buffer: Buffer.from("{}") });
  assert.match(await page.locator(".toast.error").innerText(), /not a run/);
});

test("an archive that reaches outside is refused, and nothing changes", async (t) => {
  const { page } = await open(t);
  const before = await paths(page);
  const zipOf = (name) => Buffer.from(packZip([{ name, content: "x" }]));
  await chosen(page, "Import files or archives…", { name: "evil.zip", mimeType: "application/zip", buffer: zipOf("../evil.txt") });
  assert.match(await page.locator(".toast.error").innerText(), /evil\.txt.*\.\./);
  assert.deepEqual(await paths(page), before);
  await chosen(page, "Import files or archives…", { name: "good.zip", mimeType: "application/zip", buffer: zipOf("good.txt") });
  await page.waitForSelector('.tree [data-path="good.txt"]');
});

test("an import that is too large is refused before it is read", async (t) => {
  const { page } = await open(t);
  const message = await page.evaluate(() => {
    const part = new Uint8Array(50_000_000);
    const file = new File([part, part, part, part], "large.bin");
    const data = new DataTransfer();
    data.items.add(file);
    const input = HTMLInputElement.prototype.click;
    HTMLInputElement.prototype.click = function () {
      HTMLInputElement.prototype.click = input;
      this.files = data.files;
      this.dispatchEvent(new Event("change"));
    };
    document.querySelector('[aria-haspopup="menu"]').click();
    [...document.querySelectorAll(".menu button")].find((button) => button.textContent.startsWith("Import files")).click();
    return new Promise((resolve) => {
      const look = () => {
        const toast = document.querySelector(".toast.error");
        if (toast) resolve(toast.innerText);
        else setTimeout(look, 20);
      };
      look();
    });
  });
  assert.match(message, /200 MB are too much for the sandbox, which takes 100 MB/);
});

test("binary files and other encodings are shown for what they are", async (t) => {
  const { page, problems } = await open(t);
  await terminal(page, "printf '\\000\\001' > raw.bin; printf 'caf\\351' > latin1.txt; printf 'a\\r\\nb\\r\\n' > dos.txt");
  await page.click('.tree [data-path="raw.bin"]');
  await page.waitForSelector(".empty:has-text('raw.bin is not text.')");
  await page.click('.tree [data-path="latin1.txt"]');
  await page.waitForSelector(".empty:has-text('latin1.txt is not text.')");
  await page.click('.tree [data-path="dos.txt"]');
  await page.click(".cm-content");
  await page.keyboard.press("Control+End");
  await page.keyboard.type("c");
  await page.keyboard.press("Control+s");
  await terminal(page, "wc -c dos.txt");
  await shows(page, "7 dos.txt");
  assert.deepEqual(problems, []);
});

const WITHOUT_STORAGE = () => {
  const denied = () => new DOMException("denied", "SecurityError");
  StorageManager.prototype.getDirectory = () => Promise.reject(denied());
  IDBFactory.prototype.open = () => {
    throw denied();
  };
  Object.defineProperty(window, "localStorage", {
    get: () => {
      throw denied();
    },
  });
};

test("denied storage is said once, and everything else works", async (t) => {
  const { page } = await open(t, { init: WITHOUT_STORAGE });
  assert.match(await page.locator(".toast.error").innerText(), /^Nothing can be stored here .* the work goes on in memory, so export it to keep it\./);
  await terminal(page, "echo works > it.txt; cat it.txt");
  await shows(page, "works");
  assert.equal(await page.locator(".toast.error").count(), 1);
  assert.equal(await page.locator("#not-kept").isVisible(), true);
});
