// The playground in Chromium: what is taken in and handed out, as files, archives,
// folders and runs, and what is refused.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { packZip } from "../node/archives.mjs";
import { callStep, serveModel } from "../node/support.mjs";
import { choose, chosen, create, downloaded, editorText, file, menu, paths, playground, say, shows, state, terminal } from "./playground-support.mjs";

const { open } = playground();

/** A directory that ends with the test. */
async function folder(t) {
  const directory = await mkdtemp(join(tmpdir(), "playground-"));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}

/** A directory with a project of three files and what tools left there. */
async function project(t) {
  const directory = join(await folder(t), "mine");
  await mkdir(join(directory, "src/deep"), { recursive: true });
  await mkdir(join(directory, "node_modules/x"), { recursive: true });
  await writeFile(join(directory, "src/deep/ü.txt"), "deep\n");
  await writeFile(join(directory, "src/bytes.bin"), new Uint8Array([0, 255, 1]));
  await writeFile(join(directory, "top.md"), "# Top\n");
  await writeFile(join(directory, "node_modules/x/index.js"), "");
  return directory;
}

/** The sum over all files of the project, in the terminal. */
async function sums(page) {
  await terminal(page, "clear");
  await terminal(page, "find . -type f | sort | xargs -d '\\n' sha256sum > /tmp/sums; sha256sum /tmp/sums");
  // The terminal draws a moment after the command has ended.
  const shown = await page.waitForFunction(() => document.querySelector(".xterm-rows").innerText.match(/[0-9a-f]{64}(?=\s+\/tmp\/sums)/)?.[0]);
  return shown.jsonValue();
}

const ODD_FILES = "printf 'caf\\303\\251\\000\\377' > bytes.bin; mkdir -p 'deep/er dir'; echo x > 'deep/er dir/ü.txt'";

test("an exported project, imported again, is the same", async (t) => {
  const { page, problems } = await open(t);
  await terminal(page, ODD_FILES);
  const before = await sums(page);
  const { name, content } = await downloaded(page, "Export as zip");
  assert.equal(name, "tide-pool.zip");
  await create(page, "again");
  await chosen(page, "Import files or archives…", { name, mimeType: "application/zip", buffer: content });
  await page.waitForSelector('.tree [data-path="bytes.bin"]');
  assert.equal(await sums(page), before);
  assert.deepEqual(problems, []);
});

test("an archive that cannot be unpacked is named", async (t) => {
  const { page, problems } = await open(t);
  const before = await paths(page);
  await chosen(page, "Import files or archives…", { name: "holiday.zip", mimeType: "application/zip", buffer: Buffer.from("PK and nothing more") });
  await page.waitForSelector(".toast.error:has-text('Cannot unpack holiday.zip: the archive is not a zip file or is damaged')");
  assert.deepEqual(await paths(page), before);
  assert.deepEqual(problems, []);
});

test("what is chosen beside an archive that cannot be unpacked comes in", async (t) => {
  const { page, problems } = await open(t);
  const bad = { name: "bad.zip", mimeType: "application/zip", buffer: Buffer.from("PK and nothing more") };
  await chosen(page, "Import files or archives…", [bad, { name: "plain.txt", mimeType: "text/plain", buffer: Buffer.from("plain") }]);
  await page.waitForSelector(".toast.error:has-text('Cannot unpack bad.zip')");
  await page.waitForSelector('.tree [data-path="plain.txt"]');
  assert.deepEqual(problems, []);
});

test("an address with a password is refused by the settings, which do not repeat it", async (t) => {
  const { page, problems } = await open(t);
  await page.click("#model");
  await page.selectOption("#set-provider", "anthropic");
  await page.fill("#set-key", "page-key");
  await page.fill("#set-base", "https://user:hunter2@proxy.example");
  await page.click("dialog[open] button.primary");
  const problem = page.locator("dialog[open] .problem");
  await problem.waitFor();
  const text = await problem.innerText();
  assert.match(text, /holds a user name or a password, which requests cannot carry; leave them out\.$/);
  assert.ok(!text.includes("hunter2"));
  assert.deepEqual(problems, []);
});

