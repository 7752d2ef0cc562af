// What the pages of the bench are served from: every subject as a bundler ships
// it, the compiled cores beside, and a model that answers as one does.

import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

import { body, together } from "./delta.mjs";

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const modules = fileURLToPath(new URL("./node_modules", import.meta.url));

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };

/** Where the compiled cores are; the bundles ask for them beside themselves. */
const CORES = {
  "hermitcrab_bg.wasm": join(root, "js/wasm"),
  "bashkit_wasm_bg.wasm": join(modules, "@everruns/bashkit-wasm"),
};

/** just-bash's own bundle names modules of Node that it does not need in a page. */
const withoutNode = {
  name: "without-node",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path }) => ({ path, namespace: "empty" }));
    onLoad({ filter: /.*/, namespace: "empty" }, () => ({ contents: "module.exports = {};" }));
  },
};

const ENTRIES = {
  page: join(root, "bench/web/page.js"),
  hermitcrab: join(root, "js/index.js"),
  worker: join(root, "js/worker.js"),
  "worker/main": join(root, "js/worker/main.js"),
  "bashkit-wasm": join(modules, "@everruns/bashkit-wasm/index.js"),
  "just-bash": join(modules, "just-bash/dist/bundle/browser.js"),
};

/**
 * Bundles every subject for itself, its lazy parts apart, and the page that runs them.
 * @returns {Promise<string>} the directory
 */
export async function bundle() {
  const directory = await mkdtemp(join(tmpdir(), "hermitcrab-bundle-"));
  for (const [name, file] of Object.entries(ENTRIES)) {
    await build({
      entryPoints: { [name]: file },
      outdir: directory,
      external: ["/bundle/*"],
      bundle: true,
      splitting: true,
      minify: true,
      format: "esm",
      platform: "browser",
      plugins: [withoutNode],
      logLevel: "error",
    });
  }
  return directory;
}

/** Text deltas of the answer that the page streams. */
export const DELTAS = 20_000;

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

/** Serves the bundles on loopback; `close` ends it and removes them. */
export async function serve() {
  const directory = await bundle();
  const fileOf = (path) => {
    if (path === "/") return join(root, "bench/web/page.html");
    if (!path.startsWith("/bundle/")) return undefined;
    const core = CORES[basename(path)];
    return core ? join(core, basename(path)) : join(directory, path.slice("/bundle/".length));
  };
  const server = createServer(async (request, response) => {
    if (request.method === "POST") return answer(request, response);
    const file = fileOf(normalize(new URL(request.url, "http://x").pathname));
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
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    directory,
    async close() {
      server.close();
      server.closeAllConnections();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
