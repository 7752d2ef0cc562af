// Programs lent through the entry whose core runs in a worker: the program is
// the page's, and the worker calls it.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { MemoryEnvironment } from "../../js/worker-node.js";
import { jsProgram } from "../../js/programs/javascript.js";
import { python, run } from "./support.mjs";

const node = jsProgram();
after(() => {
  python.close();
  node.close();
});

test("Python and JavaScript work on the files of a sandbox in another worker", async (t) => {
  const env = await MemoryEnvironment.create({ files: { "a.txt": "1" }, programs: { node } });
  t.after(() => env.dispose());
  await env.program("python3", python);
  const add = `python3 -c 'n = int(open("a.txt").read()); open("a.txt", "w").write(str(n + 1)); print(n)'`;
  const twice = `node -e 'const fs = require("fs"); fs.writeFileSync("a.txt", String(2 * fs.readFileSync("a.txt", "utf8")))'`;
  assert.deepEqual(await run(env, `${add}; ${twice}; ${add}; cat a.txt`), [0, "1\n4\n5", ""]);
  const stop = new AbortController();
  const running = env.exec("python3 -c 'while True: pass'", { signal: stop.signal });
  assert.deepEqual(await run(env, add), [0, "5\n", ""]);
  stop.abort();
  assert.equal((await running).cancelled, true);
  await assert.rejects(env.program("no name", python), (error) => error.kind === "invalid_input");
});