test("an import over files that are there says how many it replaces, and can be undone", async (t) => {
  const { page, problems } = await open(t);
  await create(page, "mine");
  await terminal(page, "echo mine > a.txt; echo mine > b.txt; echo same > c.txt");
  await chosen(page, "Import files or archives…", [file("a.txt", "theirs\n"), file("b.txt", "theirs\n"), file("c.txt", "same\n"), file("d.txt", "new\n")]);
  await page.waitForSelector(".toast:has-text('4 files imported; 2 files that were there are replaced.')");
  // What somebody has changed since is theirs.
  await terminal(page, "cat a.txt; echo later > b.txt");
  await shows(page, "theirs");
  await page.click('.toast button:text-is("Undo")');
  await page.waitForSelector(".toast:has-text('The import is undone, but for 1 file changed since.')");
  await terminal(page, "clear");
  await terminal(page, "cat *.txt | tr '\\n' ' '; ls | tr '\\n' ' '");
  await shows(page, "mine later same a.txt b.txt c.txt");
  assert.deepEqual(await paths(page), ["a.txt", "b.txt", "c.txt"]);
  await chosen(page, "Import files or archives…", { name: "old.zip", mimeType: "application/zip", buffer: Buffer.from(packZip([{ name: "a.txt", content: "zipped\n" }])) });
  await page.waitForSelector(".toast:has-text('old.zip is unpacked; 1 file that was there is replaced.')");
  await page.click('.toast:has-text("old.zip") button:text-is("Undo")');
  await page.waitForSelector(".toast:has-text('The import is undone.')");
  await terminal(page, "cat a.txt");
  await shows(page, "mine");
  assert.deepEqual(problems, []);
});

test("an import that is undone leaves no folders, but those that hold something else by then", async (t) => {
  const { page, problems } = await open(t);
  await create(page, "mine");
  await terminal(page, "echo own > a.txt; mkdir kept");
  const entries = ["a.txt", "kept/x.txt", "new/deep/x.txt", "used/deep/x.txt"].map((name) => ({ name, content: "zipped" }));
  await chosen(page, "Import files or archives…", { name: "old.zip", mimeType: "application/zip", buffer: Buffer.from(packZip(entries)) });
  await page.waitForSelector(".toast:has-text('1 file that was there is replaced')");
  await terminal(page, "echo mine > used/mine.txt");
  await page.click('.toast button:text-is("Undo")');
  await page.waitForSelector(".toast:has-text('The import is undone.')");
  await terminal(page, "find . | sort | tr '\n' ' '; cat a.txt");
  await shows(page, ". ./a.txt ./kept ./used ./used/mine.txt own");
  assert.deepEqual(problems, []);
});

test("a folder of the disk is written and read where the browser lends it", async (t) => {
  const init = () => {
    // The one thing that only a person can do is to choose.
    window.showDirectoryPicker = async () => (await navigator.storage.getDirectory()).getDirectoryHandle("disk", { create: true });
  };
  const { page, problems } = await open(t, { init });
  await terminal(page, ODD_FILES);
  const before = await sums(page);
  await menu(page, "Export to a folder…");
  await page.waitForSelector(".toast:has-text('12 files are in disk.')");
  await create(page, "again");
  await menu(page, "Import a folder…");
  await page.waitForSelector(".toast:has-text('12 files of disk imported.')");
  assert.equal(await sums(page), before);
  await menu(page, "Import a folder…");
  await page.waitForSelector(".toast:has-text('Nothing in disk is new.')");
  assert.deepEqual(problems, []);
});

test("a folder comes in as a list of files where the browser lends none", async (t) => {
  const init = () => delete window.showDirectoryPicker;
  const { page } = await open(t, { init });
  await create(page, "mine");
  await chosen(page, "Import a folder…", await project(t));
  await page.waitForSelector(".toast:has-text('3 files imported without node_modules.')");
  await terminal(page, "find . -type f | sort; cat src/deep/*; wc -c < src/bytes.bin");
  for (const text of ["./src/bytes.bin", "./src/deep/ü.txt", "./top.md", "deep", "3"]) await shows(page, text);
  await page.click("#project");
  assert.equal(await page.locator('.menu button:text-is("Export to a folder…")').count(), 0);
});

