// Projects: files and session survive the process, also when it is killed in
// the middle of a round.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { openProjectIn } from "../../js/project/projects.js";
import { storageFailure } from "../../js/project/stored-project.js";
import { CoreError, EnvironmentError, MemoryEnvironment, createSession, deleteProject, directoryStorage, inWorker, listProjects, openProject } from "./face.mjs";
import { callStep, collect, dataOf, serveModel, uncaughtIn } from "./support.mjs";

const KEY = "sk-test-0000";
const CUT_OFF = "Tool error (wait): interrupted before it ended";

async function folder(t) {
  const directory = await mkdtemp(join(tmpdir(), "hermitcrab-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Resolves when the project has the state. */
function reaches(state) {
  let reached;
  const promise = new Promise((resolve) => (reached = resolve));
  return { promise, onStatus: (status) => status.state === state && reached(status) };
}

const rejectsWith = (promise, kind, message) =>
  assert.rejects(promise, (error) => {
    assert.ok(error instanceof EnvironmentError, error.stack);
    assert.equal(error.kind, kind, error.message);
    assert.match(error.message, message);
    return true;
  });

test("a project is there again, byte for byte", async (t) => {
  const storage = directoryStorage(await folder(t));
  const binary = Uint8Array.from({ length: 5000 }, (_, index) => index & 255);
  const one = await openProject("a/b ü", { storage, files: { "src/a.bin": binary } });
  assert.equal(one.isNew, true);
  await one.env.exec("echo x > /home/user/.profile; ln -s a.bin src/link; chmod 700 src; mkdir empty; rm -r /var/tmp");
  await one.close();
  assert.deepEqual(await listProjects({ storage }), ["a/b ü"]);
  const two = await openProject("a/b ü", { storage, files: { "other": "" } });
  assert.equal(two.isNew, false);
  assert.deepEqual(await two.env.readBytes("src/link"), binary);
  const { stdout } = await two.env.exec("cat ~/.profile; ls -a; ls -ld src | cut -c1-10; readlink src/link");
  assert.equal(stdout, "x\n.\n..\nempty\nsrc\ndrwx------\na.bin\n");
  await two.close();
});

test("what changes is saved by itself, and once", async (t) => {
  const directory = await folder(t);
  let writes = 0;
  const files = directoryStorage(directory);
  const storage = { ...files, write: (...args) => ((writes += 1), files.write(...args)) };
  const first = reaches("saved");
  const project = await openProject("p", { storage, onStatus: (status) => first.onStatus(status) });
  await first.promise;
  assert.equal(writes, 2);
  const second = reaches("saved");
  first.onStatus = second.onStatus;
  await project.env.exec("for i in 1 2 3; do echo $i > f$i; done");
  await project.env.write("g", "4");
  await second.promise;
  assert.equal(writes, 4);
  await project.save();
  assert.equal(writes, 4, "nothing has changed");
  const names = (await readdir(join(directory, "p"))).sort();
  assert.deepEqual(names.map((name) => name.replace(/-[0-9a-f]{8}\./, "-OWNER.")), ["files-1-OWNER.tar", "files-2-OWNER.tar", "lock", "project.json"]);
  await project.close();
  const again = await openProject("p", { storage: directoryStorage(directory) });
  assert.equal(await again.env.readText("f3"), "3\n");
  await again.close();
});

test("data of the host's own is kept with the files", async (t) => {
  const storage = directoryStorage(await folder(t));
  const states = [];
  const reached = reaches("saved");
  const onStatus = (status) => (states.push(status.state), reached.onStatus(status));
  const one = await openProject("p", { storage, onStatus });
  assert.equal(one.data, undefined);
  await one.save();
  states.length = 0;
  const second = reaches("saved");
  reached.onStatus = second.onStatus;
  one.data = { open: ["a.txt"], at: 3 };
  await second.promise;
  assert.deepEqual(states, ["unsaved", "saving", "saved"]);
  await one.close();
  const two = await openProject("p", { storage });
  assert.deepEqual(two.data, { open: ["a.txt"], at: 3 });
  two.history = { messages: [] };
  two.keep(undefined);
  assert.equal(two.history, undefined);
  await two.close();
});

test("data that would be lost is refused where it is set, and what was set before stays", async (t) => {
  const storage = directoryStorage(await folder(t));
  const one = await openProject("p", { storage });
  one.data = { at: 3 };
  for (const [value, problem] of [
    [NaN, "project.data must be a finite number, not the number NaN"],
    [{ open: [1, Infinity] }, "project.data.open[1] must be a finite number, not the number Infinity"],
    [new Map([["at", 4]]), "project.data must be data that JSON holds, not a Map"],
    [{ "to do": new Uint8Array(2) }, 'project.data["to do"] must be data that JSON holds, not a Uint8Array'],
    [() => {}, "project.data must be data that JSON holds, not a function"],
  ]) {
    assert.throws(() => (one.data = value), { name: "EnvironmentError", kind: "invalid_input", message: problem });
  }
  await one.close();
  const two = await openProject("p", { storage });
  assert.deepEqual(two.data, { at: 3 });
  await two.close();
});

test("only what changed is written, until everything is less", async (t) => {
  const directory = await folder(t);
  const files = directoryStorage(directory);
  const written = [];
  const storage = {
    ...files,
    write: (project, file, data) => {
      if (file !== "project.json") written.push(data.length);
      return files.write(project, file, data);
    },
  };
  const project = await openProject("p", { storage, files: { big: new Uint8Array(3_000_000).fill(7), "d/x": "1", link: "file" } });
  const env = project.env;
  for (const command of [
    "echo 2 > d/x; echo t > /tmp/t",
    "rm -r d; echo now a file > d; mkdir e",
    "rm d link; mkdir -p d/y; ln -s /tmp link; chmod 700 e",
    "rmdir e; rm link /tmp/t; ln -s big link; touch big",
  ]) {
    await project.save();
    const { stderr } = await env.exec(command);
    assert.equal(stderr, "");
  }
  await project.save();
  assert.equal(written.length, 5);
  assert.ok(written[0] > 3_000_000 && written.slice(1).every((bytes) => bytes < 10_000), written.join());
  const state = (some) => some.exec("find /workspace /tmp /home /var -printf '%y %m %p %l\\n' | sort; ls d; sha256sum big more noise 2>&1");
  const seen = async () => {
    const reader = await openProject("p", { storage: files, readOnly: true });
    const { stdout } = await state(reader.env);
    await reader.close();
    return stdout;
  };
  const { stdout } = await state(env);
  assert.match(stdout, /l 777 \/workspace\/link big/);
  assert.equal(await seen(), stdout);
  for (let round = 0; round < 5; round += 1) {
    await env.write("noise", crypto.getRandomValues(new Uint8Array(60_000)).map((byte) => byte + round));
    await env.write("more", new Uint8Array(900_000));
    await env.write("more", new Uint8Array(900_000).fill(round));
    await project.save();
  }
  // Everything was written anew when changes had become more than that.
  assert.ok(written.slice(5).some((bytes) => bytes > 3_900_000), written.join());
  assert.ok((await readdir(join(directory, "p"))).length < 8);
  assert.equal(await seen(), (await state(env)).stdout);
  await project.close();
});

test("a process that is killed in the middle of round 2 is gone on with by another", async (t) => {
  const directory = await folder(t);
  const model = await serveModel(t, {
    steps: [
      callStep("shell", { command: "echo second >> notes.txt" }, "one"),
      {
        tool_calls: [
          { name: "wait", id: "two", arguments: {} },
          { name: "shell", id: "three", arguments: { command: "echo third >> notes.txt; wc -l < notes.txt" } },
        ],
      },
      { text: "Done." },
      { text: "Nothing more." },
    ],
  });
  const killed = start(directory, model.url, "begin");
  await killed.until(({ kept }) => kept);
  killed.child.kill("SIGKILL");
  await killed.exit;
  assert.equal((await model.requests()).length, 2);

  const resumed = start(directory, model.url, "resume");
  const { notes } = await resumed.until((message) => message.notes);
  assert.deepEqual(await resumed.exit, 0);
  assert.equal(notes, "first\nsecond\nthird\n");
  const bodies = (await model.requests()).map(({ body }) => (typeof body === "string" ? JSON.parse(body) : body));
  assert.equal(bodies.length, 4);
  const plain = (messages) => JSON.parse(JSON.stringify(messages, (key, value) => (key === "cache_control" ? undefined : value)));
  const before = plain(bodies[1].messages);
  const after = plain(bodies[2].messages);
  assert.deepEqual(after.slice(0, before.length), before);
  assert.deepEqual(after.slice(before.length + 1), [
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "two", content: CUT_OFF, is_error: true },
        { type: "tool_result", tool_use_id: "three", content: after.at(-1).content[1].content },
      ],
    },
  ]);
  assert.match(after.at(-1).content[1].content, /3/);
  // The follow-up of the process that is gone.
  assert.deepEqual(plain(bodies[3].messages).at(-1).content, [{ type: "text", text: "and then?" }]);
});

