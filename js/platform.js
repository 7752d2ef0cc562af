// What an entry file provides, because the core has no clock and no entropy,
// and because files and workers differ between hosts.

/**
 * @typedef {object} Platform
 * @property {() => Promise<unknown>} load what `WebAssembly` compiles: bytes, a
 *   module, a response or a URL
 * @property {() => number} now ms since 1970-01-01 UTC
 * @property {() => Uint8Array} seed 32 random bytes
 * @property {(url: URL) => Promise<Uint8Array>} [readFile] where `fetch` knows no files
 * @property {(url: URL) => WorkerHandle} [startWorker] where there is no `Worker`
 *
 * @typedef {object} WorkerHandle a worker, whatever the host calls its parts
 * @property {(message: unknown, transfer?: ArrayBuffer[]) => void} post it has work from now on
 * @property {(onMessage: (message: any) => void, onError: (message: string) => void) => void} listen
 *   to this caller alone
 * @property {() => void} rest it has no work: it need not keep the process alive
 * @property {() => void} terminate
 */

/** @type {Platform | undefined} */
let provided;

/** Called once by the entry file; the first one stays. @param {Platform} platform */
export function setPlatform(platform) {
  provided ??= platform;
}

/** What the entry file provided; nothing where no entry file was loaded. @returns {Partial<Platform>} */
export function platform() {
  return provided ?? {};
}

/** A Web Worker as a handle. @param {Worker} worker @returns {WorkerHandle} */
export function webWorker(worker) {
  return {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    listen(onMessage, onError) {
      worker.onmessage = ({ data }) => onMessage(data);
      worker.onmessageerror = () => onError("a message could not be read");
      worker.onerror = (event) => {
        event.preventDefault?.();
        onError(event.message || "it could not be loaded");
      };
    },
    rest() {},
    terminate: () => worker.terminate(),
  };
}
