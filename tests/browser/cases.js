// The page of cases.test.mjs: plays what it is told to, and hands back the
// transcript.

import * as page from "/js/index.js";
import * as worker from "/js/worker.js";
import { modelAt } from "/tests/node/model.mjs";
import { play } from "/tests/node/play.mjs";

const FACES = { page, worker };
globalThis.faces = FACES;

/** @param {keyof typeof FACES} face @param {object} spec of a case */
globalThis.playCase = (face, spec) => play({ api: FACES[face], serveModel }, spec);

/** @param {string} name of a kept log */
globalThis.replayLog = async (name) => {
  const { rounds, closed } = await page.replay(await (await fetch(`/tests/logs/${name}`)).blob());
  return { rounds, closed };
};

/** The test's server starts the model; the page talks to it like to any other. */
async function serveModel(script) {
  const { url } = await (await fetch("/model", { method: "POST", body: JSON.stringify(script) })).json();
  return modelAt(url);
}
