// Logs: what the package records, replays and forks, and that the binary and the
// package read each other's.

import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";

import { tarEntries } from "../../js/archive/tar.js";
import * as api from "../../js/node.js";
import * as slim from "../../js/slim-node.js";
import * as worker from "../../js/worker-node.js";
import { binary, resummed, textOf } from "./logs.mjs";

const { MemoryEnvironment, createSession, fork, replay } = api;
const LOGS = new URL("../logs/", import.meta.url);
/** How often each kept log is replayed: it must be the same each time. */
const REPEAT = Number(process.env.HERMITCRAB_REPEAT ?? 1);

/** Three answers: a command with randomness and time, a file, a text. */
const SCRIPT = {
  steps: [
    { tool_calls: [{ name: "shell", arguments: { command: "echo $RANDOM > a.txt; cat a.txt; date +%s%N" } }] },
    { tool_calls: [{ name: "write_file", arguments: { file_path: "b.txt", content: "hello\n" } }] },
    { text: "done" },
  ],
};

/** Nobody is there: `fetch` answers. */
const BASE = "http://127.0.0.1:9";

/** A run of `SCRIPT`, with the requests that it sent. */
async function recorded(face = api, options = {}) {
  const requests = [];
  const played = await face.scriptedFetch(SCRIPT);
  const fetch = (url, init) => {
    requests.push(init.body);
    return played(url, init);
  };
  // The scripted model of a worker plays for its own sessions.
  const model = face === api ? { apiKey: "sk-secret-key", baseUrl: BASE, fetch } : { script: SCRIPT };
  const session = await face.createSession({ ...model, record: true, ...options });
  const { text } = await session.prompt("do it");
  assert.equal(text, "done");
  const early = await session.recording();
  await session.close();
  return { log: face === api ? await session.recording() : early, early, requests };
}

const lines = (log) => textOf(log).trimEnd().split("\n").map((line) => JSON.parse(line));

test("a run is recorded, and replays here and in the binary", async (t) => {
  const { log, early } = await recorded();
  const events = [];
  const replayed = await replay(log, { onEvent: (event) => events.push(event.kind) });
  assert.equal(replayed.rounds, 3);
  assert.equal(replayed.closed, true);
  assert.equal(replayed.state, "CLOSED");
  assert.equal(replayed.history.length, 6);
  assert.equal(replayed.core.hash, "web");
  assert.equal(events[0], "SESSION_START");
  assert.equal(events.at(-1), "SESSION_END");
  assert.ok(replayed.files.length > 0);
  const cut = await replay(early);
  assert.equal(cut.closed, false);
  assert.equal(cut.rounds, 3);
  for (const one of [log, early]) {
    const { code, stdout } = await binary(t, one);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /3 answers of models: every event and effect is the same/);
  }
  assert.deepEqual(Object.keys(lines(log).at(-1)), ["end", "sum"]);
  assert.doesNotMatch(gunzipSync(log).toString(), /sk-secret-key/);
});

test("a run of the worker is recorded", async (t) => {
  t.after(() => worker.terminate());
  const { log } = await recorded(worker);
  assert.equal((await replay(log)).rounds, 3);
  const kinds = [];
  assert.equal((await worker.replay(log, { onEvent: ({ kind }) => kinds.push(kind) })).rounds, 3);
  assert.equal(kinds[0], "SESSION_START");
  await assert.rejects(worker.replay(new Uint8Array([1, 2, 3])), { name: "SessionError", message: /no log of a run|not a log/ });
  const pieces = [];
  const env = await worker.MemoryEnvironment.create({ record: (piece) => pieces.push(piece), files: { "a.txt": "a" } });
  await env.exec("cat a.txt");
  await env.dispose();
  assert.ok(pieces.length > 0, "no piece came");
  assert.equal((await replay(Buffer.concat(pieces))).rounds, 0);
});

