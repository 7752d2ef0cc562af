// A page that does not say where the workers of its programs are.

import { MemoryEnvironment, init } from "hermitcrab";
import wasm from "hermitcrab/hermitcrab.wasm";
import { jsProgram } from "hermitcrab/javascript";
import { pythonProgram } from "hermitcrab/python";
import archive from "hermitcrab-python/python.tar.gz";

import { report } from "./page.js";

const COMMANDS = {
  "node -p 1": { node: jsProgram() },
  "python3 -c 1": { python3: pythonProgram() },
  "python3 -c 2": { python3: pythonProgram({ url: new URL(archive, import.meta.url) }) },
};

async function all() {
  await init({ wasm: new URL(wasm, import.meta.url) });
  const said = [];
  for (const [command, programs] of Object.entries(COMMANDS)) {
    const env = await MemoryEnvironment.create({ programs });
    const { exitCode, stderr } = await env.exec(command);
    said.push([exitCode, stderr]);
  }
  return said;
}

report(all());
