// `cargo xtask bench web`: sizes of what is downloaded, and the same work in
// Chromium for the web face and for the two peers on npm. Measures and prints;
// never judges. Arguments: the slim build's directory, the browser, cycles.

import { createReadStream } from "node:fs";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";

import { build } from "esbuild";
import { chromium } from "playwright-core";

import { body, nodeDelta, together } from "./delta.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const modules = fileURLToPath(new URL("./node_modules", import.meta.url));
const [slim, browser, cycles = "3"] = process.argv.slice(2);

const ARGUMENTS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".wasm": "application/wasm",
};

/** just-bash as a bundler ships it, lazy parts apart; its own bundle names other packages. */
const bundle = await mkdtemp(join(tmpdir(), "hermitcrab-bundle-"));
const withoutNode = {
  name: "without-node",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path }) => ({ path, namespace: "empty" }));
    onLoad({ filter: /.*/, namespace: "empty" }, () => ({ contents: "module.exports = {};" }));
  },
};
await build({
  entryPoints: [join(modules, "just-bash/dist/bundle/browser.js")],
  outdir: bundle,
  bundle: true,
  splitting: true,
  minify: true,
  format: "esm",
  platform: "browser",
  plugins: [withoutNode],
  logLevel: "error",
});

/** Text deltas of the answer that the page streams. */
const DELTAS = 20_000;

/** Answers a request of `/few` or `/many` as a model does. */
async function answer(request, response) {
  const count = request.url.startsWith("/many") ? DELTAS : 1;
  request.resume();
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const chunk of together(body("anthropic", count))) {
    // In turns, so that the network does not glue it all together.
    if (!response.write(chunk)) await new Promise((resolve) => response.once("drain", resolve));
    await new Promise(setImmediate);
  }
  response.end();
}

/** Serves the workspace's `js/` and `bench/web/`, and the peers as `/modules/`. */
async function serve() {
  const server = createServer(async (request, response) => {
    if (request.method === "POST") return answer(request, response);
    const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
    const file = path.startsWith("/bundle/")
      ? join(bundle, path.slice("/bundle/".length))
      : path.startsWith("/modules/")
      ? join(modules, path.slice("/modules/".length))
      : /^\/(js|bench\/web)\//.test(path) && join(root, path);
    const info = file ? await stat(file).catch(() => undefined) : undefined;
    if (!info?.isFile()) return response.writeHead(404).end();
    // What may be kept is kept compiled: browsers cache code with its response.
    response.writeHead(200, {
      "content-type": TYPES[extname(file)] ?? "application/octet-stream",
      "content-length": info.size,
      "cache-control": "public, max-age=86400",
    });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** One load of the page in a browser of its own, with the profile given. */
async function load(profile, url, work) {
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: browser,
    headless: true,
    chromiumSandbox: false,
    args: ARGUMENTS,
  });
  try {
    const page = context.pages()[0] ?? (await context.newPage());
    await page.goto(`${url}/bench/web/page.html`);
    await page.waitForFunction(() => document.title === "ready");
    const result = await work(page);
    // The compiler writes its cache a moment after the code is hot.
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

async function sizes() {
  const built = (directory) => ["hermitcrab_bg.wasm", "hermitcrab.js"].map((file) => join(directory, file));
  const rows = [
    ["hermitcrab", built(join(root, "js/wasm"))],
    ["hermitcrab, slim", built(slim)],
    [
      "@everruns/bashkit-wasm",
      ["bashkit_wasm_bg.wasm", "bashkit_wasm.js"].map((file) => join(modules, "@everruns/bashkit-wasm", file)),
    ],
    ["just-bash, bundled, without its lazy parts", [join(bundle, "browser.js")]],
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
  const names = ["hermitcrab", "bashkit-wasm", "just-bash"];
  const results = new Map(names.map((name) => [name, []]));
  for (let cycle = 0; cycle < Number(cycles); cycle += 1) {
    for (const name of names) {
      const profile = await mkdtemp(join(tmpdir(), "hermitcrab-bench-"));
      try {
        const measure = (page) => page.evaluate((subject) => window.measure(subject), name);
        const cold = await load(profile, url, measure);
        const second = await load(profile, url, measure);
        results.get(name).push({ ...second, cold: cold.init });
      } finally {
        await rm(profile, { recursive: true, force: true });
      }
    }
  }
  console.log(`\nin Chromium, the page's own thread; medians of ${cycles} cycles, an empty profile each\n`);
  console.log(`| measure, ms | ${names.join(" | ")} |\n|---|${names.map(() => "---|").join("")}`);
  const rows = [
    ["first load: fetch, compile, start", "cold"],
    ["second load with the same profile", "init"],
    ["first command (`echo hi`)", "first"],
    ["import of 1,000 files, 5 MB", "imported"],
    ["`grep -rn` over them, first", "grepFirst"],
    ["`grep -rn` over them, warm", "grep"],
  ];
  for (const [label, field] of rows) {
    const values = names.map((name) => ms(median(results.get(name).map((result) => result[field]))));
    console.log(`| ${label} | ${values.join(" | ")} |`);
  }
}

await sizes();
const server = await serve();
const url = `http://127.0.0.1:${server.address().port}`;
await pages(url);
const perDelta = [];
for (let cycle = 0; cycle < Number(cycles); cycle += 1) perDelta.push(await workerDelta(url));
console.log(`\ntime of the page's thread per delta streamed through the worker: ${median(perDelta).toFixed(2)} µs`);
server.close();
server.closeAllConnections();
await rm(bundle, { recursive: true, force: true });
console.log("\n| CPU per streamed delta in Node, µs | together | one by one |\n|---|---|---|");
for (const provider of ["openai", "anthropic", "gemini", "chat"]) {
  const [together, single] = await nodeDelta(provider, Number(cycles));
  console.log(`| ${provider} | ${together.toFixed(2)} | ${single.toFixed(2)} |`);
}