test("a log that becomes too large is dropped, and the sandbox goes on", async (t) => {
  t.after(() => worker.terminate());
  const random = () => crypto.getRandomValues(new Uint8Array(20_000));
  for (const face of [api, worker]) {
    const env = await face.MemoryEnvironment.create({ record: { maxBytes: 50_000 } });
    const zip = await (await face.MemoryEnvironment.create({ files: { "z.bin": random(), "y.bin": random() } })).exportZip();
    await env.importFiles({ "a.bin": random() });
    assert.ok((await env.recording()).length > 20_000);
    await env.importZip(zip);
    await assert.rejects(env.recording(), { kind: "illegal_state", message: /larger than record\.maxBytes/ });
    assert.equal((await env.exec("ls | wc -l")).stdout.trim(), "3");
    await env.dispose();
    const grown = await face.MemoryEnvironment.create({ record: { maxBytes: 50_000 } });
    await grown.exec("head -c 30000 /dev/urandom | base64 | tee /dev/stderr");
    await assert.rejects(grown.recording(), { kind: "illegal_state" });
    await grown.dispose();
  }
  await assert.rejects(MemoryEnvironment.create({ record: {} }), { kind: "invalid_input", message: /record\.maxBytes must be a whole number/ });
});

test("a replay gives the files where they change", async (t) => {
  t.after(() => worker.terminate());
  const { log } = await recorded();
  for (const face of [api, worker]) {
    const seen = [];
    const { files } = await face.replay(log, {
      onEvent: ({ kind }) => seen.push(kind),
      onFiles: (archive) => seen.push([...tarEntries(archive)].map(({ name }) => name.replace("./", "")).filter(Boolean)),
    });
    const told = seen.filter((each) => Array.isArray(each) || ["SESSION_START", "TOOL_CALL_END"].includes(each));
    assert.deepEqual(told, ["SESSION_START", [], "TOOL_CALL_END", ["a.txt"], "TOOL_CALL_END", ["a.txt", "b.txt"]]);
    assert.equal([...tarEntries(files)].filter(({ type }) => type === "0").length, 2);
  }
});

test("pieces behind each other are the log", async () => {
  const pieces = [];
  const session = await createSession({ script: SCRIPT, record: (piece) => pieces.push(piece) });
  await session.prompt("do it");
  await assert.rejects(session.recording(), { kind: "illegal_state", message: /goes to the function/ });
  await session.close();
  assert.ok(pieces.length > 2, `${pieces.length} pieces`);
  assert.equal((await replay(Buffer.concat(pieces))).closed, true);
});

