// The tests of the API again, with the agent in a worker: it must not show.

import { after } from "node:test";

import { terminate } from "../../js/worker-node.js";

process.env.HERMITCRAB_FACE = "worker";

for (const name of ["arguments", "session", "environment", "sandbox", "sandbox-exec", "archive", "project", "shell", "callbacks", "prompt", "frameworks", "streamed-result"]) {
  await import(`./${name}.test.mjs`);
}

after(terminate);
