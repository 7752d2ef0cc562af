// Commands that would never end, or take the memory or the stack of the core,
// end alone, in the page as in the worker: their session goes on, and so does
// every other. The commands are data, for the native host, too.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";

import * as here from "../../js/node.js";
import * as worker from "../../js/worker-node.js";
import { callStep, collect, dataOf } from "./support.mjs";

/** Guards against a hang, not a measurement: they take some two seconds each. */
const GUARD = { timeout: 120_000 };

const hostile = JSON.parse(await readFile(new URL("../sandbox/hostile.json", import.meta.url), "utf8"));

after(worker.terminate);

for (const [face, { MemoryEnvironment, createSession }] of Object.entries({ here, worker })) {
  for (const { command, exit } of hostile) {
    test(`\`${command}\` ends alone (${face})`, GUARD, async () => {
      const env = await MemoryEnvironment.create({ files: { kept: "here" } });
      const other = await createSession({ script: { steps: [{ text: "fine" }] } });
      const { exitCode, timedOut, stdout, stderr } = await env.exec(`echo before; ${command}`, { timeoutMs: 1_000 });
      assert.ok(exit.includes(exitCode), `${exitCode}: ${stderr}`);
      // What it printed in the go in which it was left may be lost.
      assert.deepEqual([timedOut, ["", "before\n"].includes(stdout.slice(0, 7))], [exitCode === 124, true]);
      if (exitCode === 137) assert.match(stderr, /hermitcrab: the command was ended: it held more memory than the [0-9]+ MiB/);
      assert.equal((await env.exec("cat kept; echo; jq -n '1 + 1'; awk 'BEGIN { print 3 }'; seq 3 | sort -r | tac")).stdout, "here\n2\n3\n1\n2\n3\n");
      assert.equal(dataOf(await collect(other.run("go")), "ASSISTANT_TEXT_END")[0].text, "fine");
      await other.close();
      await env.dispose();
    });
  }

  test(`a session goes on after each of them (${face})`, GUARD, async () => {
    const calls = hostile.map(({ command }) => callStep("shell", { command, timeout_ms: 1_000 }));
    const session = await createSession({ script: { steps: [...calls, { text: "All ended." }] } });
    const events = await collect(session.run("go"));
    assert.deepEqual(dataOf(events, "ERROR"), []);
    assert.equal(dataOf(events, "TOOL_CALL_END").length, hostile.length);
    assert.equal(dataOf(events, "ASSISTANT_TEXT_END").at(-1).text, "All ended.");
    await session.close();
  });
}
