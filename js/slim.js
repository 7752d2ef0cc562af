// Entry `hermitcrab/slim`: the core without a shell inside, for hosts that
// bring their own environment.

import { setPlatform } from "./core/runtime.js";
import * as bindings from "./wasm/slim/hermitcrab.js";

setPlatform({
  bindings,
  sandbox: false,
  // Bundlers recognise this form and ship the file.
  load: async () => new URL("./wasm/slim/hermitcrab_bg.wasm", import.meta.url),
});

export * from "./api-slim.js";
export { ModelError } from "./shared/errors.js";
export { ModelClient } from "./model/model-client.js";
