// Types of `hermitcrab/worker` in Node, Bun and Deno.

export * from "./worker.js";
export { directoryStorage } from "./project/directory-storage.js";
export { NodeEnvironment } from "./environment/node-environment.js";
export type { NodeEnvironmentOptions, NodeOptions } from "./environment/node-environment.js";
