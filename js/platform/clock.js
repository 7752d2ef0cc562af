// Waiting: macrotasks that are not clamped to 4 ms, and timers that end early.

/** The longest delay that `setTimeout` takes; a longer one would fire at once. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Calls `task` after the messages, timers and I/O that are due had their turn.
 * `setTimeout(task, 0)` would do so only after 4 ms, once it is nested.
 * @type {(task: () => void) => void}
 */
export const macrotask = chooseMacrotask();

function chooseMacrotask() {
  // Node, Bun and Deno. A message channel would keep their process alive.
  if (typeof setImmediate === "function") return (task) => void setImmediate(task);
  if (typeof MessageChannel === "function") {
    const { port1, port2 } = new MessageChannel();
    const tasks = [];
    port1.onmessage = () => tasks.shift()?.();
    return (task) => {
      tasks.push(task);
      port2.postMessage(null);
    };
  }
  return (task) => void setTimeout(task, 0);
}

/**
 * Resolves after `ms` milliseconds, or early when `signal` fires.
 * @param {number} ms @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function sleep(ms, signal) {
  return new Promise((resolve) => {
    const end = performance.now() + ms;
    let timer;
    const stop = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      resolve();
    };
    const wait = () => {
      const left = end - performance.now();
      if (left <= 0 || signal.aborted) return stop();
      timer = setTimeout(wait, Math.min(Math.ceil(left), LONGEST_MS));
    };
    signal.addEventListener("abort", stop);
    wait();
  });
}
