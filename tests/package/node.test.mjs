// The packed tarballs, installed into fresh projects, without a page: Node, Bun,
// Deno, TypeScript, bundles for Node, an edge isolate, and the examples for Node.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { join } from "node:path";

import { examplesOf, runExample } from "../node/readme.mjs";
import { callStep, serveModel } from "../node/support.mjs";
import { FIX, LENT, NPM, PYTHON_TARBALL, RESULT, TARBALL, models, project, redirected, run } from "./project.mjs";
import { HOSTED, SANDBOXED } from "./shared/scenario.js";

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

for (const [file, expected] of [["isolate.js", SANDBOXED], ["isolate-slim.js", HOSTED]]) {
  test(`an edge isolate: ${file}`, async (t) => {
    const directory = await project(t, "workerd");
    const { stdout } = await run("node", ["run.mjs", file, ...(await models(t, 2))], { cwd: directory });
    assert.deepEqual(JSON.parse(stdout), [expected, expected]);
  });
}
