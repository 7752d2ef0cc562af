// CPython in the sandbox: the real interpreter, in workers of this process.
// `cargo xtask python` makes it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";

import { MemoryEnvironment } from "../../js/node.js";
import { pythonProgram } from "../../js/programs/python.js";
import { python, run, withPython } from "./support.mjs";

after(() => python.close());

/** Commands in a sandbox of their own and what they answer; host/tests/programs.rs plays the same. */
const cases = JSON.parse(readFileSync(new URL("./python.json", import.meta.url), "utf8"));

for (const { name, files, steps } of cases) {
  test(name, async () => {
    const env = await withPython(files);
    for (const { command, timeoutMs, ...expected } of steps) {
      const { durationMs, cancelled, ...actual } = await env.exec(command, { timeoutMs });
      const { exitCode = 0, timedOut = false, stdout = "", stderr = "", stdoutHas, stderrHas } = expected;
      for (const [stream, parts] of Object.entries({ stdout: stdoutHas, stderr: stderrHas })) {
        for (const part of parts ?? []) assert.ok(actual[stream].includes(part), `no ${part} in ${actual[stream]}`);
      }
      assert.deepEqual(actual, {
        exitCode,
        timedOut,
        stdout: stdoutHas ? actual.stdout : stdout,
        stderr: stderrHas ? actual.stderr : stderr,
      });
    }
  });
}

for (const [how, lines] of [
  ["cut to that size", ["f.truncate(10**13)"]],
  ["written far behind its end", ["f.seek(10**13)", "f.write(b'x')"]],
]) {
  test(`a file that no memory can hold, ${how}`, async () => {
    const script = ["f = open('a', 'wb', 0)", "try:", ...lines.map((line) => `    ${line}`), "except OSError as error:", "    print(error.strerror)"];
    const env = await withPython({ "large.py": script.join("\n") });
    assert.deepEqual(await run(env, "python3 large.py"), [0, "File too large\n", ""]);
  });
}

test("a lent program is found on the PATH, whenever it was lent", async () => {
  const env = await MemoryEnvironment.create();
  assert.equal((await env.exec("which python3")).exitCode, 1);
  await env.program("python3", python);
  const command = `which python3; command -v python3; type python3; /usr/local/bin/python3 -c 'print(1)'; env python3 -c 'print(2)'; echo 3 | xargs -I{} python3 -c 'print({})'`;
  const path = "/usr/local/bin/python3";
  assert.deepEqual(await run(env, command), [0, `${path}\n${path}\npython3 is ${path}\n1\n2\n3\n`, ""]);
  assert.equal((await (await withPython()).exec("which python3")).stdout, `${path}\n`);
});

test("what the tools change and a snapshot brings back is seen by the next call", async () => {
  const env = await withPython({ a: "1", "d/x": "1" });
  const list = `python3 -c '
import os
for path, _, names in os.walk("."):
    for name in sorted(names): print(os.path.join(path, name), open(os.path.join(path, name)).read())' | sort`;
  assert.equal((await env.exec(list)).stdout, "./a 1\n./d/x 1\n");
  await env.remove("d");
  await env.write("t", "3");
  assert.equal((await env.exec(list)).stdout, "./a 1\n./t 3\n");
  const before = await env.snapshot();
  await env.exec(`python3 -c 'open("new", "w").write("n")'; rm t`);
  assert.equal((await env.exec(list)).stdout, "./a 1\n./new n\n");
  await env.restore(before);
  assert.equal((await env.exec(list)).stdout, "./a 1\n./t 3\n");
});

test("a busy loop ends with the command it belongs to, and others go on meanwhile", async () => {
  const env = await withPython({ a: "1" });
  await env.exec("python3 -c pass");
  const stop = new AbortController();
  const endless = env.exec("python3 -c 'while True: pass'", { signal: stop.signal });
  let ticks = 0;
  const timer = setInterval(() => (ticks += 1), 5);
  assert.deepEqual(await run(env, `echo 2 > a; python3 -c 'print(open("a").read().strip())'`), [0, "2\n", ""]);
  stop.abort();
  assert.equal((await endless).cancelled, true);
  clearInterval(timer);
  assert.ok(ticks > 1);
  assert.deepEqual(await run(env, `python3 -c 'print(open("a").read().strip())'`), [0, "2\n", ""]);
});

test("one program serves several sandboxes and names, each with its own files", async () => {
  const one = await withPython({ who: "one" });
  const two = await withPython({ who: "two" });
  two.program("py", python);
  const read = (name) => `${name} -c 'import os; print(open("who").read(), os.listdir())'`;
  for (let turn = 0; turn < 2; turn += 1) {
    const answers = await Promise.all([one.exec(read("python3")), two.exec(read("python3")), two.exec(read("py"))]);
    assert.deepEqual(
      answers.map(({ stdout }) => stdout),
      ["one ['who']\n", "two ['who']\n", "two ['who']\n"],
    );
  }
});

test("calls side by side, more than there are workers", async () => {
  const env = await withPython();
  const calls = Array.from({ length: 7 }, (_, index) =>
    env.exec(`python3 -c 'open("f${index}", "w").write("x"); print(${index})'`),
  );
  const results = await Promise.all(calls);
  assert.deepEqual(
    results.map(({ stdout }) => stdout),
    ["0\n", "1\n", "2\n", "3\n", "4\n", "5\n", "6\n"],
  );
  assert.deepEqual(await run(env, `ls | wc -l; python3 -c 'import os; print(len(os.listdir()))'`), [0, "7\n7\n", ""]);
});

test("a tree of 1,000 files", async (t) => {
  const files = {};
  for (let index = 0; index < 1000; index += 1) {
    files[`src/d${index % 40}/f${index}.txt`] = `${index}\n`.repeat(1000);
  }
  const env = await withPython(files);
  await python.load();
  const command = `python3 -c '
import os
total = 0
for path, _, names in os.walk("src"):
    for name in names: total += len(open(os.path.join(path, name)).read())
open("total", "w").write(str(total))'; cat total`;
  const total = Object.values(files).reduce((sum, content) => sum + content.length, 0);
  for (const turn of ["first", "again"]) {
    const start = performance.now();
    assert.deepEqual(await run(env, command), [0, String(total), ""]);
    t.diagnostic(`${turn}: ${(performance.now() - start).toFixed(0)} ms`);
  }
});

test("the download shows its progress, once, and a failed one is tried again", async () => {
  const progress = [];
  const program = pythonProgram({ onProgress: (news) => progress.push(news) });
  await program.load();
  await program.load();
  const { loaded, total } = progress.at(-1);
  assert.equal(loaded, total);
  assert.deepEqual(
    progress.map(({ loaded }) => loaded),
    progress.map(({ loaded }) => loaded).sort((a, b) => a - b),
  );
  const missing = pythonProgram({ url: new URL("./nothing-here.tar.gz", import.meta.url) });
  await assert.rejects(missing.load(), { name: "EnvironmentError", kind: "io", message: /nothing-here.*pythonProgram\(\{ url \}\)/ });
  const env = await MemoryEnvironment.create({ programs: { python3: missing } });
  const [exitCode, , stderr] = await run(env, "python3 -c pass");
  assert.equal(exitCode, 126);
  assert.match(stderr, /^python3: .*nothing-here\.tar\.gz/);
});

test("something else than Python at the address is refused by name", async () => {
  const wrong = pythonProgram({ url: new URL("./support.mjs", import.meta.url) });
  await assert.rejects(wrong.load(), {
    name: "EnvironmentError", kind: "invalid_input", message: /cannot read .*support\.mjs: the archive is not a tar file or is damaged: /,
  });
});
