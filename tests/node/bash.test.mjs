// The shell of MemoryEnvironment against real bash: every command of
// tests/sandbox/commands.json in both, in the same files.

import assert from "node:assert/strict";
import { describe, it, test } from "node:test";

import { commands, isDocumented, isInstalled, runBoth, unfit, verdict } from "../sandbox/reference.mjs";

/** Commands at a time: real bash mostly waits for processes and for sleeps. */
const CONCURRENCY = 8;
/** Characters of a result that a failure shows. */
const SHOWN = 700;

const sentence = unfit();
const needed = new Set(commands.map(({ needs }) => needs).filter(Boolean));
const missing = sentence ? [] : [...needed].filter((tool) => !isInstalled(tool));

describe("the sandbox does what bash does", { concurrency: CONCURRENCY, skip: sentence ?? false }, () => {
  for (const entry of commands) {
    const skip = missing.includes(entry.needs) && `${entry.needs} is not installed`;
    it(entry.name, { skip }, async () => {
      const results = await runBoth(entry).catch((error) => {
        // What the module was in the middle of, when it is the core that failed.
        throw error.cause ?? error;
      });
      const wrong = verdict(entry, results);
      const show = (result) => JSON.stringify(result).slice(0, SHOWN);
      assert.ok(
        !wrong,
        `${wrong}\n  $ ${entry.command}\n  bash    ${show(results.bash)}\n  sandbox ${show(results.sandbox)}`,
      );
    });
  }
});

test("the tools that commands need are counted", (t) => {
  const left = commands.filter(({ needs }) => missing.includes(needs)).length;
  t.diagnostic(`${commands.length} commands, ${left} left out for want of ${missing.join(", ") || "nothing"}`);
  assert.equal(new Set(commands.map(({ name }) => name)).size, commands.length);
});

test("docs/sandbox.md has the table of known differences", () => {
  assert.ok(isDocumented(), "run node tests/sandbox/reference.mjs document");
});
