// The packed tarballs, installed into fresh projects, as visitors of a site meet
// them: servers, pages of Vite, webpack, esbuild and React, pages without a bundler.

import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { test } from "node:test";
import { join } from "node:path";

import { STRICT, launch, resultOf, serveFiles } from "../browser/page.mjs";
import { callStep, serveModel } from "../node/support.mjs";
import { FIX, LENT, RESULT, models, project, redirected, run, serving } from "./project.mjs";

async function checkPage(t, root, { path = "", policy, lent } = {}) {
  const url = await serveFiles(t, root, { policy });
  const browser = await launch(t);
  const { result, told } = await resultOf(browser, `${url}/${path}?models=${await models(t)}`);
  assert.deepEqual(result, { ...RESULT, isolated: false, ...(lent && { lent }) });
  assert.deepEqual(told, []);
}

test("the example for Next.js", async (t) => {
  const directory = await project(t, "next");
  await cp(join(directory, "node_modules/hermitcrab/examples/next"), directory, { recursive: true });
  await run("npm", ["run", "build"], { cwd: directory, env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" } });
  const env = await redirected(directory, (await serveModel(t, { steps: [callStep("shell", { command: "echo hi" }), { text: "Hello there." }] })).url);
  const url = await serving(t, ["node_modules/next/dist/bin/next", "start", "--hostname", "127.0.0.1"], { cwd: directory, env });
  const response = await fetch(`${url}/api/agent`, { method: "POST", body: JSON.stringify({ task: "go" }) });
  assert.equal(await response.text(), "Hello there.");
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
