// Warming up: engines compile a WebAssembly function when it is first called,
// and a first command calls a thousand of them. While the worker has nothing
// to do, commands in a sandbox that nobody sees have that done before somebody waits.

import { macrotask } from "../clock.js";

/** What first commands consist of, each a pause of some ms at most. */
const COMMANDS = [
  "echo hi",
  "ls -la | head -n 1",
  "cat a 2>/dev/null || true",
  'for i in 1 2; do [ "$i" = 1 ] || x=$(pwd); done',
  "grep -rn a . | sort | wc -l",
];

/** @type {Promise<void> | undefined} */
let warm;

/**
 * Runs them, once in a worker; messages that arrive meanwhile have their turn after each.
 * @param {() => Promise<import("../sandbox.js").MemoryEnvironment>} create
 * @returns {Promise<void>} the end of it, whether it came to one or not
 */
export function warmUp(create) {
  warm ??= run(create).catch(() => {
    // Whoever needs the core next is told what it lacks.
  });
  return warm;
}

async function run(create) {
  const rest = () => new Promise((resolve) => macrotask(resolve));
  await rest();
  const scratch = await create();
  try {
    for (const command of COMMANDS) {
      await rest();
      await scratch.exec(command);
    }
  } finally {
    await scratch.dispose();
  }
}
