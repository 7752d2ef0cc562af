// Worker script of Node, Bun and Deno: gives the script in `workerData.url` the
// globals of a Web Worker that it talks through.

import { parentPort, workerData } from "node:worker_threads";

globalThis.postMessage = (message, transfer) => parentPort.postMessage(message, transfer);
await import(workerData.url);
parentPort.on("message", (data) => globalThis.onmessage({ data }));
