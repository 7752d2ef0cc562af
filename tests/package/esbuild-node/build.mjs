// A bundle for Node without the package, as it should be, and two with it.

import { build } from "esbuild";

const options = { entryPoints: ["bundled.mjs"], bundle: true, platform: "node", logLevel: "error" };
await build({ ...options, format: "esm", outfile: "dist/external.mjs", external: ["hermitcrab", "hermitcrab/*"] });
await build({ ...options, format: "esm", outfile: "dist/inside.mjs" });
await build({ ...options, format: "cjs", outfile: "dist/inside.cjs", logOverride: { "empty-import-meta": "silent" } });
