// Builds the playground into `dist/`: static files that any host can serve.

import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

import { compressed } from "./compressed.js";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/**
 * What the page may do. Scripts come from its own origin only, and nothing is
 * evaluated but WebAssembly. Styles are inline because the editor and the
 * terminal write their own. Providers and proxies may be anywhere.
 */
const POLICY = [
  "default-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self' https: http://localhost:* http://127.0.0.1:*",
  "worker-src 'self' blob:",
  "frame-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** Files of `public/` that the page asks for. */
const PUBLIC = ["boot.js", "icon.svg", "preview.html", "preview-online.html", "node.html"];

/** Puts the policy into the built page; the dev server needs inline scripts. */
function policy() {
  return {
    name: "policy",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler(_html, { filename }) {
        if (!filename.endsWith("index.html")) return [];
        const attrs = { "http-equiv": "Content-Security-Policy", content: POLICY };
        return [{ tag: "meta", attrs, injectTo: "head-prepend" }];
      },
    },
  };
}

/** Writes `sw.js` with the list of built files, so that a reload works offline. */
function offline() {
  return {
    name: "offline",
    apply: "build",
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        const all = Object.keys(bundle);
        const files = all.filter((name) => !/\.(map|gz)$/.test(name));
        const hash = createHash("sha256");
        for (const name of files.sort()) {
          const { code, source } = bundle[name];
          hash.update(name).update(code ?? source);
        }
        const version = hash.digest("hex").slice(0, 16);
        const source = readFileSync(here("src/page/service-worker.js"), "utf8")
          .replace("__VERSION__", JSON.stringify(version))
          .replace("__FILES__", JSON.stringify([...files, ...PUBLIC]))
          // Python is only for those who call it.
          .replace("__LARGE__", JSON.stringify(all.filter((name) => name.endsWith(".gz"))));
        this.emitFile({ type: "asset", fileName: "sw.js", source });
      },
    },
  };
}

/** Where the source is, as the package says it. */
function source() {
  const { repository } = JSON.parse(readFileSync(here("../package.json"), "utf8"));
  return repository.url.replace(/^git\+|\.git$/g, "");
}

export default defineConfig({
  // Relative addresses: the files work in any folder of a host.
  base: "./",
  resolve: {
    alias: {
      "hermitcrab/javascript": here("../js/programs/javascript.js"),
      "hermitcrab/python": here("../js/programs/python.js"),
      "hermitcrab/worker": here("../js/worker.js"),
      "hermitcrab-python": here("../js/python/index.js"),
    },
  },
  define: {
    // Servers that compress the core do not say how large it becomes.
    CORE_BYTES: String(statSync(here("../js/wasm/hermitcrab_bg.wasm")).size),
    SOURCE: JSON.stringify(source()),
  },
  server: { fs: { allow: [here("..")] } },
  worker: { format: "es" },
  build: {
    target: "es2022",
    // The polyfill would be inline code.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rollupOptions: { input: here("index.html") },
  },
  plugins: [policy(), offline(), compressed()],
});
