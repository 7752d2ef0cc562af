// Files and workers, where they differ between hosts: Node has no `Worker` of
// the web's kind, and its `fetch` reads no files.

/** @import { URL } from "../platform.js" */

/**
 * @typedef {object} Machine
 * @property {(url: URL) => Promise<Uint8Array>} [readFile] where `fetch` reads no files
 * @property {(program: "javascript" | "python") => WorkerHandle} [startWorker] where there is no `Worker`
 *
 * @typedef {object} WorkerHandle a worker, whatever the host calls its parts
 * @property {(message: unknown, transfer?: ArrayBuffer[]) => void} post it has work from now on
 * @property {(onMessage: (message: any) => void, onError: (message: string) => void) => void} listen
 *   to this caller alone
 * @property {() => void} rest it has no work: it need not keep the process alive
 * @property {() => void} terminate
 */

/** @type {Machine} */
let provided = {};

/** Called by the entry files of hosts that have no web platform. @param {Machine} machine */
export function setMachine(machine) {
  provided = machine;
}

/** What the host has in place of the web's; nothing in a page. @returns {Machine} */
export function machine() {
  return provided;
}

/**
 * A Web Worker as a handle.
 * @param {any} worker of the web's kind @param {string} remedy what to do if its script is not there
 * @returns {WorkerHandle}
 */
export function webWorker(worker, remedy) {
  return {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    listen(onMessage, onError) {
      worker.onmessage = ({ data }) => onMessage(data);
      worker.onmessageerror = () => onError("a message could not be read");
      worker.onerror = (event) => {
        event.preventDefault?.();
        // Browsers do not say why a script could not be loaded.
        onError(event.message || `its script could not be loaded; ${remedy}`);
      };
    },
    rest() {},
    terminate: () => worker.terminate(),
  };
}
