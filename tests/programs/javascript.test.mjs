// JavaScript in the sandbox: `node` as a lent program, in workers of this process.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";

import { MemoryEnvironment } from "../../js/node.js";
import { jsProgram } from "../../js/programs/javascript.js";
import { run } from "./support.mjs";

const node = jsProgram();
after(() => node.close());

const withNode = (files = {}) => MemoryEnvironment.create({ files, programs: { node } });

/** One command in a sandbox of its own, and what it must answer, whole. */
function check(name, { files, command, exitCode = 0, stdout = "", stderr = "" }) {
  test(name, async () => {
    const env = await withNode(files);
    const [code, out, err] = await run(env, command);
    if (stderr instanceof RegExp) assert.match(err, stderr);
    assert.deepEqual(
      [code, out, ...(stderr instanceof RegExp ? [] : [err])],
      [exitCode, stdout, ...(stderr instanceof RegExp ? [] : [stderr])],
    );
  });
}

check("code on the command line", { command: `node -e 'console.log("hi", 6 * 7)'`, stdout: "hi 42\n" });
check("the value of an expression", {
  command: `node -p '[1, "a", { b: null }]'`,
  stdout: "[ 1, 'a', { b: null } ]\n",
});
check("modules are globals of code on the command line, which may have variables of their names", {
  files: { a: "abc" },
  command: `node -e 'console.log(fs.readFileSync("a", "utf8"), path.join("a", "b"), typeof os)'; node -p 'util.format("%d", 1)'; node -e 'const fs = 1; var path = 2; console.log(fs, path)'; node -e 'import { sep } from "path"; console.log(sep, typeof url)'; echo 'console.log(typeof fs)' | node`,
  stdout: "abc a/b object\n1\n1 2\n/ object\nundefined\n",
});
check("files as streams", {
  files: {
    a: "one\ntwo\nthré\n",
    "streams.js": `
const fs = require("fs");
const readline = require("readline");
const say = (...words) => console.log(...words);
(async () => {
  for await (const piece of fs.createReadStream("a", { start: 1, end: 2 })) say(piece);
  for await (const line of readline.createInterface({ input: fs.createReadStream("a") })) say(line);
  try { for await (const _ of fs.createReadStream("none")); } catch ({ code }) { say("no", code); }
  const seen = [];
  fs.writeFileSync("big", Buffer.alloc(150_000, "x"));
  fs.createReadStream("big").on("data", ({ length }) => seen.push(length)).on("close", () => say(seen));
  await new Promise((resolve) => fs.createReadStream("a", "utf8").pipe(fs.createWriteStream("copy")).on("finish", resolve));
  const more = fs.createWriteStream("copy", { flags: "a" });
  more.on("error", ({ code }) => say(code)).on("close", () => say(fs.readFileSync("copy", "utf8"), more.bytesWritten));
  more.write("4", () => say("written"));
  more.end("5\\n");
  more.write("6");
  fs.createWriteStream("none/x").on("error", ({ code }) => say("none", code));
  fs.createReadStream("none").on("error", ({ code }) => say("neither", code));
})();
`,
  },
  command: "node streams.js; printf 'p\\nq' | node -e 'process.stdin.pipe(fs.createWriteStream(\"in\"))'; cat in; node -e 'fs.createReadStream(\"none\")' 2>/dev/null || echo $?",
  stdout:
    "<Buffer 6e 65>\none\ntwo\nthré\nno ENOENT\n[ 65536, 65536, 18928 ]\nwritten\nERR_STREAM_WRITE_AFTER_END\none\ntwo\nthré\n 0\nnone ENOENT\nneither ENOENT\np\nq1\n",
});
check("the version", { command: "node --version", stdout: "v22.0.0\n" });
check("an emitter as old code makes it", {
  files: {
    "old.js":
      "const { EventEmitter } = require('events');\nfunction Old() { EventEmitter.call(this); }\nrequire('util').inherits(Old, EventEmitter);\nconst old = new Old();\nold.on('x', (value) => console.log(value, old instanceof EventEmitter, new Old().listenerCount('x')));\nold.emit('x', 'heard');\n",
  },
  command: "node old.js",
  stdout: "heard true 0\n",
});
check("a file does what it was opened for", {
  files: {
    a: "abc",
    "modes.js":
      "const fs = require('fs');\nconst code = (act) => { try { return act(); } catch (error) { return error.code; } };\nconst [r, w, rw] = ['r', 'w', 'r+'].map((flags) => fs.openSync(flags === 'w' ? 'b' : 'a', flags));\nconst target = Buffer.alloc(3);\nconsole.log(code(() => fs.writeSync(r, 'z')), code(() => fs.readSync(w, target)), code(() => fs.writeSync(rw, 'Z')), code(() => fs.readSync(rw, target)), code(() => fs.ftruncateSync(r, 0)), fs.readFileSync('a', 'utf8'));\n",
  },
  command: "node modes.js",
  stdout: "EBADF EBADF 1 2 EBADF Zbc\n",
});
check("a script with arguments", {
  files: {
    "app/main.js":
      "const { add } = require('./lib');\nconsole.log(process.argv.slice(1), __filename, __dirname, process.cwd(), add(2, 3), require.main === module);\n",
    "app/lib/index.js": "exports.add = (a, b) => a + b;\n",
  },
  command: "node app/main.js a 'b c' > out; tr -d '\\n' < out; echo",
  stdout: "[ '/workspace/app/main.js', 'a', 'b c' ] /workspace/app/main.js /workspace/app /workspace 5 true\n",
});
check("a script on standard input", {
  command: "node - x <<'EOF'\nconsole.log(process.argv.slice(2))\nEOF",
  stdout: "[ 'x' ]\n",
});
check("data on standard input, as events", {
  command: `echo hi | node -e 'let all = ""; process.stdin.setEncoding("utf8").on("data", (text) => (all += text)).on("end", () => console.log(all.trim().toUpperCase()))'`,
  stdout: "HI\n",
});
check("data on standard input, at once and by lines", {
  command: `printf 'a\\nb\\n' | node -e 'console.log(require("fs").readFileSync(0, "utf8").split("\\n").length)'
printf 'a\\nb\\n' | node --input-type=module -e 'import readline from "node:readline"; for await (const line of readline.createInterface({ input: process.stdin })) console.log("> " + line)'`,
  stdout: "3\n> a\n> b\n",
});
check("inside a substitution and a pipeline", {
  command: `x=$(node -p '6 * 7'); echo "got $x" | node -e 'process.stdin.pipe(process.stdout)'`,
  stdout: "got 42\n",
});
check("exit codes", {
  command: `node -e 'process.exit(3)'; echo $?; node -e 'process.exitCode = 4'; echo $?; node -e 'process.on("exit", (code) => console.log("bye", code)); setTimeout(() => process.exit(5), 5); setInterval(() => {}, 1000)'; echo $?`,
  stdout: "3\n4\nbye 5\n5\n",
});
check("an error that nobody catches", {
  files: { "a.js": "function f() {\n  throw new TypeError('boom');\n}\nconsole.log('before');\nf();\n" },
  command: "node a.js",
  exitCode: 1,
  stdout: "before\n",
  stderr:
    "TypeError: boom\n    at f (/workspace/a.js:2:9)\n    at <module> (/workspace/a.js:5:1)\n\nNode.js v22.0.0 (sandbox)\n",
});
check("a rejection that nobody catches", {
  command: `node -e 'Promise.reject(new Error("late"))'`,
  exitCode: 1,
  stderr: /^Error: late\n/,
});
check("an error in a timer", {
  command: `node -e 'setTimeout(() => { throw new Error("later") }, 5)'`,
  exitCode: 1,
  stderr: /^Error: later\n/,
});
check("a syntax error", {
  files: { "a.js": "const a = ;\n" },
  command: "node a.js",
  exitCode: 1,
  stderr: /^SyntaxError: Unexpected token ';'/,
});
check("a script that is not there", {
  command: "node nope.js",
  exitCode: 1,
  stderr: /^Error: Cannot find module '\/workspace\/nope\.js'/,
});
check("a module that is not there", {
  files: { "a.js": "require('./b');\n" },
  command: "node a.js",
  exitCode: 1,
  stderr: /^Error: Cannot find module '\.\/b'\nRequire stack:\n- \/workspace\/a\.js/,
});
check("a module of Node that a worker cannot have", {
  command: `node -e 'require("child_process")'`,
  exitCode: 1,
  stderr: /^Error: the sandbox's node has no module `child_process`: it runs in a worker/,
});
check("no network, and nothing of the process outside", {
  command: `node -p '[typeof fetch, typeof WebSocket, typeof process.binding, process.env.PATH, typeof postMessage, typeof indexedDB].join()'`,
  stdout: "undefined,undefined,undefined,/usr/local/bin:/usr/bin:/bin,undefined,undefined\n",
});
check("modules that import each other's names", {
  files: {
    "package.json": '{"type": "module"}',
    "main.js": `#!/usr/bin/env node
import fs, { readFileSync } from "node:fs";
import * as path from "path";
import def, { count, inc, K, x, y, rest, type as kind } from "./b.js";
import data from "./d.json" with { type: "json" };
import common, { named } from "./c.cjs";
console.log(count, def(2), x, y, rest, kind, new K().k, data.d, common.named === named, path.basename(import.meta.url));
inc();
console.log(count, readFileSync("d.json", "utf8") === fs.readFileSync("d.json").toString());
const text = \`a \${"b" + \`\${1}\`} import x from "y"\`, pattern = /import "[/]x"/g, half = 4 / 2 / 1;
console.log(text, pattern.source, half);
const b = await import("./b.js");
const passed = await import("./pass.js");
console.log(Object.keys(b).sort().join(), passed.again === def, passed.all.x, "count" in passed, "default" in passed);
`,
    "b.js": `// export const no = 1
export let count = 1;
export function inc() { count += 1; }
export default function (n) { return n * 2; }
export class K { k = "k"; }
export const [x, { y }, ...rest] = [1, { y: 2, z: 3 }, 4, 5], other = (1, 2);
const local = "t";
export { local as type };
`,
    "pass.js": `export * from "./b.js";\nexport { default as again } from "./b.js";\nexport * as all from "./b.js";\n`,
    "c.cjs": "module.exports = { named: { a: 1 } };\n",
    "d.json": '{"d": 1}\n',
  },
  command: "node main.js",
  stdout: `1 4 1 2 [ 4, 5 ] t k 1 true main.js
2 true
a b1 import x from "y" import "[/]x" 2
K,count,default,inc,other,rest,type,x,y true 1 true false
`,
});
check("modules that import each other", {
  files: {
    "a.mjs": "import { b } from './b.mjs';\nexport function a() { return 'a' + b(); }\nconsole.log(a());\n",
    "b.mjs": "import { a } from './a.mjs';\nexport function b() { return 'b' + typeof a; }\n",
    "c.js": "exports.early = 1; exports.d = require('./d'); console.log(exports.d.seen);",
    "d.js": "exports.seen = require('./c').early;",
  },
  command: "node a.mjs; node c.js",
  stdout: "abfunction\n1\n",
});
check("an import of a name that is not exported", {
  files: { "a.mjs": "import { nope } from './b.mjs';\n", "b.mjs": "export const yes = 1;\n" },
  command: "node a.mjs",
  exitCode: 1,
  stderr: /^SyntaxError: The requested module '\.\/b\.mjs' does not provide an export named 'nope'/,
});
check("packages", {
  files: {
    "node_modules/old/package.json": '{"main": "lib/main"}',
    "node_modules/old/lib/main.js": "module.exports = 'old';",
    "node_modules/@s/new/package.json":
      '{"exports": {".": {"import": "./m.mjs", "require": "./c.cjs"}, "./sub/*": "./sub/*.js"}}',
    "node_modules/@s/new/m.mjs": "export default 'module';",
    "node_modules/@s/new/c.cjs": "module.exports = 'common';",
    "node_modules/@s/new/sub/a.js": "module.exports = 'sub';",
    "src/a.cjs":
      "console.log(require('old'), require('@s/new'), require('@s/new/sub/a')); import('@s/new').then((m) => console.log(m.default));",
  },
  command: "node src/a.cjs",
  stdout: "old common sub\nmodule\n",
});
check("a promise that never settles", {
  command: `node --input-type=module -e 'await new Promise(() => {})'`,
  exitCode: 13,
  stderr: "Warning: Detected unsettled top-level await\n",
});
check("the order of events", {
  command: `node -e '
setTimeout(() => console.log("timeout"), 5); setImmediate(() => console.log("immediate"));
Promise.resolve().then(() => console.log("micro")); process.nextTick(() => console.log("tick"));
require("fs").readFile("none", (error) => console.log(error.code)); console.log("sync")' | sort`,
  stdout: "ENOENT\nimmediate\nmicro\nsync\ntick\ntimeout\n",
});
check("assertions", {
  command: `node -e '
const assert = require("node:assert");
assert.ok(1); assert.deepStrictEqual({ a: [1, new Map([[1, { b: 2 }]])] }, { a: [1, new Map([[1, { b: 2 }]])] });
assert.throws(() => { throw new TypeError("bad") }, { name: "TypeError", message: /bad/ });
for (const wrong of [() => assert.equal(1, 2), () => assert.deepStrictEqual([1], ["1"]), () => assert.throws(() => {}), () => assert.match("a", /b/)]) {
  try { wrong(); console.log("missed"); } catch (error) { console.log(error.name, error.code, error.operator); }
}'`,
  stdout:
    "AssertionError ERR_ASSERTION ==\nAssertionError ERR_ASSERTION deepStrictEqual\nAssertionError ERR_ASSERTION throws\nAssertionError ERR_ASSERTION match\n",
});