test("files and folders are dropped into the tree", async (t) => {
  const { context, page } = await open(t);
  const devtools = await context.newCDPSession(page);
  const drop = async (target, files) => {
    const { x, y, width, height } = await page.locator(target).boundingBox();
    const data = { items: [], files, dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"]) {
      await devtools.send("Input.dispatchDragEvent", { type, x: x + width / 2, y: y + height / 2, data });
      if (type === "dragOver") await page.waitForSelector(".files.dropping");
    }
  };
  const mine = await project(t);
  await drop('.tree [data-path="posts"]', [join(mine, "top.md")]);
  await page.waitForSelector('.tree [data-path="posts/top.md"]');
  await drop('.tree [data-path="test.sh"]', [mine]);
  await page.waitForSelector(".toast:has-text('3 files imported without node_modules.')");
  await terminal(page, "find mine -type f | sort | tr '\\n' ' '");
  await shows(page, "mine/src/bytes.bin mine/src/deep/ü.txt mine/top.md");
  assert.equal(await page.locator(".files.dropping").count(), 0);
});

test("a run is shared as one file and played again", async (t) => {
  const { page, problems } = await open(t);
  await terminal(page, "echo kept > before.txt");
  await page.click("#run-demo");
  await page.waitForSelector(".answer:has-text('All four tests pass.')");
  await state(page, "IDLE");
  const { name, content } = await downloaded(page, "Share run as JSON");
  assert.equal(name, "tide-pool.run.json");
  await create(page, "other");
  await chosen(page, "Open a run…", { name, mimeType: "application/json", buffer: content });
  await page.waitForSelector(".replay");
  assert.equal(await page.locator(".tool").count(), 4);
  assert.match(await editorText(page), /tr -cs/);
  const slider = page.locator('.replay input[type="range"]');
  await slider.fill("0");
  assert.equal(await page.locator(".tool").count(), 0);
  await page.click('.tree [data-path="slug.sh"]');
  assert.match(await editorText(page), /tr -c /);
  await page.click('.replay [aria-label="Play"]');
  await page.waitForSelector(".answer:has-text('run the tests')");
  await slider.fill(await slider.getAttribute("max"));
  await page.click('.replay button:text-is("Continue from here")');
  await page.waitForSelector(".replay", { state: "detached" });
  assert.equal(await page.innerText("#project-name"), "tide-pool-2");
  await terminal(page, "cat before.txt; sh test.sh");
  await shows(page, "kept");
  await shows(page, "4 passed, 0 failed");
  assert.deepEqual(problems, []);
});

test("a project of one's own can be made of a run with the longest name, more than once", async (t) => {
  const { page, problems } = await open(t);
  const name = "é".repeat(100);
  for (const own of ["é".repeat(42), `${"é".repeat(42)}-2`]) {
    await chosen(page, "Open a run…", file("long.run.json", JSON.stringify({ ...RUN, name })));
    await page.click('.replay button:text-is("Continue from here")');
    await page.waitForSelector(`#project-name:text-is("${own}")`);
    assert.deepEqual(await paths(page), ["a.txt"]);
  }
  assert.deepEqual(problems, []);
});

