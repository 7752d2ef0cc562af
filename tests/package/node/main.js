// Each entry point in Node; prints what came of it.

import * as main from "hermitcrab";
import * as node from "hermitcrab/node";
import * as slim from "hermitcrab/slim";
import * as worker from "hermitcrab/worker";

import { hosted, sandboxed } from "./scenario.js";

const models = process.argv.slice(2);
const result = {
  worker: await sandboxed(worker, models[0]),
  page: await sandboxed(node, models[1]),
  slim: await hosted(slim, models[2]),
  same: main.createSession === node.createSession,
  files: ["hermitcrab/hermitcrab.wasm", "hermitcrab/slim.wasm"].map((name) => import.meta.resolve(name).split("/").at(-1)),
};
console.log(JSON.stringify(result));
