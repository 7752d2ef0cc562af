// Entry `hermitcrab`: web pages, workers and bundlers.

import { setPlatform } from "./core/runtime.js";
import * as bindings from "./wasm/hermitcrab.js";

setPlatform({
  bindings,
  sandbox: true,
  // Bundlers recognise this form and ship the file.
  load: async () => new URL("./wasm/hermitcrab_bg.wasm", import.meta.url),
});

export * from "./api.js";
export { ModelError } from "./shared/errors.js";
export { ModelClient } from "./model/model-client.js";
