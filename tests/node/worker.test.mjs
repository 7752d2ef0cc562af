// What is special about a worker: being ended and replaced, messages, and
// values that cannot simply be copied.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";

import { ToolEnvironment } from "../../js/core/tool-environment.js";
import * as here from "../../js/node.js";
import {
  CoreError,
  EnvironmentError,
  HermitcrabError,
  MemoryEnvironment,
  SessionError,
  createSession,
  init,
  restart,
  terminate,
} from "../../js/worker-node.js";
import { ToolEnvironment as FarToolEnvironment } from "../../js/worker/page/tool-environment.js";
import { callStep, collect, dataOf, serveEndless, serveModel } from "./support.mjs";

const KEY = "sk-test-0000";

/** Hears nothing, and never ends where no bound of its work is near. */
const PATIENT = { limits: { workBound: Number.MAX_SAFE_INTEGER } };
const DEAF = "jq -n 'last(range(infinite))'";

/** A worker whose core fails in its next step as if it trapped, where it is asked to. */
const TRAPPING = `const { parentPort } = require("node:worker_threads");
import(${JSON.stringify(new URL("../../js/worker/main-node.js", import.meta.url).href)});
const { now } = Date;
parentPort.on("message", ({ type }) => {
  if (type !== "trap") return;
  Date.now = () => {
    Date.now = now;
    throw new WebAssembly.RuntimeError("unreachable");
  };
});`;
/** The one that works. */
let worker;

/** Messages of the worker, as they come. */
let messages = [];
const reasons = [];

await init({
  stopMs: 1_000,
  unresponsiveMs: 3_000,
  onRestart: (reason) => reasons.push(reason),
  worker: () => {
    worker = new Worker(TRAPPING, { eval: true });
    worker.on("message", (message) => messages.push(message));
    return worker;
  },
});

after(terminate);

test("a command that hears no stop ends with its worker; files are as before it", async () => {
  const env = await MemoryEnvironment.create({ ...PATIENT, files: { "kept.txt": "one", "gone.txt": "" } });
  await env.exec("echo two >> kept.txt; rm gone.txt; mkdir -p /tmp/deep; echo x > /tmp/deep/x; ln -s kept.txt link");
  const stop = new AbortController();
  const stuck = env.exec(`echo spoilt > kept.txt; ${DEAF}`, { signal: stop.signal });
  // Time enough for the command to begin: it must be deaf, not unborn.
  setTimeout(() => stop.abort(), 500);
  await assert.rejects(stuck, (error) => {
    assert.ok(error instanceof EnvironmentError);
    assert.equal(error.kind, "cancelled");
    assert.match(error.message, /exec was given up with its worker; files are as before it: .*could not be stopped/);
    return true;
  });
  const { stdout } = await env.exec("ls; cat link /tmp/deep/x");
  assert.equal(stdout, "kept.txt\nlink\nonetwo\nx\n");
  assert.match(reasons.at(-1), /stopped within 1000 ms/);
});

test("a worker that works and does not answer is replaced unasked; its sessions end and say so", async (t) => {
  const model = await serveModel(t, {
    steps: [callStep("shell", { command: "echo done > first.txt" }), callStep("shell", { command: DEAF }), { text: "x" }],
  });
  const env = await MemoryEnvironment.create(PATIENT);
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
  const idle = await createSession({ apiKey: KEY, baseUrl: model.url });
  const events = await collect(session.run("go"));
  const [error, end] = events.slice(-2);
  assert.deepEqual([error.kind, end.kind, end.data], ["ERROR", "SESSION_END", { state: "CLOSED", reason: "error" }]);
  assert.equal(error.data.code, "core");
  assert.match(error.data.message, /did not answer for 3000 ms/);
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index + 1));
  assert.ok(events.every(({ session_id: id }) => id === session.id));
  await session.closed;
  await idle.closed;
  assert.equal(session.state, "CLOSED");
  await assert.rejects(session.submit("more"), CoreError);
  await session.close();
  assert.equal(await env.readText("first.txt"), "done\n");
  const again = await createSession({ apiKey: KEY, baseUrl: model.url, env });
  await again.close();
});

