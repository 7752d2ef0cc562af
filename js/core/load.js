// Loading the core: where it comes from, how much of it has arrived, and why
// not. Browsers and servers fail in ways that look alike from afar, so each is
// told by name, with the way out.

import { withRemedy } from "../platform/bundled.js";
import { violations } from "../platform/content-security-policy.js";
import { machine } from "../platform/machine.js";
import { CoreError, text } from "../shared/errors.js";
import { quiet } from "../shared/notification.js";

/** What a source is called that has no address. */
const GIVEN = "what was given";

/**
 * Compiles the module and starts the core.
 * @param {import("./runtime.js").WasmSource | Promise<unknown> | undefined} given `undefined`: the package's own file
 * @param {import("./runtime.js").Platform} platform
 * @param {import("./runtime.js").InitOptions["onProgress"]} [onProgress]
 */
export async function loaded(given, { bindings, sandbox, load }, onProgress) {
  let source;
  /** Its address, if it has one. @type {string | undefined} */
  let place;
  /** @type {Arrival | undefined} */
  let arrival;
  try {
    source = await (given === undefined ? load() : given);
    if (typeof source === "string" || source instanceof URL) {
      place = String(source);
      source = await download(source);
    }
    if (source instanceof Response) {
      place ??= source.url;
      answered(source);
      if (onProgress) arrival = new Arrival(source, onProgress);
    }
    // The package's own is the right one, and starts in one go with its compilation.
    let module = source;
    if (given !== undefined) {
      module = await compiled(source);
      check(module, sandbox, place || GIVEN);
    }
    const started = await bindings.default({ module_or_path: module });
    await arrival?.told;
    return started;
  } catch (error) {
    arrival?.end();
    if (error instanceof CoreError) throw error;
    const reason = reasonOf(error, place);
    const wanted = `hermitcrab/${sandbox ? "hermitcrab" : "slim"}.wasm`;
    throw failure(given === undefined ? withRemedy(reason, `say with init({ wasm }) where ${wanted} is`) : reason, error);
  }
}

async function download(url) {
  const { readFile } = machine();
  if (readFile && /^file:/.test(String(url))) return readFile(new URL(url));
  const policy = violations();
  try {
    return await fetch(url);
  } catch (error) {
    await policy.told();
    throw failure(`${url} cannot be downloaded: ${whyNot(error, policy)}`, error);
  } finally {
    policy.end();
  }
}

function whyNot(error, policy) {
  if (policy.forbids("connect-src")) return "the content security policy forbids it; allow it with connect-src";
  const network = globalThis.navigator?.onLine === false ? "there is no network" : "check the network";
  return `${text(error)}; ${network}`;
}

/**
 * A response that has the module, as far as its status tells.
 * @param {Response} response
 * @throws {CoreError}
 */
export function answered(response) {
  if (response.ok) return response;
  throw failure(`${response.url || GIVEN} answered with status ${response.status}; serve the module of this package there, or say with init({ wasm }) where it is`);
}

/** @returns {Promise<WebAssembly.Module>} */
function compiled(source) {
  // Of any realm's.
  if (Object.prototype.toString.call(source) === "[object WebAssembly.Module]") return source;
  if (!(source instanceof Response)) return WebAssembly.compile(source);
  // Of another type, or where there is no such function, it is compiled once it is there.
  const streams = WebAssembly.compileStreaming && source.headers.get("content-type")?.toLowerCase() === "application/wasm";
  return streams ? WebAssembly.compileStreaming(source) : source.arrayBuffer().then((bytes) => WebAssembly.compile(bytes));
}

/**
 * Both cores import the same, so that the bindings of one would start the other,
 * and fail at its first call without a way back.
 */
function check(module, sandbox, place) {
  const names = new Set(WebAssembly.Module.exports(module).map(({ name }) => name));
  const wanted = `hermitcrab/${sandbox ? "hermitcrab" : "slim"}.wasm`;
  if (!names.has("core_step")) throw failure(`${place} is not the WebAssembly module of this package; say with init({ wasm }) where ${wanted} is`);
  if (names.has("core_addSandbox") === sandbox) return;
  throw failure(`${place} is the core ${sandbox ? "without" : "with"} a sandbox; this entry of the package wants ${wanted}`);
}

/**
 * Tells how much of a response has arrived. It reads a copy: Chromium keeps compiled
 * code with a response that it received, not with one that was made of its body.
 */
export class Arrival {
  #reader;
  /** All progress was reported, or no more will be. @type {Promise<void> | undefined} */
  told;

  /** @param {Response} response @param {(progress: {loaded: number, total: number | undefined}) => void} onProgress */
  constructor(response, onProgress) {
    if (!response.body) return;
    const total = response.headers.has("content-encoding")
      ? undefined
      : Number(response.headers.get("content-length")) || undefined;
    this.#reader = response.clone().body.getReader();
    this.told = this.#tell(total, quiet(onProgress)).catch(() => {
      // Whoever compiles it gets the progress, too.
    });
  }

  async #tell(total, tell) {
    let loaded = 0;
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return;
      loaded += value.byteLength;
      tell({ loaded, total });
    }
  }

  /** Reads no further. */
  end() {
    this.#reader?.cancel().catch(() => {});
  }
}

/** @param {string | undefined} place */
function reasonOf(error, place) {
  const said = text(error);
  if (error instanceof WebAssembly.CompileError || error?.name === "CompileError") {
    if (/Content Security Policy|unsafe-eval|disallowed by embedder|blocked by CSP/i.test(said)) {
      return "the content security policy forbids WebAssembly; it must have script-src 'wasm-unsafe-eval'";
    }
    return `${place || GIVEN} is not the WebAssembly module of this package (${said}); say with init({ wasm }) where that is`;
  }
  return place ? `${place}: ${said}` : said;
}

function failure(reason, cause) {
  return CoreError.saying(`the core cannot be loaded: ${reason}`, { cause });
}
