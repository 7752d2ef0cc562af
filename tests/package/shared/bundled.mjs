// Both entries of Node, and JavaScript in the sandbox, in one bundle; prints
// what a command gave.

import * as node from "hermitcrab";
import { jsProgram } from "hermitcrab/javascript";
import * as worker from "hermitcrab/worker";

const command = "node -e 'console.log(6 * 7)'";
const script = { steps: [{ tool_calls: [{ name: "shell", arguments: { command } }] }, { text: "Done." }] };

async function play({ MemoryEnvironment, createSession }) {
  const env = await MemoryEnvironment.create({ programs: { node: jsProgram() } });
  const session = await createSession({ script, env });
  for await (const { kind, data } of session.run("go")) {
    if (kind === "TOOL_CALL_END") console.log((data.output ?? data.error).split("\n")[0]);
  }
  await session.close();
  await env.dispose();
}

async function all() {
  for (const api of [node, worker]) await play(api).catch((error) => console.log(error.message));
  await worker.terminate();
}

void all();
