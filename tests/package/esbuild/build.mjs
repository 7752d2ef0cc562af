// esbuild knows neither workers nor files beside a module: the workers' scripts
// are entry points of their own, and pages say where the files are.

import { build } from "esbuild";

await build({
  entryPoints: {
    main: "main.js",
    lost: "lost.js",
    worker: "hermitcrab/worker/main",
    node: "hermitcrab/javascript/worker",
    python: "hermitcrab/python/worker",
  },
  bundle: true,
  format: "esm",
  outdir: "dist",
  loader: { ".wasm": "file", ".gz": "file" },
  assetNames: "[name]",
});
