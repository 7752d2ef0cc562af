// An import map would be an inline script, which the policy forbids.

import * as page from "/node_modules/hermitcrab/js/index.js";
import * as slim from "/node_modules/hermitcrab/js/slim.js";
import * as worker from "/node_modules/hermitcrab/js/worker.js";

import { hosted, sandboxed } from "./scenario.js";

const models = new URLSearchParams(location.search).get("models").split(",");

async function play() {
  return {
    worker: await sandboxed(worker, models[0]),
    page: await sandboxed(page, models[1]),
    slim: await hosted(slim, models[2]),
    isolated: globalThis.crossOriginIsolated,
  };
}

play().then(
  (value) => (globalThis.result = value),
  (error) => (globalThis.result = { error: String(error?.stack ?? error) }),
);
