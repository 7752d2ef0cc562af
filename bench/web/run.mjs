// `cargo xtask bench web`: sizes of what is downloaded, and the same work in
// Chromium for the web face and for the two peers on npm. Measures and prints;
// never judges. Arguments: the slim build's directory, the browser, cycles.

import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";

import { chromium } from "playwright-core";

import { nodeDelta } from "./delta.mjs";
import { DELTAS, modules, root, serve } from "./server.mjs";

const [slim, browser, cycles = "3"] = process.argv.slice(2);

const ARGUMENTS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Until a browser that was just started has done what it does for itself, ms. */
const SETTLED = 1_500;

/** Until the engine has compiled what its cache names, ms. */
const COMPILED = 50;

/** What a visitor takes to type a first command at the very least, ms. */
const TYPED = 500;

/** One load of the page in a fresh browser, with the profile given. */
async function load(profile, url, work) {
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: browser,
    headless: true,
    chromiumSandbox: false,
    args: ARGUMENTS,
  });
  try {
    const page = context.pages()[0] ?? (await context.newPage());
    await page.goto(url);
    await page.waitForFunction(() => document.title === "ready");
    await page.waitForTimeout(SETTLED);
    const result = await work(page);
    // Compiled code is written a moment later.
    await page.waitForTimeout(3_000);
    return result;
  } finally {
    await context.close();
  }
}

async function brotli(...files) {
  let bytes = 0;
  for (const file of files) {
    const content = await readFile(file);
    const packed = await promisify(brotliCompress)(content, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: 11,
        [constants.BROTLI_PARAM_LGWIN]: 24,
        [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
      },
    });
    bytes += packed.length;
  }
  return bytes;
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const mb = (bytes) => (bytes / 1e6).toFixed(2);
const ms = (value) => value.toFixed(1);

async function sizes(directory) {
  const built = (directory) => ["hermitcrab_bg.wasm", "hermitcrab.js"].map((file) => join(directory, file));
  const rows = [
    ["hermitcrab", built(join(root, "js/wasm"))],
    ["hermitcrab, slim", built(slim)],
    [
      "@everruns/bashkit-wasm",
      ["bashkit_wasm_bg.wasm", "bashkit_wasm.js"].map((file) => join(modules, "@everruns/bashkit-wasm", file)),
    ],
    ["just-bash, bundled, without its lazy parts", [join(directory, "just-bash.js")]],
  ];
  console.log("| download | raw, MB | brotli 11, MB |\n|---|---|---|");
  for (const [name, files] of rows) {
    const raw = await Promise.all(files.map(async (file) => (await stat(file)).size));
    console.log(`| ${name} | ${mb(raw.reduce((a, b) => a + b))} | ${mb(await brotli(...files))} |`);
  }
}

/** Time of the page's own thread per delta that a worker streams to it, in µs. */
async function workerDelta(url) {
  const profile = await mkdtemp(join(tmpdir(), "hermitcrab-bench-"));
  try {
    return await load(profile, url, async (page) => {
      const metrics = await page.context().newCDPSession(page);
      await metrics.send("Performance.enable", { timeDomain: "threadTicks" });
      const used = async (path) => {
        const busy = async () => {
          const list = (await metrics.send("Performance.getMetrics")).metrics;
          return list.find((metric) => metric.name === "TaskDuration").value * 1e6;
        };
        const before = await busy();
        const deltas = await page.evaluate((base) => window.stream(base), `${url}${path}`);
        return [(await busy()) - before, deltas];
      };
      // The first one starts the worker.
      await used("/few");
      const [few] = await used("/few");
      const [many, deltas] = await used("/many");
      if (deltas !== DELTAS) throw new Error(`the page saw ${deltas} deltas of ${DELTAS}`);
      return (many - few) / DELTAS;
    });
  } finally {
    await rm(profile, { recursive: true, force: true });
  }
}

async function pages(url) {
  const names = ["hermitcrab", "hermitcrab/worker", "bashkit-wasm", "just-bash"];
  const results = new Map(names.map((name) => [name, []]));
  for (let cycle = 0; cycle < Number(cycles); cycle += 1) {
    for (const name of names) {
      const profile = await mkdtemp(join(tmpdir(), "hermitcrab-bench-"));
      const measure = (visitor) => (page) => page.evaluate((both) => window.measure(...both), [name, visitor]);
      try {
        const cold = await load(profile, url, measure({ looks: true }));
        const second = await load(profile, url, measure({}));
        const third = await load(profile, url, measure({ rest: COMPILED }));
        const fourth = await load(profile, url, measure({ rest: TYPED }));
        await load(profile, url, measure({ works: true }));
        const later = await load(profile, url, measure({}));
        results.get(name).push({ cold, second, third, fourth, later });
      } finally {
        await rm(profile, { recursive: true, force: true });
      }
    }
  }
  console.log(`\nin Chromium, as the page's thread waits for it; medians of ${cycles} cycles, an empty profile each\n`);
  console.log(`| measure, ms | ${names.join(" | ")} |\n|---|${names.map(() => "---|").join("")}`);
  const rows = [
    ["first load: its script", "cold", "script"],
    ["first load: fetch, compile, start", "cold", "init"],
    ["first load: first command (`echo hi`)", "cold", "first"],
    ["second load: its script", "second", "script"],
    ["second load: fetch, compile, start", "second", "init"],
    ["the same bytes once more, read and not compiled", "second", "bytes"],
    ["second load: first command (`echo hi`)", "second", "first"],
    [`third load: first command, ${COMPILED} ms later`, "third", "first"],
    [`fourth load: first command, ${TYPED} ms later`, "fourth", "first"],
    ["after much work: fetch, compile, start", "later", "init"],
    ["after much work: first command (`echo hi`)", "later", "first"],
    ["import of 1,000 files, 5 MB", "second", "imported"],
    ["`grep -rn` over them, first", "second", "grepFirst"],
    ["`grep -rn` over them, warm", "second", "grep"],
  ];
  for (const [label, turn, field] of rows) {
    const values = names.map((name) => ms(median(results.get(name).map((result) => result[turn][field]))));
    console.log(`| ${label} | ${values.join(" | ")} |`);
  }
}

const { url, directory, close } = await serve();
await sizes(directory);
await pages(url);
const perDelta = [];
for (let cycle = 0; cycle < Number(cycles); cycle += 1) perDelta.push(await workerDelta(url));
console.log(`\ntime of the page's thread per delta streamed through the worker: ${median(perDelta).toFixed(2)} µs`);
await close();
console.log("\n| CPU per streamed delta in Node, µs | together | one by one |\n|---|---|---|");
for (const provider of ["openai", "anthropic", "gemini", "chat"]) {
  const [together, single] = await nodeDelta(provider, Number(cycles));
  console.log(`| ${provider} | ${together.toFixed(2)} | ${single.toFixed(2)} |`);
}
