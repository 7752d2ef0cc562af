// What the browser tests of the playground share: the built page behind a small
// server, a browser, and the playground's parts by name.

import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import { access, mkdir, mkdtemp, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Where screenshots are kept, to be looked at. */
export const SCREENSHOTS = join(root, "target/screenshots");

const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
  ".wasm": "application/wasm", ".json": "application/json",
};

/**
 * The policy as a header too, so that a page without its meta element would be
 * caught as well.
 */
const POLICY = "script-src 'self' 'wasm-unsafe-eval'; object-src 'none'";

/** Serves `www/dist` on a loopback port. @returns {Promise<{url: string, close: () => Promise<void>}>} */
export async function serve() {
  const dist = join(root, "www/dist");
  await access(join(dist, "index.html")).catch(() => {
    throw new Error("www/dist is missing; run `cargo xtask test playground`, or `npm run build` in www");
  });
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://x").pathname);
    const file = join(dist, path.endsWith("/") ? `${path}index.html` : path);
    const found = file.startsWith(dist) && (await stat(file).catch(() => undefined));
    if (!found) return response.writeHead(404).end();
    const headers = { "content-type": TYPES[extname(file)] ?? "application/octet-stream", "content-length": found.size };
    // The project's own code runs in the frame of the preview, which has a policy of its
    // own, and by `node` in a worker that has to evaluate it.
    const isForCode = path.startsWith("/preview") || path.includes("/javascript-worker");
    if (!isForCode) headers["content-security-policy"] = POLICY;
    response.writeHead(200, headers);
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${server.address().port}/`, close };
}

/** @returns {Promise<import("playwright-core").Browser>} */
export function launch() {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args });
}

/**
 * The playground in a fresh profile. What the page throws or its policy blocks
 * is collected in `problems`.
 * @param {import("playwright-core").Browser} browser @param {string} url
 */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  await page.goto(url);
  await ready(page);
  return { context, page, problems };
}

/** Waits until the playground has started. @param {import("playwright-core").Page} page */
export async function ready(page) {
  await page.waitForSelector("body[data-ready]", { state: "attached", timeout: 60_000 });
}

/** Waits until everything is in the browser's storage. */
export async function saved(page) {
  await page.waitForSelector("body:not([data-unsaved])", { state: "attached", timeout: 20_000 });
}

/** @param {import("playwright-core").Page} page @param {string} name */
export async function screenshot(page, name) {
  await mkdir(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
}

/**
 * A scripted model behind HTTP, as a provider would be.
 * @param {object} script @returns {Promise<{url: string, release: (name: string) => Promise<void>, requests: () => Promise<object[]>, close: () => void}>}
 */
export async function model(script) {
  const directory = await mkdtemp(join(tmpdir(), "hermitcrab-model-"));
  const file = join(directory, "script.json");
  await writeFile(file, JSON.stringify(script));
  const binary = process.env.HERMITCRAB_BIN ?? join(root, "target/release/hermitcrab");
  const child = spawn(binary, ["serve-model", "--port", "0", file], { stdio: ["ignore", "pipe", "inherit"] });
  // A test that fails leaves it running; the process of the tests ends all the same.
  process.once("exit", () => child.kill());
  child.unref();
  const url = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`serve-model ended with ${code}`)));
    createInterface({ input: child.stdout }).on("line", (line) => {
      const found = line.match(/^listening on (\S+)/);
      if (found) resolve(found[1]);
    });
  });
  child.stdout.unref();
  return {
    url,
    release: async (name) => void (await fetch(`${url}/_script/release/${name}`, { method: "POST" })),
    requests: async () => (await fetch(`${url}/_script/requests`)).json(),
    close: () => child.kill(),
  };
}

/** Chooses a provider in the settings, as a person would. */
export async function choose(page, { provider = "anthropic", key = "page-key", baseUrl = "", name = "" }) {
  await page.click("#model");
  await page.selectOption("#set-provider", provider);
  await page.fill("#set-model", name);
  await page.fill("#set-key", key);
  await page.fill("#set-base", baseUrl);
  await page.click("dialog button.primary");
  await page.waitForSelector("dialog", { state: "hidden" });
}

/** Sends a message to the agent. */
export async function say(page, text) {
  await page.fill("#composer", text);
  await page.press("#composer", "Enter");
}

/** Waits until the conversation is in `state`. */
export async function state(page, state) {
  await page.waitForSelector(`.status[data-state="${state}"]`, { timeout: 60_000 });
}

/** Types a line into the terminal; waits for the next prompt unless told not to. */
export async function terminal(page, line, { wait = true } = {}) {
  await page.click(".terminal .screen");
  await page.keyboard.type(line);
  await page.keyboard.press("Enter");
  if (wait) await page.waitForFunction(() => !document.querySelector(".terminal.running"), undefined, { timeout: 60_000 });
}

/** Waits until the terminal shows `text`. */
export async function shows(page, text) {
  await page.waitForFunction((text) => document.querySelector(".xterm-rows").innerText.replaceAll("\u00a0", " ").includes(text), text, { timeout: 30_000 });
}

/** Chooses from the project's menu. */
export async function menu(page, label) {
  await page.click('[aria-haspopup="menu"]');
  await page.click(`.menu button:text-is("${label}")`);
}

/** The text of the file that the editor shows. */
export function editorText(page) {
  return page.evaluate(() => document.querySelector(".cm-content").innerText.replaceAll("\u200b", ""));
}
