// A program without TypeScript's "DOM" library and without Node's types.

import { MemoryEnvironment, NodeEnvironment, RunError, createSession, type CustomEnvironment, type PromptResult, type Provider, type Tool } from "hermitcrab/node";
import * as slim from "hermitcrab/slim";
import * as worker from "hermitcrab/worker";
import { jsProgram } from "hermitcrab/javascript";
import { pythonProgram } from "hermitcrab/python";

const tool: Tool = {
  name: "note",
  description: "Notes.",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  strict: true,
  custom: { type: "grammar", syntax: "regex", definition: ".+" },
  async execute({ text }: { text: string }, { signal }) {
    signal.throwIfAborted();
    return (async function* () {
      yield text;
    })();
  },
};

const provider: Provider = "gemini";
// @ts-expect-error there is no such provider
const wrong: Provider = "openia";
void wrong;
const disk = new NodeEnvironment({ root: "/repo", inherit: "core", variables: { CI: "1" }, secrets: [], readOnly: "commands" });
const custom: CustomEnvironment = disk;

async function drive(): Promise<PromptResult | undefined> {
  await using session = await createSession({ provider, env: custom, tools: [tool], fetch: async (_url, { headers, body }) => ({ status: 200, headers: new Map(Object.entries(headers)), body: body === undefined ? null : {} }) });
  try {
    const { text, usage, cost, reason }: PromptResult = await session.prompt("go");
    const price: number | null = cost;
    return { text, usage, cost: price, reason };
  } catch (error) {
    if (error instanceof RunError) return error.result;
    throw error;
  }
}

async function lend(): Promise<void> {
  await using env = await MemoryEnvironment.create({ programs: { node: jsProgram(), python3: pythonProgram() } });
  await using far = await worker.createSession({ script: { steps: [] } });
  void [env, far.env, slim.createSession, drive];
}

void lend;
// A profile of the caller's own may have any id.
void createSession({ provider: "acme", profiles: { acme: { wire: "chat" } } });
// @ts-expect-error no wire format
void createSession({ profiles: { acme: { wire: "openia" } } });
