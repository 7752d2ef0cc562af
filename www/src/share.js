// A run as one file: the project as it was, and everything that happened since.

/** @typedef {{format: "hermitcrab-run", version: 1, name: string, saved: string, files: Record<string, string>, log: import("./run.js").Entry[]}} SharedRun */

/**
 * @param {string} name @param {Map<string, Uint8Array>} files before the run
 * @param {import("./run.js").Entry[]} log
 */
export function packRun(name, files, log) {
  const packed = Object.fromEntries([...files].map(([path, bytes]) => [path, toBase64(bytes)]));
  return JSON.stringify({ format: "hermitcrab-run", version: 1, name, saved: new Date().toISOString(), files: packed, log });
}

/**
 * @param {string} text
 * @returns {{name: string, saved: string, files: Record<string, Uint8Array>, log: import("./run.js").Entry[]}}
 */
export function unpackRun(text) {
  let shared;
  try {
    shared = JSON.parse(text);
  } catch {
    throw new Error("this file is not a run: it is not JSON");
  }
  if (shared?.format !== "hermitcrab-run" || !Array.isArray(shared.log)) {
    throw new Error("this file is not a run that the playground has written");
  }
  if (shared.version !== 1) throw new Error(`this run is of version ${shared.version}, which this page does not know; reload the page`);
  const files = Object.fromEntries(Object.entries(shared.files ?? {}).map(([path, text]) => [path, fromBase64(text)]));
  return { name: String(shared.name ?? "run"), saved: String(shared.saved ?? ""), files, log: shared.log };
}

function toBase64(bytes) {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
