// Lets the model give parts of a task to subagents, and shows who does what.
//
//   ANTHROPIC_API_KEY=… node subagents.mjs

import { MemoryEnvironment, createSession } from "hermitcrab/node";

const env = await MemoryEnvironment.create({
  files: { "a.sh": "echo one\n", "b.sh": "echo two\n" },
});
const session = await createSession({
  apiKey: process.env.ANTHROPIC_API_KEY,
  env,
  maxSubagents: 4,
  maxSubagentDepth: 1,
  instructions: "Give each file to a separate subagent, and wait for all of them.",
});

// Events of subagents come on the same stream; `agent_id` tells them apart.
for await (const { kind, data, agent_id: agent } of session.run("Make both scripts print in capitals.")) {
  const who = agent ?? "main";
  if (kind === "USER_INPUT") console.log(`${who} begins: ${data.content}`);
  if (kind === "TOOL_CALL_START") console.log(`${who} calls ${data.tool_name}`);
  if (kind === "ASSISTANT_TEXT_END" && data.text !== "") console.log(`${who} says: ${data.text}`);
}
await session.close();
await env.dispose();
