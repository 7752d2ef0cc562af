// Sessions in Node: a whole task in the sandbox, tools, approvals, stopping.

import assert from "node:assert/strict";
import { test } from "node:test";

import { CoreError, MemoryEnvironment, SessionError, createSession, inWorker, other } from "./face.mjs";
import { callStep, collect, dataOf, serveEndless, serveModel } from "./support.mjs";

const KEY = "sk-test-0000";

/** A hang guard, far above what any test takes. */
const GUARD = { timeout: 60_000 };

test("a session fixes a bug and its tests pass in the sandbox", async (t) => {
  const model = await serveModel(t, {
    steps: [
      callStep("shell", { command: "bash test.sh" }),
      callStep("edit_file", {
        file_path: "/workspace/add.sh",
        old_string: "$1 - $2",
        new_string: "$1 + $2",
      }),
      callStep("shell", { command: "bash test.sh" }),
      { texts: ["Fixed: ", "it subtracted."] },
    ],
  });
  const env = await MemoryEnvironment.create({
    files: {
      "add.sh": "echo $(( $1 - $2 ))\n",
      "test.sh": 'if [ "$(bash add.sh 2 3)" = 5 ]; then echo pass; else echo fail; exit 1; fi\n',
    },
  });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
  const events = await collect(session.run("The tests fail. Fix add.sh."));
  assert.equal(events[0].kind, "SESSION_START");
  assert.deepEqual(
    dataOf(events, "TOOL_CALL_END").map(({ tool_name: name, exit_code: code }) => [name, code]),
    [["shell", 1], ["edit_file", undefined], ["shell", 0]],
  );
  const [{ totals, ...end }] = dataOf(events, "PROCESSING_END");
  assert.deepEqual(end, { reason: "completed", rounds: 3, turns: 4 });
  assert.equal(totals.responses, 4);
  assert.equal(dataOf(events, "ASSISTANT_TEXT_END").at(-1).text, "Fixed: it subtracted.");
  assert.deepEqual(events.map((event) => event.seq), events.map((_, index) => index + 1));
  assert.equal(await env.readText("add.sh"), "echo $(( $1 + $2 ))\n");
  const history = await session.history();
  assert.deepEqual(
    history.map(({ turn }) => turn),
    ["user", "assistant", "tool_results", "assistant", "tool_results", "assistant", "tool_results", "assistant"],
  );
  await session.close();
  assert.equal(session.state, "CLOSED");
  await assert.rejects(session.submit("more"), (error) => error instanceof SessionError && error.kind === "closed");
});

test("steering and follow-ups reach the model", async (t) => {
  const model = await serveModel(t, {
    steps: [callStep("shell", { command: "echo hi" }), { text: "Done." }, { text: "Also done." }],
  });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url });
  await session.steer("in French");
  await session.followUp("and now the other thing");
  const events = await collect(session.run("go"));
  assert.deepEqual(dataOf(events, "USER_INPUT").map(({ content }) => content), ["go", "and now the other thing"]);
  assert.deepEqual(dataOf(events, "STEERING_INJECTED"), [{ id: 1, source: "host", content: "in French" }]);
  const [first] = await model.requests();
  assert.ok(JSON.stringify(first.body.messages).includes("in French"));
});

test("a profile that the page defines decides wire, prompt and tools", async (t) => {
  const model = await serveModel(t, { steps: [callStep("run", { cmd: "echo hi" }), { text: "Done." }] });
  const run = { name: "run", executor: "shell", description: "Runs.", parameters: { type: "object", properties: { cmd: { type: "string" } }, required: ["cmd"] }, map: { cmd: "command" } };
  const acme = { wire: "chat", defaultModel: "acme-1", contextWindow: 9_000, prompt: { base: "You are Acme.", environment: null }, toolDeclarations: [run] };
  const session = await createSession({ provider: "acme", profiles: { acme }, maxSubagentDepth: 0, apiKey: KEY, baseUrl: model.url });
  const events = await collect(session.run("go"));
  assert.match(dataOf(events, "TOOL_CALL_END")[0].output, /^hi\n/);
  const [{ path, body }] = await model.requests();
  assert.match(path, /chat\/completions$/);
  assert.deepEqual([body.model, body.tools.map((tool) => tool.function.name)], ["acme-1", ["run"]]);
  assert.match(body.messages[0].content, /^You are Acme\./);
  assert.doesNotMatch(body.messages[0].content, /<environment/);
});