/** A process that works on the project of the directory. */
function start(directory, url, act) {
  const script = fileURLToPath(new URL("./project-process.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, directory, url, act], { stdio: ["ignore", "pipe", "inherit"] });
  const exit = new Promise((resolve) => child.once("exit", (code) => resolve(code)));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    exit,
    async until(wanted) {
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error(`the process ended before it ${wanted}`);
        const message = JSON.parse(value);
        if (wanted(message)) return message;
      }
    },
  };
}

test("a history of plain turns goes on, also with another provider", async (t) => {
  const model = await serveModel(t, { steps: [callStep("shell", { command: "echo hi" }), { text: "It says hi." }, { text: "Yes." }] });
  const one = await createSession({ apiKey: KEY, baseUrl: model.url });
  await collect(one.run("run it"));
  const history = structuredClone(await one.history());
  const two = await createSession({ provider: "openai", model: "m", apiKey: KEY, baseUrl: `${model.url}/v1`, history });
  assert.deepEqual(await two.history(), history);
  const events = await collect(two.run("sure?"));
  assert.equal(dataOf(events, "ASSISTANT_TEXT_END").at(-1).text, "Yes.");
  const sent = JSON.stringify((await model.requests()).at(-1));
  for (const text of ["run it", "It says hi.", "sure?"]) assert.ok(sent.includes(text), text);
});

