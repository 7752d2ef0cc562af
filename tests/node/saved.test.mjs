// Sessions that are saved, restored and forked: in Node, in its worker, and between the
// package and the binary.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { constants, gunzipSync } from "node:zlib";

import * as api from "../../js/node.js";
import * as slim from "../../js/slim-node.js";
import * as worker from "../../js/worker-node.js";
import { serveModel } from "./support.mjs";

const run = promisify(execFile);
const BINARY = process.env.HERMITCRAB_BIN;
const KEY = "sk-secret-saved";

after(worker.terminate);

const shell = (command) => ({ tool_calls: [{ name: "shell", arguments: { command } }] });
const FIRST = [shell("echo b >> a.txt; chmod 755 a.txt; rm AGENTS.md; sleep 3600"), { text: "done" }];
const SECOND = [shell("cat a.txt; stat -c %a a.txt"), { text: "seen" }];
const FILES = { "AGENTS.md": "Be brief.\n", "a.txt": "a\n" };

/** A session that has done its first input, on a model that plays `steps` behind it. */
async function begun(t, face, steps, options = {}) {
  const model = await serveModel(t, { steps: [...FIRST, ...steps] });
  const env = options.env ?? (await face.MemoryEnvironment.create({ files: FILES, programs: { hi: () => ({ exitCode: 0, stdout: "hi\n" }) } }));
  const session = await face.createSession({ apiKey: KEY, baseUrl: model.url, maxTurns: 9, ...options, env });
  assert.equal((await session.prompt("begin")).text, "done");
  return { session, model, env };
}

const bodies = async (model) => (await model.requests()).map(({ body }) => JSON.stringify(body));
const output = async (session, command) => (await session.env.exec(command)).stdout;

const FACES = { "Node": api, "its worker": worker };
for (const [name, face] of Object.entries(FACES)) {
  test(`a restored session goes on as the one that stayed, in ${name}`, async (t) => {
    const { session, model } = await begun(t, face, SECOND);
    await session.followUp("and then");
    const saved = await session.save();
    assert.ok(saved instanceof Uint8Array);
    assert.doesNotMatch(new TextDecoder("latin1").decode(saved), new RegExp(`${KEY}|${model.url}`));
    // In the other entry, on another model.
    const other = face === api ? worker : api;
    const elsewhere = await serveModel(t, { steps: SECOND });
    const restored = await other.createSession({ saved, apiKey: KEY, baseUrl: elsewhere.url });
    t.after(() => restored.close());
    t.after(() => session.close());
    assert.equal(await output(restored, "cat a.txt; ls -a; pwd"), await output(session, "cat a.txt; ls -a; pwd"));
    const totals = [];
    for (const one of [session, restored]) {
      for await (const event of one.run("go on")) if (event.kind === "PROCESSING_END") totals.push(event.data.totals);
    }
    assert.deepEqual(totals[0], totals[totals.length / 2]);
    const asked = [await bodies(model), await bodies(elsewhere)];
    assert.equal(asked[1][0], asked[0][2]);
    assert.match(asked[1][0], /Be brief\./);
    assert.equal((await restored.config()).max_turns, 9);
  });

  test(`a fork has files, tools, programs and keys, and shares none of them, in ${name}`, async (t) => {
    const add = { name: "add", description: "Adds.", parameters: { type: "object", properties: {} }, execute: () => "42" };
    const call = { tool_calls: [{ name: "add", arguments: {} }] };
    const { session } = await begun(t, face, [call, { text: "added" }, shell("echo left > a.txt"), { text: "left" }], { tools: [add] });
    const fork = await session.fork();
    assert.notEqual(fork.id, session.id);
    assert.equal((await fork.prompt("add")).text, "added");
    assert.equal((await fork.history()).findLast(({ turn }) => turn === "tool_results").results[0].content, "42");
    assert.equal((await fork.prompt("write")).text, "left");
    assert.equal(await output(fork, "hi; cat a.txt"), "hi\nleft\n");
    assert.equal(await output(session, "cat a.txt"), "a\nb\n");
    await session.close();
    await session.env.dispose();
    assert.equal(await output(fork, "hi | cat"), "hi\n");
    await fork.close();
    await assert.rejects(fork.env.exec("ls"), { kind: "cancelled" });
  });

  test(`what cannot be saved or restored is refused by name, in ${name}`, async (t) => {
    const { session } = await begun(t, face, [{ text: "late", hold: "go" }]);
    const saved = await session.save();
    const refused = (options, wanted) => assert.rejects(face.createSession({ apiKey: KEY, ...options }), wanted);
    await refused({ saved: new Uint8Array([1]) }, { kind: "invalid_input", message: /^this is no saved session, or it is damaged/ });
    await refused({ saved: saved.slice(0, 700) }, { kind: "invalid_input", message: /damaged/ });
    await refused({ saved, history: [] }, { name: "SessionError", message: /options has history and saved; give one of them/ });
    await refused({ saved: "x" }, { name: "SessionError", message: /options\.saved must be a Uint8Array/ });
    await refused({ saved, maxTurns: -1 }, { name: "SessionError", message: /maxTurns/ });
    await assert.rejects(face.MemoryEnvironment.create({ saved, workingDirectory: "/x" }), { name: "EnvironmentError", message: /workingDirectory cannot be given with saved/ });
    await session.submit("more");
    await assert.rejects(session.save(), { kind: "illegal_state", message: /save: not legal in state PROCESSING; wait until it is idle/ });
    await assert.rejects(session.fork(), { kind: "illegal_state" });
    await session.close();
    await assert.rejects(session.save(), { kind: "closed" });
  });

  test(`the history of a session in an environment of the user's goes along, in ${name}`, async (t) => {
    const files = new Map(Object.entries(FILES));
    const none = async () => {};
    const env = {
      workingDirectory: "/w",
      read: async (path) => files.get(path.replace("/w/", "")) ?? Promise.reject(new face.EnvironmentError("not_found", path)),
      stat: async (path) => Promise.reject(new face.EnvironmentError("not_found", path)),
      list: async () => [],
      write: none, remove: none, rename: none, makeDir: none,
      exec: async (command, { onOutput }) => (onOutput("stdout", "out\n"), { exitCode: 0 }),
    };
    const { session, model } = await begun(t, face, [{ text: "a" }, { text: "a" }], { env });
    const saved = await session.save();
    await assert.rejects(face.createSession({ saved, apiKey: KEY }), { kind: "invalid_input", message: /did not work in a sandbox; give it an environment/ });
    const restored = await face.createSession({ saved, env, apiKey: KEY, baseUrl: model.url });
    await restored.prompt("more");
    await (await session.fork()).prompt("more");
    const [, , one, two] = await bodies(model);
    assert.equal(one, two);
  });
}