test("a tool of the page gets parsed arguments and its result reaches the model", async (t) => {
  const model = await serveModel(t, {
    steps: [
      callStep("add", { a: 2, b: 3 }),
      { expect: { last_tool_result_contains: "5" }, ...callStep("object", {}) },
      { expect: { last_tool_result_contains: '{"deep":[1]}' }, ...callStep("broken", {}) },
      { expect: { last_tool_result_contains: "no luck today" }, text: "Five." },
    ],
  });
  const parameters = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } };
  const session = await createSession({
    apiKey: KEY,
    baseUrl: model.url,
    tools: [
      {
        name: "add",
        description: "Adds.",
        parameters,
        async execute({ a, b }, { progress }) {
          progress("adding");
          return String(a + b);
        },
      },
      { name: "object", description: "An object.", parameters, execute: () => ({ deep: [1] }) },
      {
        name: "broken",
        description: "Throws.",
        parameters,
        execute() {
          throw new Error("no luck today");
        },
      },
    ],
  });
  const events = await collect(session.run("add"));
  assert.deepEqual(
    dataOf(events, "TOOL_CALL_END").map(({ tool_name: name, is_error: failed }) => [name, failed]),
    [["add", false], ["object", false], ["broken", true]],
  );
  assert.deepEqual(dataOf(events, "TOOL_CALL_OUTPUT_DELTA").map(({ text }) => text), ["adding"]);
  assert.equal(dataOf(events, "PROCESSING_END")[0].reason, "completed");
});

const circle = {};
circle.self = circle;
class Money {
  #cents = 250;
  toJSON() {
    return { cents: this.#cents };
  }
}

/** What a tool gives back, and what the model reads: `[result, content, isError]`. */
const RESULTS = [
  ["text", () => "as it is", "as it is"],
  ["content", () => ({ content: "no", isError: true }), "no", true],
  ["bytes", () => new TextEncoder().encode("naïve"), "naïve"],
  ["a buffer", () => new TextEncoder().encode("naïve").buffer, "naïve"],
  ["bytes of Node's", () => Buffer.from("naïve"), "naïve"],
  ["content in bytes", () => ({ content: new TextEncoder().encode("no"), isError: true }), "no", true],
  ["nothing", () => undefined, ""],
  ["null", () => null, "null"],
  ["an array", () => [1, "b"], '[1,"b"]'],
  ["a date", () => new Date(0), '"1970-01-01T00:00:00.000Z"'],
  ["an object that says what it is", () => new Money(), '{"cents":250}'],
  ["such an object deep inside", () => ({ price: [new Money()] }), '{"price":[{"cents":250}]}'],
  ["a function", () => () => {}, ""],
  ["a circle", () => circle, /^the tool odd ran, but its result cannot be written as JSON: .*circular/i, true],
  ["a big integer", () => 1n, /^the tool odd ran, but its result cannot be written as JSON: .*BigInt/, true],
  ["an object that refuses to be written", () => ({ toJSON() { throw new Error("not for you"); } }),
    "the tool odd ran, but its result cannot be written as JSON: not for you", true],
  ["an error with its cause", () => { throw new Error("no rows", { cause: new Error("the disk is gone") }); }, "no rows: the disk is gone", true],
  ["an error that cannot be looked at", () => { throw { get message() { throw new Error("no"); }, get cause() { throw new Error("no"); } }; },
    "something was thrown that cannot be shown", true],
  ["a symbol", () => { throw Symbol("s"); }, "threw Symbol(s)", true],
];

for (const [what, execute, content, isError = false] of RESULTS) {
  test(`a tool that gives ${what}`, async (t) => {
    const model = await serveModel(t, { steps: [callStep("odd", {}), { text: "Done." }] });
    const parameters = { type: "object", properties: {} };
    const session = await createSession({
      apiKey: KEY,
      baseUrl: model.url,
      tools: [{ name: "odd", description: "Odd.", parameters, execute }],
    });
    const [end] = dataOf(await collect(session.run("go")), "TOOL_CALL_END");
    assert.equal(end.is_error, isError);
    const [, , { results: [result] }] = await session.history();
    if (typeof content === "string") assert.equal(result.content.replace(/^Tool error \(odd\): /, ""), content);
    else assert.match(result.content.replace(/^Tool error \(odd\): /, ""), content);
    await session.close();
  });
}

test("tools come and go while the session lives", async (t) => {
  const model = await serveModel(t, { steps: [callStep("late", {}), { text: "Ok." }, { text: "Ok." }] });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url });
  const parameters = { type: "object", properties: {} };
  await session.registerTool({ name: "late", description: "Late.", parameters, execute: () => "in time" });
  const events = await collect(session.run("go"));
  assert.equal(dataOf(events, "TOOL_CALL_END")[0].output, "in time");
  assert.equal(await session.unregisterTool("late"), true);
  assert.equal(await session.unregisterTool("late"), false);
  assert.ok(!(await session.toolNames()).includes("late"));
  await assert.rejects(
    session.registerTool({ name: "no good", description: "", parameters, execute: () => "" }),
    (error) => error.kind === "invalid_tool",
  );
});