const RUN = { format: "hermitcrab-run", version: 1, name: "x", saved: "2026-01-01T00:00:00Z", files: { "a.txt": "YQ==" }, log: [{ event: { kind: "USER_INPUT", data: { content: "hello" } } }] };
const ENDED = { call_id: "a", is_error: false, duration_ms: 1, output_bytes: 0, output_complete: true };
const event = (kind, data, more) => ({ ...RUN, log: [{ event: { kind, data, ...more } }] });
const damaged = (what) => new RegExp(`^The file x\\.json is damaged: ${what}\\.$`);
/** Agents, each within the one before. */
const NESTED = Array.from({ length: 600 }, (_, index) => ({ event: { kind: "USER_INPUT", data: { content: "x" }, agent_id: `a${index}`, ...(index > 0 && { parent_id: `a${index - 1}` }) } }));
/** A list in a list, and so on. */
const nested = (depth) => Array.from({ length: depth }).reduce((inner) => [inner], 0);
const REFUSED = {
  "that is not JSON": ["hello", /^The file x\.json is not a run: it is not JSON\.$/],
  "of something else": ["{}", /^The file x\.json is not a run that the playground has written\.$/],
  "of a later version": [{ ...RUN, version: 3 }, /^The file x\.json is a run of version 3, which this page does not know yet; reload the page\.$/],
  "of an earlier version": [{ ...RUN, version: 0 }, /^The file x\.json is a run of version 0, and this page reads versions 1 and 2\.$/],
  "of no version": [{ ...RUN, version: undefined }, damaged("it does not say its version")],
  "with a version that is text": [{ ...RUN, version: "1" }, damaged("its version is no number")],
  "with a version that is null": [{ ...RUN, version: null }, damaged("its version is no number")],
  "that is cut off": [JSON.stringify(RUN).slice(0, -20), /^The file x\.json is cut off or damaged; get the file once more\.$/],
  "without a log": [{ ...RUN, log: undefined }, /^The file x\.json is damaged: it has no log\.$/],
  "without files": [{ ...RUN, files: [] }, /^The file x\.json is damaged: it has no files\.$/],
  "with a file that is no base64": [{ ...RUN, files: { "a.txt": "?" } }, /^The file x\.json is damaged: the content of a\.txt is not base64\.$/],
  "with a path that leads out": [{ ...RUN, files: { "../a.txt": "YQ==" } }, /^The file x\.json is damaged: the path "\.\.\/a\.txt" does not lie in the project\.$/],
  "with an entry that says nothing": [{ ...RUN, log: [{}] }, /^The file x\.json is damaged: entry 1 of its log is neither/],
  "with an event that lacks something": [{ ...RUN, log: [...RUN.log, { event: { kind: "USER_INPUT", data: {} } }] }, /^The file x\.json is damaged: entry 2 of its log is an event USER_INPUT without content\.$/],
  "with output that is no text": [{ ...RUN, log: [{ event: { kind: "TOOL_CALL_END", data: { call_id: "a", output: {} } } }] }, /^The file x\.json is damaged: entry 1 of its log is an event TOOL_CALL_END whose output is no text\.$/],
  "without a name": [{ ...RUN, name: "" }, damaged("its name is no text of 1 to 100 characters")],
  "with a long name": [{ ...RUN, name: "x".repeat(101) }, damaged("its name is no text of 1 to 100 characters")],
  "with half a character as its name": [{ ...RUN, name: "\ud800" }, damaged("its name is no text of 1 to 100 characters")],
  "with a name that is no text": [{ ...RUN, name: { toString: 1 } }, damaged("its name is no text of 1 to 100 characters")],
  "with a path that the sandbox does not take": [{ ...RUN, files: { ["x".repeat(300)]: "YQ==" } }, damaged("the path \"x{60}…\" is too long or holds a zero byte")],
  "with content that is a number": [{ ...RUN, files: { a: 12345678 } }, damaged("the content of a is not base64")],
  "with a file that is a directory": [{ ...RUN, files: { a: "eA==", "a/b": "eA==" } }, damaged("a is both a file and a directory")],
  "with a file that becomes a directory": [{ ...RUN, log: [{ changes: [{ path: "a.txt/b", after: "x" }] }] }, damaged("entry 1 of its log makes a.txt both a file and a directory")],
  "with tokens that are no numbers": [event("USAGE", { input_tokens: "<b>x", output_tokens: 1 }), damaged("entry 1 of its log is an event USAGE whose input_tokens is no count")],
  "with a call that has no duration": [event("TOOL_CALL_END", { ...ENDED, duration_ms: undefined }), damaged("entry 1 of its log is an event TOOL_CALL_END without duration_ms")],
  "with a state that there is not": [event("STATE_CHANGED", { to: "ASLEEP" }), damaged("entry 1 of its log is an event STATE_CHANGED whose to is no state of a session")],
  "with a subagent that is no text": [event("USER_INPUT", { content: "x" }, { agent_id: { a: 1 } }), damaged("entry 1 of its log is an event USER_INPUT whose agent_id is no text")],
  "with agents too deep within each other": [{ ...RUN, log: NESTED }, damaged("entry 51 of its log has an agent that is 51 deep, and the page shows 50")],
  "with a note of another kind": [{ ...RUN, log: [{ note: "n", kind: "<x>" }] }, damaged("entry 1 of its log is a note of no known kind")],
  "with a change of no call": [{ ...RUN, log: [{ changes: [], call: 1 }] }, damaged("entry 1 of its log has changes of a call that is no text")],
  "with a change of calls that are no list": [{ ...RUN, log: [{ changes: [], calls: "ab" }] }, damaged("entry 1 of its log has changes without a list of their calls")],
  "with a change of a call among others that is no text": [{ ...RUN, log: [{ changes: [], calls: ["a", 1] }] }, damaged("entry 1 of its log has changes of a call that is no text")],
  "with a terminal that is no yes or no": [{ ...RUN, log: [{ changes: [], calls: ["a"], terminal: "x" }] }, damaged("entry 1 of its log has changes whose terminal is no yes or no")],
  "with an entry that is two things": [{ ...RUN, log: [{ event: { kind: "X", data: {} }, changes: 5 }] }, damaged("entry 1 of its log is more than one of an event, changes and a note")],
  "with a note that changes files": [{ ...RUN, log: [{ note: "n", changes: [{ path: 5 }] }] }, damaged("entry 1 of its log is more than one of an event, changes and a note")],
  "with arguments that are nested too deeply": [event("TOOL_CALL_START", { call_id: "a", tool_name: "t", arguments: nested(1000) }), damaged("entry 1 of its log is an event TOOL_CALL_START whose arguments is no value that the page can show")],
  "with a part of a text that begins nowhere": [{ ...RUN, log: [{ changes: [{ path: "a", before: "a", after: "b", skipped: -1 }] }] }, damaged("entry 1 of its log has a change that is no text")],
  "with a change that is no text": [{ ...RUN, log: [{ changes: [{ path: "a", after: 1 }] }] }, /^The file x\.json is damaged: entry 1 of its log has a change that is no text\.$/],
};
test("what is no run, or a damaged one, is refused in one sentence", async (t) => {
  const { page, problems } = await open(t);
  for (const [name, [content, expected]] of Object.entries(REFUSED)) {
    await t.test(`a run ${name}`, async () => {
      const buffer = Buffer.from(typeof content === "string" ? content : JSON.stringify(content));
      await chosen(page, "Open a run…", { name: "x.json", mimeType: "application/json", buffer });
      assert.match(await page.locator(".toast.error span").innerText(), expected);
      assert.equal(await page.locator(".replay").count(), 0);
      assert.deepEqual(problems, []);
      await page.click('.toast.error [aria-label="Close this message"]');
      await page.waitForSelector(".toast.error", { state: "detached" });
    });
  }
});

