// Shared by the tests that need a page: Chromium through playwright-core, and a
// server of files.

import { access, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { delimiter, extname, join, normalize, sep } from "node:path";
import { text } from "node:stream/consumers";
import { after } from "node:test";

import { chromium } from "playwright-core";

import { serveModel } from "../node/support.mjs";

const FLAGS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
  ...["--disable-component-update", "--disable-sync"],
  // A host that is not this computer, for the browser.
  "--host-resolver-rules=MAP play.test 127.0.0.1",
];

const TYPES = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".mjs": "text/javascript",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** `eval`, inline scripts and `blob:` are forbidden; compiling WebAssembly is not. */
export const STRICT =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self' http://127.0.0.1:*";

/** Stands for a test that lasts as long as its file: what is started for it ends then. */
export function wholeFile() {
  const ends = [];
  after(async () => {
    for (const end of ends.reverse()) await end();
  });
  return { after: (end) => void ends.push(end) };
}

/** A browser that ends with the test `t`; `CHROMIUM` names one, else the `PATH` is searched. */
export async function launch(t) {
  const browser = await chromium.launch({ executablePath: await executable(), args: FLAGS });
  t.after(() => browser.close());
  return browser;
}

/** A browser with the profile in a directory, and one page open. */
export async function launchIn(directory) {
  return chromium.launchPersistentContext(directory, { executablePath: await executable(), args: FLAGS });
}

async function executable() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const directory of process.env.PATH.split(delimiter)) {
    for (const name of ["chromium", "chromium-browser", "google-chrome", "chrome"]) {
      const file = join(directory, name);
      if (await access(file).then(() => true, () => false)) return file;
    }
  }
  throw new Error("no Chromium found; install it, or set CHROMIUM to its path");
}

/**
 * Starts the scripted model that a page asks for at `/model`: an `answer` for `serveFiles`.
 * @param {() => {after: (end: () => unknown) => void}} current the test that the model ends with
 */
export function models(current) {
  return async (request, response) => {
    if (request.method !== "POST" || request.url !== "/model") return false;
    const { url } = await serveModel(current(), JSON.parse(await text(request)));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ url }));
    return true;
  };
}

/**
 * Serves the files of a directory until the test `t` ends.
 * @param {string} root @param {{policy?: string | ((path: string) => string | undefined),
 *   answer?: (request: import("node:http").IncomingMessage,
 *   response: import("node:http").ServerResponse) => Promise<boolean>}} [options] `answer` may
 *   take a request before the files do
 * @returns {Promise<string>} its address
 */
export async function serveFiles(t, root, { policy, answer } = {}) {
  const server = createServer(async (request, response) => {
    try {
      if (await answer?.(request, response)) return;
      const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
      const file = join(root, path.endsWith(sep) ? join(path, "index.html") : path);
      const content = await readFile(file);
      const headers = { "content-type": TYPES[extname(file)] ?? "application/octet-stream" };
      const own = typeof policy === "function" ? policy(path) : policy;
      if (own) headers["content-security-policy"] = own;
      response.writeHead(200, headers).end(content);
    } catch (error) {
      // What has begun can only break.
      if (response.headersSent) return void response.destroy();
      response.writeHead(error.code === "ENOENT" || error.code === "EISDIR" ? 404 : 500).end(String(error.message));
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/**
 * Opens a page and waits for `window.result`; what goes wrong in the page is reported.
 * @param {import("playwright-core").Browser} browser @param {string} url
 * @param {number} [timeout] a hang guard, in ms
 */
export async function resultOf(browser, url, timeout = 120_000) {
  const page = await browser.newPage();
  const told = [];
  page.on("console", (message) => {
    // Resources that are missing are reported below, by name.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) told.push(message.text());
  });
  page.on("pageerror", (error) => told.push(String(error.stack ?? error)));
  page.on("response", (response) => response.status() === 404 && !response.url().endsWith("/favicon.ico") && told.push(`${response.status()} ${response.url()}`));
  try {
    await page.goto(url);
    const handle = await page.waitForFunction(() => globalThis.result, undefined, { timeout });
    const result = await handle.jsonValue();
    if (result.error) throw new Error(`in the page: ${result.error}`);
    return { result, told };
  } catch (error) {
    throw new Error(`${error.message}\nthe page told: ${told.join("\n")}`, { cause: error });
  } finally {
    await page.close();
  }
}