test("all that a host does to a sandbox is in its log", async (t) => {
  const env = await MemoryEnvironment.create({
    record: true,
    files: { "a.txt": "a\n", "dir/b.txt": "b\n" },
    programs: { hi: () => ({ exitCode: 3, stdout: "hi\n" }) },
  });
  const out = [];
  const seen = async (command) => out.push((await env.exec(command)).stdout);
  const snapshot = await env.snapshot();
  await seen("echo $RANDOM; hi; echo x > c.txt; ls -l --time-style=+%s%N");
  await env.restore(snapshot);
  await env.importZip(await (await MemoryEnvironment.create({ files: { "z/z.txt": "z\n" } })).exportZip());
  await env.importTar(await env.exportTar());
  await env.importFiles({ "d.bin": new Uint8Array([255, 0]) }, { maxBytes: 100 });
  await env.applyDelta(await deltaOf("e.txt"));
  await env.program("ho", () => ({ exitCode: 0, stdout: "ho\n" }));
  const shell = await env.openShell({ onData: () => {} });
  shell.write("x=5; echo $x > f.txt\r");
  for (let tries = 0; !(await env.exists("f.txt")); tries += 1) {
    assert.ok(tries < 1_000, "the shell wrote nothing");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await shell.close?.();
  await env.replaceTree(await env.exportTree());
  await seen("ho; ls -R; cat d.bin f.txt; echo $RANDOM; date +%N");
  const tree = await env.exportTar();
  await env.dispose();
  const log = await env.recording();
  const replayed = await replay(log);
  assert.equal(replayed.closed, true);
  const calls = new Set(lines(log).flatMap(({ call }) => (call ? [call.call] : [])));
  for (const call of [
    "add_memory_environment", "import_files", "import_tar", "apply_delta", "replace_tree", "snapshot", "restore", "lend_program", "open_terminal", "start_exec",
  ]) {
    assert.ok(calls.has(call), `no ${call}`);
  }
  assert.match(out[0], /hi\n/);
  assert.match(out[1], /^ho\n/);
  assert.ok(tree.length > 0);
  const { code, stdout } = await binary(t, log);
  assert.equal(code, 0, stdout);
});

test("commands that their work, their stack or their memory ended replay", async () => {
  const env = await MemoryEnvironment.create({ record: true });
  const ends = [];
  for (const command of ["jq -n 'last(repeat(1))'", "jq -n 'def f: 1 + f; f'", "yes | sort"]) {
    const { exitCode, timedOut } = await env.exec(command, { timeoutMs: 1_000 });
    ends.push([timedOut, exitCode !== 0, (await env.exec("echo on")).stdout]);
  }
  assert.deepEqual(ends, [[true, true, "on\n"], [false, true, "on\n"], [false, true, "on\n"]]);
  await env.dispose();
  // The binary bounds such commands by its own deadline, so it need not end them there.
  await replay(await env.recording());
});

async function deltaOf(path) {
  const other = await MemoryEnvironment.create();
  const before = await other.snapshot();
  await other.write(path, "e\n");
  const after = await other.snapshot();
  return after.deltaSince(before);
}

test("a custom environment is recorded", async () => {
  const files = new Map();
  const env = {
    read: async (path) => files.get(path) ?? missing(path),
    write: async (path, content) => void files.set(path, content),
    stat: async (path) => ({ isDir: false, size: (files.get(path) ?? missing(path)).length }),
    list: async () => [],
    remove: async () => {},
    rename: async () => {},
    makeDir: async () => {},
    exec: async (command, { onOutput }) => {
      onOutput("stdout", "out\n");
      return { exitCode: 0 };
    },
  };
  const { log } = await recorded(api, { env });
  const { rounds, files: tar } = await replay(log);
  assert.equal(rounds, 3);
  assert.equal(tar, undefined);
  await assert.rejects(fork(log, { at: 1, script: SCRIPT }), { kind: "invalid_input", message: /worked in \/workspace, outside of the core/ });
  const forked = await fork(log, { at: 1, script: { steps: [{ text: "other" }] }, env });
  await ended(forked.resume());
  assert.equal((await forked.history()).at(-1).content, "other");
  await forked.close();
});

function missing(path) {
  throw Object.assign(new Error(`no ${path}`), { code: "ENOENT" });
}

async function ended(events) {
  const kinds = [];
  for await (const { kind } of events) kinds.push(kind);
  return kinds;
}

test("a fork has the history and the files of its round, and sends what the run sent", async () => {
  const { log, requests } = await recorded();
  for (const at of [0, 1, 2]) {
    const sent = [];
    const played = await api.scriptedFetch({ steps: [{ text: "another end" }] });
    const fetch = (url, init) => {
      sent.push(init.body);
      return played(url, init);
    };
    const session = await fork(log, { at, apiKey: "k", fetch, record: true, settings: { baseUrl: BASE } });
    assert.equal(await session.isPaused(), true);
    assert.deepEqual((await session.env.list(".")).map(({ path }) => path), ["a.txt", "b.txt"].slice(0, at));
    assert.equal(sent.length, 0, "it sent something before it was let go");
    const kinds = await ended(session.resume());
    assert.ok(kinds.includes("PROCESSING_END"), kinds.join(" "));
    assert.deepEqual(sent, [requests[at]], `round ${at}`);
    await session.close();
    const again = await replay(await session.recording());
    assert.equal(again.rounds, at + 1);
  }
});

test("a key does not go where a log says", async () => {
  const { log } = await recorded();
  const sent = [];
  const session = await fork(log, { at: 1, apiKey: "sk-not-for-strangers", fetch: async (url) => (sent.push(url), new Response("")) });
  const errors = [];
  for await (const { kind, data } of session.resume()) if (kind === "ERROR") errors.push(data.message);
  assert.equal(errors.length, 1);
  assert.match(errors[0], /127\.0\.0\.1:9/);
  assert.deepEqual(sent, []);
  await session.close();
});

test("a fork behind the last round takes another input; files and settings may be others", async () => {
  const { log } = await recorded();
  const script = { steps: [{ tool_calls: [{ name: "shell", arguments: { command: "cat a.txt new.txt" } }] }, { text: "read" }] };
  const session = await fork(log, { at: 3, script, files: { "a.txt": "other\n", "new.txt": "new\n" }, settings: { maxTurns: 9 } });
  assert.equal(await session.isPaused(), false);
  assert.equal(session.state, "IDLE");
  assert.equal((await session.config()).max_turns, 9);
  assert.equal((await session.prompt("again")).text, "read");
  const results = (await session.history()).flatMap(({ results }) => results ?? []);
  assert.match(JSON.stringify(results.at(-1)), /other\\nnew/);
  await session.close();
});

test("a steered fork", async () => {
  const { log } = await recorded();
  const bodies = [];
  const played = await api.scriptedFetch({ steps: [{ text: "as you like" }] });
  const session = await fork(log, { at: 1, apiKey: "k", settings: { baseUrl: BASE }, fetch: (url, init) => (bodies.push(init.body), played(url, init)) });
  await session.steer("use c.txt instead");
  await ended(session.resume());
  assert.match(bodies[0], /use c\.txt instead/);
  await session.close();
});

test("until stands where the round ends", async () => {
  const { log } = await recorded();
  const { paused, round, history, state } = await replay(log, { until: 2 });
  assert.deepEqual({ paused, round, state, turns: history.length }, { paused: true, round: 2, state: "PROCESSING", turns: 5 });
});

const BAD = [
  ["no gzip", Buffer.from("hello"), /is not a log of a run/],
  ["gzip of something else", gzipSync("hello\n"), /damaged|not a log/],
  ["nothing", Buffer.alloc(0), /log is empty/],
];
for (const [name, log, message] of BAD) {
  test(`a log that is none: ${name}`, async () => {
    await assert.rejects(replay(log), { name: "SessionError", kind: "invalid_input", message });
    await assert.rejects(fork(log, { at: 1 }), { kind: "invalid_input", message });
  });
}

test("a log of a newer version, a flipped bit, another core, and a round that there is not", async () => {
  const { log } = await recorded();
  const text = gunzipSync(log).toString();
  const newer = gzipSync(text.replace('{"hermitcrab_log":2', '{"hermitcrab_log":99'));
  await assert.rejects(replay(newer), { message: /damaged|version 99/ });
  const flipped = Buffer.from(log);
  flipped[Math.floor(flipped.length / 2)] ^= 4;
  await assert.rejects(replay(flipped), { kind: "invalid_input", message: /damaged/ });
  await assert.rejects(replay(log, { until: 9 }), { kind: "invalid_input", message: /the run has 3 rounds: name one of 0 to 3/ });
  await assert.rejects(fork(log, { at: 9 }), { kind: "invalid_input", message: /3 rounds/ });
  await assert.rejects(fork(log, {}), { kind: "invalid_input", message: /options\.at must be a whole number/ });
});

test("what differs is said with both sides", async (t) => {
  t.after(() => worker.terminate());
  // Another core would answer otherwise: this log has another text in it, with right sums.
  const { log } = await recorded();
  const changed = resummed(gunzipSync(log).toString().replaceAll("hello\\\\n", "hullo\\\\n"));
  const differs = (error) => {
    assert.equal(error.name, "ReplayError");
    assert.equal(error.kind, "differs");
    assert.ok(error.step > 0 && error.recorded !== error.replayed, error.message);
    return true;
  };
  await assert.rejects(replay(changed), differs);
  await assert.rejects(worker.replay(changed), differs);
});

test("record comes too late, and where there is no log", async () => {
  const env = await MemoryEnvironment.create();
  await assert.rejects(createSession({ script: SCRIPT, env, record: true }), { kind: "invalid_input", message: /create that with record/ });
  const session = await createSession({ script: SCRIPT, env });
  await assert.rejects(session.recording(), { kind: "illegal_state", message: /nothing is recorded/ });
  await session.close();
  await assert.rejects(createSession({ record: "file.gz" }), { kind: "invalid_input", message: /options\.record must be true, false, a function or \{maxBytes\}/ });
  assert.equal(slim.replay, undefined);
  await env.dispose();
});

test("kept logs of the binary replay here", async () => {
  const departures = JSON.parse(await readFile(new URL("departures.json", LOGS), "utf8"));
  const names = (await readdir(LOGS)).filter((name) => name.endsWith(".log.gz"));
  assert.ok(names.length >= 8, `${names.length} logs`);
  for (const name of names) {
    if (departures[name.replace(".log.gz", "")].length > 0) continue;
    const log = await readFile(new URL(name, LOGS));
    for (let time = 0; time < REPEAT; time += 1) {
      const { rounds, closed } = await replay(log);
      assert.ok(closed && rounds > 1, name);
    }
  }
});
