// Each entry point in Node; prints what came of it.

import * as main from "hermitcrab";
import * as node from "hermitcrab/node";
import * as slim from "hermitcrab/slim";
import * as worker from "hermitcrab/worker";

import { z } from "zod";

import { hosted, sandboxed } from "./scenario.js";

/** What a tool with a schema of zod gets, and a value that follows one. */
async function zod({ ModelClient, createSession, defineTool }) {
  const schema = z.object({ at: z.string().transform((text) => new Date(text)), n: z.number().default(7) });
  const script = { steps: [{ tool_calls: [{ name: "when", arguments: { at: "2026-01-02" } }] }, { text: "Done." }] };
  const tool = defineTool({ name: "when", description: "Tells when.", parameters: schema, execute: ({ at, n }) => `${at.getUTCDate()} ${n}` });
  const session = await createSession({ tools: [tool], script });
  await session.prompt("go");
  const { results } = (await session.history()).find(({ turn }) => turn === "tool_results");
  await session.close();
  const models = new ModelClient({ script: { steps: [{ text: '{"n": 1}' }] } });
  const { object } = await models.generateObject({ model: "m", prompt: "one", schema: z.object({ n: z.number() }) });
  return [results[0].content, object];
}

const models = process.argv.slice(2);
const result = {
  worker: await sandboxed(worker, models[0]),
  page: await sandboxed(node, models[1]),
  slim: await hosted(slim, models[2]),
  zod: await zod(main),
  same: main.createSession === node.createSession,
  files: ["hermitcrab/hermitcrab.wasm", "hermitcrab/slim.wasm"].map((name) => import.meta.resolve(name).split("/").at(-1)),
};
console.log(JSON.stringify(result));
