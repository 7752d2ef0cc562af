// Entry `hermitcrab`: web pages, workers and bundlers.

import { setPlatform } from "./platform.js";

setPlatform({
  // Bundlers recognise this form and ship the file.
  load: async () => new URL("./wasm/hermitcrab_bg.wasm", import.meta.url),
  now: () => Date.now(),
  seed: () => globalThis.crypto.getRandomValues(new Uint8Array(32)),
});

export * from "./api.js";
