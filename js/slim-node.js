// Entry `hermitcrab/slim` in Node, Bun and Deno.

import { readFile } from "node:fs/promises";

import { setPlatform } from "./core/runtime.js";
import * as bindings from "./wasm/slim/hermitcrab.js";

setPlatform({
  bindings,
  sandbox: false,
  load: () => readFile(new URL("./wasm/slim/hermitcrab_bg.wasm", import.meta.url)),
});

export * from "./api-slim.js";
export { ModelError } from "./shared/errors.js";
export { ModelClient } from "./model/model-client.js";
