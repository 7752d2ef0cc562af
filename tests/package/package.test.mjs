// The packed tarballs, installed into fresh projects: Node, Bun, Deno, Vite,
// webpack, esbuild, Next.js, React, pages without a bundler, an edge isolate,
// TypeScript; and the examples in them. `TARBALL` and `PYTHON_TARBALL` are the
// files that `cargo xtask npm` made.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { STRICT, launch, resultOf, serveFiles } from "../browser/page.mjs";
import { examplesOf, runExample } from "../node/readme.mjs";
import { callStep, serveModel } from "../node/support.mjs";
import { HOSTED, SANDBOXED } from "./shared/scenario.js";

const { TARBALL, PYTHON_TARBALL } = process.env;
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

/** Projects that lend Python, too. */
const WITH_PYTHON = ["vite", "webpack", "esbuild", "runtimes", "types"];

/** A copy of a project with the package in it. */
async function project(t, name) {
  const directory = await mkdtemp(join(tmpdir(), `hermitcrab-${name}-`));
  t.after(() => rm(directory, { recursive: true }));
  await cp(join(HERE, "shared"), directory, { recursive: true });
  await cp(join(HERE, name), directory, { recursive: true });
  const tarballs = WITH_PYTHON.includes(name) ? [TARBALL, PYTHON_TARBALL] : [TARBALL];
  await run("npm", ["install", ...NPM, ...tarballs], { cwd: directory });
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
  for (const file of ["README.md", "CHANGELOG.md", "docs/script.md", "docs/events.schema.json", "examples/service.mjs", "LICENSE-MIT", "LICENSE-APACHE", "types/index.d.ts", "js/wasm/hermitcrab_bg.wasm"]) {
    assert.ok(files.includes(file), file);
  }
  const manifest = JSON.parse(await readFile(join(directory, "node_modules/hermitcrab/package.json"), "utf8"));
  for (const field of ["private", "scripts", "dependencies", "devDependencies"]) assert.equal(manifest[field], undefined);
  assert.match(manifest.homepage, /^https:/);
  // What documents and types point to is there.
  const package_ = join(directory, "node_modules/hermitcrab");
  for (const file of files.filter((file) => /\.(md|d\.ts)$/.test(file))) {
    const text = await readFile(join(package_, file), "utf8");
    const links = [...text.matchAll(/\]\(([^):#]+)\)/g)].map(([, link]) => join(file, "..", link));
    const named = [...text.matchAll(/\b(docs\/[a-z.]+\.(?:md|json)|js\/README\.md)/g)].map(([, name]) => (name === "js/README.md" ? "README.md" : name));
    if (file === "CHANGELOG.md") continue;
    for (const target of [...links, ...(file.startsWith("docs/") ? [] : named)]) assert.ok(files.includes(target), `${file} points to ${target}`);
  }
  const { size } = await stat(TARBALL);
  assert.ok(size < 6e6, `${size} bytes`);
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
    zod: ["2 7", { n: 1 }],
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

test("TypeScript, strict, with the DOM library and without", async (t) => {
  const directory = await project(t, "types");
  for (const file of ["tsconfig.json", "tsconfig.node.json"]) {
    const { stdout } = await run("npx", ["tsc", "--project", file], { cwd: directory }).catch((error) => error);
    assert.equal(stdout, "", file);
  }
});

test("Python that is not installed is reported, with the way out", async (t) => {
  const directory = await project(t, "node");
  await writeFile(join(directory, "python.mjs"), `
    import { MemoryEnvironment } from "hermitcrab";
    import { pythonProgram } from "hermitcrab/python";
    const env = await MemoryEnvironment.create({ programs: { python3: pythonProgram() } });
    const { exitCode, stdout, stderr } = await env.exec("python3 -c 'print(6 * 7)'");
    console.log(JSON.stringify([exitCode, stdout, stderr]));
  `);
  const play = async () => JSON.parse((await run("node", ["python.mjs"], { cwd: directory })).stdout);
  const missing = "the package hermitcrab-python, which holds Python, is not there; install it with npm install hermitcrab-python, or say with pythonProgram({ url }) where its python.tar.gz is";
  assert.deepEqual(await play(), [127, "", `python3: ${missing}\n`]);
  await run("npm", ["install", ...NPM, TARBALL, PYTHON_TARBALL], { cwd: directory });
  assert.deepEqual(await play(), [0, "42\n", ""]);
});

test("bundled by webpack for Node", async (t) => {
  const directory = await project(t, "webpack-node");
  await run("npm", ["run", "build"], { cwd: directory });
  const { stdout } = await run("node", ["dist/main.js"], { cwd: directory, timeout: 60_000 });
  assert.equal(stdout, "42\n42\n");
});

test("bundled by esbuild for Node: without the package it works, with it the way out is named", async (t) => {
  const directory = await project(t, "esbuild-node");
  await run("npm", ["run", "build"], { cwd: directory });
  const printed = async (file) => (await run("node", [`dist/${file}`], { cwd: directory, timeout: 60_000 })).stdout;
  assert.equal(await printed("external.mjs"), "42\n42\n");
  const remedy = 'in a bundle, leave hermitcrab out of it (esbuild: external: ["hermitcrab", "hermitcrab/*"], Next.js: serverExternalPackages: ["hermitcrab"])';
  for (const file of ["inside.mjs", "inside.cjs"]) {
    const [core, worker] = (await printed(file)).trimEnd().split("\n");
    assert.ok(core.startsWith("the core cannot be loaded: ") && core.endsWith(`; ${remedy}, or say with init({ wasm }) where hermitcrab/hermitcrab.wasm is`), core);
    assert.ok(worker.startsWith("the worker cannot be started: ") && worker.endsWith(`; ${remedy}, or start hermitcrab/worker/main yourself: init({ worker })`), worker);
  }
});

/** Sends what goes to the provider to `url`: examples name no address. */
async function redirected(directory, url) {
  await writeFile(join(directory, "redirect.mjs"), `
    const { fetch } = globalThis;
    globalThis.fetch = (address, init) => fetch(typeof address === "string" ? address.replace("https://api.anthropic.com", ${JSON.stringify(url)}) : address, init);
  `);
  return { ...process.env, ANTHROPIC_API_KEY: "sk-test-0000", NODE_OPTIONS: "--import ./redirect.mjs", NEXT_TELEMETRY_DISABLED: "1", PORT: "0" };
}

/** Starts a server that prints its address; it ends with the test. */
async function serving(t, args, options) {
  const child = spawn("node", args, { ...options, stdio: ["ignore", "pipe", "inherit"] });
  t.after(async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  let printed = "";
  return new Promise((resolve, reject) => {
    // To its end: a server whose output nobody takes any more may end.
    child.stdout.on("data", (data) => {
      printed += data;
      const [, port] = /https?:\/\/(?:127\.0\.0\.1|localhost):(\d+)/.exec(printed) ?? [];
      if (port) resolve(`http://127.0.0.1:${port}`);
    });
    child.once("exit", () => reject(new Error(`it ended: ${printed}`)));
  });
}

const FIX = { steps: [callStep("shell", { command: "sed -i s/hi/hello/ app.sh" }), { text: "It says hello." }] };

test("the example for Next.js", async (t) => {
  const directory = await project(t, "next");
  await cp(join(directory, "node_modules/hermitcrab/examples/next"), directory, { recursive: true });
  await run("npm", ["run", "build"], { cwd: directory, env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" } });
  const env = await redirected(directory, (await serveModel(t, { steps: [callStep("shell", { command: "echo hi" }), { text: "Hello there." }] })).url);
  const url = await serving(t, ["node_modules/next/dist/bin/next", "start", "--hostname", "127.0.0.1"], { cwd: directory, env });
  const response = await fetch(`${url}/api/agent`, { method: "POST", body: JSON.stringify({ task: "go" }) });
  assert.equal(await response.text(), "Hello there.");
});

test("the examples for Node", async (t) => {
  const directory = await project(t, "examples");
  const examples = join(directory, "node_modules/hermitcrab/examples");
  await cp(examples, directory, { recursive: true });
  const play = async (script, args, input = "") => {
    const env = await redirected(directory, (await serveModel(t, script)).url);
    const child = execFile("node", args, { cwd: directory, env, timeout: 60_000 });
    let printed = "";
    child.stdout.on("data", (data) => (printed += data));
    // Said when it is asked for.
    child.stderr.on("data", (data) => String(data).includes("allow?") && child.stdin.write(input));
    const [code] = await once(child, "close");
    return [code, printed.trimEnd().split("\n")];
  };
  assert.equal((await play(FIX, ["--test", "testing.mjs"]))[0], 0);

  await writeFile(join(directory, "app.sh"), "echo hi\n");
  assert.deepEqual(await play(FIX, ["approvals.mjs"], "y\n"), [0, ["It says hello."]]);
  assert.equal(await readFile(join(directory, "app.sh"), "utf8"), "echo hello\n");
  await writeFile(join(directory, "app.sh"), "echo hi\n");
  await play({ steps: [FIX.steps[0], { expect: { contains: "use a comment" }, text: "Well." }] }, ["approvals.mjs"], "use a comment\n");
  assert.equal(await readFile(join(directory, "app.sh"), "utf8"), "echo hi\n");

  const agents = {
    steps: [
      { match: { contains: "Make both scripts" }, ...callStep("spawn_agent", { task: "do a.sh" }) },
      { match: { contains: "do a.sh", not_contains: "Make both scripts" }, text: "a.sh is done." },
      { match: { contains: "Make both scripts" }, ...callStep("wait", { agent_id: "agent-1" }) },
      { match: { contains: "Make both scripts" }, text: "All done." },
    ],
  };
  const [, lines] = await play(agents, ["subagents.mjs"]);
  for (const line of ["main begins: Make both scripts print in capitals.", "main calls spawn_agent", "agent-1 begins: do a.sh", "agent-1 says: a.sh is done.", "main says: All done."]) {
    assert.ok(lines.includes(line), `${line}: ${lines.join("; ")}`);
  }

  // Killed in the middle, it goes on where it was.
  const write = (n) => callStep("write_file", { file_path: `/workspace/${n}`, content: String(n) });
  const held = await serveModel(t, { steps: [write(1), { hold: "never", text: "" }] });
  const first = spawn("node", ["resume.mjs"], { cwd: directory, env: await redirected(directory, held.url), stdio: "ignore" });
  await held.held("never");
  const saved = () => readFile(join(directory, "state.json"), "utf8").then((text) => JSON.parse(text).files, () => undefined);
  while (!(await saved())) await new Promise((resolve) => setTimeout(resolve, 5));
  first.kill("SIGKILL");
  await once(first, "exit");
  assert.deepEqual(await play({ steps: [write(2), { text: "Done." }] }, ["resume.mjs"]), [0, ["write_file: ok", "1: 1", "2: 2"]]);
});

test("the example of a service", async (t) => {
  const directory = await project(t, "examples");
  await cp(join(directory, "node_modules/hermitcrab/examples"), directory, { recursive: true });
  const env = await redirected(directory, (await serveModel(t, FIX)).url);
  const url = await serving(t, ["service.mjs"], { cwd: directory, env });
  const response = await fetch(url, { method: "POST", body: JSON.stringify({ task: "make it say hello", files: { "app.sh": "echo hi\n" } }) });
  const lines = (await response.text()).trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.at(-1), { path: "/workspace/app.sh", change: "changed", content: "echo hello\n" });
  assert.ok(lines.some(({ kind }) => kind === "PROCESSING_END"));
  const wrong = await fetch(url, { method: "POST", body: JSON.stringify({ files: { a: 1 } }) });
  assert.match(await wrong.text(), /"kind":"invalid_input"/);
});

for (const name of ["react", "worker"]) {
  test(`the example of a page: ${name}`, async (t) => {
    const directory = await project(t, "react");
    await cp(join(directory, "node_modules/hermitcrab/examples", name), directory, { recursive: true });
    await run("npm", ["run", "build"], { cwd: directory });
    const model = await serveModel(t, FIX);
    const url = await serveFiles(t, join(directory, "dist"));
    const page = await (await launch(t)).newPage();
    await page.addInitScript(() => sessionStorage.setItem("key", "sk-test-0000"));
    await page.context().route("https://api.anthropic.com/**", async (route) => {
      const response = await route.fetch({ url: route.request().url().replace("https://api.anthropic.com", model.url) });
      await route.fulfill({ response, headers: { ...response.headers(), "access-control-allow-origin": "*" } });
    });
    await page.goto(url);
    await page.click("button:not([disabled]) >> text=Run");
    await page.waitForFunction(() => document.body.textContent.includes("It says hello."));
  });
}

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

test("a page bundled by esbuild that does not say where its programs are gets a sentence that says how", async (t) => {
  const directory = await project(t, "esbuild");
  await run("npm", ["run", "build"], { cwd: directory });
  await cp(join(directory, "lost.html"), join(directory, "dist/lost.html"));
  const url = await serveFiles(t, join(directory, "dist"));
  const { result, told } = await resultOf(await launch(t), `${url}/lost.html`);
  const lost = (program, entry) =>
    `its script could not be loaded; make hermitcrab/${entry}/worker an entry point of your bundle, and say with ${program}({ worker }) where it is\n`;
  assert.deepEqual(result, [
    [134, `node: ended by an error of its worker: ${lost("jsProgram", "javascript")}`],
    // The archive lies in the bundle, by the page's own import.
    [134, `python3: ended by an error of its worker: ${lost("pythonProgram", "python")}`],
    [134, `python3: ended by an error of its worker: ${lost("pythonProgram", "python")}`],
  ]);
  const missing = ["javascript-worker.js", "python-worker.js"];
  assert.deepEqual([...new Set(told)], missing.map((file) => `404 ${url}/${file}`));
});

for (const [file, expected] of [["isolate.js", SANDBOXED], ["isolate-slim.js", HOSTED]]) {
  test(`an edge isolate: ${file}`, async (t) => {
    const directory = await project(t, "workerd");
    const { stdout } = await run("node", ["run.mjs", file, ...(await models(t, 2))], { cwd: directory });
    assert.deepEqual(JSON.parse(stdout), [expected, expected]);
  });
}