test("a history that makes no sense is refused", async () => {
  const results = [{ turn: "tool_results", results: [{ tool_call_id: "x", tool_name: "shell", content: "", is_error: false }], timestamp_ms: 1 }];
  for (const [history, message] of [
    [results, /turn 1 of the saved session holds a result for the call x/],
    ["text", /options\.history must be an object/],
    [{ turns: 5 }, /the saved session cannot be read/],
    [{ version: 9, turns: [] }, /has format 9/],
    [[{ turn: "user" }], /cannot be read/],
  ]) {
    await assert.rejects(createSession({ apiKey: KEY, history }), (error) => error.kind === "invalid_input" && message.test(error.message));
  }
  const session = await createSession({ apiKey: KEY });
  const nothing = /resume: not legal in state IDLE; nothing was cut off; use submit\(\)/;
  await assert.rejects(collect(session.resume()), nothing);
  await assert.rejects(session.proceed(), nothing);
  await session.close();
});

test("a project belongs to one at a time", async (t) => {
  const storage = directoryStorage(await folder(t));
  const one = await openProject("p", { storage, files: { a: "1" } });
  await one.save();
  await rejectsWith(openProject("p", { storage }), "locked", /project p is open in another tab or process; close it there/);
  await rejectsWith(deleteProject("p", { storage }), "locked", /project p is open/);
  const reader = await openProject("p", { storage, readOnly: true });
  assert.equal(reader.readOnly, true);
  await reader.env.write("a", "2");
  await rejectsWith(reader.save(), "read_only", /project p is open for reading only/);
  await reader.close();
  await one.close();
  const two = await openProject("p", { storage });
  assert.equal(await two.env.readText("a"), "1");
  await two.close();
  await deleteProject("p", { storage });
  assert.deepEqual(await listProjects({ storage }), []);
});

