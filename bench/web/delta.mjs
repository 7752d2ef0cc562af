// CPU time per streamed delta through the web face in Node: a whole session,
// from a chunk of the response's body to the event that a program reads.

import { MemoryEnvironment, createSession } from "../../js/node.js";

const DELTAS = 20_000;

/** An answer in a provider's own words: what comes before, between and after. */
const STREAMS = {
  openai: {
    head: [
      { type: "response.created", response: { id: "r", model: "m" } },
      { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "i" } },
    ],
    delta: (text, sequence) => ({
      type: "response.output_text.delta",
      sequence_number: sequence,
      item_id: "i",
      output_index: 0,
      content_index: 0,
      delta: text,
      logprobs: [],
    }),
    tail: [{ type: "response.completed", response: { id: "r", model: "m", status: "completed", output: [] } }],
  },
  anthropic: {
    head: [
      { type: "message_start", message: { id: "m", model: "m", usage: { input_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    ],
    delta: (text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
    tail: [
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
      { type: "message_stop" },
    ],
  },
  gemini: {
    head: [],
    delta: (text, count) => ({
      candidates: [{ content: { parts: [{ text }], role: "model" }, index: 0 }],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: count, totalTokenCount: 9 + count },
      modelVersion: "m",
      responseId: "r",
    }),
    tail: [{ candidates: [{ content: { parts: [{ text: "." }] }, finishReason: "STOP", index: 0 }] }],
  },
  chat: {
    head: [],
    delta: (content) => ({
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      system_fingerprint: null,
      choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
      usage: null,
    }),
    tail: [{ id: "c", model: "m", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }],
  },
};

/** The body of an answer with `count` deltas, event by event. */
export function body(provider, count) {
  const { head, delta, tail } = STREAMS[provider];
  const words = ["The ", "quick ", "brown ", "fox's ", "tail\n"];
  const deltas = Array.from({ length: count }, (_, index) => delta(words[index % 5], index));
  const encoder = new TextEncoder();
  return [...head, ...deltas, ...tail].map((event) =>
    encoder.encode(`${event.type ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`),
  );
}

/** Some 60 events that arrive together. */
export function together(events) {
  const chunks = [];
  for (let start = 0; start < events.length; start += 60) {
    chunks.push(new Uint8Array(Buffer.concat(events.slice(start, start + 60))));
  }
  return chunks;
}

/** CPU of a session that plays `chunks`, in µs. */
async function play(provider, chunks, count) {
  let next = 0;
  const stream = new ReadableStream({
    pull(controller) {
      if (next < chunks.length) controller.enqueue(chunks[next++]);
      else controller.close();
    },
  });
  const env = await MemoryEnvironment.create();
  const session = await createSession({
    provider,
    model: "m",
    apiKey: "key",
    baseUrl: "http://model.test",
    env,
    fetch: async () => new Response(stream, { headers: { "content-type": "text/event-stream" } }),
  });
  const start = process.cpuUsage();
  let seen = 0;
  for await (const event of session.run("go")) seen += event.kind === "ASSISTANT_TEXT_DELTA" ? 1 : 0;
  const { user, system } = process.cpuUsage(start);
  await session.close();
  await env.dispose();
  if (seen < count) throw new Error(`${provider}: ${seen} deltas of ${count}`);
  return user + system;
}

/** µs per delta when some 60 arrive together, and when they come one by one. */
export async function nodeDelta(provider, cycles) {
  const events = body(provider, DELTAS);
  const few = body(provider, 1);
  const results = [[], []];
  // Once uncounted: the engine compiles what is hot.
  await play(provider, together(events), DELTAS);
  for (let cycle = 0; cycle < cycles; cycle += 1) {
    for (const [index, chunks] of [together(events), events].entries()) {
      const base = await play(provider, few, 1);
      results[index].push(((await play(provider, chunks, DELTAS)) - base) / DELTAS);
    }
  }
  return results.map((values) => values.sort((a, b) => a - b)[values.length >> 1]);
}
