// Entry `hermitcrab`: web pages, workers and bundlers.

import * as bindings from "./wasm/hermitcrab.js";
import { setPlatform } from "./runtime.js";

setPlatform({
  bindings,
  sandbox: true,
  // Bundlers recognise this form and ship the file.
  load: async () => new URL("./wasm/hermitcrab_bg.wasm", import.meta.url),
});

export * from "./api.js";
export { ModelError } from "./errors.js";
export { ModelClient } from "./model.js";
