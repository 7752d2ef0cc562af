// Entry `hermitcrab/slim`: the core without a shell inside, for hosts that
// bring their own environment.

import * as bindings from "./wasm/slim/hermitcrab.js";
import { setPlatform } from "./runtime.js";

setPlatform({
  bindings,
  sandbox: false,
  // Bundlers recognise this form and ship the file.
  load: async () => new URL("./wasm/slim/hermitcrab_bg.wasm", import.meta.url),
});

export * from "./api-slim.js";
export { ModelError } from "./errors.js";
export { ModelClient } from "./model.js";