test("values are shown as Node shows them", async () => {
  const values = `[
    [1, -0, 1.5, 10n, "it's", 'a\\nb', null, undefined, true, Symbol("s")],
    { a: { b: { c: { d: 1 } } }, "x-y": [[[[1]]]], f() {}, get g() { return 1; }, [Symbol("k")]: 1 },
    [new Map([["a", { b: 1 }]]), new Set([1, "2"]), new Date(0), /x/g, class A {}, () => 1, new (class B { x = 1 })(), Object.create(null)],
    Array.from({ length: 120 }, (_, i) => i),
    ["apple", "banana", "cherry", "date", "elderberry", "fig", "grape"],
    [1, , 3], [], {}, new Uint8Array([1, 2]), Buffer.from("hi"), "plain", [undefined, null],
    { long: "x".repeat(60), other: "y".repeat(30), third: [1, 2, 3] },
  ]`;
  const code = `for (const value of ${values}) console.log(value); console.log("%s is %d and %j", "a", 1.5, { b: 1 }, "more"); console.log(Object.assign(() => {}, { a: 1 }));`;
  const env = await withNode({ "a.js": code });
  const { execFileSync } = await import("node:child_process");
  assert.deepEqual(await run(env, "node a.js"), [0, execFileSync(process.execPath, ["-e", code]).toString(), ""]);
});

