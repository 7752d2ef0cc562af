// Notification callbacks: status, activity, progress, output of a terminal. An
// exception that one throws, or a rejection, is reported as uncaught. It does not
// end what called it.

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
