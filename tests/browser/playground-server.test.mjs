// The playground behind `vite preview`, which `cargo xtask www` runs: what comes
// comes compressed, and a reload without a network works whatever `Vary` says.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFile, readdir } from "node:fs/promises";
import { get } from "node:http";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { launch } from "./page.mjs";
import { ready, saved, shows, terminal } from "./playground-support.mjs";

const www = fileURLToPath(new URL("../../www/", import.meta.url));

let server;
let url;
before(async () => {
  const { preview } = await import(pathToFileURL(createRequire(`${www}package.json`).resolve("vite")).href);
  server = await preview({ root: www, configFile: `${www}vite.config.js`, logLevel: "error", preview: { host: "127.0.0.1", port: 0, strictPort: false } });
  url = server.resolvedUrls.local[0];
});
after(() => server?.close());

/** An answer as it comes over the wire. */
function asked(path, headers) {
  return new Promise((resolve, reject) => {
    get(new URL(path, url), { headers }, async (response) => {
      resolve({ status: response.statusCode, headers: response.headers, body: await buffer(response) });
    }).on("error", reject);
  });
}

const TYPES = { css: "text/css", html: "text/html", js: "text/javascript", wasm: "application/wasm" };
const UNPACK = { br: brotliDecompressSync, gzip: gunzipSync };

test("every file that becomes smaller comes compressed, and is the same", async () => {
  const assets = (await readdir(`${www}dist/assets`)).filter((name) => /\.(css|js|wasm)$/.test(name));
  let sent = 0;
  let all = 0;
  for (const name of ["index.html", ...assets.map((name) => `assets/${name}`)]) {
    const content = await readFile(`${www}dist/${name}`);
    if (content.length < 1_000) continue;
    for (const [encoding, unpack] of Object.entries(UNPACK)) {
      const { status, headers, body } = await asked(name === "index.html" ? "." : name, { "accept-encoding": encoding, origin: url.slice(0, -1) });
      assert.equal(status, 200, name);
      assert.equal(headers["content-encoding"], encoding, name);
      assert.ok(headers["content-type"].startsWith(TYPES[name.split(".").at(-1)]), `${name} is ${headers["content-type"]}`);
      assert.match(headers.vary, /Accept-Encoding/, name);
      assert.ok(unpack(body).equals(content), name);
      if (encoding === "br") sent += body.length;
    }
    all += content.length;
  }
  assert.ok(sent < all * 0.4, `${sent} of ${all} bytes`);
});

test("who takes no compression gets the file as it is", async () => {
  const { headers, body } = await asked("boot.js", { "accept-encoding": "identity" });
  assert.equal(headers["content-encoding"], undefined);
  assert.ok(body.equals(await readFile(`${www}dist/boot.js`)));
});

test("a reload without a network works behind a server that sends Vary: Origin", async (t) => {
  const { headers } = await asked(".", { origin: "http://localhost:1" });
  assert.match(headers.vary, /Origin/);
  const browser = await launch(t);
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(url);
  await ready(page);
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await terminal(page, "echo offline > kept.txt");
  await saved(page);
  await (await context.newCDPSession(page)).send("Network.clearBrowserCache");
  await context.setOffline(true);
  await page.reload();
  await ready(page);
  await terminal(page, "cat kept.txt");
  await shows(page, "offline");
});
