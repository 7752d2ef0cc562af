// The packed tarball, installed into fresh projects: Node, Bun, Deno,
// Vite, webpack, esbuild, pages without a bundler, an edge isolate, TypeScript. `TARBALL` is
// the file that `cargo xtask npm` made.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { test } from "node:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { STRICT, launch, resultOf, serveFiles } from "../browser/page.mjs";
import { examplesOf, runExample } from "../node/readme.mjs";
import { callStep, serveModel } from "../node/support.mjs";
import { HOSTED, SANDBOXED } from "./shared/scenario.js";

const { TARBALL } = process.env;
const HERE = fileURLToPath(new URL(".", import.meta.url));
const SCRIPT = JSON.parse(await readFile(join(HERE, "shared/script.json"), "utf8"));
const NPM = ["--no-audit", "--no-fund", "--no-save", "--loglevel=error"];
const run = promisify(execFile);

const RESULT = { worker: SANDBOXED, page: SANDBOXED, slim: HOSTED };

/** What `lent` gives: `[exitCode, stdout, stderr]` of each command. */
const ANSWERS = [
  [0, "42 undefined undefined\n", ""],
  [0, "42", ""],
  [
    1,
    "",
    "Error: boom\n    at f (/workspace/boom.js:2:9)\n    at <module> (/workspace/boom.js:4:1)\n\nNode.js v22.0.0 (sandbox)\n",
  ],
  [0, "42 1024\n", ""],
];
const LENT = { page: ANSWERS, worker: ANSWERS };

/** A copy of a project with the package in it. */
async function project(t, name) {
  const directory = await mkdtemp(join(tmpdir(), `hermitcrab-${name}-`));
  t.after(() => rm(directory, { recursive: true }));
  await cp(join(HERE, "shared"), directory, { recursive: true });
  await cp(join(HERE, name), directory, { recursive: true });
  await run("npm", ["install", ...NPM, TARBALL], { cwd: directory });
  return directory;
}

/** Addresses of scripted models, one per session. */
async function models(t, count = 3) {
  const started = Array.from({ length: count }, () => serveModel(t, SCRIPT));
  return (await Promise.all(started)).map(({ url }) => url);
}

async function checkPage(t, root, { path = "", policy, lent } = {}) {
  const url = await serveFiles(t, root, { policy });
  const browser = await launch(t);
  const { result, told } = await resultOf(browser, `${url}/${path}?models=${await models(t)}`);
  assert.deepEqual(result, { ...RESULT, isolated: false, ...(lent && { lent }) });
  assert.deepEqual(told, []);
}

test("the package holds what it needs and nothing else", async (t) => {
  const directory = await project(t, "node");
  const files = await readdir(join(directory, "node_modules/hermitcrab"), { recursive: true });
  const odd = files.filter((file) => /\.test\.|^tests|tsconfig|\.map$|node_modules|\.rs$|\.toml$/.test(file));
  assert.deepEqual(odd, []);
  for (const file of ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "types/index.d.ts", "js/wasm/hermitcrab_bg.wasm"]) {
    assert.ok(files.includes(file), file);
  }
  const manifest = JSON.parse(await readFile(join(directory, "node_modules/hermitcrab/package.json"), "utf8"));
  for (const field of ["private", "scripts", "dependencies", "devDependencies"]) assert.equal(manifest[field], undefined);
  const targets = (entry) => (typeof entry === "string" ? [entry] : Object.values(entry).flatMap(targets));
  for (const target of targets(manifest.exports)) {
    assert.ok(files.includes(target.slice(2)), target);
  }
});

test("Node", async (t) => {
  const directory = await project(t, "node");
  const { stdout } = await run("node", ["main.js", ...(await models(t))], { cwd: directory });
  assert.deepEqual(JSON.parse(stdout), {
    ...RESULT,
    same: true,
    files: ["hermitcrab_bg.wasm", "hermitcrab_bg.wasm"],
  });
});

