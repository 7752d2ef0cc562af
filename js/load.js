// Loading the core: where it comes from, how much of it has arrived, and why
// not. Browsers and servers fail in ways that look alike from afar, so each is
// told by name, with the way out.

import { CoreError, text } from "./errors.js";
import { machine } from "./machine.js";
import { quiet } from "./quiet.js";

/**
 * Compiles the module and starts the core.
 * @param {import("./runtime.js").WasmSource | Promise<unknown> | undefined} given `undefined`: the package's own file
 * @param {import("./runtime.js").Platform} platform
 * @param {import("./runtime.js").InitOptions["onProgress"]} [onProgress]
 */
export async function loaded(given, { bindings, sandbox, load }, onProgress) {
  let source;
  let place = "what was given";
  try {
    source = await (given === undefined ? load() : given);
    if (typeof source === "string" || source instanceof URL) {
      place = String(source);
      source = await download(source);
    }
    if (onProgress && source instanceof Response) source = watched(source, onProgress);
    // The package's own is the right one, and starts in one go with its compilation.
    if (given === undefined) return await bindings.default({ module_or_path: source });
    const module = await compiled(source);
    check(module, sandbox, place);
    return await bindings.default({ module_or_path: module });
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
