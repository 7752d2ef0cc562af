// Bundles an isolate as edge tools do and asks it twice.
//
//     node run.mjs isolate.js MODEL_URL MODEL_URL

import { build } from "esbuild";
import { readFile } from "node:fs/promises";
import { Miniflare } from "miniflare";

const [file, ...models] = process.argv.slice(2);
const wasm = file === "isolate.js" ? "hermitcrab.wasm" : "slim.wasm";
const { outputFiles } = await build({
  entryPoints: [file],
  bundle: true,
  format: "esm",
  write: false,
  conditions: ["workerd", "worker", "browser"],
  external: ["*.wasm"],
});
const { pathname } = new URL(import.meta.resolve(`hermitcrab/${wasm}`));
const isolate = new Miniflare({
  compatibilityDate: "2026-07-01",
  modules: [
    { type: "ESModule", path: "main.js", contents: outputFiles[0].text },
    { type: "CompiledWasm", path: `hermitcrab/${wasm}`, contents: await readFile(pathname) },
  ],
});
const results = [];
for (const model of models) {
  const response = await isolate.dispatchFetch(`http://isolate/?model=${encodeURIComponent(model)}`);
  results.push(response.ok ? await response.json() : await response.text());
}
console.log(JSON.stringify(results));
await isolate.dispose();