test("approvals are asked for, with a reason when denied, and denied when nobody is there", async (t) => {
  const steps = [
    callStep("shell", { command: "echo one > one.txt" }),
    callStep("shell", { command: "echo two > two.txt" }),
    { text: "Done." },
  ];
  const asked = [];
  const answers = [true, "not on a Friday"];
  const env = await MemoryEnvironment.create();
  const session = await createSession({
    apiKey: KEY,
    baseUrl: (await serveModel(t, { steps })).url,
    env,
    approval: { tools: { shell: "ask" } },
    approve: async ({ name, arguments: args }) => {
      asked.push([name, args.command]);
      return answers.shift();
    },
  });
  const events = await collect(session.run("go"));
  assert.deepEqual(asked, [["shell", "echo one > one.txt"], ["shell", "echo two > two.txt"]]);
  const [allowed, denied] = dataOf(events, "TOOL_CALL_END");
  assert.deepEqual([allowed.is_error, denied.is_error], [false, true]);
  assert.match(denied.error, /not on a Friday/);
  assert.deepEqual([allowed.refusal, denied.refusal], [undefined, "not_approved"]);
  assert.deepEqual([await env.exists("one.txt"), await env.exists("two.txt")], [true, false]);

  const silent = await createSession({
    apiKey: KEY,
    baseUrl: (await serveModel(t, { steps })).url,
    approval: { tools: { shell: "ask" } },
  });
  const [refused] = dataOf(await collect(silent.run("go")), "TOOL_CALL_END");
  assert.match(refused.error, /nobody is there to approve it: this tool needs approval/);
  assert.equal(refused.refusal, "no_approver");
});

const ANSWERS = [
  ["false", () => false, /not approved: the user declined/],
  ["a string", async () => "ask me tomorrow", /not approved: ask me tomorrow/],
  ["an empty string", () => "", /not approved: the user declined/],
  ["nothing", () => {}, /not approved: the user declined/],
  ["something truthy that is not true", () => 1, /not approved: the user declined/],
  ["an error that it throws", () => { throw new Error("no dialog"); }, /not approved: .*no dialog/],
  ["a rejection", async () => { throw new Error("the page has gone"); }, /not approved: .*the page has gone/],
  ["a rejection with nothing", () => Promise.reject(), /not approved: /],
];

for (const [what, approve, message] of ANSWERS) {
  test(`an approve that answers ${what} is a no that the model reads`, async (t) => {
    const model = await serveModel(t, { steps: [callStep("shell", { command: "touch x" }), { text: "Done." }] });
    const env = await MemoryEnvironment.create();
    const approval = { tools: { shell: "ask" } };
    const session = await createSession({ apiKey: KEY, baseUrl: model.url, env, approval, approve });
    const events = await collect(session.run("go"));
    const [end] = dataOf(events, "TOOL_CALL_END");
    assert.equal(end.is_error, true);
    assert.match(end.error ?? end.output, message);
    assert.equal(await env.exists("x"), false);
    assert.equal(dataOf(events, "PROCESSING_END")[0].reason, "completed");
  });
}

for (const stop of ["interrupt", "abort"]) {
  test(`an approve that never settles is given up at ${stop}`, async (t) => {
    const model = await serveModel(t, { steps: [callStep("shell", { command: "touch x" }), { text: "Done." }] });
    const env = await MemoryEnvironment.create();
    let told = false;
    const session = await createSession({
      apiKey: KEY,
      baseUrl: model.url,
      env,
      approval: { tools: { shell: "ask" } },
      approve: ({ signal }) => {
        signal.addEventListener("abort", () => (told = true));
        return new Promise(() => {});
      },
    });
    const events = [];
    for await (const event of session.run("go")) {
      events.push(event);
      if (event.kind === "APPROVAL_REQUESTED") void session[stop]();
    }
    const [end] = dataOf(events, "TOOL_CALL_END");
    assert.match(end.error ?? end.output, /interrupted before it started/);
    assert.equal(told, true);
    assert.equal(await env.exists("x"), false);
    if (stop === "abort") await session.closed;
    assert.equal(session.state, stop === "abort" ? "CLOSED" : "IDLE");
  });
}

test("an abort while the session opens is not lost", async () => {
  const life = new AbortController();
  const opening = createSession({ apiKey: KEY, baseUrl: "http://127.0.0.1:9", signal: life.signal });
  life.abort();
  await assert.rejects(opening, { name: "AbortError" });
});

test("a run that is refused takes no events from the first that listens", async (t) => {
  const server = await serveEndless(t);
  const session = await createSession({ apiKey: "test-key", baseUrl: server.url });
  await session.submit("one");
  await assert.rejects(collect(session.run("two")), { kind: "illegal_state" });
  const kinds = [];
  for await (const { kind } of session.events()) if (kinds.push(kind) === 3) break;
  assert.deepEqual(kinds, ["SESSION_START", "STATE_CHANGED", "USER_INPUT"]);
  await session.abort();
});

