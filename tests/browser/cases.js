// The page of cases.test.mjs: plays what it is told to, and hands back the
// transcript.

import * as page from "/js/index.js";
import * as worker from "/js/worker.js";
import { play } from "/tests/node/play.mjs";

const FACES = { page, worker };
globalThis.faces = FACES;

/** @param {keyof typeof FACES} face @param {object} spec of a case */
globalThis.playCase = (face, spec) => play({ api: FACES[face], serveModel }, spec);

/** The test's server starts the model; the page talks to it like to any other. */
async function serveModel(script) {
  const { url } = await (await fetch("/model", { method: "POST", body: JSON.stringify(script) })).json();
  const control = async (path, init) => {
    const response = await fetch(`${url}/_script/${path}`, init);
    if (!response.ok) throw new Error(`/_script/${path}: ${response.status}`);
    return response;
  };
  return {
    url,
    requests: async () => (await control("requests")).json(),
    held: async (name) => {
      while (!(await (await control("holds")).json()).includes(name)) {
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    },
    release: async (name) => void (await control(`release/${encodeURIComponent(name)}`, { method: "POST" })),
  };
}
