// `hermitcrab/javascript/worker` in Node, Bun and Deno.

import { begin } from "./node-scope.js";
import "./javascript-worker.js";

begin();