test("files are read, written, renamed and removed, at once, later and with promises", async () => {
  const env = await withNode({ "in.txt": "one\n", "old/a.txt": "a", "gone.txt": "" });
  await env.write(
    "main.js",
    `const fs = require("fs"), path = require("path");
fs.mkdirSync("out/deep", { recursive: true });
fs.writeFileSync("out/deep/two.txt", fs.readFileSync("in.txt", "utf8").toUpperCase());
fs.appendFileSync("log.txt", "1\\n"); fs.appendFileSync("log.txt", "2\\n");
fs.renameSync("old", "new"); fs.unlinkSync("gone.txt"); fs.copyFileSync("new/a.txt", "new/b.txt"); fs.mkdirSync("empty");
fs.readdir(".", (error, names) => console.log(error, names.join()));
fs.promises.readFile(path.join("new", "b.txt"), "utf8").then(async (text) => {
  await fs.promises.rm("new/a.txt");
  console.log(text, fs.existsSync("new/a.txt"), fs.statSync("in.txt").size, fs.statSync("out").isDirectory());
  console.log(fs.readdirSync("out", { recursive: true, withFileTypes: true }).map((entry) => [entry.name, entry.isDirectory()].join()).join(" "));
});
for (const wrong of [() => fs.readFileSync("none"), () => fs.readdirSync("in.txt"), () => fs.mkdirSync("out"), () => fs.rmdirSync("out"), () => fs.readFileSync("out")]) {
  try { wrong(); } catch (error) { console.log(error.message); }
}
`,
  );
  assert.deepEqual(await run(env, "node main.js"), [
    0,
    `ENOENT: no such file or directory, open 'none'
ENOTDIR: not a directory, scandir 'in.txt'
EEXIST: file already exists, mkdir 'out'
ENOTEMPTY: directory not empty, rmdir 'out'
EISDIR: illegal operation on a directory, read
a false 4 true
deep,true two.txt,false
null empty,in.txt,log.txt,main.js,new,out
`,
    "",
  ]);
  assert.deepEqual(await run(env, "find . | sort | tr '\\n' ' '; cat log.txt out/deep/two.txt new/b.txt"), [
    0,
    ". ./empty ./in.txt ./log.txt ./main.js ./new ./new/b.txt ./out ./out/deep ./out/deep/two.txt 1\n2\nONE\na",
    "",
  ]);
});

