// The key at the door: where it goes, and where it never goes.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { checkAddress, createDoor } from "../../js/model/door.js";
import { MemoryEnvironment, SessionError, createSession } from "../../js/node.js";
import { initSync } from "../../js/wasm/hermitcrab.js";
import { callStep, collect, dataOf, listen, serveModel } from "./support.mjs";

const KEY = "sk-ant-canary-7d1f0c5e9b";

/** The core's whole memory as text, byte by byte. */
function memory() {
  // Loaded already, so this only hands out the exports.
  return Buffer.from(initSync().memory.buffer).toString("latin1");
}

test("the key reaches the server and is nowhere in the core's memory, events or history", async (t) => {
  const model = await serveModel(t, {
    steps: [callStep("shell", { command: "env; echo memory-witness" }), { text: "Done." }],
  });
  const sent = [];
  const session = await createSession({
    apiKey: KEY,
    baseUrl: model.url,
    env: await MemoryEnvironment.create(),
    fetch: (url, init) => {
      sent.push(new Headers(init.headers).get("x-api-key"));
      return fetch(url, init);
    },
  });
  const events = await collect(session.run("go"));
  assert.equal(dataOf(events, "PROCESSING_END")[0].reason, "completed");
  assert.deepEqual(sent, [KEY, KEY]);
  const seen = memory();
  assert.ok(seen.includes("memory-witness"), "the scan would find what is there");
  assert.ok(!seen.includes(KEY));
  assert.ok(!JSON.stringify([events, await session.history(), await session.config()]).includes(KEY));
});

/** Runs one input and returns its `ERROR`. */
async function errorOf(options) {
  const session = await createSession({ apiKey: KEY, retry: { maxRetries: 0 }, ...options });
  const [error] = dataOf(await collect(session.run("go")), "ERROR");
  assert.ok(error, "an ERROR event");
  assert.ok(!JSON.stringify(error).includes(KEY));
  return error;
}

/** An address that nobody listens at. */
async function unused() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

const REFUSALS = [
  ["a wrong key", { status: 401, type: "authentication_error", message: "invalid x-api-key" }, "authentication", /anthropic refused the credential `anthropic` .*check its key/],
  ["a key without the right", { status: 403, type: "permission_error", message: "not this model" }, "access_denied", /not this model/],
  ["no credit", { status: 402, type: "billing_error", message: "credit balance is too low" }, "quota_exceeded", /credit balance is too low/],
];
for (const [what, answer, code, message] of REFUSALS) {
  test(`${what} is said in one sentence, also to who comes late`, async (t) => {
    const { url } = await serveModel(t, { steps: [{ error: answer }] });
    const session = await createSession({ apiKey: KEY, baseUrl: url });
    const [error] = dataOf(await collect(session.run("go")), "ERROR");
    assert.deepEqual([error.code, error.retryable], [code, false]);
    assert.match(error.message, message);
    assert.ok(!error.message.includes(KEY));
    assert.equal(session.state, "CLOSED");
    await assert.rejects(session.submit("again"), (late) => late.kind === "closed" && message.test(late.message));
  });
}

test("a server that cannot be reached is named, with the way out", async (t) => {
  const url = await unused();
  const error = await errorOf({ baseUrl: url });
  assert.match(error.message, new RegExp(`cannot connect to ${url}: .*check the network and baseUrl`));
});

test("in a page the sentence says what a proxy is for", async () => {
  globalThis.location = new URL("http://localhost/");
  try {
    const error = await errorOf({
      baseUrl: "https://api.example",
      fetch: async () => {
        throw new TypeError("Failed to fetch");
      },
    });
    assert.match(error.message, /CORS.*proxy/);
  } finally {
    delete globalThis.location;
  }
});

test("a request with a key follows no redirect", async (t) => {
  const reached = [];
  const target = await listen(t, (request, response) => {
    reached.push(request.headers);
    response.end();
  });
  const url = await listen(t, (_, response) => {
    response.writeHead(307, { location: `${target}/v1/messages` });
    response.end();
  });
  const error = await errorOf({ baseUrl: url });
  assert.match(error.message, /redirect/);
  assert.deepEqual(reached, []);
});