for (const [name, order] of [["bun", ["run", "main.js"]], ["deno", ["run", "--allow-all", "main.js"]]]) {
  test(`the same in ${name}`, async (t) => {
    const directory = await project(t, "runtimes");
    const program = join(directory, "node_modules/.bin", name);
    const { stdout } = await run(program, [...order, ...(await models(t))], { cwd: directory, timeout: 60_000 });
    // Engines differ in what they call the top of a program, and where in its line they see a call.
    const told = stdout.replaceAll(/at <\w+> \(([^:]*:\d+):\d+\)/g, "at <module> ($1:1)");
    assert.deepEqual(JSON.parse(told), { ...RESULT, lent: LENT });
  });
}

test("the example of the README, as it stands", async (t) => {
  const directory = await project(t, "node");
  const [example] = examplesOf(await readFile(join(directory, "node_modules/hermitcrab/README.md"), "utf8"));
  const file_path = "app.py";
  const { url } = await serveModel(t, {
    steps: [
      callStep("read_file", { file_path }),
      callStep("edit_file", { file_path, old_string: "hi", new_string: "hello" }),
      { text: "It says hello." },
    ],
  });
  const { stdout } = await runExample(t, directory, example, url);
  assert.equal(stdout.trimEnd().split("\n").at(-1), "print('hello')");
});

test("TypeScript, strict", async (t) => {
  const directory = await project(t, "types");
  const { stdout } = await run("npx", ["tsc", "--project", "."], { cwd: directory }).catch((error) => error);
  assert.equal(stdout, "");
});

test("pages without a bundler", async (t) => {
  await checkPage(t, await project(t, "plain"));
});

test("a page under a strict content security policy", async (t) => {
  await checkPage(t, await project(t, "plain"), { path: "strict.html", policy: STRICT });
});

for (const [name, root] of [["vite", "dist"], ["webpack", "dist"], ["esbuild", "dist"]]) {
  test(`bundled by ${name}`, async (t) => {
    const directory = await project(t, name);
    await run("npm", ["run", "build"], { cwd: directory });
    if (name !== "vite") await cp(join(directory, "index.html"), join(directory, root, "index.html"));
    await checkPage(t, join(directory, root), { lent: LENT });
  });
}

test("a page bundled by esbuild that does not say where its programs are is told how to", async (t) => {
  const directory = await project(t, "esbuild");
  await run("npm", ["run", "build"], { cwd: directory });
  await cp(join(directory, "lost.html"), join(directory, "dist/lost.html"));
  const url = await serveFiles(t, join(directory, "dist"));
  const { result, told } = await resultOf(await launch(t), `${url}/lost.html`);
  const lost = (program, entry) =>
    `its script could not be loaded; make hermitcrab/${entry}/worker an entry point of your bundle, and say with ${program}({ worker }) where it is\n`;
  assert.deepEqual(result, [
    [134, `node: ended by an error of its worker: ${lost("jsProgram", "javascript")}`],
    [126, `python3: cannot download ${url.replace(/\/$/, "")}/python/python.tar.gz: status 404; pythonProgram({ url }) says where python.tar.gz is\n`],
    [134, `python3: ended by an error of its worker: ${lost("pythonProgram", "python")}`],
  ]);
  const missing = ["javascript-worker.js", "python/python.tar.gz", "python-worker.js"];
  assert.deepEqual(told, missing.map((file) => `404 ${url}/${file}`));
});

for (const [file, expected] of [["isolate.js", SANDBOXED], ["isolate-slim.js", HOSTED]]) {
  test(`an edge isolate: ${file}`, async (t) => {
    const directory = await project(t, "workerd");
    const { stdout } = await run("node", ["run.mjs", file, ...(await models(t, 2))], { cwd: directory });
    assert.deepEqual(JSON.parse(stdout), [expected, expected]);
  });
}
