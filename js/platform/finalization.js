// What becomes of objects that nobody has any more: what they hold elsewhere, in
// the core or in a worker, is given back.

const left = typeof FinalizationRegistry === "function" ? new FinalizationRegistry((giveBack) => giveBack()) : undefined;

/**
 * Calls `giveBack`, which must not hold `object`, some time after nobody has that any more.
 * @param {object} object @param {() => void} giveBack
 */
export function collected(object, giveBack) {
  left?.register(object, giveBack);
}

/**
 * A reference that does not keep `object`, where there is such a thing.
 * @template {object} T @param {T} object @returns {{deref: () => T | undefined}}
 */
export function weakly(object) {
  return typeof WeakRef === "function" ? new WeakRef(object) : { deref: () => object };
}
