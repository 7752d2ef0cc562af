// Projects in a browser's storage, and terminals, in Chromium: in the page and
// with the core in a worker, under a policy that forbids eval.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { callStep, serveModel } from "../node/support.mjs";
import { STRICT, launch, serveFiles, wholeFile } from "./page.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

let browser;
let origin;

const whole = wholeFile();

before(async () => {
  origin = await serveFiles(whole, ROOT, { policy: STRICT });
  browser = await launch(whole);
});

/** A fresh profile; `pages()` opens tabs in it. */
async function profile(t, { init, face = "" } = {}) {
  const context = await browser.newContext();
  t.after(() => context.close());
  if (init) await context.addInitScript(init);
  const open = async () => {
    const page = await context.newPage();
    page.on("pageerror", (error) => t.diagnostic(`page: ${error.stack}`));
    await page.goto(`${origin}/tests/browser/blank.html#${face}`);
    await page.waitForSelector("html[data-ready]", { state: "attached" });
    return page;
  };
  return { context, open };
}

const withoutPrivateFiles = () => {
  StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException("blocked", "SecurityError"));
};
const withoutStorage = () => {
  StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException("blocked", "SecurityError"));
  IDBFactory.prototype.open = () => {
    throw new DOMException("blocked", "SecurityError");
  };
};

/** What an error that a page throws says. */
const caught = (page, act, argument) =>
  page.evaluate(
    async ([code, value]) => {
      try {
        await window.acts[code](value);
        return undefined;
      } catch ({ kind, message, name }) {
        return { kind, message, name };
      }
    },
    [act, argument],
  );

for (const [name, options] of [
  ["the private file system", {}],
  ["IndexedDB", { init: withoutPrivateFiles }],
  ["the private file system, from a worker", { face: "worker" }],
  ["IndexedDB, from a worker", { init: withoutPrivateFiles, face: "worker" }],
]) {
  test(`a project survives a reload in ${name}`, async (t) => {
    const { open } = await profile(t, options);
    const one = await open();
    await one.evaluate(async () => {
      const binary = Uint8Array.from({ length: 100_000 }, (_, index) => (index * 31) & 255);
      window.saved = 0;
      const onStatus = ({ state }) => state === "saved" && (window.saved += 1);
      const project = await api.openProject("demo ü", { onStatus, files: { "bin/data": binary, "latin.txt": new Uint8Array([0xe9, 0xff, 0]) } });
      await project.env.exec("ln -s data bin/link; chmod 700 bin; mkdir hollow");
      await project.save();
      window.saved = 0;
      await project.env.write("late.txt", "by itself");
      window.project = project;
    });
    await one.waitForFunction(() => saved === 1);
    await one.close();
    const two = await open();
    const found = await two.evaluate(async () => {
      window.saved = 0;
      const onStatus = ({ state }) => state === "saved" && (window.saved += 1);
      const project = await api.openProject("demo ü", { onStatus, files: { other: "" } });
      const { stdout } = await project.env.exec("sha256sum bin/link latin.txt; ls -d */; cat late.txt; ls -ld bin | cut -c1-10");
      const names = await api.listProjects();
      await project.close();
      await api.deleteProject("demo ü");
      return { stdout, isNew: project.isNew, names, left: await api.listProjects() };
    });
    const { createHash } = await import("node:crypto");
    const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");
    const data = Uint8Array.from({ length: 100_000 }, (_, index) => (index * 31) & 255);
    assert.deepEqual(found, {
      stdout: `${hash(data)}  bin/link\n${hash(new Uint8Array([0xe9, 0xff, 0]))}  latin.txt\nbin/\nhollow/\nby itselfdrwx------\n`,
      isNew: false,
      names: ["demo ü"],
      left: [],
    });
  });
}

