// What bundled pages do besides: Python and JavaScript on the files of a
// sandbox, that of the page and that of the worker.

import * as page from "hermitcrab";
import { jsProgram } from "hermitcrab/javascript";
import { pythonProgram } from "hermitcrab/python";
import * as worker from "hermitcrab/worker";

const FILES = {
  "main.js": 'const { twice } = require("./lib"); require("fs").writeFileSync("out.txt", String(twice(21)));',
  "lib.js": "exports.twice = (n) => 2 * n;",
  "boom.js": 'function f() {\n  throw new Error("boom");\n}\nf();\n',
};

const COMMANDS = [
  "node -e 'console.log(6 * 7, typeof self, typeof postMessage)'",
  "node main.js && cat out.txt",
  "node boom.js",
  `python3 -c 'print(open("out.txt").read(), 2 ** 10)'`,
];

/** @param {Parameters<typeof jsProgram>[0]} [javascript] @param {Parameters<typeof pythonProgram>[0]} [python] */
export async function lent(javascript, python) {
  const programs = { node: jsProgram(javascript), python3: pythonProgram(python) };
  const answers = {};
  for (const [name, { MemoryEnvironment }] of Object.entries({ page, worker })) {
    const env = await MemoryEnvironment.create({ files: FILES, programs });
    answers[name] = [];
    for (const command of COMMANDS) {
      const { exitCode, stdout, stderr } = await env.exec(command);
      answers[name].push([exitCode, stdout, stderr]);
    }
  }
  return answers;
}