for (const [how, storages] of [
  ["of one storage", (directory) => Array(2).fill(directoryStorage(directory))],
  // As in two processes: nobody tells the one that loses.
  ["that nobody told", (directory) => [{ ...directoryStorage(directory), lock: deaf(directory) }, directoryStorage(directory)]],
]) {
  test(`a project that is taken over belongs to the second, ${how}`, async (t) => {
    const directory = await folder(t);
    const [first, second] = storages(directory);
    const one = await openProject("p", { storage: first, files: { a: "1" } });
    await one.save();
    const two = await openProject("p", { storage: second, takeOver: true });
    await two.env.write("b", "2");
    await two.save();
    await one.env.write("a", "one's");
    await rejectsWith(one.save(), "locked", /project p was taken over by another tab or process, .*; export its files to keep them/);
    assert.equal(one.status.state, "failed");
    assert.equal(one.status.error.kind, "locked");
    assert.equal(one.readOnly, true);
    await one.close();
    // Its lock is there, and its files.
    await rejectsWith(openProject("p", { storage: second }), "locked", /project p is open/);
    await two.env.write("c", "3");
    await two.close();
    const three = await openProject("p", { storage: second });
    assert.equal((await three.env.exec("head a b c")).stdout, "==> a <==\n1\n==> b <==\n2\n==> c <==\n3");
    await three.close();
  });
}

/** A lock whose owner hears nothing. */
function deaf(directory) {
  const { lock } = directoryStorage(directory);
  return (project, takeOver) => lock(project, takeOver, () => {});
}

test("who loses the project in the middle of a save destroys nothing", async (t) => {
  const directory = await folder(t);
  const files = directoryStorage(directory);
  let meanwhile = async () => {};
  const storage = {
    ...files,
    lock: deaf(directory),
    write: async (project, file, data) => {
      await files.write(project, file, data);
      if (file !== "project.json") await meanwhile();
    },
  };
  const one = await openProject("p", { storage, files: { a: "1" } });
  await one.save();
  let two;
  meanwhile = async () => {
    two = await openProject("p", { storage: files, takeOver: true });
    await two.env.write("b", "2");
    await two.save();
  };
  await one.env.write("a", "one's");
  await rejectsWith(one.close(), "locked", /was taken over/);
  await two.close();
  const three = await openProject("p", { storage: files });
  assert.equal((await three.env.exec("cat a; cat b; ls")).stdout, "12a\nb\n");
  await three.close();
  assert.equal((await readdir(join(directory, "p"))).filter((name) => name.startsWith("files")).length, 2, "nothing is left behind");
});

/** When the second process takes over, seen from the first one's last look before its state counts. */
for (const [when, confirming] of [
  ["just before it looks", async (confirm, takeOver) => (await takeOver(), await confirm())],
  ["just after it looked", async (confirm, takeOver) => (await confirm(), await takeOver())],
]) {
  test(`who loses the project ${when} for the last time stores nothing that counts`, async (t) => {
    const directory = await folder(t);
    const files = directoryStorage(directory);
    let meanwhile;
    const storage = {
      ...files,
      lock: deaf(directory),
      write: (project, file, data, confirm) =>
        files.write(project, file, data, confirm && (async () => (meanwhile ? confirming(confirm, meanwhile) : confirm()))),
    };
    const one = await openProject("p", { storage, files: { a: "1" } });
    await one.save();
    let two;
    meanwhile = async () => {
      meanwhile = undefined;
      two = await openProject("p", { storage: files, takeOver: true });
      await two.env.write("b", "2");
      await two.save();
    };
    await one.env.write("a", "one's");
    await rejectsWith(one.save(), "locked", /was taken over/);
    assert.equal(one.status.error.kind, "locked");
    await one.close();
    await two.close();
    const three = await openProject("p", { storage: files });
    assert.equal((await three.env.exec("cat a; cat b; ls")).stdout, "12a\nb\n");
    await three.close();
    const left = (await readdir(join(directory, "p"))).map((name) => name.replace(/[0-9a-f]{8,}/, "OWNER")).sort();
    assert.deepEqual(left, ["files-1-OWNER.tar", "files-2-OWNER.tar", "project.json"]);
  });
}

