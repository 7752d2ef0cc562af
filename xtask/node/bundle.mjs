// Writes the packages of `entry.js` into one file, and their licences beside it.
// node bundle.mjs packages.js LICENSES.md

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const [packages, licenses] = process.argv.slice(2);

/** What stands behind a name that packages ask for. */
const INSTEAD = {
  buffer: "./buffer.js",
  "buffer/": "./buffer.js",
  "buffer-without-base64url": "buffer/index.js",
  "process/": "./process.js",
  "abort-controller": "./abort.js",
  // Its `inspect` is that of old versions of Node.
  "util/": "./util.js",
  "util-without-inspect": "util/util.js",
};
const instead = {
  name: "instead",
  setup: ({ onResolve, resolve }) => {
    onResolve({ filter: /^(?:buffer|process|abort-controller|util)(?:-|\/?$)/ }, ({ path, kind }) => {
      const place = INSTEAD[path];
      return place && resolve(place, { kind, resolveDir: here });
    });
  },
};

const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: ["entry.js"],
  outfile: packages,
  bundle: true,
  format: "esm",
  minifySyntax: true,
  minifyWhitespace: true,
  banner: { js: "// Made from xtask/node/entry.js by `cargo xtask web`; packages.md has the licences." },
  legalComments: "none",
  metafile: true,
  plugins: [instead],
  target: "es2022",
});

const used = new Set(
  Object.keys(metafile.inputs).flatMap((input) => {
    const place = /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input.split(sep).join("/"));
    return place ? [place[0]] : [];
  }),
);
const sections = [...used].sort().map((place) => {
  const { name, version } = JSON.parse(readFileSync(join(here, place, "package.json"), "utf8"));
  const file = readdirSync(join(here, place)).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} has no licence`);
  return `## ${name} ${version}\n\n${readFileSync(join(here, place, file), "utf8").trim()}\n`;
});
writeFileSync(licenses, `# Licences of the packages in packages.js\n\n${sections.join("\n")}`);
