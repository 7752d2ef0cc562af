// The playground in Chromium: what is kept and where it cannot be, and what
// happens when a command does not end.

import assert from "node:assert/strict";
import { test } from "node:test";
import { answer, choose, create, editorText, menu, paths, playground, ready, saved, say, shows, state, terminal } from "./playground-support.mjs";
import { serveModel } from "../node/support.mjs";

const { open, url } = playground();

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

test("files are created, renamed and deleted in the tree", async (t) => {
  const { page, problems } = await open(t);
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
  assert.equal(await answer(page, "Cancel"), "Delete moved.txt?");
  assert.ok((await paths(page)).includes("moved.txt"));
  await page.keyboard.press("Delete");
  await answer(page, "Delete");
  await page.waitForSelector('.tree [data-path="moved.txt"]', { state: "detached" });
  assert.ok(!(await paths(page)).includes("notes.txt"));
  assert.deepEqual(problems, []);
});

test("a name that leaves the project is refused with a message", async (t) => {
  const { page, problems } = await open(t);
  await page.click('[aria-label="New file"]');
  await page.keyboard.type("notes.txt");
  await page.keyboard.press("Enter");
  await page.waitForSelector('.tab-box.current [data-path="notes.txt"]');
  for (const [name, problem] of [
    ["/etc/notes.txt", "starts at the root of the sandbox"],
    ["../notes.txt", "may lead out of the project"],
    ["a/../../notes.txt", "a/../../notes.txt may lead out of the project"],
    ["../../x", "../../x may lead out of the project"],
    ["x".repeat(300), `The path "${"x".repeat(60)}…" is too long: a name may have 255 bytes, and a path 4000.`],
    ["a//b", "a//b holds an empty name or a dot instead of one"],
    ["posts", "There is a file or folder posts already"],
  ]) {
    await page.focus('.tree [data-path="notes.txt"]');
    await page.keyboard.press("F2");
    await page.keyboard.press("Control+a");
    await page.keyboard.type(name);
    await page.keyboard.press("Enter");
    await page.waitForSelector(`.toast.error:has-text(${JSON.stringify(problem)})`);
    assert.ok((await paths(page)).includes("notes.txt"));
    assert.equal(await page.locator('.tab-box.current [data-path="notes.txt"]').count(), 1);
  }
  // The oldest has made room.
  assert.equal(await page.locator(".toast.error").count(), 3);
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

// One hears the stop; the other never pauses and is ended by its work bound. Both
// leave what they did, and the worker goes on.
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
    // A loop of the shell hears the stop. One inside of a program does not: it ends by its
    // work, or with its worker where that takes a machine longer than a stop may.
    const restarted = await page.locator(".toast:has-text('the sandbox was restarted')").count() > 0;
    assert.ok(!restarted || command.startsWith("awk"));
    await terminal(page, "clear");
    await terminal(page, "echo $(cat state.txt).");
    await shows(page, restarted ? "\nbefore." : "\nbefore during.");
    await terminal(page, "sh test.sh");
    await shows(page, "2 passed, 2 failed");
    await page.click('.tree [data-path="state.txt"]');
    assert.deepEqual((await editorText(page)).trim().split("\n"), restarted ? ["before"] : ["before", "during"]);
  });
}

test("a page that is left before its first save begins with the sample again", async (t) => {
  const { page, problems } = await open(t);
  await saved(page);
  const all = await paths(page);
  // As such a page leaves it: the project's folder, and nothing in it.
  await page.evaluate(async () => {
    const projects = await (await navigator.storage.getDirectory()).getDirectoryHandle("hermitcrab");
    const folder = await projects.getDirectoryHandle("tide-pool");
    for await (const name of folder.keys()) await folder.removeEntry(name);
  });
  await page.reload();
  await ready(page);
  assert.deepEqual(await paths(page), all);
  assert.equal(await page.locator("#run-demo").isVisible(), true);
  assert.deepEqual(problems, []);
});

