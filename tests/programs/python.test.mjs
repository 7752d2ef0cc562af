// CPython in the sandbox: the real interpreter, in workers of this process.
// `cargo xtask python` makes it.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { MemoryEnvironment } from "../../js/node.js";
import { pythonProgram } from "../../js/programs/python.js";
import { python, run, withPython } from "./support.mjs";

after(() => python.close());

/** One command in a sandbox of its own, and what it must answer, whole. */
function check(name, { files, command, exitCode = 0, stdout = "", stderr = "" }) {
  test(name, async () => {
    const env = await withPython(files);
    assert.deepEqual(await run(env, command), [exitCode, stdout, stderr]);
  });
}

check("a line of code", { command: `python3 -c 'print("hi", 6 * 7)'`, stdout: "hi 42\n" });
check("the version", { command: "python3 --version", stdout: "Python 3.14.8\n" });
for (const [how, lines] of [
  ["cut to that size", ["f.truncate(10**13)"]],
  ["written far behind its end", ["f.seek(10**13)", "f.write(b'x')"]],
]) {
  const script = ["f = open('a', 'wb', 0)", "try:", ...lines.map((line) => `    ${line}`), "except OSError as error:", "    print(error.strerror)"];
  check(`a file that no memory can hold, ${how}`, { files: { "large.py": script.join("\n") }, command: "python3 large.py", stdout: "File too large\n" });
}
check("a script with arguments", {
  files: {
    "app/main.py": "import sys, os, helper\nprint(sys.argv, __file__, __name__, os.getcwd(), helper.x)\n",
    "app/helper.py": "x = 1\n",
  },
  command: "python3 app/main.py a 'b c'",
  stdout: "['app/main.py', 'a', 'b c'] app/main.py __main__ /workspace 1\n",
});
check("a module of a package", {
  files: {
    "pkg/__init__.py": "",
    "pkg/__main__.py": "from . import a\nprint(a.x, __package__)\n",
    "pkg/a.py": "x = 2\n",
  },
  command: "python3 -m pkg",
  stdout: "2 pkg\n",
});
check("a script on standard input", {
  command: "python3 - x <<'EOF'\nimport sys\nprint(sys.argv)\nEOF",
  stdout: "['-', 'x']\n",
});
check("data on standard input", {
  command: `printf 'b\\na\\n' | python3 -c 'import sys; print(sorted(sys.stdin.read().split()), input.__name__)' | tr a-z A-Z`,
  stdout: "['A', 'B'] INPUT\n",
});
check("inside a command substitution", {
  command: `x=$(python3 -c 'print(6 * 7)'); echo "got $x"`,
  stdout: "got 42\n",
});
check("twice in a pipeline", {
  command: `python3 -c 'for i in range(3): print(i)' | python3 -c 'import sys; print(sum(map(int, sys.stdin)))'`,
  stdout: "3\n",
});
check("exported variables, and those of Python", {
  files: { "lib/mine.py": "x = 'found'\n" },
  command: `export WHO=me; PYTHONPATH=lib python3 -c 'import os, mine; print(os.environ["WHO"], mine.x)'`,
  stdout: "me found\n",
});
check("an exit code", { command: "python3 -c 'import sys; sys.exit(7)'", exitCode: 7 });
// As the system has it: the lowest byte.
for (const [code, exitCode] of [[256, 0], [999, 231], [-1, 255]]) {
  check(`an exit code of ${code}`, { command: `python3 -c 'import sys; sys.exit(${code})'`, exitCode });
}
check("an exit with a message", { command: `python3 -c 'raise SystemExit("no")'`, exitCode: 1, stderr: "no\n" });
check("an exit in the middle", {
  command: `python3 -c 'import os; print("x", flush=True); os._exit(3)'`,
  exitCode: 3,
  stdout: "x\n",
});
check("an exception", {
  files: { "a.py": "def f():\n    return 1 / 0\n\nprint('before')\nf()\n" },
  command: "python3 a.py",
  exitCode: 1,
  stdout: "before\n",
  stderr: `Traceback (most recent call last):
  File "a.py", line 5, in <module>
    f()
    ~^^
  File "a.py", line 2, in f
    return 1 / 0
           ~~^~~
ZeroDivisionError: division by zero
`,
});
check("a syntax error", {
  files: { "a.py": "print(\n" },
  command: "python3 a.py",
  exitCode: 1,
  stderr: `  File "a.py", line 1
    print(
         ^
SyntaxError: '(' was never closed
`,
});
check("a script that is not there", {
  command: "python3 nope.py",
  exitCode: 2,
  stderr: "python3: can't open file 'nope.py': [Errno 44] No such file or directory\n",
});
check("endless recursion", {
  command: `python3 -c '
def f(): f()
try: f()
except RecursionError as error: print(error)'`,
  stdout: "maximum recursion depth exceeded\n",
});
check("modules of the standard library", {
  command: `python3 -c '
import json, re, sqlite3, hashlib, decimal, datetime, dataclasses, tomllib, zlib, asyncio, doctest, shelve, random, tempfile, pathlib
db = sqlite3.connect("a.db")
db.execute("create table t (x)")
db.executemany("insert into t values (?)", [(i,) for i in range(10)])
db.commit()
print(json.dumps({"sum": db.execute("select sum(x) from t").fetchone()[0]}))
print(re.sub(r"(\\w+) (\\w+)", r"\\2 \\1", "a b"), hashlib.sha256(b"x").hexdigest()[:8])
async def wait(): await asyncio.sleep(0.01); return "slept"
print(asyncio.run(wait()), decimal.Decimal("0.1") * 3)
' && python3 -c 'import sqlite3; print(sqlite3.connect("a.db").execute("select count(*) from t").fetchone())'`,
  stdout: '{"sum": 45}\nb a 2d711642\nslept 0.3\n(10,)\n',
});
check("a sleep that takes its time", {
  command: `python3 -c '
import time
start = time.monotonic(); time.sleep(0.2)
print(0.19 < time.monotonic() - start < 5)'`,
  stdout: "True\n",
});
check("what a sandbox does not have", {
  command: `python3 -c '
import subprocess, threading, urllib.request, requests
def attempt(call):
    try: call()
    except Exception as error: print(type(error).__name__, error)
attempt(lambda: urllib.request.urlopen("http://example.com"))
attempt(lambda: requests.get("http://example.com"))
attempt(lambda: subprocess.run(["ls"]))
attempt(lambda: threading.Thread(target=print).start())'; python3 -m pip`,
  exitCode: 1,
  stdout: `URLError <urlopen error the sandbox has no network>
ConnectionError the sandbox has no network
OSError [Errno 58] wasi does not support processes.
RuntimeError can't start new thread
`,
  stderr: "/usr/local/bin/python3: No module named pip\n",
});
check("more memory than there is", {
  command: `python3 -c '
try: bytearray(1500 << 20)
except MemoryError: print("no")'`,
  stdout: "no\n",
});
test("a lent program is found on the PATH, whenever it was lent", async () => {
  const env = await MemoryEnvironment.create();
  assert.equal((await env.exec("which python3")).exitCode, 1);
  await env.program("python3", python);
  const command = `which python3; command -v python3; type python3; /usr/local/bin/python3 -c 'print(1)'; env python3 -c 'print(2)'; echo 3 | xargs -I{} python3 -c 'print({})'`;
  const path = "/usr/local/bin/python3";
  assert.deepEqual(await run(env, command), [0, `${path}\n${path}\npython3 is ${path}\n1\n2\n3\n`, ""]);
  assert.equal((await (await withPython()).exec("which python3")).stdout, `${path}\n`);
});
check("devices", {
  command: `python3 -c '
import os
print(len(open("/dev/urandom", "rb").read(8)), open("/dev/null").read() == "", os.path.exists("/dev/null"), sum(open("/dev/zero", "rb").read(4)))
open("/dev/null", "w").write("gone")'; ls /usr/local`,
  stdout: "8 True True 0\nbin\n",
});
check("bytes that are no text", {
  command: `printf '\\377\\000\\001' | python3 -c 'import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])' | od -An -tx1`,
  stdout: " 01 00 ff\n",
});

