// Types of `hermitcrab/worker` in Node, Bun and Deno.

export * from "./worker.js";
export { directoryStorage } from "./directory-storage.js";
export { NodeEnvironment } from "./node-environment.js";
export type { NodeEnvironmentOptions, NodeOptions } from "./node-environment.js";
