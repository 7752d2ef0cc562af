// A Vite plugin: writes compressed copies (`.br`, `.gz`) beside the built files,
// as static hosts take them, and lets `vite preview` send those.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { extname, join, resolve } from "node:path";
import { constants, brotliCompressSync, gzipSync } from "node:zlib";

/** What becomes smaller, and what it is called over http. */
const TYPES = {
  ".css": "text/css;charset=utf-8",
  ".html": "text/html;charset=utf-8",
  ".js": "text/javascript;charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};
/** Smaller files fit a packet or two as they are. */
const LEAST_BYTES = 1_000;
/** Of brotli: the highest one, 11, takes six times as long and saves a tenth more. */
const QUALITY = 9;

/** In the order of preference. @type {[encoding: string, ending: string, compress: (bytes: Buffer) => Buffer][]} */
const ENCODINGS = [
  ["br", ".br", (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: QUALITY, [constants.BROTLI_PARAM_LGWIN]: 24 } })],
  // Browsers take no brotli over plain http, except from this computer.
  ["gzip", ".gz", (bytes) => gzipSync(bytes, { level: 9 })],
];

export function compressed() {
  let directory;
  let builds = false;
  return {
    name: "compressed",
    configResolved({ root, command, build }) {
      directory = resolve(root, build.outDir);
      builds = command === "build";
    },
    closeBundle() {
      if (builds) write(directory);
    },
    configurePreviewServer({ middlewares }) {
      middlewares.use(prefer(new Set(names(directory))));
    },
  };
}

/** The files below a directory, with `/` before and between. */
function names(directory) {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(directory.length).replaceAll("\\", "/"));
}

function write(directory) {
  for (const name of names(directory).filter((name) => extname(name) in TYPES)) {
    const bytes = readFileSync(directory + name);
    if (bytes.length < LEAST_BYTES) continue;
    for (const [, ending, compress] of ENCODINGS) writeFileSync(directory + name + ending, compress(bytes));
  }
}

/** Asks for the compressed copy instead, where there is one that the browser takes. @param {Set<string>} all */
function prefer(all) {
  return (request, response, next) => {
    const url = new URL(request.url, "http://localhost");
    const name = url.pathname.endsWith("/") ? `${url.pathname}index.html` : url.pathname;
    const taken = String(request.headers["accept-encoding"] ?? "").split(",").map((each) => each.trim().split(";")[0]);
    const [encoding, ending] = ENCODINGS.find(([encoding, ending]) => taken.includes(encoding) && all.has(name + ending)) ?? [];
    if (encoding) {
      request.url = name + ending + url.search;
      response.setHeader("Content-Encoding", encoding);
      response.setHeader("Content-Type", TYPES[extname(name)]);
    }
    if (ENCODINGS.some(([, ending]) => all.has(name + ending))) {
      response.appendHeader("Vary", "Accept-Encoding");
    }
    next();
  };
}