test("a worker that takes in many typed lines answers meanwhile", async () => {
  const env = await MemoryEnvironment.create();
  const shell = await env.openShell({ onData() {} });
  const before = reasons.length;
  // Each line may end the command, so each time all of it is looked over.
  const text = "0123456789 0123456789 0123456789\n".repeat(7_000);
  await shell.write(`cat > typed <<'END'\n${text}END\n`);
  assert.deepEqual(reasons.slice(before), []);
  assert.equal(await env.readText("typed"), text);
  await shell.close();
  await env.dispose();
});

test("restart and terminate end what runs", async () => {
  const env = await MemoryEnvironment.create({ files: { a: "a" } });
  const session = await createSession({ apiKey: KEY, env });
  const running = assert.rejects(env.exec("while :; do :; done"), { kind: "cancelled" });
  await restart();
  await running;
  assert.equal(session.state, "CLOSED");
  assert.equal(await env.readText("a"), "a");
  await terminate();
  await assert.rejects(env.readText("a"), CoreError);
  const other = await MemoryEnvironment.create();
  assert.equal((await other.exec("echo fine")).stdout, "fine\n");
});

test("a restored sandbox is as read-only as it was, and logged", async () => {
  const lines = [];
  const env = await MemoryEnvironment.create({ files: { a: "a" }, readOnly: "commands", log: (line) => lines.push(line) });
  await env.exec("echo b > b");
  await restart();
  lines.length = 0;
  assert.equal(await env.readText("b"), "b\n");
  await assert.rejects(env.write("a", ""), { kind: "read_only" });
  const refused = "write a (0 bytes): write operations are disabled in read-only mode";
  assert.deepEqual(lines, ["read b", "read b: ok", "write a (0 bytes)", refused]);
});

/** How long a run may have begun before its worker ends. */
const TURNS = {
  "in the same turn": () => {},
  "a microtask later": () => null,
  "a macrotask later": () => new Promise(setImmediate),
  "when it works": (arrived) => arrived,
};
for (const [when, turn] of Object.entries(TURNS)) {
  for (const [how, end] of Object.entries({ terminate, restart })) {
    test(`${how} ends a run with its last events, ${when} and at a second run, too`, async (t) => {
      const server = await serveEndless(t);
      for (const isSecond of [false, true]) {
        let arrive;
        const answer = (url, init) => (arrive?.(), fetch(url, init));
        const session = await createSession({ apiKey: KEY, baseUrl: server.url, fetch: answer });
        if (isSecond) for await (const { kind } of session.run("once")) if (kind === "ASSISTANT_TEXT_DELTA") await session.interrupt();
        const arrived = new Promise((resolve) => (arrive = resolve));
        const events = collect(session.run("go"));
        await turn(arrived);
        await end();
        const last = (await events).slice(-2);
        assert.deepEqual(last.map(({ kind }) => kind), ["ERROR", "SESSION_END"]);
        assert.match(last[0].data.message, /^the worker was (ended|restarted)/);
        await session.closed;
        await assert.rejects(collect(session.run("again")), { name: "CoreError" });
      }
    });
  }
}

test("many changes are kept small, and survive", async () => {
  const env = await MemoryEnvironment.create();
  const block = new Uint8Array(1 << 20);
  for (let index = 0; index < 12; index += 1) await env.write("big", block.fill(index));
  await restart();
  assert.deepEqual([...(await env.readBytes("big")).subarray(0, 2)], [11, 11]);
  await env.remove("big");
  await restart();
  assert.equal(await env.exists("big"), false);
});

test("events travel in batches, at most one message a frame", async (t) => {
  const pieces = Array.from({ length: 3000 }, (_, index) => `${index} `);
  const model = await serveModel(t, { steps: [{ texts: pieces }] });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url });
  messages = [];
  const start = performance.now();
  const events = await collect(session.run("count"));
  const frames = (performance.now() - start) / 16;
  assert.equal(dataOf(events, "ASSISTANT_TEXT_DELTA").map(({ text }) => text).join(""), pieces.join(""));
  const batches = messages.filter(({ type }) => type === "notes").length;
  // One more for each answer that events must not be overtaken by.
  assert.ok(batches <= frames + 3, `${batches} messages in ${frames} frames`);
});