test("a run with events that this version does not know is played", async (t) => {
  const { page, problems } = await open(t);
  const log = [...RUN.log, { event: { kind: "OF_THE_FUTURE", data: {} } }, { event: { kind: "TOOL_CALL_END", data: { ...ENDED, call_id: "none" } } }];
  // Any name will do for a file.
  const files = JSON.stringify({ ...RUN, log }).replace('"a.txt":', '"__proto__":"YQ==","a.txt":');
  await chosen(page, "Open a run…", { name: "x.json", mimeType: "application/json", buffer: Buffer.from(files) });
  await page.waitForSelector(".replay:has-text('3 / 3')");
  assert.deepEqual(await paths(page), ["__proto__", "a.txt"]);
  assert.deepEqual(problems, []);
});

test("a run whose errors name addresses that are none is played", async (t) => {
  const { page, problems } = await open(t);
  const failed = (address) => ({ event: { kind: "ERROR", data: { code: "network", message: `cannot connect to ${address}; check the network` } } });
  const log = [...RUN.log, failed("http://a:99999"), failed("http://[::"), failed("https://a..b%"), { event: { kind: "RETRY", data: { attempt: 2, delay_ms: 1, message: "cannot connect to http://a:99999", discard_partial: false } } }];
  await chosen(page, "Open a run…", file("x.json", JSON.stringify({ ...RUN, log })));
  await page.waitForSelector(".replay:has-text('5 / 5')");
  assert.equal(await page.locator(".notice").count(), 4);
  await page.click('[aria-label="Close the run"]');
  await page.waitForSelector(".replay", { state: "detached" });
  await terminal(page, "echo still here");
  await shows(page, "still here");
  assert.deepEqual(problems, []);
});

