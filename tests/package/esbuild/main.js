import { init } from "hermitcrab";
import wasm from "hermitcrab/hermitcrab.wasm";

import { models, play, report } from "./page.js";

const core = new URL(wasm, import.meta.url);
const worker = () => new Worker(new URL("worker.js", import.meta.url), { type: "module" });

report(init({ wasm: core }).then(() => play(models(), { wasm: core, worker })));
