// Loading the core: where it comes from, how much of it has arrived, and why
// not. Browsers and servers fail in ways that look alike from afar, so each is
// told by name, with the way out.

import { CoreError, text } from "./errors.js";
import { machine } from "./machine.js";
import { quiet } from "./quiet.js";

/**
 * Compiles the module and starts the core.
 * @param {import("./runtime.js").WasmSource | Promise<unknown>} given
 * @param {typeof import("./wasm/hermitcrab.js")} bindings
 * @param {import("./runtime.js").InitOptions["onProgress"]} [onProgress]
 */
export async function loaded(given, bindings, onProgress) {
  let source;
  let place = "what was given";
  try {
    source = await given;
    if (typeof source === "string" || source instanceof URL) {
      place = String(source);
      source = await download(source);
    }
    if (onProgress && source instanceof Response) source = watched(source, onProgress);
    return await bindings.default({ module_or_path: source });
  } catch (error) {
    if (error instanceof CoreError) throw error;
    throw failure(reasonOf(error, place), error);
  }
}

async function download(url) {
  const { readFile } = machine();
  if (readFile && /^file:/.test(String(url))) return readFile(new URL(url));
  let response;
  try {
    response = await fetch(url);
  } catch (error) {
    const network = globalThis.navigator?.onLine === false ? "there is no network" : "check the network";
    throw failure(`${url} cannot be downloaded: ${text(error)}; ${network}`, error);
  }
  if (response.ok) return response;
  throw failure(`${url} answered with status ${response.status}; serve the module of this package there, or say with init({ wasm }) where it is`);
}

/** A response that tells how much of it has arrived. */
function watched(response, onProgress) {
  if (!response.body) return response;
  const tell = quiet(onProgress);
  const total = response.headers.has("content-encoding")
    ? undefined
    : Number(response.headers.get("content-length")) || undefined;
  let loaded = 0;
  const count = new TransformStream({
    transform(chunk, controller) {
      loaded += chunk.byteLength;
      tell({ loaded, total });
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(count), response);
}

function reasonOf(error, place) {
  const said = text(error);
  if (error instanceof WebAssembly.CompileError || error?.name === "CompileError") {
    if (/Content Security Policy|unsafe-eval|disallowed by embedder|blocked by CSP/i.test(said)) {
      return "the content security policy forbids WebAssembly; it must have script-src 'wasm-unsafe-eval'";
    }
    return `${place} is not the WebAssembly module of this package (${said}); say with init({ wasm }) where that is`;
  }
  return said;
}

function failure(reason, cause) {
  return CoreError.saying(`the core cannot be loaded: ${reason}`, { cause });
}