test("a tab learns whether it has a project, and at once when it has it no more", async (t) => {
  const { open } = await profile(t);
  const [one, two] = [await open(), await open()];
  const lock = (page, takeOver) => page.evaluate(async (takeOver) => {
    const { lockTab } = await import("/js/project/browser-storage.js");
    window.release = await lockTab("p", takeOver, () => {});
    return release?.held();
  }, takeOver);
  const held = (page) => page.evaluate(() => release.held());
  assert.equal(await lock(one, false), true);
  assert.equal(await lock(two, false), undefined);
  assert.equal(await lock(two, true), true);
  assert.deepEqual([await held(one), await held(two)], [false, true]);
  await one.evaluate(() => release());
  assert.equal(await held(two), true);
  await two.evaluate(() => release());
  assert.deepEqual([await held(one), await held(two)], [false, false]);
  assert.equal(await lock(one, false), true);
});

for (const face of ["", "worker"]) {
  const where = face === "" ? "" : ", in a worker";

  test(`two tabs cannot have one project${where}`, async (t) => {
    const { open } = await profile(t, { face });
    const [one, two] = [await open(), await open()];
    await one.evaluate(async () => {
      window.states = [];
      window.project = await api.openProject("demo", { files: { a: "1" }, onStatus: ({ state, error }) => states.push([state, error?.kind]) });
      await project.save();
    });
    await two.evaluate(() => {
      window.acts = { open: () => api.openProject("demo"), save: () => project.save(), delete: () => api.deleteProject("demo") };
    });
    const locked = { kind: "locked", name: "EnvironmentError", message: "project demo is open in another tab or process; close it there, open it with readOnly, or take it over" };
    assert.deepEqual(await caught(two, "open"), locked);
    assert.deepEqual(await caught(two, "delete"), locked);
    const seen = await two.evaluate(async () => {
      window.project = await api.openProject("demo", { readOnly: true });
      return [project.readOnly, await project.env.readText("a")];
    });
    assert.deepEqual(seen, [true, "1"]);
    assert.equal((await caught(two, "save")).kind, "read_only");
    await two.evaluate(async () => {
      window.project = await api.openProject("demo", { takeOver: true });
      await project.env.write("a", "2");
      await project.save();
    });
    await one.waitForFunction(() => project.readOnly);
    await one.evaluate(() => {
      window.acts = { save: () => project.save() };
      return project.env.write("a", "lost");
    });
    assert.equal((await caught(one, "save")).kind, "locked");
    assert.deepEqual((await one.evaluate(() => states)).at(-1), ["failed", "locked"]);
    await two.close();
    // The tab that is gone holds nothing any more.
    const text = await (await open()).evaluate(async () => (await api.openProject("demo")).env.readText("a"));
    assert.equal(text, "2");
  });

  test(`a page closed in the middle of a run goes on at its next load${where}`, async (t) => {
    const model = await serveModel(t, {
      steps: [
        callStep("shell", { command: "echo one > log" }, "a"),
        { tool_calls: [{ name: "wait", id: "b", arguments: {} }, { name: "shell", id: "c", arguments: { command: "echo two >> log" } }] },
        { text: "Done." },
      ],
    });
    const { open } = await profile(t, { face });
    const start = async ([baseUrl, act]) => {
      const project = await api.openProject("run");
      const execute = () => new Promise(() => {});
      const tools = [{ name: "wait", description: "", parameters: { type: "object" }, execute }];
      const session = await api.createSession({ apiKey: "k", baseUrl, env: project.env, history: project.history, tools });
      project.keep(session);
      const iterator = act === "run" ? session.run("go") : session.resume();
      let ended = 0;
      for await (const { kind, data } of iterator) {
        if (kind === "TOOL_CALL_END" && (ended += 1) === 2) return void (await project.save());
        if (kind === "ASSISTANT_TEXT_END") window.text = data.text;
      }
      return [window.text, await project.env.readText("log")];
    };
    const one = await open();
    await one.evaluate(start, [model.url, "run"]);
    await one.close();
    const two = await open();
    assert.deepEqual(await two.evaluate(start, [model.url, "resume"]), ["Done.", "one\ntwo\n"]);
    const { body } = (await model.requests()).at(-1);
    const sent = JSON.stringify(typeof body === "string" ? JSON.parse(body) : body);
    assert.ok(sent.includes("Tool error (wait): interrupted before it ended"), sent);
  });

  test(`a terminal stays a terminal${where}`, async (t) => {
    const { open } = await profile(t, { face });
    const page = await open();
    const shown = await page.evaluate(async () => {
      const env = await api.MemoryEnvironment.create({ files: { "a.txt": "A\n" } });
      let text = "";
      const shell = await env.openShell({ onData: (piece) => (text += piece), cols: 80, rows: 24 });
      await shell.write("cd /tmp; X=1\r");
      const loop = shell.write("while :; do :; done\r");
      let ticks = 0;
      const timer = setInterval(() => (ticks += 1), 10);
      await new Promise((resolve) => setTimeout(resolve, 300));
      clearInterval(timer);
      await shell.write("\x03");
      await loop;
      await shell.write("echo $X $PWD\r");
      await shell.write("exit 4\r");
      const code = await shell.closed;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return { text, ticks, code };
    });
    assert.match(shown.text, /\^C\r\n/);
    assert.match(shown.text, /1 \/tmp\r\n/);
    // Without a worker the command has the page's own thread, in pieces.
    assert.ok(shown.ticks > (face === "worker" ? 5 : 0), `the page had ${shown.ticks} turns`);
    assert.equal(shown.code, 4);
  });

  test(`archives and directory handles go in and out${where}`, async (t) => {
    const { open } = await profile(t, { face });
    const page = await open();
    const same = await page.evaluate(async () => {
      const binary = Uint8Array.from({ length: 50_000 }, (_, index) => (index * 7) & 255);
      const one = await api.MemoryEnvironment.create({ files: { "d/data": binary, "é.txt": "é" } });
      const root = await navigator.storage.getDirectory();
      const out = await root.getDirectoryHandle("out", { create: true });
      const told = await one.exportDirectory(out);
      const two = await api.MemoryEnvironment.create();
      await two.importDirectory(out);
      const three = await api.MemoryEnvironment.create();
      await three.importZip(new Blob([await two.exportZip()]));
      const four = await api.MemoryEnvironment.create();
      await four.importFiles([new File([await three.readBytes("d/data")], "data")]);
      const bytes = await four.readBytes("data");
      return [told, bytes.length, bytes.every((byte, index) => byte === binary[index]), await three.readText("é.txt")];
    });
    assert.deepEqual(same, [{ files: 2, skipped: [] }, 50_000, true, "é"]);
  });
}