test("a run of version 1 is played", async (t) => {
  const { page, problems } = await open(t);
  const log = [...RUN.log, { changes: [{ path: "a.txt", before: "a", after: "b" }, { path: "b.bin", binary: true }], call: "x" }];
  await chosen(page, "Open a run…", file("x.json", JSON.stringify({ ...RUN, version: 1, log })));
  await page.waitForSelector(".replay:has-text('2 / 2')");
  await page.click('.tree [data-path="a.txt"]');
  assert.equal((await editorText(page)).trim(), "b");
  assert.deepEqual(problems, []);
});

/** What an agent does to long texts, and what each card says of it. */
const LONG = [
  ["sed -i 's/^30000$/changed/' big.txt", "big.txt\n+1\n−1"],
  ["cp big.txt other.txt", "other.txt\nnew\ntoo long to compare"],
  ["sed -i 's/x/y/2' line.txt", "line.txt\n+1\n−1"],
  ["printf '\\000' > null.bin", "null.bin\nnew\nbinary"],
  ["printf '\\001\\000' > null.bin", "null.bin\nbinary"],
  ["printf '\\000' > gone.bin", "gone.bin\nnew\nbinary"],
  ["rm gone.bin", "gone.bin\ndeleted\nbinary"],
  // What was there is not in the log, so the next change is whole.
  ["seq 1 9000 > null.bin", "null.bin\nbinary"],
  ["sed -i 's/^8000$/changed/' null.bin", "null.bin\n+1\n−1"],
  ["seq 1 300000 > huge.txt", "huge.txt\nnew\ntoo large for the log"],
  ["rm other.txt", "other.txt\ndeleted\ntoo long to compare"],
];

test("edits of long texts are in a run that is shared", async (t) => {
  const { page, problems } = await open(t);
  await create(page, "long");
  await terminal(page, "seq 1 60000 > big.txt; awk 'BEGIN { for (i = 0; i < 150000; i++) printf \"\u{1d465}\"; print \"xx\"; for (i = 0; i < 150000; i++) printf \"\u{1d465}\" }' > line.txt");
  const before = await sums(page);
  const model = await serveModel(t, { steps: [...LONG.map(([command], index) => callStep("shell", { command }, `c${index}`)), { text: "Done." }] });
  await choose(page, { baseUrl: model.url });
  await say(page, "work");
  await page.waitForSelector(".answer:has-text('Done.')");
  await state(page, "IDLE");
  const heads = async () => (await page.locator(".tool .diff-head").allInnerTexts());
  await page.waitForFunction((count) => document.querySelectorAll(".tool .diff-head").length === count, LONG.length);
  assert.deepEqual(await heads(), LONG.map(([, head]) => head));
  assert.deepEqual(await page.locator(".tool .diff").first().locator(".row:not(.gap)").allInnerTexts(), ["29998\n \n29998", "29999\n \n29999", "−\n30000", "30000\n+\nchanged", "30001\n \n30001", "30002\n \n30002"]);
  await terminal(page, "rm huge.txt");
  const after = await sums(page);
  assert.notEqual(after, before);
  const { name, content } = await downloaded(page, "Share run as JSON");
  await chosen(page, "Open a run…", { name, mimeType: "application/json", buffer: content });
  await page.waitForSelector(".replay");
  assert.deepEqual(await heads(), LONG.map(([, head]) => head));
  const slider = page.locator('.replay input[type="range"]');
  const end = await slider.getAttribute("max");
  for (const [point, sum] of [["0", before], [end, after]]) {
    await slider.fill(point);
    await page.click('.replay button:text-is("Continue from here")');
    await page.waitForSelector(".replay", { state: "detached" });
    assert.equal(await sums(page), sum);
    await chosen(page, "Open a run…", { name, mimeType: "application/json", buffer: content });
    await page.waitForSelector(".replay");
  }
  assert.deepEqual(problems, []);
});

