// `hermitcrab/python/worker` in Node, Bun and Deno.

import { begin } from "./node-scope.js";
import "./python-worker.js";

begin();
