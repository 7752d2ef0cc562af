// Entry `hermitcrab/node`: Node, Bun and Deno.

import { readFile } from "node:fs/promises";

import { setPlatform } from "./core/runtime.js";
import * as bindings from "./wasm/hermitcrab.js";
import "./platform/machine-node.js";

setPlatform({
  bindings,
  sandbox: true,
  load: () => readFile(new URL("./wasm/hermitcrab_bg.wasm", import.meta.url)),
});

export * from "./api.js";
export { ModelError } from "./shared/errors.js";
export { ModelClient } from "./model/model-client.js";
export { directoryStorage } from "./project/directory-storage.js";
export { NodeEnvironment } from "./environment/node-environment.js";

/**
 * @typedef {import("./environment/node-environment.js").NodeEnvironmentOptions} NodeEnvironmentOptions
 * @typedef {import("./environment/node-environment.js").NodeOptions} NodeOptions
 */
