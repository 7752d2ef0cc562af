// Entry `hermitcrab/node`: Node, Bun and Deno.

import { readFile } from "node:fs/promises";

import * as bindings from "./wasm/hermitcrab.js";
import { setPlatform } from "./runtime.js";
import "./machine-node.js";

setPlatform({
  bindings,
  sandbox: true,
  load: () => readFile(new URL("./wasm/hermitcrab_bg.wasm", import.meta.url)),
});

export * from "./api.js";
export { ModelError } from "./errors.js";
export { ModelClient } from "./model.js";
export { directoryStorage } from "./directory-storage.js";
export { NodeEnvironment } from "./node-environment.js";

/**
 * @typedef {import("./node-environment.js").NodeEnvironmentOptions} NodeEnvironmentOptions
 * @typedef {import("./node-environment.js").NodeOptions} NodeOptions
 */