check("permission bits are seen, set and moved", {
  files: {
    run: "#!/bin/sh\n",
    "main.js": `const fs = require("fs");
const show = (path) => (fs.statSync(path).mode & 0o7777).toString(8);
const refused = (path) => { try { fs.accessSync(path, fs.constants.X_OK); return "runs"; } catch (error) { return error.message; } };
console.log(show("run"), show("main.js"), refused("run"), refused("main.js"));
fs.renameSync("run", "moved"); fs.copyFileSync("moved", "copy"); fs.mkdirSync("d"); fs.cpSync("d", "e", { recursive: true });
fs.writeFileSync("made", "1", { mode: 0o777 }); fs.writeFileSync("made", "2", { mode: 0o600 }); fs.writeFileSync("plain", "1");
fs.chmodSync("main.js", "700"); fs.closeSync(fs.openSync("opened", "w", 0o750)); fs.cpSync("copy", "d/again");
fs.cpSync("d", "f", { recursive: true });
`,
  },
  command: "chmod 755 run; node main.js; stat -c '%a %n' moved copy made plain main.js opened d/again f/again; cat main.js | wc -l",
  stdout:
    "755 644 runs EACCES: permission denied, access 'main.js'\n755 moved\n755 copy\n755 made\n644 plain\n700 main.js\n750 opened\n755 d/again\n755 f/again\n8\n",
});

