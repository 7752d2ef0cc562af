// Shared by the tests of lent programs: a sandbox with a program, and the
// answer of a command in one line.

import { MemoryEnvironment } from "../../js/node.js";
import { pythonProgram } from "../../js/programs/python.js";

/** One for all tests of a file: what is downloaded and compiled once stays. */
export const python = pythonProgram();

/** A sandbox with `files` and Python. */
export async function withPython(files = {}) {
  return MemoryEnvironment.create({ files, programs: { python3: python } });
}

/** What a command prints and how it ends: `[exitCode, stdout, stderr]`. */
export async function run(env, command, options) {
  const { exitCode, stdout, stderr } = await env.exec(command, options);
  return [exitCode, stdout, stderr];
}