test("of many who find a lock whose process is gone, one gets it", async (t) => {
  const directory = await folder(t);
  const { lock } = directoryStorage(directory);
  const gone = await processThatIsGone();
  for (let round = 0; round < 100; round += 1) {
    await (await lock("p", true, () => {}))();
    await writeFile(join(directory, "p", "lock"), `${gone} token-${round}`);
    const got = (await Promise.all(Array.from({ length: 8 }, () => lock("p", false, () => {})))).filter(Boolean);
    assert.equal(got.length, 1);
    assert.equal(await got[0].held(), true);
    await got[0]();
    assert.deepEqual(await readdir(join(directory, "p")), []);
  }
});

async function processThatIsGone() {
  const child = spawn(process.execPath, ["-e", ""]);
  await new Promise((resolve) => child.once("exit", resolve));
  return child.pid;
}

test("a lock whose process is gone, or that says nothing, is free", async (t) => {
  const directory = await folder(t);
  const storage = directoryStorage(directory);
  const one = await openProject("p", { storage });
  await one.close();
  const gone = await processThatIsGone();
  for (const lock of ["", `${gone}`, `${gone} token`]) {
    await writeFile(join(directory, "p", "lock"), lock);
    const again = await openProject("p", { storage });
    await again.close();
  }
});

test("a lock whose process is gone is free, also if its number is another's now", { skip: process.platform !== "linux" }, async (t) => {
  const directory = await folder(t);
  const storage = directoryStorage(directory);
  const file = join(directory, "p", "lock");
  const one = await openProject("p", { storage });
  const [pid, token, birth] = (await readFile(file, "utf8")).split(" ");
  assert.equal(pid, String(process.pid));
  await one.close();
  const other = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  t.after(() => other.kill());
  // As of a container before its restart, and of an older version in it.
  for (const lock of [`${pid} ${token} boot:1`, `${pid} ${token} ${birth}1`, `${pid} ${token}`, `${other.pid} ${token} ${birth}`]) {
    await writeFile(file, lock);
    await (await openProject("p", { storage })).close();
  }
  // Of this process, as by another of its threads, and of one that says no birth.
  await writeFile(`${file}-turn`, `${pid} ${token} boot:1`);
  for (const lock of [`${pid} ${token} ${birth}`, `${other.pid} ${token}`]) {
    await writeFile(file, lock);
    await rejectsWith(openProject("p", { storage }), "locked", /project p is open in another tab or process/);
  }
  assert.deepEqual((await readdir(join(directory, "p"))).filter((name) => name.startsWith("lock")), ["lock"]);
});

const DAMAGES = {
  "no object": [() => "null", /project\.json holds no object/],
  "no format": [(index) => JSON.stringify({ ...index, version: undefined }), /project\.json does not say which format it has/],
  "a history that is none": [(index) => JSON.stringify({ ...index, history: "zzz" }), /project\.json holds a history that is none/],
  "no parts": [() => '{"version":1}', /project\.json does not say what it is stored in/],
  "an empty list of parts": [(index) => JSON.stringify({ ...index, parts: [] }), /does not say what it is stored in/],
  "a part elsewhere": [(index) => JSON.stringify({ ...index, parts: [{ ...index.parts[0], file: "../q/files-1.tar" }] }), /names a part that this package did not store/],
  "a part that is null": [(index) => JSON.stringify({ ...index, parts: [null] }), /names a part that this package did not store/],
  "a part that is cut off": [(index, cut) => cut((bytes) => bytes.subarray(0, 100)), /files-1-\w+\.tar has 100 bytes instead of \d+/],
  "a part of nothing": [(index, cut) => cut((bytes) => bytes.subarray(0, 0)), /has 0 bytes instead of/],
  "a part that is no archive": [(index, cut) => cut((bytes) => bytes.fill(120)), /files-1-\w+\.tar: the archive is not a tar file or is damaged/],
  "a part of zeros": [(index, cut) => cut((bytes) => bytes.fill(0)), /files-1-\w+\.tar: it holds no files/],
};