check("a mode that is none is refused", {
  files: { a: "1" },
  command: `node -e 'const fs = require("fs"); for (const mode of [undefined, "x", -1, 1.5]) try { fs.chmodSync("a", mode); } catch (error) { console.log(error.name, error.code); }'; stat -c %a a`,
  stdout: "TypeError ERR_INVALID_ARG_VALUE\n".repeat(4) + "644\n",
});

test("a red test, an edit, a green test", async () => {
  const env = await withNode({
    "calc.js": "exports.add = (a, b) => a - b;\n",
    "test/calc.test.js": `const { test, describe, it, beforeEach, mock } = require("node:test");
const assert = require("node:assert/strict");
const { add } = require("../calc.js");
test("add", () => assert.equal(add(2, 3), 5));
describe("a suite", () => {
  let ready = 0;
  beforeEach(() => { ready += 1; });
  it("waits", async () => { await new Promise((resolve) => setTimeout(resolve, 5)); assert.equal(ready, 1); });
  it("has subtests", async (t) => { await t.test("inner", () => assert.equal(ready, 3)); });
  it.skip("is left out", () => assert.fail());
  it("counts calls", () => { const f = mock.fn((x) => x + 1); f(1); assert.equal(f.mock.callCount(), 1); });
});
`,
  });
  const red = await env.exec("node --test");
  assert.equal(red.exitCode, 1);
  assert.match(red.stdout, /✖ add/);
  assert.match(red.stdout, /-1 !== 5/);
  assert.match(red.stdout, /\/workspace\/test\/calc\.test\.js:4:\d+/);
  assert.match(red.stdout, /ℹ tests 6\nℹ suites 1\nℹ pass 4\nℹ fail 1\nℹ cancelled 0\nℹ skipped 1\n/);
  await env.exec("sed -i 's/-/+/' calc.js");
  const green = await env.exec("node --test test/calc.test.js && node test/calc.test.js");
  assert.equal(green.exitCode, 0, green.stdout + green.stderr);
  assert.equal(green.stdout.match(/ℹ pass 5/g).length, 2);
});

test("a busy loop ends with the time limit, and what it printed is kept", async () => {
  const env = await withNode({ a: "1" });
  const result = await env.exec(
    `node -e 'console.log("before"); require("fs").writeFileSync("a", "2"); for (;;);'; echo never`,
    { timeoutMs: 5000 },
  );
  assert.deepEqual([result.exitCode, result.timedOut, result.stdout], [124, true, "before\n"]);
  assert.deepEqual(await run(env, `cat a; node -p 1`), [0, "11\n", ""]);
});

test("what a program prints when it is ended goes where it was sent, and nothing comes after it", async () => {
  const env = await withNode();
  const loop = `node -e 'console.log("before"); for (;;);'`;
  for (const command of [
    `${loop} > out; echo never; touch made`,
    `x=$(${loop}); echo "never $x"; touch made`,
    `${loop} | cat; touch made`,
  ]) {
    const result = await env.exec(command, { timeoutMs: 5000 });
    assert.deepEqual(
      [result.exitCode, result.timedOut, result.stderr, await env.exists("made")],
      [124, true, "", false],
      command,
    );
    assert.doesNotMatch(result.stdout, /never/, command);
  }
});

test("all that a program had printed comes out of its pipe and its `timeout`", async () => {
  const env = await withNode();
  const loop = `node -e 'for (let i = 1; i <= 900; i++) console.log("a line of some length", i); for (;;);'`;
  const last = "a line of some length 900\n";
  for (const [command, exitCode, stdout] of [
    [loop, 124, undefined],
    [`${loop} | cat | tail -n 1`, 124, last],
    [`timeout 2 ${loop}; echo $?`, 0, undefined],
    [`timeout 2 ${loop} | tail -n 1; echo on`, 0, `${last}on\n`],
    [`timeout 2 ${loop} > out; tail -n 1 out`, 0, last],
  ]) {
    const result = await env.exec(command, { timeoutMs: 5000 });
    assert.deepEqual([result.exitCode, result.stderr], [exitCode, ""], command);
    if (stdout !== undefined) assert.equal(result.stdout, stdout, command);
    else assert.ok(result.stdout.includes(last), command);
  }
});

test("an abort ends the program at once", async () => {
  const env = await withNode();
  const stop = new AbortController();
  const running = env.exec("node -e 'for (;;);'", { signal: stop.signal });
  assert.deepEqual(await run(env, "node -p 1"), [0, "1\n", ""]);
  stop.abort();
  assert.equal((await running).cancelled, true);
});

