// A route of Next.js: POST { task } streams what the agent says. The package
// stays outside of the bundle: see next.config.mjs.

import { createSession } from "hermitcrab/worker";

export const runtime = "nodejs";
export const maxDuration = 300;

export async function POST(request) {
  const { task } = await request.json();
  const session = await createSession({ apiKey: process.env.ANTHROPIC_API_KEY, signal: request.signal });
  const encoder = new TextEncoder();
  async function* answer() {
    try {
      for await (const { kind, data } of session.run(task)) {
        if (kind === "ASSISTANT_TEXT_DELTA") yield encoder.encode(data.text);
        if (kind === "ERROR") yield encoder.encode(`\n${data.message}\n`);
      }
    } finally {
      await session.close();
    }
  }
  return new Response(ReadableStream.from(answer()), { headers: { "content-type": "text/plain; charset=utf-8" } });
}