for (const [name, [damage, message]] of Object.entries(DAMAGES)) {
  test(`a stored project with ${name} is reported`, async (t) => {
    const directory = await folder(t);
    const storage = directoryStorage(directory);
    const one = await openProject("p", { storage, files: { a: "1" } });
    await one.close();
    const index = JSON.parse(new TextDecoder().decode(await storage.read("p", "project.json")));
    const { file } = index.parts[0];
    const bytes = await storage.read("p", file);
    const changed = damage(index, (change) => void (bytes.changed = change(bytes)));
    if (changed === undefined) await storage.write("p", file, bytes.changed);
    else await storage.write("p", "project.json", new TextEncoder().encode(changed));
    for (const readOnly of [false, true]) {
      await rejectsWith(openProject("p", { storage, readOnly }), "io", /^the saved project p cannot be read: .*; put its stored files back from a copy, or delete it to begin anew$/);
      await rejectsWith(openProject("p", { storage, readOnly }), "io", message);
    }
    await deleteProject("p", { storage });
  });
}

test("a stored project of another version is reported, and not to be deleted", async (t) => {
  const storage = directoryStorage(await folder(t));
  await (await openProject("p", { storage })).close();
  const index = JSON.parse(new TextDecoder().decode(await storage.read("p", "project.json")));
  await storage.write("p", "project.json", new TextEncoder().encode(JSON.stringify({ ...index, version: 2 })));
  for (const readOnly of [false, true]) {
    await rejectsWith(
      openProject("p", { storage, readOnly }),
      "unsupported",
      /^the saved project p has format 2, this version reads format 1; open it with the version that saved it$/,
    );
  }
});

test("a stored project without its index is damaged, unless it never had one", async (t) => {
  const directory = await folder(t);
  const storage = directoryStorage(directory);
  const one = await openProject("p", { storage, files: { a: "1" } });
  await one.save();
  const first = (await readdir(join(directory, "p"))).find((name) => name.startsWith("files-1-"));
  await one.env.write("a", "2");
  await one.close();
  await rm(join(directory, "p", "project.json"));
  const missing = /^the saved project p cannot be read: project\.json is missing; put its stored files back from a copy, or delete it/;
  await rejectsWith(openProject("p", { storage }), "io", missing);
  const broken = { ...storage, files: () => { throw new Error("boom"); } };
  await rejectsWith(openProject("p", { storage: broken }), "io", /its storage failed: boom/);
  // As of a page that was closed in the middle of its first save.
  for (const name of await readdir(join(directory, "p"))) if (name !== first) await rm(join(directory, "p", name));
  await mkdir(join(directory, "q"));
  assert.deepEqual(await listProjects({ storage }), []);
  const again = await openProject("p", { storage, files: { a: "3" } });
  assert.equal(again.isNew, true);
  await again.close();
});

test("a name that no folder can have is reported as that", async (t) => {
  const storage = directoryStorage(await folder(t));
  const long = "日".repeat(29);
  await rejectsWith(openProject(long, { storage }), "invalid_input", /^the name 日+ takes 261 bytes as that of a folder, and 255 are the most; give a shorter one/);
  await rejectsWith(deleteProject(long, { storage }), "invalid_input", /261 bytes/);
  await rejectsWith(openProject("\ud800", { storage }), "invalid_input", /name holds half of a surrogate pair, which UTF-8 cannot carry; leave it out/);
  await (await openProject("日".repeat(28), { storage })).close();
  assert.deepEqual(await listProjects({ storage }), ["日".repeat(28)]);
});

test("a storage that throws while it is read is reported with a type", async (t) => {
  const files = directoryStorage(await folder(t));
  const storage = { ...files, read: () => { throw new Error("boom"); } };
  await rejectsWith(openProject("p", { storage }), "io", /^the saved project p cannot be read: its storage failed: boom; try again/);
  const locking = { ...files, lock: () => { throw Object.assign(new Error("no"), { code: "EACCES" }); } };
  await rejectsWith(openProject("p", { storage: locking }), "storage_denied", /its storage failed: no/);
});

test("a storage that throws while it lists or deletes is reported with a type", async (t) => {
  const fail = () => { throw Object.assign(new Error("boom"), { code: "EIO" }); };
  const storage = { ...directoryStorage(await folder(t)), list: fail, delete: fail };
  await rejectsWith(listProjects({ storage }), "io", /^the saved projects cannot be listed: its storage failed: boom; try again$/);
  await rejectsWith(deleteProject("p", { storage }), "io", /^the saved project p cannot be deleted: its storage failed: boom; try again$/);
});

