// `session.prompt`, and how sessions end: at the end of a block, while they work,
// idle, and where the consumer's loop throws.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HermitcrabError, MemoryEnvironment, RunError, createSession } from "./face.mjs";
import { callStep, collect, dataOf, serveEndless, serveModel } from "./support.mjs";

const KEY = "sk-test-0000";

test("prompt gives the last answer, all tokens and the reason", async (t) => {
  const usage = (input_tokens, output_tokens) => ({ usage: { input_tokens, output_tokens } });
  const model = await serveModel(t, {
    steps: [
      { ...callStep("shell", { command: "echo hi" }), ...usage(10, 1) },
      { text: "First.", ...usage(20, 2) },
      { text: "Second.", ...usage(30, 3) },
      { text: "Third.", ...usage(40, 4) },
    ],
  });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, model: "no-such-model" });
  await session.followUp("and more");
  const told = ({ text, usage: { input_tokens: input, output_tokens: output }, reason }) => [text, input, output, reason];
  // The follow-up belongs to it.
  const first = await session.prompt("go");
  assert.deepEqual(told(first), ["Second.", 60, 6, "completed"]);
  // What came before it does not.
  assert.deepEqual(told(await session.prompt("again")), ["Third.", 40, 4, "completed"]);
  // Nobody knows the price of that model.
  assert.equal(first.cost, null);
  await session.close();
});

test("prompt tells what a run costs, where the price is known", async (t) => {
  const model = await serveModel(t, { steps: [callStep("shell", { command: "ls" }), { text: "Done." }] });
  // In US dollars for a million tokens.
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, model: "mine", prices: { mine: { input: 1000, output: 2000 } } });
  const { cost, usage } = await session.prompt("go");
  assert.deepEqual([usage.input_tokens, usage.output_tokens], [200, 40]);
  assert.ok(Math.abs(cost - 0.28) < 1e-9, String(cost));
  await session.close();
});

const FORM = { type: "object", properties: { legs: { type: "integer" } }, required: ["legs"] };

test("prompt gives the value that outputSchema asks for, and rejects where there is none", async (t) => {
  const model = await serveModel(t, { steps: [{ text: "Ten." }, { text: '{"legs": 10}' }, ...Array(3).fill({ text: "Ten." })] });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, outputSchema: FORM });
  const { output, text } = await session.prompt("How many legs has a crab?");
  assert.deepEqual([output, text], [{ legs: 10 }, '{"legs": 10}']);
  await assert.rejects(session.prompt("And now?"), (error) => {
    assert.deepEqual([error.kind, error.result.output], ["no_object_generated", undefined]);
    assert.match(error.message, /after 2 corrections: the answer is not JSON/);
    return true;
  });
  await session.close();
  await assert.rejects(createSession({ apiKey: KEY, outputSchema: { type: "number of legs" } }), { kind: "invalid_config", message: /outputSchema/ });
});

test("prompt rejects with what the run failed of, and what there was until then", async (t) => {
  const model = await serveModel(t, {
    steps: [callStep("shell", { command: "echo hi" }), { error: { status: 401, message: "invalid x-api-key" } }],
  });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url });
  await assert.rejects(session.prompt("go"), (error) => {
    assert.ok(error instanceof RunError && error instanceof HermitcrabError, error.stack);
    assert.deepEqual([error.name, error.kind, error.retryable, error.result.reason], ["RunError", "authentication", false, "error"]);
    assert.match(error.message, /invalid x-api-key/);
    assert.ok(error.result.usage.input_tokens > 0);
    return true;
  });
  // Without a key that is taken, nothing can follow.
  await assert.rejects(session.prompt("too late"), { name: "SessionError", kind: "closed" });
  await assert.rejects(session.prompt(" "), { name: "SessionError", kind: "invalid_input" });
});

test("prompt tells limits, interruptions and questions by their reason", async (t) => {
  const server = await serveEndless(t);
  const endless = await createSession({ apiKey: KEY, baseUrl: server.url });
  const stop = new AbortController();
  const prompted = endless.prompt("go", { signal: stop.signal });
  for await (const { kind } of endless.events()) if (kind === "ASSISTANT_TEXT_DELTA") break;
  stop.abort();
  const { text, reason } = await prompted;
  assert.deepEqual([text, reason], ["Thinking about it", "interrupted"]);
  const next = endless.prompt("on");
  await endless.close();
  assert.equal((await next).reason, "aborted");

  const model = await serveModel(t, { steps: [callStep("shell", { command: "ls" }), { text: "Which one?" }] });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, maxToolRoundsPerInput: 1, awaitingInput: "always" });
  assert.equal((await session.prompt("go")).reason, "round_limit");
  assert.equal((await session.prompt("go")).reason, "awaiting_input");
  await session.close();
});

test("interrupt where nothing is worked on does nothing", async (t) => {
  const model = await serveModel(t, { steps: [{ text: "One." }, { text: "Two." }] });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url });
  await session.interrupt();
  assert.equal((await session.prompt("go")).text, "One.");
  await session.interrupt();
  assert.equal((await session.prompt("go")).text, "Two.");
  await session.close();
});

test("close while it works aborts, and hides no error of the consumer's loop", { timeout: 30_000 }, async (t) => {
  const server = await serveEndless(t);
  const session = await createSession({ apiKey: KEY, baseUrl: server.url });
  const consume = async () => {
    try {
      for await (const { kind } of session.run("go")) if (kind === "ASSISTANT_TEXT_DELTA") throw new Error("mine");
    } finally {
      await session.close();
    }
  };
  await assert.rejects(consume, { message: "mine" });
  await server.closed;
  assert.equal(session.state, "CLOSED");
  // Again changes nothing.
  await session.close();
  await session.abort();
});

test("sessions and environments end at the end of a block", async (t) => {
  const model = await serveModel(t, { steps: [{ text: "Done." }] });
  // As compilers of `await using` look for it.
  const dispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
  const env = await MemoryEnvironment.create();
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
  const listening = collect(session.events());
  await session.prompt("go");
  await session[dispose]();
  assert.equal(session.state, "CLOSED");
  const [{ state, reason, totals }] = dataOf(await listening, "SESSION_END");
  assert.deepEqual({ state, reason, responses: totals.responses }, { state: "CLOSED", reason: "closed", responses: 1 });
  assert.equal((await env.exec("echo on")).stdout, "on\n");
  await env[dispose]();
  await assert.rejects(env.exec("ls"), { kind: "cancelled" });
});

test("a session has its environment; one that was made for it ends with it, what is known of the session stays", async (t) => {
  for (const how of ["close", "abort"]) {
    const model = await serveModel(t, { steps: [callStep("shell", { command: "echo made > a.txt" }), { text: "Done." }] });
    const session = await createSession({ apiKey: KEY, baseUrl: model.url });
    await session.prompt("go");
    assert.equal(await session.env.readText("a.txt"), "made\n");
    const before = [await session.history(), await session.record(), await session.config(), await session.toolNames()];
    await session[how]();
    await assert.rejects(session.env.readText("a.txt"), { kind: "cancelled", message: "the environment was closed" });
    assert.deepEqual([await session.history(), await session.record(), await session.config(), await session.toolNames()], before);
    await assert.rejects(session.submit("more"), { kind: "closed" });
  }
  const given = await MemoryEnvironment.create({ files: { a: "kept" } });
  const session = await createSession({ apiKey: KEY, env: given });
  assert.equal(session.env, given);
  await session.close();
  assert.equal(await given.readText("a"), "kept");
  await given.dispose();
});