test("an abort is not lost at any moment of the opening", GUARD, async () => {
  const lost = [];
  for (let turns = 0; turns < 60; turns += 1) {
    const life = new AbortController();
    const opening = createSession({ script: { steps: [{ text: "hi" }] }, signal: life.signal });
    for (let turn = 0; turn < turns; turn += 1) await null;
    life.abort();
    const over = opening.then((session) => session.closed, () => {}).then(() => true);
    const late = new Promise((resolve) => setTimeout(resolve, 1_000, false));
    if (!(await Promise.race([over, late]))) lost.push(turns);
  }
  assert.deepEqual(lost, []);
});

for (const stop of ["interrupt", "abort"]) {
  test(`a file is free again after ${stop} in the middle of an edit`, GUARD, async (t) => {
    const edit = callStep("edit_file", { file_path: "/repo/a.txt", old_string: "one", new_string: "two" });
    const env = stuckOnce(new Map([["/repo/a.txt", "one\n"]]));
    const model = await serveModel(t, { steps: [edit, edit, { text: "Done." }] });
    const options = { apiKey: KEY, baseUrl: model.url, env };
    const first = await createSession(options);
    // Another session in the same environment waits for the same file.
    const second = await createSession(options);
    const events = first.run("go");
    await env.stuck;
    const other = collect(second.run("go"));
    void first[stop]();
    const [end] = dataOf(await collect(events), "TOOL_CALL_END");
    assert.equal(end.is_error, true);
    const [done] = dataOf(await other, "TOOL_CALL_END");
    assert.equal(done.is_error, false, done.error);
    assert.equal(env.files.get("/repo/a.txt"), "two\n");
  });
}

/** Files whose first write never ends. */
function stuckOnce(files) {
  let began;
  const env = {
    files,
    workingDirectory: "/repo",
    stuck: new Promise((resolve) => (began = resolve)),
    async read(path) {
      if (files.has(path)) return files.get(path);
      throw Object.assign(new Error(`no such file: ${path}`), { code: "ENOENT" });
    },
    async write(path, content) {
      if (began) {
        began();
        began = undefined;
        return new Promise(() => {});
      }
      files.set(path, new TextDecoder().decode(content));
    },
    async stat(path) {
      return { isDir: false, size: (await env.read(path)).length };
    },
    list: async () => [],
    ...Object.fromEntries(["remove", "rename", "makeDir", "exec"].map((name) => [name, () => Promise.reject(new Error(`no ${name}`))])),
  };
  return env;
}
test("a session answers while a tool ignores its signal", async (t) => {
  const session = await createSession({
    apiKey: KEY,
    baseUrl: (await serveModel(t, { steps: [callStep("deaf", {}), { text: "Done." }] })).url,
    tools: [{
      name: "deaf",
      description: "Never ends.",
      parameters: { type: "object", properties: {} },
      execute: () => new Promise(() => {}),
    }],
  });
  const kinds = [];
  for await (const { kind } of session.run("go")) {
    kinds.push(kind);
    if (kind === "TOOL_CALL_START") {
      await session.interrupt();
      assert.equal(await session.steer("quick"), 1);
      assert.equal(session.state, "PROCESSING");
    }
    if (kind === "STEERING_QUEUED") {
      assert.ok(!kinds.includes("TOOL_CALL_END"));
      void session.abort();
    }
  }
  await session.closed;
  assert.deepEqual(kinds.slice(-4), ["PROCESSING_END", "STEERING_DROPPED", "STATE_CHANGED", "SESSION_END"]);
});

test("a subagent on another provider, with its key and options", async (t) => {
  const contains = "# You are a subagent";
  const mine = (step) => ({ ...step, match: { not_contains: contains } });
  const child = (step) => ({ ...step, match: { contains } });
  const model = await serveModel(t, {
    steps: [
      mine(callStep("spawn_agent", { task: "say hi", model: "openai:gpt-x" })),
      child({ text: "hi" }),
      mine(callStep("wait", { agent_id: "agent-1" })),
      mine({ text: "Done." }),
    ],
  });
  const sent = [];
  const session = await createSession({
    apiKey: KEY,
    apiKeys: { openai: "sk-other-0000" },
    baseUrl: model.url,
    endpoints: { openai: { baseUrl: `${model.url}/v1`, options: { organization: "org-1" } } },
    fetch: (url, init) => {
      // Plain data: whatever `fetch` stands behind takes it.
      assert.equal(Object.getPrototypeOf(init.headers), Object.prototype);
      assert.equal(typeof init.body, "string");
      const header = (name) => init.headers[name];
      sent.push([new URL(url).pathname, header("x-api-key") ?? header("authorization"), header("openai-organization")]);
      return fetch(url, init);
    },
  });
  const events = await collect(session.run("go"));
  const ends = dataOf(events.filter(({ agent_id: id }) => !id), "TOOL_CALL_END");
  assert.match(ends[1].output, /success: true/);
  const other = ["/v1/responses", "Bearer sk-other-0000", "org-1"];
  assert.deepEqual(sent.filter(([path]) => path === other[0]), [other]);
  assert.ok(sent.every(([path, key]) => path === other[0] || (path === "/v1/messages" && key === KEY)));
});