test("a key that a server repeats in pieces is not in a run that is shared", async (t) => {
  const { page } = await open(t);
  const key = 'sk-"repeated"-0123456789';
  const model = await serveModel(t, { steps: [{ texts: [`Your key is ${key.slice(0, 9)}`, key.slice(9), "."] }] });
  await choose(page, { baseUrl: model.url, key });
  await say(page, "hello");
  await page.waitForSelector(`.answer:has-text('${key}')`);
  await state(page, "IDLE");
  const { content } = await downloaded(page, "Share run as JSON");
  const { log } = JSON.parse(content.toString());
  assert.equal(log.findLast(({ event }) => event?.kind === "ASSISTANT_TEXT_END").event.data.text, "Your key is [redacted].");
  assert.equal(JSON.stringify(log).includes(JSON.stringify(key).slice(1, -1)), false);
});

test("a file that a run says is null is gone", async (t) => {
  const { page, problems } = await open(t);
  const log = [...RUN.log, { changes: [{ path: "a.txt", before: "a", after: null }] }];
  await chosen(page, "Open a run…", { name: "x.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify({ ...RUN, log })) });
  await page.waitForSelector(".replay:has-text('2 / 2')");
  assert.deepEqual(await paths(page), []);
  assert.deepEqual(problems, []);
});

test("a run that was saved in the middle says so, and nothing of it goes on", async (t) => {
  const { page, problems } = await open(t);
  const log = [
    ...event("STATE_CHANGED", { from: "IDLE", to: "PROCESSING" }).log, ...RUN.log,
    { event: { kind: "TOOL_CALL_START", data: { call_id: "a", tool_name: "shell", arguments: { command: "sleep 9" } } } },
    { note: "The page was closed.", kind: "warning", at: 1, resume: true },
  ];
  await chosen(page, "Open a run…", { name: "x.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify({ ...RUN, log })) });
  await page.waitForSelector(".replay:has-text('4 / 4')");
  await page.waitForSelector(".notice:has-text('This run was saved in the middle of the work; what came after is not in it.')");
  assert.equal(await page.locator(".tool .time").innerText(), "cut off");
  assert.equal(await page.locator('.notice button:text-is("Go on")').count(), 0);
  // At an earlier point it works still.
  await page.locator('.replay input[type="range"]').fill("3");
  await page.waitForSelector(".tool[data-state='running']");
  assert.equal(await page.locator(".notice").count(), 0);
  assert.deepEqual(problems, []);
});

/** Gives the page a file that no test wants to write to the disk. */
async function give(page, label, name, pieces) {
  await page.evaluate(([label, name, pieces]) => {
    const part = new Uint8Array(50_000_000);
    const data = new DataTransfer();
    data.items.add(new File(Array(pieces).fill(part), name));
    const { click } = HTMLInputElement.prototype;
    HTMLInputElement.prototype.click = function () {
      HTMLInputElement.prototype.click = click;
      this.files = data.files;
      this.dispatchEvent(new Event("change"));
    };
    [...document.querySelectorAll(".menu button")].find((button) => button.textContent === label).click();
  }, [label, name, pieces]);
  await page.waitForSelector(".toast.error");
  return page.innerText(".toast.error span");
}

test("an import that is too large is refused before it is read", async (t) => {
  const { page } = await open(t);
  assert.match(await give(page, "Import files or archives…", "large.bin", 4), /^200 MB are too much for the sandbox, which takes 100 MB at once/);
});

test("a run that is too large is refused before it is read", async (t) => {
  const { page } = await open(t);
  assert.match(await give(page, "Open a run…", "x.json", 5), /^The file x\.json has 250\.0 MB, and the page opens runs of up to 200\.0 MB\.$/);
});

test("an archive that unpacks to far more than it is, is refused", async (t) => {
  const { page } = await open(t);
  const before = await paths(page);
  const buffer = Buffer.from(packZip([{ name: "zeros.bin", content: new Uint8Array(150_000_000) }]));
  await chosen(page, "Import files or archives…", { name: "bomb.zip", mimeType: "application/zip", buffer });
  assert.match(await page.locator(".toast.error span").innerText(), /zeros\.bin|bytes|large/i);
  assert.deepEqual(await paths(page), before);
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