test("a fork of a log is the same in the worker", async (t) => {
  const { session, model } = await begun(t, api, [], { env: await api.MemoryEnvironment.create({ files: FILES, record: true }) });
  const log = await session.recording();
  const asked = await bodies(model);
  for (const at of [0, 1]) {
    const elsewhere = await serveModel(t, { steps: [{ text: "other" }] });
    const fork = await worker.fork(log, { at, apiKey: KEY, settings: { baseUrl: elsewhere.url }, files: { "new.txt": "new\n" } });
    assert.equal(await output(fork, "cat a.txt new.txt"), at === 0 ? "a\nnew\n" : "a\nb\nnew\n");
    const kinds = [];
    for await (const event of fork.resume()) kinds.push(event.kind);
    assert.ok(kinds.includes("PROCESSING_END"), `${kinds}`);
    assert.deepEqual(await bodies(elsewhere), [asked[at]]);
    await fork.close();
  }
});

test("the package and the binary restore each other's files", async (t) => {
  assert.ok(BINARY, "HERMITCRAB_BIN names no binary");
  const directory = await mkdtemp(join(tmpdir(), "hermitcrab-saved-"));
  t.after(() => rm(directory, { recursive: true }));
  const [ours, theirs] = ["ours.tar", "theirs.tar"].map((name) => join(directory, name));
  const { session } = await begun(t, api, []);
  await writeFile(ours, await session.save());
  const model = await serveModel(t, { steps: [shell("cat a.txt; echo c >> a.txt"), { text: "went on" }] });
  const env = { ...process.env, ANTHROPIC_API_KEY: KEY };
  const ran = run(BINARY, ["run", "--restore", ours, "--save", theirs, "--base-url", model.url, "--quiet", "go on"], { env });
  ran.child.stdin.end();
  const { stdout } = await ran;
  assert.match(stdout, /went on/);
  assert.match((await bodies(model))[1], /a\\nb\\n/);
  const last = await serveModel(t, { steps: [{ text: "home again" }] });
  const back = await api.createSession({ saved: await readFile(theirs), apiKey: KEY, baseUrl: last.url });
  assert.equal((await back.prompt("and?")).text, "home again");
  assert.equal(await output(back, "cat a.txt"), "a\nb\nc\n");
  assert.equal((await back.history()).length, 10);
  await back.close();
});

