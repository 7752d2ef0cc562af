// Entry `hermitcrab/node`: Node, Bun and Deno.

import { readFile } from "node:fs/promises";
import { setPlatform } from "./runtime.js";

setPlatform({
  load: () => readFile(new URL("./wasm/hermitcrab_bg.wasm", import.meta.url)),
  now: () => Date.now(),
  seed: () => globalThis.crypto.getRandomValues(new Uint8Array(32)),
});

export * from "./api.js";
export { directoryStorage } from "./directory-storage.js";
