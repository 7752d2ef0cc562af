// Models without a session, over loopback against the scripted model in every
// provider's wire format.

import assert from "node:assert/strict";
import { test } from "node:test";

import { z } from "zod";

import { HermitcrabError, ModelClient, ModelError } from "../../js/node.js";
import { callStep, serveModel } from "./support.mjs";

const KEY = "sk-test-0000-model";
const PROVIDERS = ["anthropic", "openai", "gemini", "chat"];
const asked = { model: "m", prompt: "Name a crab." };

/** A client of a server that plays `steps`. */
async function served(t, provider, steps) {
  const model = await serveModel(t, { steps });
  return new ModelClient({ provider, apiKey: KEY, baseUrl: model.url, retry: { baseDelayMs: 1 } });
}

for (const provider of PROVIDERS) {
  test(`${provider}: an answer, whole, after a failure that passes`, async (t) => {
    const models = await served(t, provider, [{ error: { status: 503 } }, { text: "Pagurus." }]);
    const answer = await models.generate(asked);
    assert.deepEqual([answer.text, answer.finishReason.reason, answer.usage.output_tokens, answer.toolCalls], ["Pagurus.", "stop", 20, []]);
  });

  test(`${provider}: an answer as it arrives`, async (t) => {
    const models = await served(t, provider, [{ texts: ["Pagu", "rus."] }]);
    const pieces = [];
    let whole;
    for await (const event of models.stream(asked)) {
      if (event.type === "text_delta") pieces.push(event.text);
      if (event.type === "finish") whole = event.response.text;
    }
    assert.deepEqual([pieces, whole], [["Pagu", "rus."], "Pagurus."]);
  });

  test(`${provider}: a value that follows a schema`, async (t) => {
    const json = { type: "object", required: ["name"], properties: { name: { type: "string" }, legs: { type: "integer" } } };
    const answer = (text) => ({ text });
    const models = await served(t, provider, [answer('{"name": "Pagurus"}'), answer("Pagurus"), answer('{"legs": 10}'), answer('{"legs": "10", "name": "P"}')]);
    assert.deepEqual((await models.generateObject({ ...asked, schema: json })).object, { name: "Pagurus" });
    const none = { name: "ModelError", kind: "no_object_generated" };
    await assert.rejects(models.generateObject({ ...asked, schema: json }), { ...none, message: /^the answer is not JSON/ });
    await assert.rejects(models.generateObject({ ...asked, schema: json }), { ...none, message: /name/ });
    const schema = z.object({ name: z.string(), legs: z.string().transform(Number) });
    const { object } = await models.generateObject({ ...asked, schema });
    assert.equal(object.legs + 1, 11);
  });

  test(`${provider}: calls are reported, and their results go into the next request`, async (t) => {
    const models = await served(t, provider, [callStep("weather", { city: "Kiel" }), { text: "Rain." }]);
    const tools = [{ name: "weather", description: "Tells the weather.", parameters: { type: "object", properties: { city: { type: "string" } } } }];
    const first = await models.generate({ ...asked, tools });
    const [call] = first.toolCalls;
    assert.deepEqual([call.name, JSON.parse(call.arguments)], ["weather", { city: "Kiel" }]);
    const result = { type: "tool_result", tool_call_id: call.id, tool_name: call.name, content: "rain", is_error: false };
    const messages = [{ role: "user", content: asked.prompt }, first.message, { role: "tool", content: [result] }];
    assert.equal((await models.generate({ model: "m", messages, tools })).text, "Rain.");
  });

  test(`${provider}: what fails is a typed error without the key`, async (t) => {
    const failure = { error: { status: 401, message: `no such key ${KEY}` } };
    const models = await served(t, provider, [failure, failure]);
    for (const ask of [() => models.generate(asked), async () => models.stream(asked).next()]) {
      await assert.rejects(ask(), (error) => {
        assert.ok(error instanceof ModelError && error instanceof HermitcrabError, error.stack);
        assert.deepEqual([error.kind, error.status, error.retryable, error.provider], ["authentication", 401, false, provider]);
        assert.ok(!JSON.stringify([error.message, error.raw]).includes(KEY));
        return true;
      });
    }
  });
}

test("leaving the loop, and a signal, end the exchange", async () => {
  const ended = [];
  const forever = async (url, { signal }) => {
    signal.addEventListener("abort", () => ended.push(true));
    const line = 'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n';
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(line)) });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  const models = new ModelClient({ provider: "chat", apiKey: KEY, baseUrl: "http://127.0.0.1:1", fetch: forever });
  for await (const { type } of models.stream(asked)) if (type === "text_delta") break;
  assert.equal(ended.length, 1);
  const stop = new AbortController();
  await assert.rejects(async () => {
    for await (const { type } of models.stream({ ...asked, signal: stop.signal })) if (type === "text_delta") stop.abort();
  });
  await assert.rejects(models.generate({ ...asked, signal: stop.signal }));
});

test("images go with the prompt, and are looked at first", async (t) => {
  const models = await served(t, "anthropic", [{ text: "A dot." }]);
  const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const parts = (data) => [{ type: "text", text: "What is it?" }, { type: "image", data }];
  await assert.rejects(models.generate({ model: "m", prompt: parts("aGVsbG8=") }), { name: "SessionError", kind: "invalid_input", message: /image/ });
  assert.equal((await models.generate({ model: "m", prompt: parts(dot) })).text, "A dot.");
});

const SCRIPT = { steps: [{ text: "Pagurus." }] };
const refusals = [
  [{ provider: "nobody" }, asked, /nobody/],
  [{ apiKey: 7 }, asked, /^ModelClient: options.apiKey must be/],
  [{ colour: "red" }, asked, /colour/],
  [{ apiKey: KEY, baseUrl: "example.org" }, asked, /^baseUrl is not an absolute/],
  [{ script: SCRIPT }, { model: "m" }, /asks nothing: give prompt or messages/],
  [{ script: SCRIPT }, { ...asked, temprature: 1 }, /temprature/],
  [{ script: SCRIPT }, { ...asked, tools: [{ name: "a" }] }, /has no description/],
  [{ retry: { maxRetry: 1 }, script: SCRIPT }, asked, /max_retry/],
];
for (const [options, request, message] of refusals) {
  test(`refused: ${message}`, async () => {
    await assert.rejects(async () => new ModelClient(options).generate(request), (error) => {
      assert.ok(error instanceof HermitcrabError, error.stack);
      assert.match(error.message, message);
      return true;
    });
  });
}

test("without a key there is a sentence, and a script needs none", async () => {
  await assert.rejects(new ModelClient().generate(asked), { kind: "authentication", message: /apiKey/ });
  const models = new ModelClient({ script: SCRIPT });
  assert.equal((await models.generate(asked)).text, "Pagurus.");
});