test("what else lies in the directory is no project", async (t) => {
  const directory = await folder(t);
  const storage = directoryStorage(directory);
  await (await openProject("50 %", { storage })).close();
  await writeFile(join(directory, "notes"), "");
  for (const name of ["100%", ".git", "a b"]) await mkdir(join(directory, name));
  assert.deepEqual(await listProjects({ storage }), ["50 %"]);
});

test("a project that is closed is saved no more, and closing twice is closing once", async (t) => {
  const storage = directoryStorage(await folder(t));
  const one = await openProject("p", { storage, files: { a: "1" } });
  await Promise.all([one.close(), one.close()]);
  await one.env.write("a", "late");
  await rejectsWith(one.save(), "read_only", /^project p is closed; open it again to save it$/);
  assert.equal(one.status.state, "saved");
  const two = await openProject("p", { storage });
  assert.equal(await two.env.readText("a"), "1");
  await two.close();
});

test("a project that cannot be opened leaves no sandbox and no lock behind", async (t) => {
  const storage = directoryStorage(await folder(t));
  const one = await openProject("p", { storage, files: { a: "1".repeat(5_000) } });
  await one.close();
  const made = [];
  const environments = { create: async (options) => (made.push(await MemoryEnvironment.create(options)), made.at(-1)) };
  await assert.rejects(openProjectIn(environments, "p", { storage, limits: { fileBytes: 100 } }), EnvironmentError);
  assert.equal(made.length, 1);
  await assert.rejects(made[0].readText("a"), { message: "the environment was closed" });
  const two = await openProject("p", { storage });
  await two.close();
});

for (const [bytes, said] of [[0, "0 kB"], [700, "1 kB"], [99_001, "100 kB"], [100_000, "0.1 MB"], [3_000_000, "3.0 MB"]]) {
  test(`a full storage says that ${bytes} bytes are needed`, async () => {
    const { message } = await storageFailure("p", bytes, new DOMException("quota", "QuotaExceededError"));
    assert.equal(message, `saving project p needs ${said}; free some space or export the project; the work goes on in memory`);
  });
}

test("of a core that cannot begin anew, a project says where its last state is", async () => {
  const { kind, message } = await storageFailure("p", 0, CoreError.saying("the core has failed before"));
  assert.equal(kind, "io");
  assert.equal(message, "project p cannot be saved: the core has failed before; what was last saved is kept: open the project again in a new page or process");
});

// The page replaces a worker whose core has failed.
const testHere = inWorker ? () => {} : test;

testHere("a project goes on where its core has failed, with what was known of the conversation", async (t) => {
  const storage = directoryStorage(await folder(t));
  const project = await openProject("p", { storage, files: { a: "1" } });
  const session = await createSession({ env: project.env, script: { steps: [{ text: "known" }] } });
  project.keep(session);
  await collect(session.run("go"));
  await project.save();
  // The next step fails as it would if the core trapped outside of a command.
  const { now } = Date;
  t.mock.method(Date, "now", () => {
    Date.now = now;
    throw new WebAssembly.RuntimeError("unreachable");
  });
  await assert.rejects(project.env.exec("echo 2 > a"), CoreError);
  await project.env.write("b", "3");
  await project.close();
  const again = await openProject("p", { storage });
  assert.deepEqual([await again.env.readText("a"), await again.env.readText("b")], ["1", "3"]);
  const resumed = await createSession({ env: again.env, script: { steps: [{ text: "-" }] }, history: again.history });
  assert.match(JSON.stringify(await resumed.history()), /known/);
  await again.close();
});

test("a full storage is reported, the work goes on, and the next change is saved", async (t) => {
  const files = directoryStorage(await folder(t));
  let full = true;
  const storage = {
    ...files,
    write: async (...args) => {
      if (full) throw new DOMException("quota", "QuotaExceededError");
      await files.write(...args);
    },
  };
  const failed = reaches("failed");
  const project = await openProject("p", { storage, files: { big: new Uint8Array(3_000_000) }, onStatus: failed.onStatus });
  const { error } = await failed.promise;
  assert.equal(error.kind, "storage_full");
  assert.match(error.message, /saving project p needs 3\.0 MB/);
  await rejectsWith(project.save(), "storage_full", /the work goes on in memory/);
  await project.env.write("small", "s");
  assert.equal(await project.env.readText("small"), "s");
  full = false;
  await project.save();
  assert.deepEqual(project.status, { state: "saved" });
  await project.close();
  const again = await openProject("p", { storage: files });
  assert.equal(await again.env.readText("small"), "s");
  await again.close();
});

