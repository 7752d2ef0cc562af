// Lent programs in Chromium: pages with a strict Content-Security-Policy, served
// from loopback. `CHROMIUM` names the browser; on a machine without one the
// tests are skipped, except in CI.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, extname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Neither `eval` nor inline code nor blobs; compiling WebAssembly is allowed. */
const STRICT = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'";
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };
const FLAGS =
  "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync".split(
    " ",
  );

const NAMES = ["chromium", "chromium-browser", "google-chrome", "chrome"];
const browser =
  process.env.CHROMIUM ??
  process.env.PATH.split(delimiter)
    .flatMap((directory) => NAMES.map((name) => join(directory, name)))
    .find((file) => existsSync(file));
const skip = browser || process.env.CI ? false : "no Chromium on the PATH";

/** Plays `plan` in a page; `policyOf` gives the policy that a path is served with. */
async function play(t, plan, policyOf) {
  let report;
  const reported = new Promise((resolve) => (report = resolve));
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, "http://page").pathname;
    const policy = policyOf(path);
    if (policy) response.setHeader("content-security-policy", policy);
    if (path === "/plan") return response.end(JSON.stringify(plan));
    if (path === "/result") {
      const pieces = [];
      for await (const piece of request) pieces.push(piece);
      report(JSON.parse(Buffer.concat(pieces)));
      return response.end();
    }
    try {
      if (!/^\/(?:js|tests\/programs)\//.test(path) || path.includes("..")) throw new Error("outside");
      const content = await readFile(join(ROOT, path));
      response.setHeader("content-type", TYPES[extname(path)] ?? "application/octet-stream");
      response.end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const profile = await mkdtemp(join(tmpdir(), "hermitcrab-chromium-"));
  const page = `http://127.0.0.1:${server.address().port}/tests/programs/page.html`;
  const child = spawn(browser, [...FLAGS, `--user-data-dir=${profile}`, page], { stdio: "ignore" });
  t.after(async () => {
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill();
    await gone;
    server.closeAllConnections();
    server.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  });
  const guard = new Promise((_, reject) => {
    setTimeout(() => reject(new Error("the page reported nothing within 120 s")), 120_000).unref();
    child.once("error", reject);
  });
  const result = await Promise.race([reported, guard]);
  assert.equal(result.error, undefined);
  return result;
}

test("Python in a page with a strict policy", { skip }, async (t) => {
  const files = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py":
      "import unittest, calc\nclass T(unittest.TestCase):\n    def test_add(self): self.assertEqual(calc.add(2, 3), 5)\n",
  };
  for (let index = 0; index < 1000; index += 1) files[`tree/d${index % 40}/f${index}.txt`] = `${index}\n`.repeat(1000);
  const commands = [
    { command: `python3 -c 'print("hi")'` },
    { command: `x=$(echo data | python3 -c 'import sys; print(sys.stdin.read().strip().upper())'); echo "got $x"` },
    {
      command: `python3 -c 'open("new.txt", "w").write("n")' && cat new.txt && python3 -c 'import os; os.remove("new.txt")' && ls`,
    },
    { command: "python3 -m unittest" },
    { command: "sed -i 's/-/+/' calc.py && python3 -m unittest" },
    {
      command: `python3 -c '
print("before", flush=True)
while True: pass'`,
      timeoutMs: 5000,
    },
    { command: `python3 -c 'import os; print(sum(len(names) for _, _, names in os.walk("tree")))'` },
    {
      command: `python3 -c 'import os; print(sum(len(open(os.path.join(path, name)).read()) for path, _, names in os.walk("tree") for name in names))'`,
    },
    {
      command: `python3 -c 'import time; start = time.monotonic(); time.sleep(0.1); print(time.monotonic() - start < 5)'`,
    },
    { command: "node -p 1" },
  ];
  const { results, progress, isolated } = await play(t, { files, commands }, () => STRICT);
  const [hi, got, changed, red, green, loop, found, read, slept, js] = results;
  assert.equal(isolated, false);
  assert.equal(progress.at(-1).loaded, progress.at(-1).total);
  assert.deepEqual(
    [hi, got, changed, found, slept].map(({ exitCode, stdout }) => [exitCode, stdout]),
    [
      [0, "hi\n"],
      [0, "got DATA\n"],
      [0, "ncalc.py\ntest_calc.py\ntree\n"],
      [0, "1000\n"],
      [0, "True\n"],
    ],
  );
  assert.equal(
    read.stdout,
    `${Object.entries(files).reduce((sum, [path, { length }]) => sum + (path.startsWith("tree/") ? length : 0), 0)}\n`,
  );
  assert.match(red.stderr, /AssertionError: -1 != 5/);
  assert.deepEqual([red.exitCode, green.exitCode], [1, 0]);
  assert.match(green.stderr, /OK\n$/);
  assert.deepEqual([loop.exitCode, loop.timedOut, loop.stdout], [124, true, "before\n"]);
  assert.ok(loop.ticks >= 5, "the page slept while Python ran");
  assert.deepEqual([js.exitCode, js.stdout], [126, ""]);
  assert.match(
    js.stderr,
    /^node: the Content-Security-Policy of javascript-worker\.js forbids it to run code: serve that file with a policy/,
  );
  t.diagnostic(
    results.map(({ ms, longest }) => `${ms.toFixed(0)} ms (page stood for ${longest.toFixed(0)})`).join(", "),
  );
});

test("JavaScript in a page with a strict policy, its worker's file served with another", { skip }, async (t) => {
  const files = {
    "package.json": '{"type": "module"}',
    "main.js": `import fs from "node:fs"; import { twice } from "./lib.js"; fs.writeFileSync("out.txt", String(twice(21))); console.log(process.argv[2], { a: [1] });`,
    "lib.js": "export const twice = (n) => 2 * n;",
    "test/lib.test.js": `import test from "node:test"; import assert from "node:assert"; import { twice } from "../lib.js"; test("twice", () => assert.equal(twice(2), 4)); test("red", () => assert.equal(twice(2), 5));`,
  };
  const commands = [
    { command: "node main.js x && cat out.txt" },
    { command: "node --test" },
    { command: `node -e 'console.log("before"); for (;;);'`, timeoutMs: 5000 },
    {
      command: `node -p '[typeof fetch, typeof indexedDB, typeof caches, typeof document, typeof importScripts, typeof postMessage].join()'`,
    },
    {
      command: `node -e 'throw new Error("boom")'; node -e 'Promise.reject(new Error("late"))'; node -e 'setTimeout(() => process.exit(3), 5)'; echo $?`,
    },
  ];
  const policyOf = (path) => (path.endsWith("/javascript-worker.js") ? "script-src 'self' 'unsafe-eval'" : STRICT);
  const [main, tests, loop, outside, errors] = (await play(t, { files, commands }, policyOf)).results;
  assert.deepEqual([main.exitCode, main.stdout, main.stderr], [0, "x { a: [ 1 ] }\n42", ""]);
  assert.equal(tests.exitCode, 1);
  assert.match(tests.stdout, /ℹ pass 1\nℹ fail 1\n/);
  assert.deepEqual([loop.exitCode, loop.timedOut, loop.stdout], [124, true, "before\n"]);
  assert.ok(loop.ticks >= 5, "the page slept while the program ran");
  assert.equal(outside.stdout, "undefined,undefined,undefined,undefined,undefined,undefined\n");
  assert.equal(errors.stdout, "3\n");
  assert.match(errors.stderr, /Error: boom\n[^]*Error: late\n/);
});
