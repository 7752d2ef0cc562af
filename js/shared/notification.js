// Callbacks that only hear something: status, activity, progress, output of a
// terminal. What one throws, or rejects with, is its own affair. It is uncaught,
// as what a listener of an event throws, and whoever told it goes on.

/**
 * @template {(...args: any[]) => void} F
 * @param {F} call
 * @returns {(...args: Parameters<F>) => void}
 */
export function quiet(call) {
  return (...args) => {
    try {
      const said = call(...args);
      if (typeof said?.then === "function") Promise.resolve(said).catch(uncaught);
    } catch (error) {
      uncaught(error);
    }
  };
}

/**
 * Keeps what a callback returned in `hearing` until it is done, if it is a promise.
 * @param {Set<Promise<void>>} hearing @param {unknown} said @param {(error: unknown) => void} fail
 */
export function hear(hearing, said, fail) {
  if (typeof said?.then !== "function") return;
  const heard = Promise.resolve(said)
    .then(() => {}, fail)
    .finally(() => hearing.delete(heard));
  hearing.add(heard);
}

function uncaught(error) {
  queueMicrotask(() => {
    throw error;
  });
}
