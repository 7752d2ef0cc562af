// Tools whose result comes in pieces: streams of the web and of Node, async
// iterators. The pieces are shown as they come, and the model gets them whole.

import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";

import { createSession } from "./face.mjs";
import { callStep, collect, dataOf } from "./support.mjs";

const BYTES = new TextEncoder().encode("für");

/** `[what, what the tool gives back, what is shown, what the model gets, whether it is an error]` */
const RESULTS = [
  ["an async generator", async function* () { yield "one "; yield "two"; }, ["one ", "two"], "one two"],
  ["bytes, cut within a letter", async function* () { yield BYTES.slice(0, 2); yield BYTES.slice(2); }, ["f", "ür"], "für"],
  ["objects, a line of JSON each", async function* () { yield { a: 1 }; yield [2]; }, ['{"a":1}\n', "[2]\n"], '{"a":1}\n[2]\n'],
  ["a stream of the web", () => new Response("body").body, ["body"], "body"],
  ["a stream of Node", () => Readable.from([Buffer.from("a"), Buffer.from("b")]), ["a", "b"], "ab"],
  ["nothing", async function* () {}, [], ""],
  ["content of a stream", () => ({ content: Readable.from(["bad"]), isError: true }), ["bad"], "bad", true],
  ["a stream that breaks", async function* () { yield "so far"; throw new Error("gone"); }, ["so far"], /gone/, true],
];

for (const [what, execute, shown, result, isError = false] of RESULTS) {
  test(`a tool gives ${what}`, async () => {
    const tool = { name: "pieces", description: "Gives pieces.", parameters: { type: "object", properties: {} }, execute };
    const session = await createSession({ tools: [tool], script: { steps: [callStep("pieces", {}), { text: "Done." }] } });
    const events = await collect(session.run("go"));
    const { results } = (await session.history()).find(({ turn }) => turn === "tool_results");
    await session.close();
    assert.deepEqual(dataOf(events, "TOOL_CALL_OUTPUT_DELTA").map(({ text }) => text), shown);
    if (result instanceof RegExp) assert.match(results[0].content, result);
    else assert.equal(results[0].content, result);
    assert.equal(results[0].is_error, isError);
  });
}

test("an interrupted session ends the stream", async () => {
  let ended;
  const over = new Promise((resolve) => (ended = resolve));
  async function* execute(_, { signal }) {
    try {
      yield "first";
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    } finally {
      ended();
    }
  }
  const tool = { name: "pieces", description: "Gives pieces.", parameters: { type: "object", properties: {} }, execute };
  const session = await createSession({ tools: [tool], script: { steps: [callStep("pieces", {}), { text: "Done." }] } });
  for await (const { kind } of session.run("go")) if (kind === "TOOL_CALL_OUTPUT_DELTA") await session.interrupt();
  await over;
  await session.close();
});
