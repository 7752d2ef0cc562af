// An edge isolate: nothing is compiled there, the host gives the module.

import { createSession, init, MemoryEnvironment, SessionError } from "hermitcrab";
import wasm from "hermitcrab/hermitcrab.wasm";

import { sandboxed } from "./scenario.js";

let ready;

export default {
  async fetch(request) {
    ready ??= init({ wasm });
    await ready;
    const model = new URL(request.url).searchParams.get("model");
    return Response.json(await sandboxed({ createSession, MemoryEnvironment, SessionError }, model));
  },
};
