// Works on the files of this directory, and asks before it runs a command or
// writes outside of src.
//
//   ANTHROPIC_API_KEY=… node approvals.mjs "make the tests pass"

import { createInterface } from "node:readline/promises";

import { NodeEnvironment, createSession } from "hermitcrab/node";

const [task = "make the tests pass"] = process.argv.slice(2);
const terminal = createInterface({ input: process.stdin, output: process.stderr });

const session = await createSession({
  apiKey: process.env.ANTHROPIC_API_KEY,
  env: new NodeEnvironment({ root: process.cwd() }),
  approval: {
    tools: { shell: "ask" },
    // Commands that need no question.
    commands: ["npm test", "git status", "git diff"],
    writePaths: ["src/**"],
  },
  // `true`, `false`, or the reason that the model reads.
  approve: async ({ name, arguments: args, reason, signal }) => {
    const answer = await terminal.question(`${name} ${JSON.stringify(args)}\n${reason}\nallow? [y, or what to do instead] `, { signal });
    return answer === "y" || answer || false;
  },
});

for await (const { kind, data } of session.run(task)) {
  if (kind === "ASSISTANT_TEXT_DELTA") process.stdout.write(data.text);
  if (kind === "TOOL_CALL_START") console.error(`\n→ ${data.tool_name} ${JSON.stringify(data.arguments)}`);
  if (kind === "TOOL_CALL_END" && data.is_error) console.error(`  ${data.error ?? data.output}`);
}
await session.close();
terminal.close();
