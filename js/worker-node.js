// Entry `hermitcrab/worker` in Node, Bun and Deno.

import { Worker } from "node:worker_threads";

import "./machine-node.js";
import { setSpawn } from "./worker/connection.js";

setSpawn(() => new Worker(new URL("./worker/main-node.js", import.meta.url), { name: "hermitcrab" }));

export * from "./worker/api.js";
export { directoryStorage } from "./directory-storage.js";
export { NodeEnvironment } from "./node-environment.js";
