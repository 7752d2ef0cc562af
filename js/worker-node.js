// Entry `hermitcrab/worker` in Node, Bun and Deno.

// Without "node:": by this name webpack knows its workers.
import { Worker } from "worker_threads";

import "./machine-node.js";
import { setSpawn } from "./worker/connection.js";

setSpawn(() => new Worker(new URL("./worker/main-node.js", import.meta.url), { name: "hermitcrab" }));

export * from "./worker/api.js";
export { directoryStorage } from "./directory-storage.js";
export { NodeEnvironment } from "./node-environment.js";
