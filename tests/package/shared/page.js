// What each page does: the task on its own thread, in a worker, and with an
// environment of its own; `window.result` says what came of it.

import * as page from "hermitcrab";
import * as slim from "hermitcrab/slim";
import * as worker from "hermitcrab/worker";

import { hosted, sandboxed } from "./scenario.js";

/** @param {string[]} models addresses, one per session @param {object} [options] of the worker */
export async function play(models, options) {
  if (options) await worker.init(options);
  return {
    worker: await sandboxed(worker, models[0]),
    page: await sandboxed(page, models[1]),
    slim: await hosted(slim, models[2]),
    isolated: globalThis.crossOriginIsolated,
  };
}

export const models = () => new URLSearchParams(location.search).get("models").split(",");

export function report(result) {
  result.then(
    (value) => (globalThis.result = value),
    (error) => (globalThis.result = { error: String(error?.stack ?? error) }),
  );
}
