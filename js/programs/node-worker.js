// Worker script of Node, Bun and Deno: gives the script in `workerData.url` the
// globals of a Web Worker that it talks through.

import { parentPort, workerData } from "node:worker_threads";

// Deno keeps no message for a listener that comes later.
const early = [];
let receive = (data) => early.push(data);
parentPort.on("message", (data) => receive(data));
globalThis.postMessage = (message, transfer) => parentPort.postMessage(message, transfer);
await import(workerData.url);
receive = (data) => globalThis.onmessage({ data });
for (const data of early) receive(data);