test("files are read, written, appended to, renamed and removed", async () => {
  const env = await withPython({
    "in.txt": "one\n",
    "old/a.txt": "a",
    "old/b.txt": "b",
    "gone.txt": "",
    "log.txt": "1\n",
  });
  const command = `python3 -c '
import os, shutil, pathlib
text = open("in.txt").read()
os.makedirs("out/deep", exist_ok=True)
pathlib.Path("out/deep/two.txt").write_text(text.upper())
with open("log.txt", "a") as log: log.write("2\\n")
os.rename("old", "new")
os.remove("gone.txt")
shutil.copy("new/a.txt", "copy.txt")
os.replace("copy.txt", "new/b.txt")
os.mkdir("empty")
with open("in.txt", "r+") as file: file.seek(1); file.write("X")
print(sorted(os.listdir()), os.path.getsize("in.txt"), [entry.is_dir() for entry in os.scandir("out")])'`;
  assert.deepEqual(await run(env, command), [0, "['empty', 'in.txt', 'log.txt', 'new', 'out'] 4 [True]\n", ""]);
  assert.deepEqual(await run(env, "find . | sort; head -50 in.txt log.txt new/* out/deep/*"), [
    0,
    `.\n./empty\n./in.txt\n./log.txt\n./new\n./new/a.txt\n./new/b.txt\n./out\n./out/deep\n./out/deep/two.txt
==> in.txt <==\noXe\n\n==> log.txt <==\n1\n2\n\n==> new/a.txt <==\na\n==> new/b.txt <==\na\n==> out/deep/two.txt <==\nONE\n`,
    "",
  ]);
});