for (const stop of ["interrupt", "abort"]) {
  test(`${stop} in the middle of a stream closes the connection`, async (t) => {
    const server = await serveEndless(t);
    const session = await createSession({ apiKey: KEY, baseUrl: server.url });
    const events = [];
    for await (const event of session.run("go")) {
      events.push(event);
      if (event.kind === "ASSISTANT_TEXT_DELTA") await session[stop]();
    }
    await server.closed;
    const [end] = dataOf(events, "PROCESSING_END");
    assert.equal(end.reason, stop === "abort" ? "aborted" : "interrupted");
    assert.equal(session.state, stop === "abort" ? "CLOSED" : "IDLE");
  });
}

test("an AbortSignal interrupts an input, another one aborts the session", async (t) => {
  const server = await serveEndless(t);
  const life = new AbortController();
  const session = await createSession({ apiKey: KEY, baseUrl: server.url, signal: life.signal });
  const input = new AbortController();
  for await (const event of session.run("go", { signal: input.signal })) {
    if (event.kind === "ASSISTANT_TEXT_DELTA") input.abort();
  }
  await server.closed;
  assert.equal(session.state, "IDLE");
  life.abort();
  await session.closed;
  assert.equal(session.state, "CLOSED");
  await assert.rejects(createSession({ signal: life.signal }), { name: "AbortError" });
});

test("the signal of an input is none of the next one's, also where nobody listened to the end", GUARD, async () => {
  const script = { steps: [{ text: "One." }, { texts: ["T", "w", "o", "."], delta_delay_ms: 20 }] };
  const session = await createSession({ script });
  const first = new AbortController();
  const all = session.events();
  for await (const { kind } of session.run("go", { signal: first.signal })) if (kind === "USER_INPUT") break;
  for await (const { kind } of all) if (kind === "PROCESSING_END") break;
  while (session.state === "PROCESSING") await new Promise(setImmediate);
  const events = [];
  for await (const event of session.run("and then?")) {
    events.push(event);
    if (event.kind === "ASSISTANT_TEXT_DELTA") first.abort();
  }
  assert.deepEqual(dataOf(events, "PROCESSING_END").map(({ reason }) => reason), ["completed"]);
  assert.equal(dataOf(events, "ASSISTANT_TEXT_END")[0].text, "Two.");
  await session.close();
});

test("a tool that never settles is given up when the input is interrupted", async (t) => {
  const model = await serveModel(t, { steps: [callStep("hang", {}), { text: "Next." }] });
  let fired = false;
  const session = await createSession({
    apiKey: KEY,
    baseUrl: model.url,
    tools: [
      {
        name: "hang",
        description: "Hangs.",
        parameters: { type: "object", properties: {} },
        execute(_, { signal }) {
          signal.addEventListener("abort", () => (fired = true));
          return new Promise(() => {});
        },
      },
    ],
  });
  const events = [];
  for await (const event of session.run("go")) {
    events.push(event);
    if (event.kind === "TOOL_CALL_START") await session.interrupt();
  }
  assert.ok(fired);
  assert.equal(dataOf(events, "PROCESSING_END")[0].reason, "interrupted");
  assert.equal(dataOf(events, "TOOL_CALL_END").length, 1);
  const next = await collect(session.run("go on"));
  assert.equal(dataOf(next, "PROCESSING_END")[0].reason, "completed");
});

test("a tool that never returns is an error that the model can read", async (t) => {
  const model = await serveModel(t, {
    steps: [callStep("hang", {}), { expect: { last_tool_result_contains: "no result within 20 ms" }, text: "Next." }],
  });
  let reason;
  const session = await createSession({
    apiKey: KEY,
    baseUrl: model.url,
    tools: [
      {
        name: "hang",
        description: "Hangs.",
        parameters: { type: "object", properties: {} },
        timeoutMs: 20,
        execute(_, { signal }) {
          signal.addEventListener("abort", () => (reason = signal.reason));
          return new Promise(() => {});
        },
      },
    ],
  });
  const events = await collect(session.run("go"));
  const [end] = dataOf(events, "TOOL_CALL_END");
  assert.equal(end.is_error, true);
  assert.match(end.error ?? end.output, /the tool hang gave no result within 20 ms and was given up/);
  assert.match(reason.message, /no result within 20 ms/);
  assert.equal(dataOf(events, "PROCESSING_END")[0].reason, "completed");
});