/** What links and permission bits a program sees, makes and follows; the same in Node itself. */
const LINKS = `
const fs = require("fs");
const path = require("path");
const say = (...values) => console.log(...values);
const attempt = (act) => { try { return act(); } catch (error) { return error.code; } };
const typeOf = (stat) => (typeof stat === "string" ? stat : stat === undefined ? "nothing" : stat.isSymbolicLink() ? "link" : stat.isDirectory() ? "directory" : "file");
const here = fs.realpathSync(".");
fs.mkdirSync("d/e", { recursive: true });
fs.writeFileSync("d/x", "in d"); fs.writeFileSync("d/e/y", "in e"); fs.writeFileSync("f", "file");
for (const [target, at] of [["d", "to-d"], ["../f", "d/up"], [here + "/d/e", "d/e/self"], ["d/../to-d/x", "round"], ["none", "nowhere"], ["two", "one"], ["one", "two"]]) fs.symlinkSync(target, at);
for (const at of ["to-d/x", "to-d/up", "to-d/e/self/self/y", "d/e/self/../x", "round", "nowhere", "nowhere/x", "round/x", "one", "two/x", "to-d"])
  say(at, attempt(() => fs.readFileSync(at, "utf8")), typeOf(attempt(() => fs.statSync(at, { throwIfNoEntry: false }))), fs.existsSync(at));
for (const at of ["to-d", "to-d/", "nowhere", "round", "f"])
  say(at, typeOf(fs.lstatSync(at)), attempt(() => fs.readlinkSync(at)), attempt(() => fs.realpathSync(at).slice(here.length)));
say(fs.readdirSync(".", { withFileTypes: true }).filter((entry) => entry.isSymbolicLink()).map((entry) => entry.name).sort());
say(fs.readdirSync("to-d").sort());
say(attempt(() => fs.symlinkSync("d", "f")), attempt(() => fs.mkdirSync("nowhere")), attempt(() => fs.mkdirSync("to-d/new/deep", { recursive: true })));
say(attempt(() => fs.writeFileSync("nowhere", "1", { flag: "wx" })), attempt(() => fs.writeFileSync("nowhere", "now there")), fs.readFileSync("none", "utf8"));
say(attempt(() => fs.rmdirSync("to-d")), attempt(() => fs.unlinkSync("to-d/up")), attempt(() => fs.renameSync("round", "moved")), fs.readlinkSync("moved"));
fs.cpSync("d", "copy", { recursive: true });
say(typeOf(fs.lstatSync("copy/e/self")), fs.readlinkSync("copy/e/self").slice(here.length), attempt(() => fs.cpSync("d", "d/again", { recursive: true })));
fs.rmSync("to-d"); fs.rmSync("two", { force: true }); fs.rmSync("one", { force: true });
say(fs.existsSync("d/x"), fs.readdirSync(".").sort());
fs.mkdirSync("w/y", { recursive: true }); fs.writeFileSync("w/c", "1"); fs.symlinkSync("w", "to-w");
for (const act of [() => fs.rmSync("w/.", { recursive: true, force: true }), () => fs.writeFileSync("w/new/.", ""), () => fs.readFileSync("w/c/."), () => fs.lstatSync("w/c/."), () => fs.writeFileSync("w/new/", ""), () => fs.symlinkSync("x", "w/new/"), () => fs.symlinkSync("x", "w/new/."), () => fs.mkdirSync("w/none/."), () => fs.renameSync("w/y/..", "z"), () => fs.renameSync("w/c", "w/new/"), () => fs.rmdirSync("w/y/."), () => fs.realpathSync("to-w/../w/c/").slice(here.length), () => fs.realpathSync("nothing/../w").slice(here.length), () => fs.lstatSync("to-w/.").isDirectory(), () => fs.statSync("w").isFIFO()]) say(attempt(act));
say(fs.readdirSync("w").sort());
fs.mkdirSync("private", 0o700); fs.chmodSync("d", 0o750); fs.mkdirSync("p/q", { recursive: true, mode: 0o711 });
for (const at of ["private", "d", "p", "p/q"]) say(at, (fs.statSync(at).mode & 0o7777).toString(8));
fs.mkdirSync("packages/one", { recursive: true }); fs.mkdirSync("node_modules");
fs.writeFileSync("packages/one/index.js", "module.exports = [__filename, require('./more')];");
fs.writeFileSync("packages/one/more.js", "module.exports = 'more';");
fs.writeFileSync("packages/one/package.json", '{"name": "one", "main": "index.js"}');
fs.symlinkSync("../packages/one", "node_modules/one");
const one = require(here + "/node_modules/one");
say(one[0].slice(here.length), one[1], one === require(here + "/packages/one"));
fs.symlinkSync("packages/one/more.js", "linked.js");
`;

