// Callbacks that only hear something: status, activity, progress, output of a
// terminal. What one throws is its own affair. It is uncaught, as what a
// listener of an event throws, and whoever told it goes on.

/**
 * @template {(...args: any[]) => void} F
 * @param {F} call
 * @returns {(...args: Parameters<F>) => void}
 */
export function quiet(call) {
  return (...args) => {
    try {
      call(...args);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  };
}
