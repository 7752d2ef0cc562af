// Types of `hermitcrab/worker` in Node, Bun and Deno.

export * from "./worker.js";
export { directoryStorage } from "./directory-storage.js";
