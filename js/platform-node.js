// What Node, Bun and Deno provide; imported for what it sets up.

import { readFile } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { setPlatform } from "./platform.js";

setPlatform({
  load: () => readFile(new URL("./wasm/hermitcrab_bg.wasm", import.meta.url)),
  now: () => Date.now(),
  seed: () => globalThis.crypto.getRandomValues(new Uint8Array(32)),
  readFile: async (url) => new Uint8Array(await readFile(url)),
  startWorker: (url) => {
    const script = new URL("./programs/node-worker.js", import.meta.url);
    // Nothing of this process is a program's business.
    return nodeWorker(new Worker(script, { workerData: { url: url.href }, env: {}, argv: [], execArgv: [] }));
  },
});

/** @param {Worker} worker @returns {import("./platform.js").WorkerHandle} */
function nodeWorker(worker) {
  let [onMessage, onError] = [() => {}, () => {}];
  worker.on("message", (message) => onMessage(message));
  worker.on("messageerror", () => onError("a message could not be read"));
  worker.on("error", (error) => onError(error.message));
  worker.on("exit", (code) => onError(`it ended with code ${code}`));
  worker.unref();
  return {
    post(message, transfer = []) {
      worker.ref();
      worker.postMessage(message, transfer);
    },
    listen: (...listeners) => void ([onMessage, onError] = listeners),
    rest: () => worker.unref(),
    terminate: () => void worker.terminate(),
  };
}
