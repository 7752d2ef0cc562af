// The same with the core that has no shell, and the host's environment.

import { createSession, init } from "hermitcrab/slim";
import wasm from "hermitcrab/slim.wasm";

import { hosted } from "./scenario.js";

let ready;

export default {
  async fetch(request) {
    ready ??= init({ wasm });
    await ready;
    return Response.json(await hosted({ createSession }, new URL(request.url).searchParams.get("model")));
  },
};