test("a call is reported before its command makes the worker deaf, also to a page that is busy", async () => {
  const env = await MemoryEnvironment.create(PATIENT);
  const session = await createSession({ env, script: { steps: [callStep("shell", { command: DEAF })] } });
  const kinds = [];
  for await (const { kind } of session.run("work")) {
    kinds.push(kind);
    // The page takes no message, while the worker comes to the command.
    if (kinds.length === 1) for (const start = performance.now(); performance.now() - start < 500; );
  }
  assert.deepEqual(kinds.slice(-3), ["TOOL_CALL_START", "ERROR", "SESSION_END"]);
});

test("a consumer that does not read holds the stream back across the channel", async (t) => {
  const pieces = Array.from({ length: 20_000 }, (_, index) => `${index} `);
  const model = await serveModel(t, { steps: [{ texts: pieces }] });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url });
  messages = [];
  const events = session.run("count");
  const { value: first } = await events.next();
  assert.equal(first.kind, "SESSION_START");
  const arrived = () => messages.flatMap(({ notes = [] }) => notes.flatMap(({ json = "[]" }) => JSON.parse(json))).length;
  let before = -1;
  while (arrived() !== before) {
    before = arrived();
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  assert.ok(before < 12_000, `${before} events arrived`);
  const texts = dataOf(await collect(events), "ASSISTANT_TEXT_DELTA").map(({ text }) => text);
  assert.equal(texts.join(""), pieces.join(""));
});

test("an input that is refused is reported to whoever asks for its events", async (t) => {
  for (const api of [here, { createSession }]) {
    const server = await serveEndless(t);
    const session = await api.createSession({ apiKey: KEY, baseUrl: server.url });
    await session.submit("one");
    assert.equal(session.state, "PROCESSING");
    await assert.rejects(collect(session.run("two")), { name: "SessionError", kind: "illegal_state" });
    await session.abort();
  }
});

test("runs of several sessions that begin in one turn get all of their events each", async () => {
  const script = { steps: [{ text: "one" }, { text: "two" }] };
  const sessions = await Promise.all(Array.from({ length: 4 }, () => createSession({ script })));
  await Promise.all(sessions.map((session) => collect(session.run("first"))));
  const runs = await Promise.all(sessions.map((session) => collect(session.run("second"))));
  assert.deepEqual(runs.map((events) => events.slice(0, 2).map(({ kind }) => kind)), runs.map(() => ["STATE_CHANGED", "USER_INPUT"]));
  await Promise.all(sessions.map((session) => session.close()));
});

test("a command's output comes before its end, also while runs begin", async () => {
  const env = await MemoryEnvironment.create();
  const session = await createSession({ env, script: { steps: Array.from({ length: 40 }, () => ({ text: "ok" })) } });
  for (let count = 0; count < 40; count += 1) {
    let output = "";
    const done = env.exec("echo hello", { onOutput: (_, data) => (output += new TextDecoder().decode(data)) });
    for (let turn = 0; turn < count % 8; turn += 1) await null;
    const run = collect(session.run("go"));
    await done;
    assert.equal(output, "hello\n");
    await run;
  }
  await session.close();
  await env.dispose();
});

test("a second run gets its own events only", async (t) => {
  const model = await serveModel(t, { steps: [{ text: "One." }, { text: "Two." }] });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url });
  await collect(session.run("first"));
  const events = await collect(session.run("second"));
  assert.deepEqual(dataOf(events, "USER_INPUT"), [{ content: "second" }]);
  assert.deepEqual(dataOf(events, "ASSISTANT_TEXT_END").map(({ text }) => text), ["Two."]);
});