test("each failed save is reported, the next is tried by itself, and what listens may throw", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const files = directoryStorage(await folder(t));
  const failures = [
    () => Promise.reject(new DOMException("quota", "QuotaExceededError")),
    () => { throw new Error("at once"); },
    () => Promise.reject(new DOMException("gone", "NotFoundError")),
  ];
  const storage = {
    ...files,
    write: (...args) => (failures.length > 0 ? failures[0]() : files.write(...args)),
    // A storage that only sometimes says no must not be taken for one that always does.
    remove: () => { throw new Error("not now"); },
  };
  const told = [];
  let changed = () => {};
  const onStatus = ({ state, error }) => {
    told.push([state, error?.kind]);
    changed();
    if (state === "saved") throw new Error("a mistake in the page");
  };
  const uncaught = uncaughtIn(t);
  const until = async (state) => {
    while (told.at(-1)?.[0] !== state) await new Promise((resolve) => (changed = resolve));
    await new Promise(setImmediate);
  };
  const project = await openProject("p", { storage, files: { a: "1" }, onStatus });
  // The first by what changed, the others by themselves.
  for (const ms of [300, 2_000, 4_000]) {
    t.mock.timers.tick(ms);
    await until("failed");
    failures.shift();
    told.push(["next"]);
  }
  t.mock.timers.tick(8_000);
  await until("saved");
  assert.deepEqual(told, [
    ["unsaved", undefined],
    ...["storage_full", "io", "io"].flatMap((kind) => [["saving", undefined], ["failed", kind], ["next"]]),
    ["saving", undefined],
    ["saved", undefined],
  ]);
  assert.deepEqual(uncaught, ["a mistake in the page"]);
  await project.close();
  const again = await openProject("p", { storage: files });
  assert.equal(await again.env.readText("a"), "1");
  await again.close();
});

test("a failed save leaves what was saved before", async (t) => {
  const files = directoryStorage(await folder(t));
  let failing;
  const storage = {
    ...files,
    write: async (project, file, data) => {
      if (failing?.test(file)) throw Object.assign(new Error("device"), { code: "EIO" });
      await files.write(project, file, data);
    },
  };
  const project = await openProject("p", { storage, files: { a: "1" } });
  await project.save();
  for (failing of [/^files/, /^project/]) {
    await project.env.write("a", String(failing));
    await rejectsWith(project.save(), "io", /project p cannot be saved: device/);
    const seen = await openProject("p", { storage: files, readOnly: true });
    assert.equal(await seen.env.readText("a"), "1");
    await seen.close();
  }
  failing = undefined;
  await project.close();
});

test("storage that is denied or damaged is reported", async (t) => {
  const directory = await folder(t);
  // Node has neither of the browser's storages.
  const project = await openProject("p", { files: { a: "1" } });
  assert.equal(project.status.error.kind, "storage_denied");
  assert.match(project.status.error.message, /nothing can be stored here .* the work goes on in memory/);
  assert.equal(await project.env.readText("a"), "1");
  await rejectsWith(project.save(), "storage_denied", /export it to keep it/);
  await project.close();
  const storage = directoryStorage(directory);
  const one = await openProject("p", { storage });
  await one.close();
  await writeFile(join(directory, "p", "project.json"), "{");
  await rejectsWith(openProject("p", { storage }), "io", /the saved project p cannot be read: .*, or delete it to begin anew/);
  await deleteProject("p", { storage });
  await rejectsWith(openProject("", { storage }), "invalid_input", /name must be a text of 1 to 100/);
  const dots = await openProject("..", { storage });
  await dots.close();
  assert.deepEqual(await listProjects({ storage }), [".."]);
  if (process.getuid?.() !== 0) {
    await chmod(directory, 0o500);
    await rejectsWith(openProject("q", { storage }), "io", /EACCES/);
    await chmod(directory, 0o700);
  }
});
