// A key that a server sends back: it is replaced before the core sees it.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import * as here from "../../js/node.js";
import * as worker from "../../js/worker-node.js";
import { createDoor } from "../../js/model/door.js";
import { Keys } from "../../js/model/redact.js";
import { initSync } from "../../js/wasm/hermitcrab.js";
import { callStep, collect, dataOf, listen, serveModel } from "./support.mjs";

const KEY = "sk-canary-0123456789";
/** Whose halves no core holds by itself: constants such as `+-` and `0123456789` lie side by side in it. */
const UNIQUE = "sk-canary-q7ZxW3vK9T";
/** With all that JSON has an escape for and a header can carry. */
const ODD = 'zbcd/EFGH+"ij"\\kl==';
/** Of those that are no words, the shortest that is looked for. */
const SHORT = "k3y-of-x";
const KEYS = [KEY, "sk-other-9876543210", "sk-canary-0123456789-and-more", ODD, SHORT, "a-1", "lm-studio"];

after(worker.terminate);

const encode = (text) => new TextEncoder().encode(text);
const bodyOf = (chunks) =>
  new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });

/** How writers of JSON write it: the standard way, PHP, Gson and .NET. */
const WRITTEN = [
  JSON.stringify(ODD).slice(1, -1),
  'zbcd\\/EFGH+\\"ij\\"\\\\kl==',
  'zbcd/EFGH+\\"ij\\"\\\\kl\\u003d\\u003d',
  "zbcd/EFGH\\u002B\\u0022ij\\u0022\\\\kl==",
];

/** What of a body of `chunks` is passed on, piece by piece. */
async function passed(chunks) {
  const keys = new Keys();
  keys.lookFor(KEYS);
  const reader = keys.replaceInResponse(new Response(bodyOf(chunks))).body.getReader();
  const pieces = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return pieces;
    pieces.push(value);
  }
}

const BODIES = [
  ["a key in one piece", [`no ${KEY}${KEY}, sk-other-9876543210.\n`], ["no [redacted][redacted], [redacted].\n"]],
  ["a key across pieces", ["no sk-can", "ary-01234", "56789 on", " file"], ["no ", "[redacted] on", " file"]],
  ["a key byte by byte", [..."a sk-other-9876543210 b"], ["a", " ", "[redacted]", " ", "b"]],
  ["the beginning of a key before another", ["sk-", "sk-canary-", "x"], ["sk-", "sk-canary-x"]],
  ["the beginning of a key at the end", ["ends with sk-canary"], ["ends with ", "sk-canary"]],
  ["a key that another begins with", [`${KEY}-and-not`, `, ${KEY}-and-`, "more"], ["[redacted]-and-not", ", ", "[redacted]"]],
  ["a key at the end that another begins with", [`it is ${KEY}`], ["it is ", "[redacted]"]],
  ["a key as it is, with what JSON would escape", [`no ${ODD}.`], ["no [redacted]."]],
  ["a short one that is no word", [`a ${SHORT}, `, ...`${SHORT}.`], ["a [redacted], ", "[redacted]", "."]],
  ["a short one that is a word, and one that is anything", ["a-1: ask lm-studio"], ["a-1: ask lm-studio"]],
  ["nothing", [], []],
];
for (const [what, chunks, expected] of BODIES) {
  test(`in a body: ${what}`, async () => {
    const pieces = await passed(chunks.map(encode));
    assert.deepEqual(pieces.map((piece) => new TextDecoder().decode(piece)), expected);
  });
}

for (const written of WRITTEN) {
  test(`a key as ${written}, cut at every byte`, async () => {
    const text = `{"m":"no ${written}."}`;
    for (let cut = 0; cut < text.length; cut += 1) {
      const pieces = await passed([encode(text.slice(0, cut)), encode(text.slice(cut))]);
      assert.equal(pieces.map((piece) => new TextDecoder().decode(piece)).join(""), '{"m":"no [redacted]."}');
    }
  });
}

test("pieces without a key are the same pieces", async () => {
  const chunks = [encode("data: so it asks\n\n"), encode("sk-canary, but not the key\n"), new Uint8Array([0, 255, 128])];
  const pieces = await passed(chunks);
  assert.equal(pieces.length, chunks.length);
  pieces.forEach((piece, index) => assert.ok(piece === chunks[index]));
});

const REQUEST = {
  method: "POST",
  url: "https://api.example/v1",
  headers: [],
  body: new Uint8Array(),
  auth: { credential: "c", header: "authorization", prefix: "Bearer " },
};

/** The door of a credential `c` whose server answers with what `answer` returns. */
const door = (answer, key = KEY) => createDoor(answer, new Map([["c", { key, baseUrl: REQUEST.url }]]));

test("in a header, where others stay as they are", async () => {
  const headers = [["x-echo", `Bearer ${KEY}`], ["set-cookie", "a=1"], ["set-cookie", `b=${KEY}`], ["retry-after", "3"]];
  const response = await door(async () => new Response(null, { status: 401, headers }))(REQUEST);
  assert.deepEqual([response.status, response.body], [401, null]);
  assert.deepEqual(
    [...response.headers.entries()],
    [["retry-after", "3"], ["set-cookie", "a=1"], ["set-cookie", "b=[redacted]"], ["x-echo", "Bearer [redacted]"]],
  );
});

test("headers of another kind are let be", async () => {
  const headers = new Map([["retry-after", 3]]);
  const response = await door(async () => ({ status: 200, headers, body: null }))(REQUEST);
  assert.equal(response.headers, headers);
});

test("a key that a function gives, and where none is sent", async () => {
  const echo = async () => new Response(null, { headers: { "x-echo": KEY } });
  const send = door(echo, async () => ` ${KEY} `);
  for (const request of [REQUEST, { ...REQUEST, auth: undefined }]) {
    assert.equal((await send(request)).headers.get("x-echo"), "[redacted]");
  }
});

