// `pythonProgram`: CPython for the sandbox, downloaded when it is first called.

import { machine, webWorker } from "../platform/machine.js";
import { acceptInEnvironment } from "../shared/arguments.js";
import { EnvironmentError } from "../shared/errors.js";
import { NotThere, unpack } from "./pack.js";
import { Pool } from "./pool.js";

/** @import { URL, Worker } from "../platform.js" */

/** Bytes that one call may print to each stream. */
const OUTPUT_BYTES = 64 << 20;
/** A worker without a call lives this long. */
const IDLE_MS = 60_000;

/** What bundlers need that ship no worker by themselves. */
const REMEDY = "make hermitcrab/python/worker an entry point of your bundle, and say with pythonProgram({ worker }) where it is";

const MISSING = "the package hermitcrab-python, which holds Python, is not there; install it with npm install hermitcrab-python, or say with pythonProgram({ url }) where its python.tar.gz is";

/**
 * @typedef {object} PythonOptions
 * @property {string | URL} [url] of `hermitcrab-python/python.tar.gz`; default: that of the
 *   installed package
 * @property {(progress: {loaded: number, total?: number}) => void} [onProgress]
 *   bytes that have arrived, of how many
 * @property {number} [workers] calls that may run at the same time, 4 by default
 * @property {() => Worker | Promise<Worker>} [worker] starts `hermitcrab/python/worker`, for bundlers
 *   that do not find workers by themselves
 */

/**
 * CPython 3.14 with most of its standard library, `unittest` included, as a
 * program to lend: `env.program("python3", pythonProgram())`. Each call is an
 * interpreter, in a worker: an endless loop blocks nobody and ends
 * with the time limit of its command. There are no subprocesses, threads,
 * sockets and native packages.
 *
 * `load` downloads it ahead of the first call, and rejects with an
 * `EnvironmentError` if that fails; `close` ends its workers.
 * @param {PythonOptions} [options]
 * @returns {import("../environment/program.js").Program & {load: () => Promise<void>, close: () => void}}
 */
export function pythonProgram(options = {}) {
  acceptInEnvironment("pythonProgram", options);
  const { url, onProgress, workers = 4, worker } = options;
  let loading;
  const load = () => {
    loading ??= (url === undefined ? installed() : Promise.resolve(url)).then((url) => loadPython(url, onProgress)).catch((error) => {
      // The next call tries again.
      loading = undefined;
      throw error;
    });
    return loading;
  };
  const start = async () => {
    const python = await load();
    const handle = worker ? webWorker(await worker(), REMEDY) : startWorker();
    handle.post({ kind: "setup", ...python, outputBytes: OUTPUT_BYTES });
    return handle;
  };
  const pool = new Pool({ start, workers, idleMs: IDLE_MS });
  return Object.assign((call) => pool.run(call), {
    load: async () => void (await load()),
    close: () => pool.close(),
  });
}

function startWorker() {
  const { startWorker } = machine();
  if (startWorker) return startWorker("python");
  // Bundlers recognise this form and ship the worker.
  return webWorker(new Worker(new URL("./python-worker.js", import.meta.url), { type: "module" }), REMEDY);
}

/** @returns {Promise<URL>} */
async function installed() {
  try {
    // Bundlers follow it; it is in `try` because it may be missing.
    const { url } = await import("hermitcrab-python");
    return url;
  } catch {
    throw new EnvironmentError("not_found", MISSING);
  }
}

async function loadPython(url, onProgress) {
  const files = await unpack(url, onProgress).catch((error) => {
    if (!(error instanceof NotThere)) throw error;
    throw new EnvironmentError(error.kind, `${error.message}; pythonProgram({ url }) says where python.tar.gz is`, { cause: error });
  });
  for (const name of ["python.wasm", "python314.zip"]) {
    if (!files.has(name)) throw new EnvironmentError("invalid_input", `${url} holds no ${name}; build it with \`cargo xtask python\``);
  }
  return {
    module: await WebAssembly.compile(files.get("python.wasm")),
    library: files.get("python314.zip").slice(),
    more: files.get("more.zip")?.slice(),
  };
}