test("links and permission bits are what they are in Node, and stay in the sandbox", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "hermitcrab-"));
  t.after(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, "links.cjs"), LINKS);
  const { stdout } = await promisify(execFile)(process.execPath, ["links.cjs"], { cwd: directory });
  const env = await withNode({ "links.cjs": LINKS });
  assert.deepEqual(await run(env, "node links.cjs"), [0, stdout, ""]);
  // The shell sees them, too, and the next call what the shell made of them.
  assert.deepEqual(
    await run(env, "readlink node_modules/one linked.js nowhere; stat -c '%a %n' private d; cat nowhere; ls -d to-d"),
    [2, "../packages/one\npackages/one/more.js\nnone\n700 private\n750 d\nnow there", "ls: cannot access 'to-d': No such file or directory\n"],
  );
  const command = `ln -sfn d linked.js; chmod 711 private; node -p 'const fs = require("fs"); [fs.readdirSync("linked.js").length, (fs.statSync("private").mode & 0o777).toString(8)]'`;
  assert.deepEqual(await run(env, command), [0, "[ 3, '711' ]\n", ""]);
  assert.deepEqual(await run(env, "node -e 'require(`fs`).renameSync(`linked.js`, `d2`)'; readlink d2"), [0, "d\n", ""]);
});

/** Modules that are packages here; the same in Node itself. */
const MODULES = `
const { Readable, Writable, Transform, PassThrough, pipeline, finished } = require("stream");
const { pipeline: piped } = require("stream/promises");
const { StringDecoder } = require("string_decoder");
const { EventEmitter, once } = require("events");
const path = require("path");
const util = require("util");
const fs = require("fs");
const readline = require("readline");
const say = (...values) => console.log(...values);
const attempt = (act) => { try { return act(); } catch (error) { return error.name; } };

for (const args of [["a", "..", "b"], ["/a", "../../b/"], [""], ["./a//b/.."]]) say(path.join(...args), path.normalize(args.at(-1)), path.basename(args.at(-1), "b"));
for (const at of ["/a/b.tar.gz", "a/", ".hidden", "a.", "/", "a/..x"]) say(path.parse(at), path.extname(at), path.dirname(at), path.isAbsolute(at));
say(path.relative("/a/b/c", "/a/d"), path.resolve("/x", "y", "../z"), path.format({ dir: "/d", name: "n", ext: ".e" }), attempt(() => path.join(1)));

const bytes = Buffer.from("h\\u00e9\\u{1f600}!");
for (const name of ["utf8", "hex", "base64", "base64url", "latin1", "ascii", "utf16le", "binary", "ucs2"])
  say(name, bytes.toString(name), Buffer.from(bytes.toString(name), name).length, Buffer.byteLength("ab", name), Buffer.isEncoding(name));
say(bytes, bytes.subarray(1, 3), bytes.toJSON().data.length, bytes.indexOf("!"), bytes.includes("x"), Buffer.concat([bytes, Buffer.alloc(2, "ab")], 9), Buffer.compare(Buffer.from("a"), Buffer.from("b")));
const view = Buffer.alloc(16);
view.writeUInt32BE(0xdeadbeef, 0); view.writeInt16LE(-2, 4); view.writeDoubleBE(1.5, 6); view.writeUInt8(7, 14);
say(view, view.readUInt32BE(0), view.readInt16LE(4), view.readDoubleBE(6), view.readUInt8(14), view.readUIntBE(0, 3), view.equals(Buffer.from(view)), view.fill("xy", 12).toString("latin1", 12), attempt(() => view.readUInt32LE(14)), attempt(() => Buffer.from("a", "none")));
say(Buffer.from([1, 2, 3]).swap16 !== undefined, Buffer.from(new Uint8Array([1, 2]).buffer), Buffer.from("zz", "hex"), Buffer.from("aGk", "base64").toString(), view.copy(Buffer.alloc(4), 0, 12), view.write("ab", 3), view.slice(3, 5).toString());

const emitter = new EventEmitter();
emitter.once("x", (...args) => say("once", ...args)).on("x", () => say("on")).prependListener("x", () => say("first"));
say(emitter.emit("x", 1), emitter.emit("x"), emitter.emit("y"), emitter.listenerCount("x"), emitter.eventNames(), attempt(() => emitter.emit("error", new TypeError("bad"))));
say(util.types.isDate(new Date()), util.types.isMap(new Map()), util.isDeepStrictEqual({ a: [1] }, { a: [1] }), util.isDeepStrictEqual([1], ["1"]), util.format("%s %o", "a", [1]));
say(util.inspect({ a: { b: { c: {} } } }, { depth: 0 }), util.inspect(new Map([[{ a: 1 }, new Set([1])]]), { compact: false }), util.inspect("x".repeat(5), { colors: true }), util.inspect({ get a() { return 1; } }, { getters: true }));
class Shown { [util.inspect.custom](depth, options) { return "<shown " + typeof options.stylize + ">"; } }
say(new Shown(), [new Shown()], { s: Symbol("a"), big: 1n, neg: -0, fn: class A extends Shown {}, err: new RangeError("e").message });
const decoder = new StringDecoder("utf8");
say(decoder.write(bytes.subarray(0, 2)), decoder.write(bytes.subarray(2, 4)), decoder.end(bytes.subarray(4)));

(async () => {
  const upper = () => new Transform({ transform(chunk, encoding, done) { done(null, String(chunk).toUpperCase()); } });
  const all = [];
  await piped(Readable.from(["a", "b", "c"]), upper(), new Writable({ write(chunk, encoding, done) { all.push(String(chunk)); setTimeout(done, 1); } }));
  say(all);
  for await (const item of Readable.from([{ n: 1 }, { n: 2 }]).map(({ n }) => n * 10)) say(item);
  pipeline(Readable.from(["x"]), new Transform({ transform(chunk, encoding, done) { done(new Error("broken")); } }), new PassThrough(), (error) => say("pipeline", error.message));
  const slow = new Writable({ highWaterMark: 2, write(chunk, encoding, done) { setImmediate(done); } });
  say(slow.write("abc"), slow.writableLength);
  slow.on("drain", () => { say("drained"); slow.end(); });
  finished(slow, (error) => say("finished", error));
  await once(slow, "finish");
  fs.writeFileSync("lines", "one\\r\\ntwo\\n\\nfour");
  for await (const line of readline.createInterface({ input: fs.createReadStream("lines", { highWaterMark: 3 }) })) say("line", line);
  await piped(fs.createReadStream("lines"), upper(), fs.createWriteStream("out"));
  say(fs.readFileSync("out", "utf8"));
  await piped(fs.createReadStream("none"), fs.createWriteStream("other")).catch(({ code }) => say(code));
  const reader = fs.createReadStream("lines", { start: 2, end: 6, encoding: "hex" });
  reader.on("open", (fd) => say(typeof fd)).on("data", (text) => say(text)).on("end", () => say("end")).on("close", () => say("close", reader.bytesRead));
  await once(reader, "close");
  say(await util.promisify(fs.readFile)("out", "latin1"), await util.promisify(setTimeout)(1, "later"));
  process.stdout.write("written\\n", () => say("told"));
  Readable.from(["to ", "stdout\\n"]).pipe(process.stdout);
})();
`;

