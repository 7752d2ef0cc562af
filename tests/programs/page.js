// What `browser.test.mjs` has run in a page: commands in one sandbox with both
// programs, in order. Posts their results, and whether the page stayed awake.

import { MemoryEnvironment } from "../../js/index.js";
import { jsProgram } from "../../js/programs/javascript.js";
import { pythonProgram } from "../../js/programs/python.js";

async function play() {
  const { files, commands } = await (await fetch("/plan")).json();
  const progress = [];
  const python = pythonProgram({ url: new URL("../../js/python/python.tar.gz", import.meta.url), onProgress: (news) => progress.push(news) });
  const env = await MemoryEnvironment.create({ files });
  env.program("python3", python);
  env.program("node", jsProgram());
  await python.load();
  const results = [];
  for (const { command, timeoutMs } of commands) {
    let [ticks, longest, last] = [0, 0, performance.now()];
    const timer = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
      ticks += 1;
    }, 10);
    const start = performance.now();
    const { exitCode, stdout, stderr, timedOut } = await env.exec(command, { timeoutMs });
    clearInterval(timer);
    results.push({ exitCode, stdout, stderr, timedOut, ticks, longest, ms: performance.now() - start });
  }
  return { results, progress, isolated: globalThis.crossOriginIsolated };
}

const report = (result) => fetch("/result", { method: "POST", body: JSON.stringify(result) });

play().then(report, (error) => report({ error: String(error?.stack ?? error) }));
