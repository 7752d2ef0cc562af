// Files and workers of Node, Bun and Deno; imported for what it sets up.

import { readFile } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { setMachine } from "./machine.js";

/** Bundlers recognise this form and ship the workers. Nothing of this process is a program's business. */
const START = {
  javascript: () => new Worker(new URL("./programs/javascript-worker-node.js", import.meta.url), { env: {}, argv: [], execArgv: [] }),
  python: () => new Worker(new URL("./programs/python-worker-node.js", import.meta.url), { env: {}, argv: [], execArgv: [] }),
};

setMachine({
  readFile: async (url) => new Uint8Array(await readFile(url)),
  startWorker: (program) => nodeWorker(START[program]()),
});

/** @param {Worker} worker @returns {import("./machine.js").WorkerHandle} */
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
    terminate() {
      // Deno tells the end at once, as if it had ended by itself.
      onError = () => {};
      void worker.terminate();
    },
  };
}