test("a fetch of the page's sends the requests; its body streams, its errors are reported", async (t) => {
  const model = await serveModel(t, { steps: [{ texts: ["a", "b"] }, { text: "never" }] });
  const seen = [];
  let broken = false;
  const session = await createSession({
    apiKey: () => `${KEY}-fresh`,
    baseUrl: model.url,
    retry: { maxRetries: 0 },
    fetch: async (url, init) => {
      seen.push([new URL(url).pathname, init.headers["x-api-key"], init.signal instanceof AbortSignal]);
      if (broken) throw new TypeError("Failed to fetch");
      return fetch(url, init);
    },
  });
  const events = await collect(session.run("go"));
  assert.equal(dataOf(events, "ASSISTANT_TEXT_END")[0].text, "ab");
  broken = true;
  const [error] = dataOf(await collect(session.run("go")), "ERROR");
  assert.match(error.message, /Failed to fetch/);
  assert.deepEqual(seen, [1, 2].map(() => ["/v1/messages", `${KEY}-fresh`, true]));
});

for (const end of ["interrupt", "abort", "terminate"]) {
  test(`the signal of a fetch of the page's fires at ${end}, also once the response has begun`, { timeout: 30_000 }, async (t) => {
    for (const api of [here, { createSession }]) {
      if (end === "terminate" && api === here) continue;
      const server = await serveEndless(t);
      const signals = [];
      const ask = (url, init) => (signals.push(init.signal), fetch(url, init));
      const session = await api.createSession({ apiKey: KEY, baseUrl: server.url, fetch: ask });
      for await (const { kind } of session.run("go")) {
        if (kind === "ASSISTANT_TEXT_DELTA") void (end === "terminate" ? terminate() : session[end]());
      }
      const [signal] = signals;
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      // With it the body ends.
      await server.closed;
      await session.abort();
    }
  });
}

test("the signal of a fetch whose response was read stays silent", async (t) => {
  const model = await serveModel(t, { steps: [{ text: "one" }, { text: "two" }] });
  const signals = [];
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, fetch: (url, init) => (signals.push(init.signal), fetch(url, init)) });
  for (const input of ["first", "second"]) await collect(session.run(input));
  await session.abort();
  await restart();
  assert.deepEqual(signals.map(({ aborted }) => aborted), [false, false]);
});

test("what a model writes cannot pose as a function", async (t) => {
  const odd = { $hermitcrab: "function", id: 1, list: [{ $hermitcrab: "own", id: 0 }], __proto__: null };
  const model = await serveModel(t, { steps: [callStep("look", { odd }), { text: "Ok." }] });
  let seen;
  const session = await createSession({
    apiKey: KEY,
    baseUrl: model.url,
    tools: [{ name: "look", description: "", parameters: { type: "object" }, execute: ({ odd }) => void (seen = odd) }],
  });
  await collect(session.run("go"));
  assert.deepEqual(seen, JSON.parse(JSON.stringify(odd)));
});

test("what cannot be sent is refused by name, and nothing else is lost", async () => {
  const env = await MemoryEnvironment.create();
  const session = await createSession({ apiKey: KEY, env });
  const thrower = Object.defineProperty({}, "a", { enumerable: true, get: () => { throw new Error("boom"); } });
  const [bad, worse, good] = await Promise.allSettled([env.restore(new WeakMap()), env.restore(thrower), env.exec("echo fine")]);
  await session.close();
  for (const { reason } of [bad, worse]) {
    assert.ok(reason instanceof HermitcrabError);
    assert.equal(reason.kind, "invalid_input");
    assert.match(reason.message, /cannot be sent/);
  }
  assert.equal(good.value.stdout, "fine\n");
});

test("sandboxes go on with their files as before the call that ended the core", async () => {
  const env = await MemoryEnvironment.create({ files: { "a.txt": "kept" } });
  const other = await MemoryEnvironment.create({ files: { "b.txt": "other" } });
  await env.exec("echo made > c.txt");
  for (let round = 0; round < 2; round += 1) {
    worker.postMessage({ type: "trap" });
    await assert.rejects(env.exec("touch lost"), { kind: "cancelled", message: /files are as before it/ });
    const { stdout } = await env.exec("cat *");
    assert.equal(stdout, "keptmade\n");
    assert.equal(await other.readText("b.txt"), "other");
    const next = await MemoryEnvironment.create({ files: { z: "1" } });
    assert.equal((await next.exec("cat z")).stdout, "1");
  }
});

