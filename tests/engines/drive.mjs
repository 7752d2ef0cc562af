// Firefox and WebKit as packaged by Debian, driven by what they bring along:
// WebDriver BiDi and classic WebDriver.
//
// Both give a `Page`:
//   goto(url)                 loads a page
//   evaluate(run, ...given)   calls an async function in it; what it returns is JSON
//   type(selector, text)      types into an element; `ENTER` and `INTERRUPT` are keys

import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { once } from "node:events";

import puppeteer from "puppeteer-core";

export const ENTER = "\n";
/** Ctrl-C. */
export const INTERRUPT = "\x03";

const MINI_BROWSER = "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser";
/** ms that a function may take in the page: a hang guard. */
const LIMIT_MS = 120_000;

/** @param {{after: (end: () => unknown) => void}} t */
export async function firefox(t) {
  const browser = await puppeteer.launch({
    browser: "firefox",
    executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr",
    headless: true,
    protocolTimeout: LIMIT_MS,
  });
  t.after(() => browser.close());
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 800 });
  return {
    goto: (url) => page.goto(url),
    evaluate: (run, ...given) => page.evaluate(run, ...given),
    async type(selector, text) {
      await page.focus(selector);
      for (const key of text) {
        if (key === INTERRUPT) {
          await page.keyboard.down("Control");
          await page.keyboard.press("c");
          await page.keyboard.up("Control");
        } else await page.keyboard.type(key);
      }
    },
  };
}

/** @param {{after: (end: () => unknown) => void}} t */
export async function webkit(t) {
  const display = await screen(t);
  const port = await freePort();
  const driver = spawn("WebKitWebDriver", [`--port=${port}`], {
    env: { ...process.env, DISPLAY: display, LIBGL_ALWAYS_SOFTWARE: "1" },
    stdio: "ignore",
  });
  await once(driver, "spawn");
  t.after(() => ended(driver));
  const call = async (method, path, body = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { "content-type": "application/json" },
      ...(method === "POST" && { body: JSON.stringify(body) }),
    });
    const { value } = await response.json();
    if (value?.error) throw new Error(`${value.error}: ${value.message}`);
    return value;
  };
  await listens(port);
  const { sessionId } = await call("POST", "/session", {
    capabilities: {
      alwaysMatch: {
        timeouts: { script: LIMIT_MS },
        "webkitgtk:browserOptions": { binary: process.env.MINI_BROWSER ?? MINI_BROWSER, args: ["--automation"] },
      },
    },
  });
  const session = `/session/${sessionId}`;
  t.after(() => call("DELETE", session));
  await call("POST", `${session}/window/rect`, { width: 1280, height: 860 });
  return {
    goto: (url) => call("POST", `${session}/url`, { url }),
    async evaluate(run, ...given) {
      const script = `const [given, done] = arguments;
        Promise.resolve((${run})(...given)).then((value) => done(JSON.stringify({ value })), (error) => done(JSON.stringify({ error: String(error?.stack ?? error) })));`;
      const { value, error } = JSON.parse(await call("POST", `${session}/execute/async`, { script, args: [given] }));
      if (error) throw new Error(error);
      return value;
    },
    async type(selector, text) {
      const [element] = Object.values(await call("POST", `${session}/element`, { using: "css selector", value: selector }));
      const keys = text.replaceAll(ENTER, "\uE007").replaceAll(INTERRUPT, "\uE009c\uE000");
      await call("POST", `${session}/element/${element}/value`, { text: keys });
    },
  };
}

/** WebKit draws on a screen. @returns {Promise<string>} its name */
async function screen(t) {
  const server = spawn("Xvfb", ["-displayfd", "3", "-screen", "0", "1400x1000x24"], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  await once(server, "spawn");
  t.after(() => ended(server));
  const [number] = await once(server.stdio[3], "data");
  return `:${String(number).trim()}`;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Until the driver answers; it says by nothing else that it is there. */
async function listens(port) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await fetch(`http://127.0.0.1:${port}/status`);
    } catch (error) {
      if (attempt === 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function ended(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill();
  await once(child, "exit");
}
