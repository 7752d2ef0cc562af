// Rules of the JavaScript that no compiler checks: layers, circles, imports that lead somewhere, file
// headers. tests/it/tidy.rs has those of the Rust code.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Folders of `js/`; one imports only from those before it. The entry files are not in a folder. */
const LAYERS = [
  ...["platform", "shared", "archive", "tool", "core", "model", "environment", "session", "project"],
  ...["worker", "worker/page", "programs"],
];
/** What builds write. */
const BUILT = /^js\/(?:wasm|python)\//;

const IMPORT = /^(?:import|export)\s(?:[^;'"]*?\sfrom\s)?["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)/gm;

/** Scripts below a folder of the root, by their paths. */
function scripts(...folders) {
  return folders
    .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && /\.m?js$/.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath ?? entry.path, entry.name)))
    .filter((path) => !/node_modules|\bdist\//.test(path) && !BUILT.test(path));
}

/** The files that a script imports: not those of types, which comments name. */
function importsOf(path) {
  const source = readFileSync(join(ROOT, path), "utf8").replace(/\/\*[^]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
  return [...source.matchAll(IMPORT)]
    .map(([, name, later]) => name ?? later)
    .filter((name) => name.startsWith("."))
    .map((name) => relative(ROOT, resolve(ROOT, dirname(path), name.replace(/\?.*$/, ""))));
}

/** The layer of a file, or of the folder around its folder. */
function layerOf(path) {
  const folder = dirname(relative("js", path));
  return Math.max(...LAYERS.map((layer, index) => (folder === layer || folder.startsWith(`${layer}/`) ? index : -1)));
}

const FILES = scripts("js", "www/src");

test("folders of js/ import from those before them", () => {
  const broken = [];
  for (const path of FILES.filter((path) => path.startsWith("js/"))) {
    const layer = layerOf(path);
    if (layer < 0) {
      assert.equal(dirname(path), "js", `${path} is in a folder that has no layer`);
      continue;
    }
    for (const imported of importsOf(path)) {
      // The script of the worker is the package as it is.
      if (/^js\/worker\/main/.test(path) && dirname(imported) === "js") continue;
      if (layerOf(imported) > layer || (layerOf(imported) < 0 && !BUILT.test(imported))) broken.push(`${path} imports ${imported}`);
    }
  }
  assert.deepEqual(broken, []);
});

test("no script imports itself by way of others", () => {
  const done = new Set();
  const circles = [];
  const visit = (path, way) => {
    if (way.includes(path)) circles.push([...way.slice(way.indexOf(path)), path].join(" → "));
    if (way.includes(path) || done.has(path) || !existsSync(join(ROOT, path))) return;
    for (const imported of importsOf(path)) if (/\.m?js$/.test(imported)) visit(imported, [...way, path]);
    done.add(path);
  };
  for (const path of FILES) visit(path, []);
  assert.deepEqual(circles, []);
});

test("each import leads to a file", () => {
  const lost = [];
  for (const path of [...FILES, ...scripts("tests/node", "bench", "xtask")]) {
    for (const imported of importsOf(path)) {
      if (!BUILT.test(imported) && !existsSync(join(ROOT, imported))) lost.push(`${path} imports ${imported}`);
    }
  }
  assert.deepEqual(lost, []);
});

test("each script says what it is", () => {
  // The templates and the sample are a user's project.
  const own = FILES.filter((path) => !/^www\/src\/(?:templates|demo)\/\w+\//.test(path));
  assert.deepEqual(own.filter((path) => !readFileSync(join(ROOT, path), "utf8").startsWith("// ")), []);
});