test("bytes come by transfer, and the caller keeps its own", async () => {
  const env = await MemoryEnvironment.create();
  const own = new Uint8Array([1, 2, 3]);
  await env.write("x", own);
  assert.deepEqual([...own], [1, 2, 3]);
  // A view into a larger buffer is sent without what is around it.
  await env.write("y", new Uint8Array(new ArrayBuffer(1 << 20), 7, 2));
  assert.equal((await env.readBytes("y")).byteLength, 2);
});

test("bytes are those of the moment of the call", async () => {
  const env = await MemoryEnvironment.create();
  for (const size of [10, 64 * 1024 + 1]) {
    const bytes = new Uint8Array(size).fill(1);
    const calls = [env.importFiles({ a: bytes, b: bytes.buffer }), env.write("c", bytes), env.write("d", bytes.buffer)];
    bytes.fill(2);
    await Promise.all(calls);
    for (const path of ["a", "b", "c", "d"]) assert.equal((await env.readBytes(path)).at(-1), 1, `${path} of ${size}`);
  }
});

test("what did not start is not tried again, and what cannot be read leaves nothing", async () => {
  await terminate();
  await assert.rejects(init({ wasm: new Uint8Array(3) }), CoreError);
  const env = await MemoryEnvironment.create();
  const files = {
    *[Symbol.iterator]() {
      throw new Error("unreadable");
    },
  };
  await assert.rejects(MemoryEnvironment.create({ files }), /unreadable/);
  assert.equal((await env.exec("echo fine")).stdout, "fine\n");
  // With a promise that nobody waits for this would end the process.
  await terminate();
});

test("images, the environment of tools and subagents cross to the worker", async () => {
  const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAG7buVgAAAABJRU5ErkJggg==";
  const bytes = Uint8Array.from(atob(PNG), (character) => character.charCodeAt(0));
  let kept;
  const tool = {
    name: "measure",
    description: "Measures.",
    parameters: { type: "object" },
    execute: async (_, { env, workingDirectory, agentId }) => {
      kept = env;
      const { stdout } = await env.exec("cat a.txt; echo b > b.txt", { onOutput: () => {} });
      const names = (await env.list()).map(({ path }) => path).join(" ");
      return [
        { type: "text", text: `${workingDirectory} ${agentId} ${stdout} ${names}` },
        { type: "image", data: PNG, mimeType: "image/png" },
      ];
    },
  };
  const script = { steps: [{ tool_calls: [{ name: "measure", arguments: {} }] }, { text: "Done." }] };
  const env = await MemoryEnvironment.create({ files: { "a.txt": "one" } });
  const session = await createSession({ env, script, tools: [tool] });
  const events = await collect(session.run([{ type: "text", text: "Look." }, { type: "image", data: new Blob([bytes]), name: "dot.png" }]));
  const image = { kind: "image", media_type: "image/png", bytes: bytes.length };
  assert.deepEqual(dataOf(events, "USER_INPUT"), [{ content: "Look.", attachments: [{ ...image, name: "dot.png" }] }]);
  const [end] = dataOf(events, "TOOL_CALL_END");
  assert.equal(end.output, "/workspace undefined one a.txt b.txt");
  assert.deepEqual(end.attachments, [image]);
  await assert.rejects(kept.readText("a.txt"), (error) => error.kind === "not_found" && /call is over/.test(error.message));
  assert.deepEqual(await session.agents(), []);
  await assert.rejects(session.agentHistory("agent-1"), (error) => error.kind === "not_found" && /none has been started/.test(error.message));
  await assert.rejects(session.submit([{ type: "image", data: "bm8=" }]), (error) => error.kind === "invalid_input" && /part 1: image: not a PNG/.test(error.message));
  await session.close();
});