test("a full disk is reported with what is needed, and the work goes on", async (t) => {
  const { context, open } = await profile(t);
  const page = await open();
  const devtools = await context.newCDPSession(page);
  await devtools.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 2_000_000 });
  const told = await page.evaluate(async () => {
    const failed = new Promise((resolve) => {
      window.onStatus = (status) => status.state === "failed" && resolve(status.error);
    });
    window.project = await api.openProject("big", { onStatus });
    await project.save();
    // At once: a save in the middle would need less.
    await project.env.importFiles(Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`big${index}`, new Uint8Array(60_000)])));
    const { kind, message } = await failed;
    return { kind, message, still: (await project.env.list()).length };
  });
  assert.equal(told.kind, "storage_full", told.message);
  assert.match(told.message, /^saving project big needs 6\.\d MB(, and \d\.\d MB are free)?; free some space or export the project; the work goes on in memory$/);
  assert.equal(told.still, 101);
  await devtools.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 200_000_000 });
  const state = await page.evaluate(async () => {
    await project.save();
    return project.status;
  });
  assert.deepEqual(state, { state: "saved" });
});

test("a full disk is reported as one at every attempt", async (t) => {
  const { context, open } = await profile(t);
  const page = await open();
  const devtools = await context.newCDPSession(page);
  await devtools.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 2_000_000 });
  const told = await page.evaluate(async () => {
    const { privateFiles } = await import("/js/project/browser-storage.js");
    const storage = await privateFiles();
    const attempt = (index) => storage.write("big", `file${index}`, new Uint8Array(6_000_000)).then(() => "done", ({ name }) => name);
    const told = [];
    // What is refused may come as a broken pipe, now and then.
    for (let index = 0; index < 40; index++) told.push(await attempt(index));
    return told;
  });
  assert.deepEqual(told, Array(40).fill("QuotaExceededError"));
});

