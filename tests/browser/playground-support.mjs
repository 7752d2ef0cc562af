// What the browser tests of the playground share: the built page behind a small
// server, a browser, and the playground's parts by name.

import { access, mkdir, readFile } from "node:fs/promises";
import { after, before } from "node:test";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { launch, serveFiles } from "./page.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const DIST = join(root, "www/dist");

/** Where screenshots are kept, to be looked at. */
export const SCREENSHOTS = join(root, "target/screenshots");

/**
 * The policy as a header too, so that a page without its meta element would be
 * caught as well. The project's own code runs below documents with policies of
 * their own.
 */
export function policy(path) {
  const isForCode = path.startsWith("/preview") || path === "/node.html";
  return isForCode ? undefined : "script-src 'self' 'wasm-unsafe-eval'; object-src 'none'";
}

/**
 * The built page and a browser, for the tests of one file.
 * @param {{answer?: Parameters<typeof serveFiles>[2]["answer"]}} [options]
 */
export function playground({ answer } = {}) {
  const ends = [];
  let url;
  let browser;
  before(async () => {
    await access(join(DIST, "index.html")).catch(() => {
      throw new Error("www/dist is missing; run `cargo xtask test playground`, or `npm run build` in www");
    });
    const all = { after: (end) => ends.push(end) };
    url = `${await serveFiles(all, DIST, { policy, answer })}/`;
    browser = await launch(all);
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  /**
   * A tab in a fresh profile, which ends with the test `t`. What the page throws
   * or its policy blocks is collected in `problems`. `init` runs in the page
   * before anything else; `at` is the page's path; `wait: false` leaves the start
   * to the test.
   * @param {import("node:test").TestContext} t
   */
  async function open(t, { init, at = "", wait = true, ...options } = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
    t.after(() => context.close());
    if (init) await context.addInitScript(init);
    const page = await context.newPage();
    const problems = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error") problems.push(message.text());
    });
    const going = page.goto(url + at);
    if (wait) {
      await going;
      await ready(page);
    } else {
      going.catch(() => {});
    }
    return { context, page, problems };
  }

  return { open, url: () => url };
}

/** Waits until the playground has started. @param {import("playwright-core").Page} page */
export async function ready(page) {
  await page.waitForSelector("body[data-ready]", { state: "attached", timeout: 60_000 });
}

/** Waits until everything is in the browser's storage. */
export async function saved(page) {
  await page.waitForSelector("body:not([data-unsaved])", { state: "attached", timeout: 20_000 });
}

/** Waits until the record and the log of a project hold `text` in the browser's storage. */
export async function stores(page, name, text) {
  const stored = () => page.evaluate(async (name) => {
    const root = await navigator.storage.getDirectory();
    const project = await (await root.getDirectoryHandle("hermitcrab")).getDirectoryHandle(name);
    const file = await (await project.getFileHandle("project.json")).getFile();
    // Written anew meanwhile, a file that was got cannot be read.
    return file.text().catch(() => "");
  }, name);
  const end = Date.now() + 20_000;
  while (!(await stored()).includes(text)) {
    if (Date.now() > end) throw new Error(`the project ${name} is not stored with ${text}`);
    await page.waitForTimeout(50);
  }
}

/** @param {import("playwright-core").Page} page @param {string} name */
export async function screenshot(page, name) {
  await mkdir(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
}

/**
 * Chooses in the settings, as a person would. `others`: by provider, `{key, baseUrl}`
 * of those that subagents may use.
 */
export async function choose(page, { provider = "anthropic", key = "page-key", baseUrl = "", name = "", others = {}, approval, remember }) {
  await page.click("#model");
  await page.selectOption("#set-provider", provider);
  await page.fill("#set-model", name);
  await page.fill("#set-key", key);
  await page.fill("#set-base", baseUrl);
  for (const [id, values] of Object.entries(others)) {
    await page.evaluate(() => (document.querySelector(".more").open = true));
    for (const [field, value] of Object.entries(values)) await page.fill(`[data-provider="${id}"][data-name="${field}"]`, value);
  }
  if (approval) await page.selectOption("#set-approval", approval);
  if (remember) await page.check("#set-remember");
  await page.click("dialog[open] button.primary");
  await page.waitForSelector("dialog[open]", { state: "detached" });
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
  await page.click("#project");
  await page.click(`.menu button:text-is("${label}")`);
}

/** Answers the question of the page with the button `label`; returns the question. */
export async function answer(page, label) {
  const question = await page.locator("dialog.question[open] p").innerText();
  await page.click(`dialog.question[open] button:text-is("${label}")`);
  await page.waitForSelector("dialog.question", { state: "detached" });
  return question;
}

/** Gives files to the entry of the project's menu that asks for them. */
export async function chosen(page, label, files) {
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), menu(page, label)]);
  await chooser.setFiles(files);
}

/** What an entry of the project's menu downloads. */
export async function downloaded(page, label) {
  const [file] = await Promise.all([page.waitForEvent("download"), menu(page, label)]);
  return { name: file.suggestedFilename(), content: await readFile(await file.path()) };
}

/** Begins an empty project. */
export async function create(page, name) {
  await menu(page, "Projects…");
  await page.fill("#new-project", name);
  await page.press("#new-project", "Enter");
  await page.waitForSelector(`#project-name:text-is("${name}")`);
}

/** The paths that the file tree shows. */
export function paths(page) {
  return page.locator(".tree [data-path]").evaluateAll((rows) => rows.map((row) => row.dataset.path));
}

/** Opens the preview, if it is not: where there is room, a page opens it. */
export async function showPreview(page) {
  await page.waitForSelector(".preview-toggle");
  if ((await page.getAttribute(".preview-toggle", "aria-pressed")) !== "true") await page.click(".preview-toggle");
}

/** The page in the preview: its frame is inside one that holds the policy. */
export function preview(page) {
  return page.frameLocator(".preview iframe").frameLocator("iframe");
}

/** A text as a file that a chooser takes. @param {string} name @param {string} text */
export function file(name, text) {
  return { name, mimeType: "application/octet-stream", buffer: Buffer.from(text) };
}

/** The text of the file that the editor shows. */
export function editorText(page) {
  return page.evaluate(() => document.querySelector(".cm-content").innerText.replaceAll("\u200b", ""));
}
