// Each entry point, and lent programs, in Bun and Deno; prints what came of it.

import * as node from "hermitcrab/node";
import * as slim from "hermitcrab/slim";
import * as worker from "hermitcrab/worker";

import { lent } from "./programs.js";
import { hosted, sandboxed } from "./scenario.js";

const models = process.argv.slice(2);
const result = {
  worker: await sandboxed(worker, models[0]),
  page: await sandboxed(node, models[1]),
  slim: await hosted(slim, models[2]),
  lent: await lent(),
};
console.log(JSON.stringify(result));