test("the worker's classes can do what those of the core can", async () => {
  const methods = (Class) => Object.getOwnPropertyNames(Class.prototype).sort();
  const env = await MemoryEnvironment.create();
  const session = await createSession({ apiKey: KEY, env });
  const pairs = [[MemoryEnvironment, here.MemoryEnvironment], [session.constructor, here.Session], [FarToolEnvironment, ToolEnvironment]];
  for (const [Far, Near] of pairs) {
    const lacks = methods(Near).filter((name) => !(name in Far.prototype));
    assert.deepEqual(lacks, []);
  }
  const statics = Object.getOwnPropertyNames(here.MemoryEnvironment).filter((name) => !(name in MemoryEnvironment));
  assert.deepEqual(statics, []);
  const { default: _, ...far } = await import("../../js/worker-node.js");
  assert.deepEqual(Object.keys(here).filter((name) => !(name in far)), ["ModelClient", "ModelError"]);
  await assert.rejects(createSession({ maxTurnz: 1 }), (error) => error instanceof SessionError);
});

const main = new URL("../../js/worker/main-node.js", import.meta.url);

/** Ways in which a worker does not start: `[what, options, message]`. */
const FAILURES = [
  ["is missing", { worker: () => new Worker(new URL("./no-such-worker.mjs", import.meta.url)) }, /^the worker cannot be started: Cannot find module .*no-such-worker/],
  ["has a mistake", { worker: () => new Worker("let = ;", { eval: true }) }, /^the worker cannot be started: Unexpected token/],
  ["throws", { worker: () => new Worker("throw new Error('boom')", { eval: true }) }, /^the worker cannot be started: boom/],
  ["is another one", { worker: () => new Worker("process.exit(3)", { eval: true }) }, /^the worker cannot be started: its script ended with code 3/],
  ["is not even asked for", { worker: () => { throw new Error("no URL"); } }, /^the worker cannot be started: no URL/],
  ["finds no core", { worker: () => new Worker(main), wasm: new URL("file:///no/such.wasm") }, /^the core cannot be loaded: .*no such file.*\/no\/such\.wasm/],
  ["finds something else", { worker: () => new Worker(main), wasm: new URL(import.meta.url) }, /^the core cannot be loaded: file:.* is not the WebAssembly module of this package/],
];
for (const [what, options, message] of FAILURES) {
  test(`a worker whose script ${what} says so, and no more`, { timeout: 30_000 }, async () => {
    await terminate();
    await assert.rejects(init(options), (error) => {
      assert.ok(error instanceof CoreError);
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /policy|sessions are lost/);
      return true;
    });
  });
}

const bytes = await readFile(new URL("../../js/wasm/hermitcrab_bg.wasm", import.meta.url));

/** What the core may be given as, by name. */
const SOURCES = {
  "its bytes": () => bytes,
  "a module": () => new WebAssembly.Module(bytes),
  "a response": () => new Response(bytes),
  "a promise": () => Promise.resolve(bytes),
  "a promise of a response": async () => new Response(bytes),
};
for (const [what, source] of Object.entries(SOURCES)) {
  test(`after a failed start the next one may work, with ${what}, and so may the one after it`, async () => {
    await terminate();
    await assert.rejects(init({ worker: () => new Worker(main), wasm: Promise.reject(new Error("no such luck")) }), {
      name: "CoreError", message: "the core cannot be loaded: no such luck",
    });
    await init({ worker: () => new Worker(main), wasm: source() });
    const env = await MemoryEnvironment.create();
    assert.equal((await env.exec("echo fine")).stdout, "fine\n");
    await restart();
    assert.equal((await env.exec("echo fine again")).stdout, "fine again\n");
    await env.dispose();
  });
}

test("a start that waits for its core ends with terminate", { timeout: 30_000 }, async () => {
  await terminate();
  const starting = init({ worker: () => new Worker(main), wasm: new Promise(() => {}) });
  const creating = MemoryEnvironment.create();
  for (const call of [starting, creating]) call.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 200));
  await terminate();
  for (const call of [starting, creating]) await assert.rejects(call, { name: "CoreError", message: "the worker was ended" });
  const env = await MemoryEnvironment.create();
  await env.dispose();
});