test("a run that is restored can be recorded, and its log replays", async (t) => {
  const { session } = await begun(t, api, []);
  const saved = await session.save();
  const last = await serveModel(t, { steps: [{ text: "again" }] });
  const back = await api.createSession({ saved, record: true, apiKey: KEY, baseUrl: last.url });
  await back.prompt("and?");
  await back.close();
  const replayed = await api.replay(await back.recording());
  assert.equal(replayed.rounds, 1);
  assert.equal(replayed.history.length, 6);
});

test("the core without a sandbox saves and restores histories", async (t) => {
  const none = async () => {};
  const env = {
    read: async (path) => Promise.reject(new slim.EnvironmentError("not_found", path)),
    stat: async (path) => Promise.reject(new slim.EnvironmentError("not_found", path)),
    list: async () => [],
    write: none, remove: none, rename: none, makeDir: none, exec: async () => ({ exitCode: 0 }),
  };
  const model = await serveModel(t, { steps: [{ text: "a" }, { text: "b" }] });
  const session = await slim.createSession({ apiKey: KEY, baseUrl: model.url, env });
  await session.prompt("one");
  const saved = await session.save();
  const restored = await slim.createSession({ apiKey: KEY, baseUrl: model.url, saved, env });
  assert.equal((await restored.prompt("two")).text, "b");
});

for (const [name, face] of Object.entries(FACES)) {
  test(`keys go where who restores and forks says, in ${name}`, async (t) => {
    const { session, model } = await begun(t, face, [{ text: "own" }]);
    // A file in which somebody has put an address.
    const saved = Buffer.from(await session.save());
    const crafted = Buffer.from(saved.toString("latin1").replace(/"base_url":null,"credential":null,"max_turns":9/, `"base_url":"http://x.io","max_turns":9         `), "latin1");
    assert.notDeepEqual(crafted, saved);
    const sent = [];
    const fetch = async (url, init) => {
      sent.push([new URL(url).origin, init.headers["x-api-key"] ?? init.headers.authorization]);
      return new Response("{}", { status: 401 });
    };
    const restored = await face.createSession({ saved: crafted, apiKey: KEY, fetch });
    await assert.rejects(restored.prompt("more"));
    assert.deepEqual(sent.splice(0), [["https://api.anthropic.com", KEY]]);
    // Another provider's fork brings its own key.
    const other = await session.fork({ provider: "openai", fetch });
    await assert.rejects(other.prompt("more"));
    assert.ok(sent.every(([, key]) => !key?.includes(KEY)), `${sent}`);
    const same = await session.fork();
    assert.equal((await same.prompt("more")).text, "own");
    assert.equal((await model.requests()).length, 3);
    await assert.rejects(session.fork({ tools: 5 }), { name: "SessionError", kind: "invalid_input" });
  });
}

/** A stream of one answer: what the model thinks and says, in pieces. */
function answer(thinking, texts) {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const block = (index, start, deltas) => [
    { type: "content_block_start", index, content_block: start },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
  const events = [
    { type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage } },
    ...block(0, { type: "thinking", thinking: "", signature: "" }, thinking.map((text) => ({ type: "thinking_delta", thinking: text }))),
    ...block(1, { type: "text", text: "" }, texts.map((text) => ({ type: "text_delta", text }))),
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
    { type: "message_stop" },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

const HALVES = [KEY.slice(0, 7), KEY.slice(7)];
for (const [where, body] of [["text", answer([], HALVES)], ["reasoning", answer(HALVES, ["done"])]]) {
  for (const [name, face] of Object.entries({ here: api, worker })) {
    test(`a key that comes in pieces of ${where} is in no log and in no file (${name})`, async () => {
      const fetch = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
      const pieces = [];
      for (const record of [true, (piece) => pieces.push(piece)]) {
        const session = await face.createSession({ apiKey: KEY, baseUrl: "http://127.0.0.1:9", fetch, record });
        await session.prompt("go");
        if (record === true) await assert.rejects(session.recording(), { kind: "illegal_state", message: /holds a key/ });
        await assert.rejects(session.save(), { kind: "illegal_state", message: /a key stands in/ });
        await session.close();
      }
      const log = gunzipSync(Buffer.concat(pieces), { finishFlush: constants.Z_SYNC_FLUSH }).toString();
      assert.ok(log.includes('"call"') && !log.includes(KEY), log.slice(-300));
    });
  }
}
