// The examples of the READMEs run as they stand, against a scripted model.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { examplesOf, runExample } from "./readme.mjs";
import { callStep, serveModel } from "./support.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** `[file, name of the script it works on, its end]` */
const EXAMPLES = [
  ["js/README.md", "app.py", "print('hello')"],
  ["README.md", "app.sh", "echo hello"],
];

for (const [file, script, expected] of EXAMPLES) {
  test(`the example of ${file}`, { timeout: 60_000 }, async (t) => {
    const [example] = examplesOf(await readFile(new URL(`../../${file}`, import.meta.url), "utf8"));
    const { url } = await serveModel(t, {
      steps: [
        callStep("read_file", { file_path: script }),
        callStep("edit_file", { file_path: script, old_string: "hi", new_string: "hello" }),
        { text: "It says hello." },
      ],
    });
    const { stdout } = await runExample(t, ROOT, example, url);
    assert.match(stdout, /^USER_INPUT \{ content: 'make /m);
    assert.match(stdout, /^ASSISTANT_TEXT_END .*It says hello\./m);
    assert.equal(stdout.trimEnd().split("\n").at(-1), expected);
  });
}
