// The worker's script in Node, Bun and Deno.

import { parentPort } from "node:worker_threads";

import * as api from "../node.js";
import { serve } from "./serve.js";

serve(api, parentPort, (receive) => parentPort.on("message", receive));
