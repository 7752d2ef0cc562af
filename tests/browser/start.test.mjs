// A core or a worker that cannot be started: each cause by its name, in Chromium.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { STRICT, launch, serveFiles, wholeFile } from "./page.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SCRIPTS = {
  "/mistake.js": "let = ;",
  "/import.js": "import './missing.js';",
  "/throws.js": "throw new Error('boom');",
};

let browser;

const whole = wholeFile();

before(async () => {
  browser = await launch(whole);
});

async function answer(request, response) {
  if (SCRIPTS[request.url]) response.setHeader("content-type", "text/javascript").end(SCRIPTS[request.url]);
  else if (request.url === "/page.js") response.setHeader("content-type", "text/html").end("<html>");
  else if (request.url === "/cut.js") request.socket.destroy();
  else if (request.url === "/tests/browser/beside.wasm") return ((request.url = "/js/wasm/hermitcrab_bg.wasm"), false);
  else return false;
  return true;
}

/** What `init` says, in a page with `policy`; `worker`: path of a script, `wasm`: of the core. */
async function refusal(t, { face = "worker", policy, worker, wasm, offline = false }) {
  const address = await serveFiles(t, ROOT, { policy, answer });
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(`${address}/tests/browser/cases.html`);
  await page.waitForFunction(() => globalThis.playCase);
  await context.setOffline(offline);
  const said = await page.evaluate(
    async ([face, worker, wasm]) => {
      const options = {
        ...(worker && { worker: () => new Worker(new URL(worker, location.href), { type: "module" }) }),
        ...(wasm && { wasm }),
      };
      const { init, CoreError } = globalThis.faces[face];
      try {
        await init(options);
        return "it started";
      } catch (error) {
        return error instanceof CoreError ? error.message : String(error.stack);
      }
    },
    [face, worker, wasm?.startsWith("/") ? address + wasm : wasm],
  );
  return said.replaceAll(address, "");
}

/** `[what, how, sentence]` */
const CASES = [
  ["a script that is missing", { worker: "/none.js" }, /^the worker cannot be started: its script \/none\.js answered with status 404; say with init\(\{ worker \}\) where it is$/],
  ["a script that is a page", { worker: "/page.js" }, /^the worker cannot be started: its script \/page\.js is served as text\/html, not as JavaScript; .*init\(\{ worker \}\)/],
  ["a script with a mistake", { worker: "/mistake.js" }, /^the worker cannot be started: its script \/mistake\.js, or a module that it imports, is missing or has a mistake in it/],
  ["a script whose import is missing", { worker: "/import.js" }, /^the worker cannot be started: its script \/import\.js, or a module that it imports, is missing/],
  ["a script that throws", { worker: "/throws.js" }, /^the worker cannot be started: .*boom$/],
  ["a script whose connection breaks", { worker: "/cut.js" }, /^the worker cannot be started: its script \/cut\.js cannot be downloaded: .*check the network$/],
  ["a script without a network", { offline: true }, /^the worker cannot be started: its script .*main\.js cannot be downloaded: there is no network$/],
  ["a policy without workers", { policy: STRICT.replace("worker-src 'self'", "worker-src 'none'") }, /^the worker cannot be started: the content security policy forbids its script \(worker-src\); allow it with worker-src$/],
  ...["page", "worker"].flatMap((face) => [
    [`a core that is missing, ${face}`, { face, wasm: "/none.wasm" }, /^the core cannot be loaded: \/none\.wasm answered with status 404; .*init\(\{ wasm \}\)/],
    [`a core beside the page, ${face}`, { face, wasm: "beside.wasm" }, /^it started$/],
    [`a core that is something else, ${face}`, { face, wasm: "/js/index.js" }, /^the core cannot be loaded: \/js\/index\.js is not the WebAssembly module of this package/],
    [`a core that nobody serves, ${face}`, { face, wasm: "http://127.0.0.1:9/x.wasm" }, /^the core cannot be loaded: http:\/\/127\.0\.0\.1:9\/x\.wasm cannot be downloaded: .*check the network$/],
    [`a policy without connections, ${face}`, { face, policy: STRICT.replace(/connect-src [^;]*/, "connect-src 'none'") }, /^the core cannot be loaded: .*\/hermitcrab_bg\.wasm cannot be downloaded: the content security policy forbids it; allow it with connect-src$/],
    [`a policy without WebAssembly, ${face}`, { face, policy: STRICT.replace(" 'wasm-unsafe-eval'", "") }, /^the core cannot be loaded: the content security policy forbids WebAssembly; it must have script-src 'wasm-unsafe-eval'$/],
  ]),
];

for (const [what, how, sentence] of CASES) {
  test(what, async (t) => {
    assert.match(await refusal(t, how), sentence);
  });
}
