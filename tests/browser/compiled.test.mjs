// What Chromium keeps of a core that it compiled: written after the warm-up, and
// used by the next load, whose progress is reported.

import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as later } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { launchIn, serveFiles } from "./page.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CORE = new URL("../../js/wasm/hermitcrab_bg.wasm", import.meta.url);

/** Bytes of what Chromium keeps at the least: some for each function. */
const LEAST = 100_000;

/** Until it has written that, ms: a hang guard. */
const WRITTEN = 60_000;

/** Only what may be kept is kept compiled. */
const answer = async (request, response) => {
  response.setHeader("cache-control", "max-age=86400");
  return false;
};

async function keepsCompiled(profile) {
  const directory = join(profile, "Default/Code Cache/wasm");
  for (const name of await readdir(directory).catch(() => [])) {
    // It may be on its way to another name.
    const size = await stat(join(directory, name)).then((info) => info.size, () => 0);
    if (size >= LEAST) return true;
  }
  return false;
}

/** Visits the page in a browser of its own; `stay` is awaited before that ends. */
async function visit(profile, url, face, stay) {
  const context = await launchIn(profile);
  try {
    const [page] = context.pages();
    const trace = await context.newCDPSession(page);
    const names = [];
    trace.on("Tracing.dataCollected", ({ value }) => names.push(...value.map(({ name }) => name)));
    const traceConfig = { includedCategories: ["disabled-by-default-devtools.timeline"] };
    await trace.send("Tracing.start", { transferMode: "ReportEvents", traceConfig });
    await page.goto(url);
    await page.waitForFunction(() => globalThis.playCase);
    const news = await page.evaluate(async (face) => {
      const { MemoryEnvironment, init, warmUp } = globalThis.faces[face];
      const news = [];
      await init({ onProgress: (progress) => news.push(progress) });
      const env = await MemoryEnvironment.create();
      // A worker does so by itself; a second call waits for the end of the first.
      await warmUp();
      await env.dispose();
      return news;
    }, face);
    await stay?.();
    const end = new Promise((resolve) => trace.on("Tracing.tracingComplete", resolve));
    await trace.send("Tracing.end");
    await end;
    return { news, used: names.includes("v8.wasm.moduleCacheHit") };
  } finally {
    await context.close();
  }
}

for (const face of ["page", "worker"]) {
  test(`what was compiled is kept after the warm-up, and used by the next load, ${face}`, { timeout: 180_000 }, async (t) => {
    const origin = await serveFiles(t, ROOT, { answer });
    const url = `${origin}/tests/browser/cases.html`;
    const profile = await mkdtemp(join(tmpdir(), "hermitcrab-compiled-"));
    t.after(() => rm(profile, { recursive: true, force: true, maxRetries: 3 }));
    const { size } = await stat(CORE);
    const first = await visit(profile, url, face, async () => {
      const end = performance.now() + WRITTEN;
      while (!(await keepsCompiled(profile))) {
        assert.ok(performance.now() < end, "Chromium kept nothing");
        await later(100);
      }
    });
    assert.equal(first.used, false);
    assert.equal(first.news.at(-1).loaded, size);
    const second = await visit(profile, url, face);
    assert.equal(second.used, true);
    assert.equal(second.news.at(-1).loaded, size);
  });
}
