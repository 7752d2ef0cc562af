import { init } from "hermitcrab";
import wasm from "hermitcrab/hermitcrab.wasm";
import archive from "hermitcrab-python/python.tar.gz";

import { models, play, report } from "./page.js";
import { lent } from "./programs.js";

const core = new URL(wasm, import.meta.url);
const url = new URL(archive, import.meta.url);
const start = (name) => () => new Worker(new URL(`${name}.js`, import.meta.url), { type: "module" });

async function all() {
  await init({ wasm: core });
  const result = await play(models(), { wasm: core, worker: start("worker") });
  return { ...result, lent: await lent({ worker: start("node") }, { url, worker: start("python") }) };
}

report(all());
