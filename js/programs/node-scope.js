// What a Web Worker's script talks through, in a worker of Node, Bun and Deno.
// Imported before such a script; `begin` after it.

import { parentPort } from "node:worker_threads";

// Deno keeps no message for a listener that comes later.
const early = [];
let receive = (data) => early.push(data);
parentPort.on("message", (data) => receive(data));
globalThis.postMessage = (message, transfer) => parentPort.postMessage(message, transfer);

/** The script is there and listens. */
export function begin() {
  receive = (data) => globalThis.onmessage({ data });
  for (const data of early) receive(data);
}
