// Warming up: engines compile a WebAssembly function when it is first called,
// and a first command calls a thousand of them. One in a sandbox that nobody
// sees has that done before somebody waits.
//
// Chromium keeps beside the module which functions were called, so that the next
// load compiles them at once, in the background. It writes that down 2 s after V8
// has optimised a function, unless another one was optimised in between; then,
// and where none was, hardly ever (`TriggerCachingAfterTimeout` in V8's
// module-compiler.cc). So the command works in one function until that is
// optimised, and this comes early, before a visitor's own commands.

import { macrotask } from "../platform/clock.js";

const COMMAND = "sha256sum data";

/** Bytes that it reads; after some 100 KB V8 optimises the function that does. */
const SIZE = 256 * 1024;

/** @type {Promise<void> | undefined} */
let warm;

/**
 * Runs it, once; messages that arrive meanwhile have their turn before and after.
 * @param {(options: import("../environment/memory-environment.js").MemorySettings) => Promise<import("../environment/memory-environment.js").MemoryEnvironment>} create
 * @returns {Promise<void>} the end of it, whether it came to one or not
 */
export function warmUp(create) {
  warm ??= run(create).catch(() => {
    // Whoever needs the core next gets the error.
    warm = undefined;
  });
  return warm;
}

async function run(create) {
  const rest = () => new Promise((resolve) => macrotask(resolve));
  await rest();
  const scratch = await create({ files: { data: new Uint8Array(SIZE) } });
  try {
    await rest();
    await scratch.exec(COMMAND);
  } finally {
    await scratch.dispose();
  }
}