test("a consumer that does not read holds the stream back, and loses nothing", async (t) => {
  const pieces = Array.from({ length: 5000 }, (_, index) => `${index} `);
  const model = await serveModel(t, { steps: [{ texts: pieces }] });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url });
  const events = session.run("count");
  await new Promise((resolve) => setTimeout(resolve, 200));
  const { value: first } = await events.next();
  assert.equal(first.kind, "SESSION_START");
  const rest = await collect(events);
  const texts = dataOf(rest, "ASSISTANT_TEXT_DELTA").map(({ text }) => text);
  assert.equal(texts.join(""), pieces.join(""));
});

test("a consumer that pauses is not taken for a provider that is silent", async () => {
  let asked = 0;
  const fetch = async () => {
    asked += 1;
    const pieces = answerOf(6_000);
    const pull = (controller) => (pieces.length > 0 ? controller.enqueue(pieces.shift()) : controller.close());
    return new Response(new ReadableStream({ pull }), { headers: { "content-type": "text/event-stream" } });
  };
  const settings = { apiKey: KEY, baseUrl: "https://model.example", fetch, streamIdleTimeoutMs: 600 };
  const session = await createSession(settings);
  const events = [];
  for await (const event of session.run("count")) {
    events.push(event);
    if (events.length === 100) await new Promise((resolve) => setTimeout(resolve, 1_500));
  }
  assert.deepEqual(dataOf(events, "RETRY"), []);
  assert.equal(asked, 1);
  assert.equal(dataOf(events, "ASSISTANT_TEXT_DELTA").length, 6_000);
});