test("a sandbox that is refused because of a restart is not made in the next worker", { timeout: 30_000 }, async () => {
  await terminate();
  const asked = [];
  await init({
    worker: () => {
      const worker = new Worker(main);
      const { postMessage } = worker;
      worker.postMessage = (message, transfer) => {
        asked.push(...[message, ...(message.messages ?? [])].map(({ method }) => method));
        postMessage.call(worker, message, transfer);
      };
      return worker;
    },
  });
  const env = await MemoryEnvironment.create({ files: { a: "1" } });
  const other = MemoryEnvironment.create({ files: { b: "2" } });
  other.catch(() => {});
  // Its call is on its way.
  while (asked.filter((method) => method === "createSandbox").length < 2) await new Promise((resolve) => queueMicrotask(resolve));
  asked.length = 0;
  await restart();
  await assert.rejects(other, { name: "CoreError" });
  assert.equal(await env.readText("a"), "1");
  assert.deepEqual(asked.filter((method) => method === "createSandbox"), ["createSandbox"]);
  await env.dispose();
});

test("how much of the core has arrived is reported once, also of a response", async () => {
  for (const source of [() => new Response(bytes), () => undefined]) {
    await terminate();
    const news = [];
    await init({ worker: () => new Worker(main), wasm: source(), onProgress: (progress) => news.push(progress) });
    // In Node the package's own is read from disk.
    const wanted = source() ? bytes.length : undefined;
    assert.equal(news.at(-1)?.loaded, wanted);
    const before = news.length;
    const env = await MemoryEnvironment.create();
    await restart();
    await env.exec("true");
    assert.equal(news.length, before);
    await env.dispose();
  }
});

/** Workers that cannot take the place of one that died: `[what, make]`. */
const REPLACEMENTS = [
  ["cannot be started", () => new Worker("throw new Error('boom')", { eval: true })],
  [
    "dies of what it is given",
    () => {
      const script = `import(${JSON.stringify(main.href)}); require("node:worker_threads").parentPort.on("message", (message) => {
        if ([message, ...(message.messages ?? [])].some(({ method }) => method === "createSandbox")) process.exit(7);
      });`;
      return new Worker(script, { eval: true });
    },
  ],
];
for (const [what, make] of REPLACEMENTS) {
  test(`a worker that ${what} is given up, and the next call tries another`, { timeout: 60_000 }, async () => {
    await terminate();
    const made = [];
    let next = () => new Worker(main);
    const restarts = [];
    const onRestart = (reason) => restarts.push(reason);
    await init({ onRestart, worker: () => (made.push(next()), made.at(-1)) });
    const [env, other] = [await MemoryEnvironment.create({ files: { a: "1" } }), await MemoryEnvironment.create({ files: { b: "2" } })];
    next = make;
    await made[0].terminate();
    await assert.rejects(env.readText("a"), (error) => error instanceof CoreError || error.cause instanceof CoreError);
    const failed = made.length;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    assert.equal(made.length, failed, "nobody has asked for more");
    assert.deepEqual(restarts, []);
    next = () => new Worker(main);
    assert.equal(await env.readText("a"), "1");
    assert.equal(await other.readText("b"), "2");
    await made.at(-1).terminate();
    assert.equal(await env.readText("a"), "1");
    assert.deepEqual(restarts, ["the worker failed: its script ended with code 1"]);
    await Promise.all([restart(), restart()]);
    assert.equal(await other.readText("b"), "2");
    await env.dispose();
    await other.dispose();
  });
}

test("a command that hears no stop ends, also where no worker takes its place", { timeout: 60_000 }, async () => {
  await terminate();
  const made = [];
  let next = () => new Worker(main);
  await init({ stopMs: 500, worker: () => (made.push(next()), made.at(-1)) });
  const env = await MemoryEnvironment.create({ ...PATIENT, files: { a: "1" } });
  const stop = new AbortController();
  const stuck = env.exec(DEAF, { signal: stop.signal });
  await new Promise((resolve) => setTimeout(resolve, 300));
  next = () => new Worker("throw new Error('boom')", { eval: true });
  stop.abort();
  await assert.rejects(stuck, { kind: "cancelled" });
  await assert.rejects(env.readText("a"), CoreError);
  await env.dispose();
  await assert.rejects(env.readText("a"), { kind: "cancelled", message: "the environment was closed" });
});