test("an agent whose project is taken over stops, and the other page says so", async (t) => {
  const { context, page } = await open(t);
  const model = await serveModel(t, { steps: [{ text: "This takes long.", hold: "never", hold_before: "end" }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "begin");
  await page.waitForSelector(".answer:has-text('This takes long.')");
  await saved(page);
  const second = await context.newPage();
  await second.goto(url());
  await ready(second);
  await second.click('.toast button:text-is("Take it over")');
  await page.waitForSelector(".notice:has-text('Stopped.')");
  await state(page, "IDLE");
  await second.waitForSelector(".notice:has-text('The page was closed, or lost the project, while the agent worked')");
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

test("two tabs on two projects each come back to their own", async (t) => {
  const { context, page, problems } = await open(t);
  await create(page, "left");
  await terminal(page, "echo left > left.txt");
  await saved(page);
  const second = await context.newPage();
  await second.goto(url());
  await ready(second);
  await create(second, "right");
  await terminal(second, "echo right > right.txt");
  await saved(second);
  for (const [tab, name] of [[page, "left"], [second, "right"], [page, "left"]]) {
    await tab.reload();
    await ready(tab);
    assert.equal(await tab.innerText("#project-name"), name);
    assert.deepEqual(await paths(tab), [`${name}.txt`]);
    assert.equal(await tab.locator("#not-kept").isVisible(), false);
  }
  assert.deepEqual(problems, []);
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

test("a name that no project can have is refused with what is wrong with it", async (t) => {
  const { page, problems } = await open(t);
  await menu(page, "Projects…");
  const refused = async (name, problem) => {
    await page.fill("#new-project", name);
    await page.press("#new-project", "Enter");
    await page.waitForFunction((problem) => document.querySelector(".problem:not([hidden])")?.innerText === problem, problem);
  };
  await refused("x".repeat(300), "The name has 300 characters, and a project's has 1 to 100; give a shorter one.");
  await refused("   ", "A project needs a name of 1 to 100 characters.");
  const folder = `The name ${"项".repeat(40)} takes 360 bytes as that of a folder, and 255 are the most`;
  await page.fill("#new-project", "项".repeat(40));
  await page.press("#new-project", "Enter");
  await page.waitForSelector(`.problem:has-text("${folder}")`);
  assert.equal(await page.innerText("#project-name"), "tide-pool");
  const longest = "y".repeat(100);
  await page.fill("#new-project", longest);
  await page.press("#new-project", "Enter");
  await page.waitForSelector(`#project-name:text-is("${longest}")`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 1280, `the page is ${wide} wide`);
  assert.deepEqual(problems, []);
});

test("links are shown as what they lead to, also after a reload", async (t) => {
  const { page, problems } = await open(t);
  await terminal(page, "ln -s slug.sh same.sh; ln -s nowhere lost; mkdir empty; mkdir -p a/b; echo deep > a/b/c.txt");
  const shown = ["a", "a/b", "a/b/c.txt", "empty", "same.sh"];
  const all = async () => (await paths(page)).filter((path) => [...shown, "lost"].includes(path)).sort();
  await page.waitForSelector('.tree [data-path="empty"]');
  await saved(page);
  await page.reload();
  await ready(page);
  assert.deepEqual(await all(), shown);
  await page.click('.tree [data-path="same.sh"]');
  assert.match(await editorText(page), /tr -c /);
  assert.deepEqual(problems, []);
});

test("a project that cannot be read while it opens is left to whoever opens it next", async (t) => {
  const init = () => {
    const { postMessage } = Worker.prototype;
    const broken = (message) => (message.type === "call" && message.method === "exportTar" && window.broken ? { ...message, method: "exportNothing" } : message);
    Worker.prototype.postMessage = function (message, ...more) {
      const sent = message.type === "batch" ? { ...message, messages: message.messages.map(broken) } : broken(message);
      return postMessage.call(this, sent, ...more);
    };
  };
  const { page } = await open(t, { init });
  await saved(page);
  await create(page, "second");
  await page.waitForFunction(async () => !(await navigator.locks.query()).held.some(({ name }) => name.endsWith(":tide-pool")));
  await page.evaluate(() => (window.broken = true));
  await menu(page, "Projects…");
  await page.click('.shelf .open:has-text("tide-pool")');
  await page.waitForSelector(".problem:not([hidden])");
  await page.evaluate(() => (window.broken = false));
  await page.click('.shelf .open:has-text("tide-pool")');
  await page.waitForSelector('#project-name:text-is("tide-pool")');
  assert.equal(await page.locator("#not-kept").isVisible(), false);
  assert.equal(await page.locator(".toast.error").count(), 0);
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

test("a full disk is reported with what is needed, and space that comes free is used", async (t) => {
  const { context, page } = await open(t);
  await saved(page);
  const devtools = await context.newCDPSession(page);
  const origin = new URL(url()).origin;
  const quota = (quotaSize) => devtools.send("Storage.overrideQuotaForOrigin", { origin, quotaSize });
  await quota(2_000_000);
  await terminal(page, "seq 1 900000 > numbers.txt");
  const toast = page.locator(".toast.error");
  await toast.waitFor();
  assert.match(await toast.innerText(), /^Saving project tide-pool needs 6\.\d MB.*free some space or export the project; the work goes on in memory\./);
  assert.equal(await page.locator("#not-kept").isVisible(), true);
  await terminal(page, "echo more > more.txt; tail -n 1 numbers.txt");
  await shows(page, "900000");
  await saved(page);
  assert.equal(await toast.count(), 1);
  await quota(500_000_000);
  await terminal(page, "echo again > more.txt");
  await page.waitForSelector("#not-kept", { state: "hidden" });
  assert.equal(await toast.count(), 0);
});

test("without the private file system projects are kept in IndexedDB", async (t) => {
  const init = () => {
    StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException("blocked", "SecurityError"));
  };
  const { page, problems } = await open(t, { init });
  await terminal(page, "echo here > kept.txt");
  await saved(page);
  await page.reload();
  await ready(page);
  await terminal(page, "cat kept.txt");
  await shows(page, "here");
  assert.deepEqual(problems, []);
});

test("projects stand side by side; each keeps its files and its conversation", async (t) => {
  const { page, problems } = await open(t);
  await page.click("#run-demo");
  await page.waitForSelector(".answer:has-text('All four tests pass.')");
  await state(page, "IDLE");
  await create(page, "second");
  await terminal(page, "echo 2 > two.txt");
  assert.deepEqual(await paths(page), ["two.txt"]);
  assert.equal(await page.locator(".item").count(), 0);
  await menu(page, "Projects…");
  await page.fill("#new-project", "second");
  await page.press("#new-project", "Enter");
  await page.waitForSelector("dialog.projects .problem:text-is('There is a project second already; open it or choose another name.')");
  await page.click('dialog.projects .open:has-text("tide-pool")');
  await page.waitForSelector('#project-name:text-is("tide-pool")');
  assert.equal(await page.locator(".tool").count(), 4);
  await menu(page, "Projects…");
  await page.click('[aria-label="Delete second"]');
  await answer(page, "Delete");
  await page.waitForFunction(() => document.querySelectorAll(".shelf li").length === 1);
  assert.deepEqual(problems, []);
});

test("a project that is not saved yet has its name all the same", async (t) => {
  const { page, problems } = await open(t, { init: () => {
    // Nothing is ever written.
    FileSystemFileHandle.prototype.createWritable = () => new Promise(() => {});
  } });
  await menu(page, "Open the sample");
  await page.waitForSelector('#project-name:text-is("tide-pool-2")');
  await menu(page, "Projects…");
  await page.waitForSelector('.shelf li:has-text("tide-pool-2")');
  await page.fill("#new-project", "tide-pool-2");
  await page.press("#new-project", "Enter");
  await page.waitForSelector("dialog.projects .problem:text-is('There is a project tide-pool-2 already; open it or choose another name.')");
  assert.deepEqual(problems, []);
});

test("a stored project that is damaged is reported, and can be deleted", async (t) => {
  const { page } = await open(t);
  await saved(page);
  await page.evaluate(async () => {
    const root = await navigator.storage.getDirectory();
    const project = await (await root.getDirectoryHandle("hermitcrab")).getDirectoryHandle("tide-pool");
    const stream = await (await project.getFileHandle("project.json")).createWritable();
    await stream.write("{");
    await stream.close();
  });
  await page.reload();
  await ready(page);
  assert.match(await page.locator(".toast.error").innerText(), /^The saved project tide-pool cannot be read: .*, or delete it to begin anew\./);
  assert.equal(await page.innerText("#project-name"), "tide-pool-2");
  await page.click('.toast button:text-is("Delete it")');
  await page.waitForSelector(".toast:has-text('tide-pool is deleted.')");
  // The list is drawn once, of what is stored by then.
  await saved(page);
  await menu(page, "Projects…");
  await page.waitForSelector(".shelf .name");
  assert.deepEqual(await page.locator(".shelf .name").allInnerTexts(), ["tide-pool-2"]);
});
