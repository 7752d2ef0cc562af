// Entry `hermitcrab/worker`: the same API with the agent in a Web Worker, so
// that it never runs on the page's thread.

import { setSpawn } from "./worker/page/connection.js";

// Bundlers recognise this form and build the worker's script.
setSpawn(() => new Worker(new URL("./worker/main.js", import.meta.url), { type: "module", name: "hermitcrab" }));

export * from "./worker/page/api.js";
