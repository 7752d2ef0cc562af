// Entry `hermitcrab/node`: Node, Bun and Deno.

import "./platform-node.js";

export * from "./api.js";
