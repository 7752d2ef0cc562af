// What a page tells when it cannot reach the model: browsers say the same of no
// network, a name that does not exist and a server that refuses the page.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { listen } from "../node/support.mjs";
import { STRICT, launch, serveFiles, wholeFile } from "./page.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

let browser;
let address;

const whole = wholeFile();

before(async () => {
  address = await serveFiles(whole, ROOT);
  browser = await launch(whole);
});

/** The `ERROR` of an input to a model at `baseUrl`. */
async function errorOf(t, face, baseUrl, { offline = false, at = address } = {}) {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(`${at}/tests/browser/cases.html`);
  await page.waitForFunction(() => globalThis.playCase);
  // The core is loaded before the network goes.
  await page.evaluate((face) => globalThis.faces[face].init(), face);
  await context.setOffline(offline);
  return page.evaluate(
    async ([face, baseUrl]) => {
      const { createSession } = globalThis.faces[face];
      const session = await createSession({ apiKey: "page-key", baseUrl, retry: { maxRetries: 0 } });
      for await (const { kind, data } of session.run("go")) if (kind === "ERROR") return data;
    },
    [face, baseUrl],
  );
}

for (const face of ["worker", "page"]) {
  test(`a server that refuses the page: the sentence says what a proxy is for, ${face}`, async (t) => {
    const url = await listen(t, (_, response) => response.end("no CORS headers"));
    const { message, retryable } = await errorOf(t, face, url);
    assert.match(message, /cannot connect to http:\/\/127\.0\.0\.1:\d+: .*\(CORS\), set baseUrl to a proxy of yours that does/);
    assert.equal(retryable, true);
  });

  test(`a policy that forbids the connection: the sentence says so, ${face}`, async (t) => {
    const elsewhere = await listen(t, (_, response) => response.end("never asked"));
    const policy = STRICT.replace(/connect-src [^;]*/, "connect-src 'self'");
    const { message } = await errorOf(t, face, elsewhere, { at: await serveFiles(t, ROOT, { policy }) });
    const sentence = `cannot connect to ${elsewhere}: the content security policy forbids it; allow it with connect-src ${elsewhere}`;
    assert.ok(message.includes(sentence), message);
  });

  test(`no network: the sentence says so, ${face}`, async (t) => {
    const { message } = await errorOf(t, face, "https://api.example", { offline: true });
    assert.match(message, /cannot connect to https:\/\/api\.example: .*check the network/);
  });
}