test("the keys that a function gave earlier", async () => {
  const keys = ["sk-first-0123456789", "sk-second-0123456789", "sk-third-0123456789"];
  const left = [...keys];
  const send = door(async () => new Response(null, { headers: { "x-echo": keys.join() } }), () => left.shift());
  const echoes = [];
  while (left.length > 0) echoes.push((await send(REQUEST)).headers.get("x-echo"));
  assert.deepEqual(echoes, [`[redacted],${keys[1]},${keys[2]}`, `[redacted],[redacted],${keys[2]}`, "[redacted],[redacted],[redacted]"]);
});

test("of the keys that a function gives as many as are remembered", async () => {
  let given = 0;
  const send = door(async () => new Response(null, { headers: { "x-echo": "sk-number-1, sk-number-2, sk-number-25" } }), () => `sk-number-${(given += 1)}`);
  for (let left = 24; left > 0; left -= 1) await send(REQUEST);
  assert.equal((await send(REQUEST)).headers.get("x-echo"), "sk-number-1, [redacted], [redacted]");
});

test("in what a fetch throws, before the response and in the middle of it", async () => {
  const refuse = async () => {
    throw new TypeError("fetch failed", { cause: new Error(`nobody knows ${KEY}`) });
  };
  await assert.rejects(door(refuse)(REQUEST), { kind: "connect", message: /nobody knows \[redacted\]/ });
  const broken = new TypeError("terminated");
  for (const [thrown, expected] of [[new Error(`lost ${KEY}`), { message: "lost [redacted]" }], [broken, broken]]) {
    const body = new ReadableStream({ pull: (controller) => controller.error(thrown) });
    const response = await door(async () => new Response(body))(REQUEST);
    await assert.rejects(response.body.getReader().read(), expected);
  }
});

/** A stream of one answer whose text is `text`. */
function answerOf(text) {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage };
  const events = [
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
    { type: "message_stop" },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

const ANSWERS = {
  "an error that quotes it": (response, key) => {
    response.writeHead(401, { "content-type": "application/json", "request-id": `req-${key}` });
    const error = { type: "authentication_error", message: `invalid x-api-key: ${key} (witness)` };
    response.end(JSON.stringify({ type: "error", error }));
  },
  "a stream that is cut in the middle of it": async (response, key, started) => {
    response.writeHead(200, { "content-type": "text/event-stream", "request-id": `req-${key}` });
    const answer = answerOf(`your key is ${key} (witness)`);
    const middle = answer.indexOf(key) + 9;
    response.write(answer.slice(0, middle));
    await started;
    response.end(answer.slice(middle));
  },
};
const FACES = { "the agent here": here, "the agent in a worker": worker };
const OWN = {
  "the platform's fetch": undefined,
  "a fetch of the user's that gives byte by byte": async (url, init) => {
    const { status, headers, body } = await fetch(url, init);
    const single = new TransformStream({
      transform: (chunk, controller) => chunk.forEach((byte) => controller.enqueue(Uint8Array.of(byte))),
    });
    return new Response(body.pipeThrough(single), { status, headers });
  },
};
/** What quotes a key here, and what the model reads of it. */
const QUOTING = {
  "an approve that throws": [{ approval: { tools: { quote: "ask" } }, approve: () => Promise.reject(new Error(`no desk takes ${KEY}`)) }, "Tool error (quote): not approved: nobody could be asked: no desk takes [redacted]"],
  "a tool that throws": [{}, "no server takes [redacted]"],
};

for (const [face, { createSession }] of Object.entries(FACES)) {
  for (const [what, [options, said]] of Object.entries(QUOTING)) {
    test(`${face}: ${what} is an error that the model reads, without the key`, async (t) => {
      const model = await serveModel(t, { steps: [callStep("quote", {}), { text: "Done." }] });
      const execute = () => {
        throw new Error(`no server takes ${KEY}`);
      };
      const tool = { name: "quote", description: "Quotes.", parameters: { type: "object", properties: {} }, execute };
      const session = await createSession({ apiKey: KEY, baseUrl: model.url, tools: [tool], ...options });
      const events = await collect(session.run("go"));
      const [{ error, output }] = dataOf(events, "TOOL_CALL_END");
      assert.equal(error ?? output, said);
      assert.ok(!JSON.stringify([events, await session.record()]).includes(KEY));
      await session.close();
    });
  }

  for (const [whose, fetch] of Object.entries(OWN)) {
    for (const [what, answer] of Object.entries(ANSWERS)) {
      test(`${face}, ${whose}: ${what}`, async (t) => {
        let start;
        const started = new Promise((resolve) => (start = resolve));
        const url = await listen(t, (request, response) => void answer(response, request.headers["x-api-key"], started));
        const session = await createSession({ apiKey: UNIQUE, baseUrl: url, fetch, retry: { maxRetries: 0 } });
        const events = [];
        for await (const event of session.run("go")) {
          events.push(event);
          if (event.kind === "ASSISTANT_TEXT_START") start();
        }
        const seen = JSON.stringify([events, await session.history().catch(() => [])]);
        assert.match(seen, /key(:| is) \[redacted\] \(witness\)/);
        assert.ok(!seen.includes(UNIQUE));
        if (face !== "the agent here") return;
        // The core's whole memory. It is loaded, so this only hands out the exports.
        const memory = Buffer.from(initSync().memory.buffer);
        assert.ok(memory.includes("[redacted] (witness)"), "the scan would find what is there");
        for (const part of [UNIQUE, UNIQUE.slice(0, 9), UNIQUE.slice(9)]) assert.ok(!memory.includes(part), part);
      });
    }
  }
}