test("a request without a key shows a redirect or fails, and follows none", async (t) => {
  const reached = [];
  const target = await listen(t, (request, response) => {
    reached.push(request.headers);
    response.end();
  });
  const url = await listen(t, (_, response) => {
    response.writeHead(302, { location: `${target}/x` });
    response.end();
  });
  const request = { method: "GET", url, headers: [], body: new Uint8Array() };
  const response = await createDoor(fetch, new Map())(request);
  assert.equal(response.status, 302);
  assert.equal(response.headers.get("location"), `${target}/x`);
  assert.deepEqual(reached, []);
  // What a page's fetch hides, and what a fetch of the user's followed.
  const hidden = { type: "opaqueredirect", status: 0 };
  for (const odd of [hidden, { redirected: true, status: 200 }]) {
    const answer = async () => ({ headers: new Headers(), body: null, bodyUsed: false, ...odd });
    await assert.rejects(createDoor(answer, new Map())(request), { kind: "invalid", message: /redirects/ });
  }
});

test("the key stays at the origin that it was given for", async (t) => {
  const reached = [];
  const other = await listen(t, (request, response) => {
    reached.push(request.headers);
    response.end();
  });
  const own = await serveModel(t, { steps: [{ text: "Hello." }] });
  const session = await createSession({ apiKey: KEY, baseUrl: own.url, retry: { maxRetries: 0 } });
  assert.equal(dataOf(await collect(session.run("go")), "PROCESSING_END")[0].reason, "completed");
  await session.configure({ baseUrl: other });
  const [error] = dataOf(await collect(session.run("go")), "ERROR");
  assert.match(error.message, /belongs to/);
  assert.deepEqual(reached, []);
});

test("without a key the sentence names the option; with null nothing is added", async (t) => {
  const model = await serveModel(t, { steps: [{ text: "Hello." }] });
  const error = await errorOf({ apiKey: undefined, baseUrl: model.url });
  assert.match(error.message, /apiKey/);
  const session = await createSession({ apiKey: null, baseUrl: model.url });
  await collect(session.run("go"));
  const [request] = await model.requests();
  assert.equal(request.headers["x-api-key"], undefined);
});

const NO_RESPONSES = [
  ["nothing", async () => undefined],
  ["a number", async () => 7],
  ["a body that was read", async () => {
    const response = new Response("x");
    await response.text();
    return response;
  }],
  ["a body of another kind", async () => ({ status: 200, headers: new Headers(), body: { pipe() {} } })],
];

for (const [what, fetch] of NO_RESPONSES) {
  test(`a fetch that returns ${what} is an error that says so`, async () => {
    const error = await errorOf({ baseUrl: "https://api.example", fetch });
    assert.match(error.message, /not a Response/);
  });
}

for (const status of [99_999, 99, 200.5, NaN, -1]) {
  test(`a fetch that returns a response with status ${status} is an error that says so`, async () => {
    const fetch = async () => ({ status, headers: new Headers(), body: null });
    const error = await errorOf({ baseUrl: "https://api.example", fetch });
    assert.match(error.message, new RegExp(`fetch returned a response with status ${status}, which HTTP does not have`));
  });
}

test("a long address is judged at once", { timeout: 20_000 }, async () => {
  const long = "a".repeat(1_000_000);
  assert.equal(checkAddress(`https://x/${long}`), undefined);
  assert.equal(checkAddress(`https//u:${long}@v@x/y z@w`), "baseUrl is not an absolute http or https URL: https//…@x/y …@w");
});

test("a key may come from a function, which is asked for each request", async (t) => {
  const model = await serveModel(t, { steps: [callStep("shell", { command: "true" }), { text: "Done." }] });
  const sent = [];
  let count = 0;
  const session = await createSession({
    apiKey: async () => `${KEY}-${(count += 1)}`,
    baseUrl: model.url,
    fetch: (url, init) => {
      sent.push(init.headers["x-api-key"]);
      return fetch(url, init);
    },
  });
  await collect(session.run("go"));
  assert.deepEqual(sent, [`${KEY}-1`, `${KEY}-2`]);
});

test("a function that fails to give the key does not give it away either", async (t) => {
  const url = await listen(t, () => assert.fail("nothing is sent"));
  const error = await errorOf({
    baseUrl: url,
    apiKey: () => {
      throw new Error(`cannot refresh ${KEY}`);
    },
  });
  assert.match(error.message, /gives the key .* failed/);
});

test("a key that no header can carry is refused without being quoted", async () => {
  await assert.rejects(createSession({ apiKey: `${KEY}\nx` }), (error) => {
    assert.ok(error instanceof SessionError);
    assert.ok(!error.message.includes(KEY));
    return true;
  });
});
