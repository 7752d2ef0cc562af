// esbuild knows neither workers nor files beside a module: the worker's script
// is an entry point of its own, and pages say where the files are.

import { build } from "esbuild";

await build({
  entryPoints: { main: "main.js", worker: "hermitcrab/worker/main" },
  bundle: true,
  format: "esm",
  outdir: "dist",
  loader: { ".wasm": "file" },
  assetNames: "[name]",
});