// Errors of Chromium on a small disk without room, which a quota does not bring.
for (const [where, init] of Object.entries({
  "the private file system": () => {
    const { write } = FileSystemWritableFileStream.prototype;
    FileSystemWritableFileStream.prototype.write = function (piece) {
      if (!window.full || !(piece instanceof Blob)) return write.call(this, piece);
      return Promise.reject(new DOMException("The requested file could not be read", "NotReadableError"));
    };
  },
  IndexedDB: () => {
    StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException("blocked", "SecurityError"));
    const { put } = IDBObjectStore.prototype;
    IDBObjectStore.prototype.put = function (...given) {
      const request = put.apply(this, given);
      if (window.full) {
        Object.defineProperty(this.transaction, "error", { value: new DOMException("Failed to write blobs (IOError)", "DataError") });
        this.transaction.abort();
      }
      return request;
    };
  },
})) {
  test(`a disk without room is a full one in ${where}`, async (t) => {
    const { open } = await profile(t, { init });
    const page = await open();
    const told = await page.evaluate(async () => {
      const project = await api.openProject("p", { files: { a: "1" } });
      await project.save();
      window.full = true;
      await project.env.write("b", "2");
      const { kind, message } = await project.save().catch((error) => error);
      window.full = false;
      await project.save();
      return { kind, message, state: project.status.state };
    });
    assert.equal(told.kind, "storage_full", told.message);
    assert.match(told.message, /^saving project p needs \d+ kB; free some space or export the project; the work goes on in memory$/);
    assert.equal(told.state, "saved");
  });
}

test("where nothing can be stored, the project works in memory and says why", async (t) => {
  const { open } = await profile(t, { init: withoutStorage });
  const page = await open();
  const told = await page.evaluate(async () => {
    const project = await api.openProject("p", { files: { a: "1" } });
    return { kind: project.status.error.kind, message: project.status.error.message, text: await project.env.readText("a") };
  });
  assert.equal(told.kind, "storage_denied");
  assert.match(told.message, /^nothing can be stored here \(blocked; blocked\): .*; the work goes on in memory, so export it to keep it$/);
  assert.equal(told.text, "1");
});

test("a busy command that hears nothing is ended with its worker, and the files are as before it", { timeout: 120_000 }, async (t) => {
  const { open } = await profile(t, { face: "worker" });
  const page = await open();
  const shown = await page.evaluate(async () => {
    await api.init({ stopMs: 300 });
    const limits = { workBound: Number.MAX_SAFE_INTEGER };
    const env = await api.MemoryEnvironment.create({ limits, files: { keep: "k", code: "c" } });
    let text = "";
    const shell = await env.openShell({ onData: (piece) => (text += piece) });
    await shell.write("echo more > added\r");
    const busy = shell.write("rm keep; awk 'BEGIN { while (1); }'\r");
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 10);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await shell.write("\x03");
    await busy;
    clearInterval(timer);
    const told = await shell.closed.catch(({ kind, message }) => ({ kind, message }));
    await shell.write("echo ignored\r");
    const files = (await env.list()).map(({ path }) => path);
    const next = await env.openShell({ onData: (piece) => (text += piece) });
    await next.write("cat keep added\r");
    await next.close();
    return { text, ticks, told, files };
  });
  assert.equal(shown.told.kind, "core");
  assert.match(shown.told.message, /the worker was restarted/);
  assert.match(shown.text, /kmore\r\n/);
  assert.deepEqual(shown.files, ["added", "code", "keep"]);
  assert.ok(shown.ticks > 5, `the page had ${shown.ticks} turns`);
});
