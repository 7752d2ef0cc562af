// Files and workers of Node, Bun and Deno; imported for what it sets up.

import { readFile } from "node:fs/promises";
// Without "node:": by this name webpack knows its workers.
import { Worker } from "worker_threads";
import { withRemedy } from "./bundled.js";
import { setMachine } from "./machine.js";

/** Bundlers recognise this form and ship the workers. Nothing of this process is a program's business. */
const START = {
  javascript: () => new Worker(new URL("../programs/javascript-worker-node.js", import.meta.url), { env: {}, argv: [], execArgv: [] }),
  python: () => new Worker(new URL("../programs/python-worker-node.js", import.meta.url), { env: {}, argv: [], execArgv: [] }),
};

setMachine({
  readFile: async (url) => new Uint8Array(await readFile(url)),
  startWorker(program) {
    const remedied = (said) => withRemedy(said, `start hermitcrab/${program}/worker yourself with the option worker`);
    try {
      return nodeWorker(START[program](), remedied);
    } catch (error) {
      throw new Error(remedied(error.message), { cause: error });
    }
  },
});

/**
 * A worker of this process as a handle.
 * @param {any} worker of `worker_threads` @param {(said: string) => string} remedied
 * @returns {import("./machine.js").WorkerHandle}
 */
export function nodeWorker(worker, remedied) {
  let [onMessage, onError] = [() => {}, () => {}];
  worker.on("message", (message) => onMessage(message));
  worker.on("messageerror", () => onError("a message could not be read"));
  worker.on("error", (error) => onError(remedied(error.message)));
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
