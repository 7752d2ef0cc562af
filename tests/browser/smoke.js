// One session in a real page, under a strict content security policy: the core
// from `js/`, the model over `fetch`, tools in the sandbox. Posts what came of
// it to `/result`.

import { MemoryEnvironment, createSession } from "/js/index.js";

async function play() {
  const model = new URLSearchParams(location.search).get("model");
  const env = await MemoryEnvironment.create({ files: { "add.sh": "echo $(($1 - $2))\n" } });
  const session = await createSession({ baseUrl: model, apiKey: "page-key", env });
  const events = [];
  for await (const event of session.run("make add.sh add")) events.push(event);
  await session.close();
  return {
    kinds: events.map((event) => event.kind),
    outputs: events
      .filter((event) => event.kind === "TOOL_CALL_END")
      .map((event) => event.data.output ?? event.data.error),
    text: events.findLast((event) => event.kind === "ASSISTANT_TEXT_END")?.data.text,
    file: await env.readText("add.sh"),
    isolated: globalThis.crossOriginIsolated,
  };
}

const report = (result) =>
  fetch("/result", { method: "POST", body: JSON.stringify(result) });

play().then(report, (error) => report({ error: String(error?.stack ?? error) }));
