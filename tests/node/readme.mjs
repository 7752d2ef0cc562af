// The examples of a README, word for word.

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** The JavaScript of a Markdown text that opens a session and runs an input. @param {string} markdown */
export function examplesOf(markdown) {
  const blocks = [...markdown.matchAll(/^```js\n([^]*?)^```/gm)].map(([, code]) => code);
  return blocks.filter((code) => code.includes("createSession(") && code.includes("session.run("));
}

/** What an example leaves to its reader, and the network it would need. */
const READER = `
const [, , url] = process.argv;
const [model, apiKey, baseUrl] = ["claude-test", "sk-test-0000", url];
const { fetch } = globalThis;
globalThis.fetch = (address, init) => fetch(String(address).replace("https://api.anthropic.com", url), init);
`;

/**
 * Runs an example in Node, where `hermitcrab` is what `directory` has, against the
 * model at `url`; gives what it prints.
 */
export async function runExample(t, directory, example, url) {
  await mkdir(join(directory, "target"), { recursive: true });
  const folder = await mkdtemp(join(directory, "target/example-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "example.mjs"), READER + example);
  return promisify(execFile)("node", [join(folder, "example.mjs"), url], { cwd: folder });
}