test("a fetch whose body has everything at hand is read no faster than its consumer reads", GUARD, async () => {
  const pieces = answerOf(20_000);
  let read = 0;
  const body = () => new ReadableStream({
    pull(controller) {
      if (read === pieces.length) return controller.close();
      controller.enqueue(pieces[read]);
      read += 1;
    },
  });
  const fetch = async () => new Response(body(), { headers: { "content-type": "text/event-stream" } });
  const session = await createSession({ apiKey: KEY, baseUrl: "https://model.example", fetch });
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 1);
  let seen = 0;
  let ahead = 0;
  for await (const { kind } of session.run("count")) {
    if (kind !== "ASSISTANT_TEXT_DELTA") continue;
    seen += 1;
    ahead = Math.max(ahead, read - seen);
    if (seen % 500 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  clearInterval(timer);
  assert.equal(seen, 20_000);
  assert.ok(ahead < 4_000, `${ahead} pieces were read ahead`);
  assert.ok(turns > 40, `others got ${turns} turns`);
});

/** The pieces of an answer of so many deltas. */
function answerOf(deltas) {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage };
  const delta = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "x" } };
  return [
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    ...Array.from({ length: deltas }, () => delta),
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
    { type: "message_stop" },
  ].map((event) => new TextEncoder().encode(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`));
}

test("leaving the loop ends listening, not the work", async (t) => {
  const model = await serveModel(t, { steps: [callStep("shell", { command: "echo x > x" }), { text: "Done." }] });
  const env = await MemoryEnvironment.create();
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
  const all = session.events();
  for await (const event of session.run("go")) if (event.kind === "TOOL_CALL_START") break;
  for await (const event of all) if (event.kind === "PROCESSING_END") break;
  assert.equal(await env.readText("x"), "x\n");
});

// In a worker the core fails there: worker.test.mjs.
const testHere = inWorker ? () => {} : test;

testHere("when the core itself fails, every session of it ends and says so, and its sandbox goes on", async (t) => {
  const env = await MemoryEnvironment.create({ files: { a: "1" } });
  const session = await createSession({ apiKey: KEY, env });
  const events = session.events();
  assert.equal((await events.next()).value.kind, "SESSION_START");
  trapNext(t);
  await session.steer("are you there?");
  const rest = await collect(events);
  assert.deepEqual(rest.map(({ kind, seq }) => [kind, seq]), [["ERROR", 2], ["SESSION_END", 3]]);
  assert.equal(rest[0].data.code, "core");
  assert.match(rest[0].data.message, /unreachable/);
  assert.equal(session.state, "CLOSED");
  await assert.rejects(session.submit("hello"), CoreError);
  await session.abort();
  assert.equal((await env.exec("cat a")).stdout, "1");
  const another = await createSession({ apiKey: KEY, env });
  await another.close();
});

/** The next step fails as it would if the core trapped outside of a command. */
function trapNext(t) {
  const { now } = Date;
  t.mock.method(Date, "now", () => {
    Date.now = now;
    throw new WebAssembly.RuntimeError("unreachable");
  });
}

/** Commands that use up a stack, the shell's own or the engine's: no count of work ends them before. */
const DEEP = {
  "a function of jq that calls itself": "jq -n 'def f: 1+f; f'",
  "a hundred thousand brackets": `awk 'BEGIN{for(i=0;i<300000;i++) printf "("}' > deep; bc < deep`,
};

for (const [what, command] of Object.entries(DEEP)) {
  test(`of ${what}, only the command that runs it ends, however often`, async (t) => {
    const model = await serveModel(t, { steps: [callStep("shell", { command: `echo said; ${command}` }), { text: "x" }] });
    const silent = await serveModel(t, { steps: [{ text: "fine", delay_ms: 500 }] });
    const elsewhere = await createSession({ apiKey: KEY, baseUrl: silent.url, env: await MemoryEnvironment.create({ files: { a: "1" } }) });
    const working = collect(elsewhere.run("go"));

    const env = await MemoryEnvironment.create({ files: { a: "1" }, programs: { hey: async () => ({ exitCode: 0, stdout: "hey\n" }) } });
    const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
    const events = await collect(session.run("go"));
    assert.deepEqual(dataOf(events, "ERROR"), []);
    const [{ output }] = dataOf(events, "TOOL_CALL_END");
    assert.match(output, /the command was ended: it recursed until its stack was full[^]*139/);
    assert.equal(session.state, "IDLE");

    // Each of them would leave the stack that all cores share a piece shorter.
    for (let round = 0; round < 5; round += 1) {
      const sleeper = env.exec("sleep 1; echo slept");
      const { exitCode, stdout } = await env.exec(`echo kept > b; ${command}`);
      assert.deepEqual([exitCode, stdout], [139, ""]);
      assert.equal((await sleeper).stdout, "slept\n");
      assert.equal((await env.exec("cat a b; hey; sleep 5; jq -n '[1, 2] | add'")).stdout, "1kept\nhey\n3\n");
    }
    assert.equal((await working).at(-1).kind, "STATE_CHANGED");
    assert.match(JSON.stringify(await elsewhere.history()), /fine/);
    await elsewhere.close();
    await session.close();
    await (await MemoryEnvironment.create()).dispose();
  });
}

testHere("a core that fails takes its sessions and shells with it, and its sandbox goes on", async (t) => {
  const env = await MemoryEnvironment.create({ files: { a: "1" }, programs: { hey: async () => ({ exitCode: 0, stdout: "hey\n" }) } });
  const early = await env.snapshot();
  await env.program("you", async () => ({ exitCode: 0, stdout: "you\n" }));
  await env.write("b", "2");
  const shell = await env.openShell({ onData() {} });
  const session = await createSession({ apiKey: KEY, env });
  const events = collect(session.events());
  for (let round = 0; round < 5; round += 1) {
    const sleeper = assert.rejects(env.exec("sleep 1; cat /dev/zero"), CoreError);
    trapNext(t);
    await assert.rejects(env.exec("echo lost > b"), CoreError);
    await sleeper;
    assert.equal((await env.exec("cat a b; hey; you; sleep 5; jq -n '[1, 2] | add'")).stdout, "12hey\nyou\n3\n");
  }
  assert.deepEqual((await events).slice(-2).map(({ kind }) => kind), ["ERROR", "SESSION_END"]);
  assert.equal(await shell.closed, 1);
  assert.deepEqual((await env.changesSince(early)).map(({ path }) => path).filter((path) => path.startsWith("/workspace")), ["/workspace/b"]);
  await env.restore(early);
  assert.equal(await env.exists("b"), false);
});

testHere("a conversation that ended with its core goes on with what was known of it", async (t) => {
  const model = await serveModel(t, { steps: [callStep("shell", { command: "echo kept" }), callStep("shell", { command: "sleep 1; wait_here" }), { text: "x" }] });
  const env = await MemoryEnvironment.create({ programs: { wait_here: async () => (trapNext(t), { exitCode: 0 }) } });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
  await collect(session.run("go"));
  assert.match(JSON.stringify(await session.history()), /kept\\n/);
  const history = await session.record();
  const further = await serveModel(t, { steps: [{ text: "as if nothing had been" }] });
  const again = await createSession({ apiKey: KEY, baseUrl: further.url, env, history });
  await collect(again.resume());
  assert.match(JSON.stringify(await again.history()), /kept.*interrupted before it ended.*as if nothing had been/);
  await again.close();
});

testHere("a core that has failed leaves a sandbox as read-only as it was, and logged", async (t) => {
  const lines = [];
  const log = (line) => lines.push(line);
  const env = await MemoryEnvironment.create({ files: { a: "1" }, readOnly: "commands", log });
  trapNext(t);
  await assert.rejects(env.exec("echo on"), CoreError);
  lines.length = 0;
  await assert.rejects(env.write("a", "2"), { kind: "read_only" });
  assert.equal((await env.exec("cat a")).stdout, "1");
  assert.deepEqual(lines.map((line) => line.replace(/ in [0-9].*/, "")), ["write a (1 bytes)", "write a (1 bytes): write operations are disabled in read-only mode", "exec: cat a", "exit: 0"]);
});

test("a sandbox of another entry is no environment of the caller's", async () => {
  const env = await other.MemoryEnvironment.create({ files: { a: "1" } });
  const message = /^createSession: options\.env is a MemoryEnvironment of another entry or copy of this package; create sandbox and session with the same one/;
  await assert.rejects(createSession({ apiKey: KEY, env }), (error) => error instanceof SessionError && error.kind === "invalid_input" && message.test(error.message));
});

const MISTAKES = [
  ["an unknown setting", { maxTurnz: 3 }, "invalid_config", /unknown field `maxTurnz`, expected one of `provider`, .*`maxTurns`/],
  ["a wrong value", { maxTurns: -1 }, "invalid_config", /`maxTurns`: invalid value: integer `-1`, expected a whole number, 0 or more/],
  ["a wrong value within a setting", { retry: { maxRetries: "x" } }, "invalid_config", /`retry\.maxRetries`: invalid type: string "x"/],
  ["an unknown provider", { provider: "acme" }, "unknown_provider", /acme/],
  ["a key for no provider", { apiKey: KEY, apiKeys: { opnai: "sk-1" } }, "unknown_provider", /options\.apiKeys has a key for "opnai", which is no provider/],
  ["no room for an answer", { maxTokens: 0 }, "invalid_config", /`maxTokens` must be at least 1; leave it out/],
  ["a base URL that is none", { apiKey: KEY, baseUrl: "example" }, "invalid_input", /example/],
  ["an empty key", { apiKey: " " }, "invalid_input", /empty/],
  ["a tool with a limit that is none", { tools: [{ name: "x", description: "", parameters: {}, execute() {}, timeoutMs: "soon" }] }, "invalid_tool", /timeoutMs/],
  ["a tool without a function", { tools: [{ name: "x", description: "", parameters: {} }] }, "invalid_tool", /execute/],
];

for (const [what, options, kind, message] of MISTAKES) {
  test(`${what} is a typed error`, async () => {
    await assert.rejects(createSession(options), (error) => {
      assert.ok(error instanceof SessionError);
      assert.equal(error.kind, kind);
      assert.match(error.message, message);
      return true;
    });
  });
}

/** Bodies that a `fetch` of one's own may return, and nobody should. */
const BODIES = {
  "getReader throws": () => ({ getReader: () => { throw new Error("no reader"); } }),
  "getReader gives nothing": () => ({ getReader: () => undefined }),
  "read throws": () => ({ getReader: () => ({ read: () => { throw new Error("no bytes"); }, cancel() {} }) }),
  "read gives nothing": () => ({ getReader: () => ({ read: () => undefined, cancel() {} }) }),
  "read and cancel throw": () => ({ getReader: () => ({ read: () => { throw new Error("no bytes"); }, cancel: () => { throw new Error("no end"); } }) }),
  "there is no cancel, and no end": () => ({ getReader: () => ({ read: () => new Promise(() => {}) }) }),
};

test("a fetch of one's own may answer with an object like a response", async () => {
  const lines = ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"].map((type) => `event: ${type}\ndata: ${JSON.stringify({
    type, index: 0, message: { id: "m", usage: { input_tokens: 1 } }, content_block: { type: "text", text: "" },
    delta: type === "message_delta" ? { stop_reason: "end_turn" } : { type: "text_delta", text: "Hello." }, usage: { output_tokens: 1 },
  })}\n\n`);
  const read = async () => (lines.length > 0 ? { done: false, value: new TextEncoder().encode(lines.shift()) } : { done: true });
  const fetch = async () => ({ status: 200, headers: new Map([["content-type", "text/event-stream"]]), body: { getReader: () => ({ read, cancel() {} }) } });
  const session = await createSession({ apiKey: KEY, model: "m", baseUrl: "http://127.0.0.1:1", fetch });
  const events = await collect(session.run("go"));
  assert.equal(dataOf(events, "ASSISTANT_TEXT_END")[0]?.text, "Hello.", JSON.stringify(events));
  await session.close();
});

for (const [name, body] of Object.entries(BODIES)) {
  for (const apiKey of [KEY, null]) {
    test(`a body of which ${name} is a broken stream, ${apiKey ? "with a key" : "without"}`, async () => {
      const fetch = async () => ({ status: 200, headers: new Headers({ "content-type": "text/event-stream" }), body: body() });
      const session = await createSession({ apiKey, model: "m", baseUrl: "http://127.0.0.1:1", fetch, retry: { maxRetries: 0 }, maxStreamRetries: 0 });
      const events = [];
      const stop = name.includes("no end") ? setTimeout(() => session.interrupt(), 100) : undefined;
      for await (const event of session.run("go")) events.push(event);
      clearTimeout(stop);
      assert.equal(events.some(({ kind }) => kind === "ERROR"), stop === undefined);
      assert.equal(events.findLast(({ kind }) => kind === "STATE_CHANGED").data.to, "IDLE");
      await session.abort();
      // The core goes on.
      const other = await createSession({ apiKey, model: "m" });
      await other.close();
    });
  }
}