test("the modules that are packages are what they are in Node", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "hermitcrab-"));
  t.after(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, "modules.cjs"), MODULES);
  const { stdout } = await promisify(execFile)(process.execPath, ["modules.cjs"], { cwd: directory });
  const env = await withNode({ "modules.cjs": MODULES });
  assert.deepEqual(await run(env, "node modules.cjs"), [0, stdout, ""]);
});

check("the error of a wrong module names its place", {
  files: { "a.mjs": "import fs from 'fs';\nconst a = ;\n" },
  command: "node a.mjs",
  exitCode: 1,
  stderr: /^SyntaxError: Unexpected token \(\/workspace\/a\.mjs:2:11\)/,
});
check("what a file is, its code says", {
  files: {
    "waits.js": "console.log(await Promise.resolve(typeof require));\n",
    "plain.js": "const text = 'export const a = 1';\nconsole.log(typeof require, text.length);\nif (text) return;\n",
    "both.js": "import('./waits.js').then(() => console.log('then', typeof module));\n",
    "anonymous.mjs": "export default class {}\n(0, console.log)('after');\n",
  },
  command: "for name in waits.js plain.js both.js anonymous.mjs; do node $name; done",
  stdout: "undefined\nfunction 18\nundefined\nthen object\nafter\n",
});

check("a directory is not copied into itself, whatever leads there", {
  files: { "w/c": "1" },
  command: `ln -s w l; node -e 'try { fs.cpSync("w", "l/x/y", { recursive: true }); } catch (error) { console.log(error.code); }'; find .`,
  stdout: "ERR_FS_CP_EINVAL\n.\n./l\n./w\n./w/c\n",
});

test("what a link leads to is news, though the link is none", async () => {
  const env = await withNode({ "real/a": "1" });
  const read = `node -p 'require("fs").readFileSync("link/a", "utf8")'`;
  assert.deepEqual(await run(env, `ln -s real link; ${read}; echo 2 > real/a; ${read}`), [0, "1\n2\n\n", ""]);
});

test("every call has globals of its own", async () => {
  const env = await withNode();
  const command = `node -e 'console.log(globalThis.mark, Array.prototype.mark); globalThis.mark = Array.prototype.mark = 1'`;
  for (let call = 0; call < 2; call += 1) assert.equal((await env.exec(command)).stdout, "undefined undefined\n");
});
