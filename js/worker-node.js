// Entry `hermitcrab/worker` in Node, Bun and Deno.

// Without "node:": by this name webpack knows its workers.
import { Worker } from "worker_threads";

import "./platform/machine-node.js";
import { setSpawn } from "./worker/page/connection.js";

setSpawn(() => new Worker(new URL("./worker/main-node.js", import.meta.url), { name: "hermitcrab" }));

export * from "./worker/page/api.js";
export { directoryStorage } from "./project/directory-storage.js";
export { NodeEnvironment } from "./environment/node-environment.js";
