// Fresh projects with the packed tarballs in them, and what their tests share.
// `TARBALL` and `PYTHON_TARBALL` are the files that `cargo xtask npm` made.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { callStep, serveModel } from "../node/support.mjs";
import { HOSTED, SANDBOXED } from "./shared/scenario.js";

export const { TARBALL, PYTHON_TARBALL } = process.env;
const HERE = fileURLToPath(new URL(".", import.meta.url));
const SCRIPT = JSON.parse(await readFile(join(HERE, "shared/script.json"), "utf8"));
export const NPM = ["--no-audit", "--no-fund", "--no-save", "--loglevel=error"];
export const run = promisify(execFile);

export const RESULT = { worker: SANDBOXED, page: SANDBOXED, slim: HOSTED };

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
export const LENT = { page: ANSWERS, worker: ANSWERS };

/** Projects that lend Python, too. */
const WITH_PYTHON = ["vite", "webpack", "esbuild", "runtimes", "types"];

/** A copy of a project with the package in it. */
export async function project(t, name) {
  const directory = await mkdtemp(join(tmpdir(), `hermitcrab-${name}-`));
  t.after(() => rm(directory, { recursive: true }));
  await cp(join(HERE, "shared"), directory, { recursive: true });
  await cp(join(HERE, name), directory, { recursive: true });
  const tarballs = WITH_PYTHON.includes(name) ? [TARBALL, PYTHON_TARBALL] : [TARBALL];
  await run("npm", ["install", ...NPM, ...tarballs], { cwd: directory });
  return directory;
}

/** Addresses of scripted models, one per session. */
export async function models(t, count = 3) {
  const started = Array.from({ length: count }, () => serveModel(t, SCRIPT));
  return (await Promise.all(started)).map(({ url }) => url);
}

/** Sends what goes to the provider to `url`: examples name no address. */
export async function redirected(directory, url) {
  await writeFile(join(directory, "redirect.mjs"), `
    const { fetch } = globalThis;
    globalThis.fetch = (address, init) => fetch(typeof address === "string" ? address.replace("https://api.anthropic.com", ${JSON.stringify(url)}) : address, init);
  `);
  return { ...process.env, ANTHROPIC_API_KEY: "sk-test-0000", NODE_OPTIONS: "--import ./redirect.mjs", NEXT_TELEMETRY_DISABLED: "1", PORT: "0" };
}

/** Starts a server that prints its address; it ends with the test. */
export async function serving(t, args, options) {
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

/** A model that mends `app.sh`. */
export const FIX = { steps: [callStep("shell", { command: "sed -i s/hi/hello/ app.sh" }), { text: "It says hello." }] };
