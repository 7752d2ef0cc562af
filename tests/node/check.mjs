// The few assertions that the player of cases makes, for places without
// `node:assert`.

class AssertionError extends Error {
  name = "AssertionError";
}

export const assert = {
  ok(value, message = "it holds") {
    if (!value) throw new AssertionError(message);
  },
  equal(actual, expected, message) {
    if (!Object.is(actual, expected)) fail(actual, expected, message);
  },
  /** Values as JSON has them; the order of keys does not count. */
  deepEqual(actual, expected, message) {
    if (!same(actual, expected)) fail(actual, expected, message);
  },
  match(text, pattern) {
    if (!pattern.test(text)) throw new AssertionError(`${JSON.stringify(text)} does not match ${pattern}`);
  },
};

/** Whether two values are equal as JSON has them. */
function same(a, b) {
  if (Object.is(a, b)) return true;
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name]));
}

function fail(actual, expected, message) {
  const what = message === undefined ? "" : `${message}: `;
  throw new AssertionError(`${what}expected ${JSON.stringify(expected)}, found ${JSON.stringify(actual)}`);
}
