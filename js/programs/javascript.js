// `jsProgram`: JavaScript for the sandbox, in a worker.

import { machine, webWorker } from "../platform/machine.js";
import { acceptInEnvironment } from "../shared/arguments.js";
import { Pool } from "./pool.js";

/** @import { Worker } from "../platform.js" */

/** Bytes that one call may print to each stream. */
const OUTPUT_BYTES = 64 << 20;

/** What bundlers need that ship no worker by themselves. */
const REMEDY = "make hermitcrab/javascript/worker an entry point of your bundle, and say with jsProgram({ worker }) where it is";

/**
 * @typedef {object} JsOptions
 * @property {boolean} [network] leave `fetch`, `WebSocket` and the like to programs
 * @property {number} [workers] calls that may run at the same time, 4 by default
 * @property {() => Worker | Promise<Worker>} [worker] starts `hermitcrab/javascript/worker`, for
 *   bundlers that do not find workers by themselves, and for pages whose policy forbids
 *   `eval`: the worker obeys the policy that its own file is served with, and
 *   that must have `script-src 'unsafe-eval'`
 */

/**
 * JavaScript as a program to lend: `env.program("node", jsProgram())` runs
 * `node file.js`, `node -e` and `node --test` on the files of the sandbox: with
 * `require` and `import`, `console`, `process`, timers, and the modules `assert`,
 * `buffer`, `events`, `fs`, `os`, `path`, `readline`, `stream`, `test`, `timers`, `url` and
 * `util` as far as programs that handle files use them.
 *
 * A convenience, not a security boundary: a program sees no DOM, no network
 * and none of the storage that the globals of a worker lead to, but it runs in
 * a realm of the page's origin, or of the process in Node. Code that is out to
 * do harm belongs into an environment that is made for it.
 * @param {JsOptions} [options]
 * @returns {import("../environment/program.js").Program & {close: () => void}}
 */
export function jsProgram(options = {}) {
  acceptInEnvironment("jsProgram", options);
  const { network = false, workers = 4, worker } = options;
  const start = async () => {
    const handle = worker ? webWorker(await worker(), REMEDY) : startWorker();
    handle.post({ kind: "setup", network, outputBytes: OUTPUT_BYTES });
    return handle;
  };
  const pool = new Pool({ start, workers, once: true });
  return Object.assign((call) => pool.run(call), { close: () => pool.close() });
}

function startWorker() {
  const { startWorker } = machine();
  if (startWorker) return startWorker("javascript");
  // Bundlers recognise this form and ship the worker.
  return webWorker(new Worker(new URL("./javascript-worker.js", import.meta.url), { type: "module" }), REMEDY);
}