test("what the shell and the tools change is seen by the next call", async () => {
  const env = await withPython({ a: "1", b: "1", "d/x": "1" });
  const list = `python3 -c '
import os
for path, _, names in os.walk("."):
    for name in sorted(names): print(os.path.join(path, name), open(os.path.join(path, name)).read())' | sort`;
  assert.equal((await env.exec(list)).stdout, "./a 1\n./b 1\n./d/x 1\n");
  await env.exec("rm b; echo -n 2 > a; mv d e; ln -s a l");
  await env.write("t", "3");
  assert.equal((await env.exec(list)).stdout, "./a 2\n./e/x 1\n./l 2\n./t 3\n");
  const before = await env.snapshot();
  await env.exec(`python3 -c 'open("new", "w").write("n")'; rm t`);
  assert.equal((await env.exec(list)).stdout, "./a 2\n./e/x 1\n./l 2\n./new n\n");
  await env.restore(before);
  assert.equal((await env.exec(list)).stdout, "./a 2\n./e/x 1\n./l 2\n./t 3\n");
});

test("every call starts from a clean state", async () => {
  const env = await withPython();
  const command = `python3 -c 'import sys, json; print(hasattr(json, "mark")); json.mark = 1; sys.path.append("/x")'`;
  for (let call = 0; call < 2; call += 1) assert.equal((await env.exec(command)).stdout, "False\n");
});

test("a red test, an edit, a green test", async () => {
  const env = await withPython({
    "calc.py": "def add(a, b):\n    return a - b\n",
    "tests/__init__.py": "",
    "tests/test_calc.py":
      "import unittest\nfrom unittest import mock\nimport calc\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(calc.add(2, 3), 5)\n",
  });
  const red = await env.exec("python3 -m unittest -v");
  assert.equal(red.exitCode, 1);
  assert.match(red.stderr, /AssertionError: -1 != 5/);
  assert.match(red.stderr, /File "\/workspace\/tests\/test_calc.py", line 7, in test_add/);
  await env.exec("sed -i 's/-/+/' calc.py");
  const green = await env.exec("python3 -m unittest discover -s tests -t .");
  assert.equal(green.exitCode, 0, green.stderr);
  assert.match(green.stderr, /Ran 1 test in .*\n\nOK\n$/);
});

test("a script that is its own test, and a doctest", async () => {
  const env = await withPython({
    "t.py":
      'import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\nif __name__ == "__main__": unittest.main()\n',
    "d.py": 'def f(x):\n    """\n    >>> f(1)\n    3\n    """\n    return x + 1\n',
  });
  assert.match((await env.exec("python3 t.py")).stderr, /OK\n$/);
  const doctest = await env.exec("python3 -m doctest d.py");
  assert.equal(doctest.exitCode, 1);
  assert.match(doctest.stdout, /Expected:\n    3\nGot:\n    2/);
});

test("a busy loop ends with the time limit, and what it printed is kept", async () => {
  const env = await withPython();
  await env.exec("python3 -c pass");
  const result = await env.exec(
    `echo first; python3 -c '
print("before", flush=True)
while True: pass'; echo never`,
    { timeoutMs: 5000 },
  );
  assert.deepEqual([result.exitCode, result.timedOut, result.stdout], [124, true, "first\nbefore\n"]);
  assert.deepEqual(await run(env, `python3 -c 'print("on we go")'`), [0, "on we go\n", ""]);
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

test("what an ended program changed is not kept", async () => {
  const env = await withPython({ a: "1" });
  const stopped = await env.exec(
    `python3 -c '
open("a", "w").write("2")
while True: pass'`,
    { timeoutMs: 5000 },
  );
  assert.equal(stopped.timedOut, true);
  assert.deepEqual(await run(env, `cat a; python3 -c 'print(open("a").read())'`), [0, "11\n", ""]);
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

test("much output arrives whole, too much ends the program", async () => {
  const env = await withPython();
  const much = await env.exec(`python3 -c '
for i in range(300_000): print(i)' | tail -1`);
  assert.deepEqual([much.exitCode, much.stdout], [0, "299999\n"]);
  const tooMuch = await env.exec(`python3 -c 'while True: print("x" * 1_000_000)' | wc -c; echo \${PIPESTATUS[0]}`);
  assert.deepEqual(
    [tooMuch.stdout, tooMuch.stderr],
    [`${64 << 20}\n1\n`, "output was cut and the program ended: the limit is 67108864 bytes per stream\n"],
  );
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
