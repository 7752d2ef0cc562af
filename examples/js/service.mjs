// A service in Node: `POST /` with { task, files } works on those files in a
// fresh sandbox, streams the events as lines of JSON and ends with the
// files that changed. The agent is in a worker (`hermitcrab/worker`), so that no
// command of a model holds up the other requests.
//
//   ANTHROPIC_API_KEY=… node service.mjs
//   curl -N -d '{"task":"make it say hello","files":{"app.sh":"echo hi"}}' localhost:8787

import { createServer } from "node:http";
import { json } from "node:stream/consumers";

import { HermitcrabError, MemoryEnvironment, createSession, warmUp } from "hermitcrab/worker";

/** A run may take so long, in ms, and so many tool rounds. */
const LIMITS = { maxWallMs: 120_000, maxToolRoundsPerInput: 50 };

const server = createServer(async (request, response) => {
  // Whoever hangs up ends the run.
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const tell = (line) => response.write(`${JSON.stringify(line)}\n`);
  response.setHeader("content-type", "application/x-ndjson");
  let env;
  try {
    const { task, files } = await json(request);
    env = await MemoryEnvironment.create({ files, limits: { totalBytes: 64 << 20 } });
    const before = await env.snapshot();
    const session = await createSession({ ...LIMITS, apiKey: process.env.ANTHROPIC_API_KEY, env, signal: gone.signal });
    for await (const { kind, data } of session.run(task)) tell({ kind, data });
    for (const { path, change } of await env.changesSince(before)) {
      tell({ path, change, content: change === "removed" ? undefined : await env.readText(path) });
    }
    await session.close();
  } catch (error) {
    const { kind, message } = error instanceof HermitcrabError ? error : { kind: "service", message: "the request cannot be served" };
    tell({ error: { kind, message } });
  } finally {
    await env?.dispose();
    response.end();
  }
});

server.listen(process.env.PORT ?? 8787, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
// What a first command needs is compiled before somebody waits for it.
void warmUp();
