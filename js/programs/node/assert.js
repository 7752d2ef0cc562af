// `node:assert`: the checks, and messages that show both sides.

import { inspect } from "./inspect.js";

export class AssertionError extends Error {
  constructor({ message, actual, expected, operator, generated = false }) {
    super(message);
    this.generatedMessage = generated;
    Object.assign(this, { code: "ERR_ASSERTION", actual, expected, operator });
  }

  get name() {
    return "AssertionError";
  }
}

function fail(message, otherwise, actual, expected, operator) {
  if (message instanceof Error) throw message;
  throw new AssertionError({
    message: message ?? otherwise,
    actual,
    expected,
    operator,
    generated: message === undefined,
  });
}

const both = (actual, expected) => `${inspect(actual, { depth: 10 })} !== ${inspect(expected, { depth: 10 })}`;
const diff = (title, actual, expected) =>
  `${title}\n+ actual\n- expected\n\n${lines("+ ", actual)}\n${lines("- ", expected)}\n`;
const lines = (mark, value) =>
  inspect(value, { depth: 10 })
    .split("\n")
    .map((line) => mark + line)
    .join("\n");

/** As `util.isDeepStrictEqual`, or with `==` and without prototypes. */
export function deepEqual(a, b, strict, pairs = []) {
  if (strict ? Object.is(a, b) : a == b || (a !== a && b !== b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  if (Object.prototype.toString.call(a) !== Object.prototype.toString.call(b)) return false;
  if (pairs.some(([one, two]) => one === a && two === b)) return true;
  const inner = [...pairs, [a, b]];
  const equal = (one, two) => deepEqual(one, two, strict, inner);
  if (a instanceof Date) {
    if (a.getTime() !== b.getTime()) return false;
  } else if (a instanceof RegExp) {
    if (String(a) !== String(b)) return false;
  } else if (a instanceof Error) {
    if (a.message !== b.message || a.name !== b.name || !equal(a.cause, b.cause)) return false;
  } else if (a instanceof Map) {
    if (a.size !== b.size) return false;
    const left = [...b];
    for (const [key, value] of a) {
      const index = left.findIndex(([other, item]) => equal(key, other) && equal(value, item));
      if (index < 0) return false;
      left.splice(index, 1);
    }
  } else if (a instanceof Set) {
    if (a.size !== b.size) return false;
    const left = [...b];
    for (const value of a) {
      const index = left.findIndex((other) => equal(value, other));
      if (index < 0) return false;
      left.splice(index, 1);
    }
  } else if (a instanceof Number || a instanceof String || a instanceof Boolean) {
    if (!Object.is(a.valueOf(), b.valueOf())) return false;
  }
  const own = (value) => [
    ...Object.keys(value),
    ...(strict
      ? Object.getOwnPropertySymbols(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key))
      : []),
  ];
  const [left, right] = [own(a), own(b)];
  return left.length === right.length && left.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key]));
}

/** Whether `error` is what was `expected`: a class, a pattern, a function or an object of properties. */
function matches(error, expected, message, operator) {
  if (expected === undefined) return;
  if (expected instanceof RegExp) {
    if (!expected.test(String(error))) {
      fail(
        message,
        `The input did not match the regular expression ${inspect(expected)}. Input:\n\n${inspect(String(error))}\n`,
        error,
        expected,
        operator,
      );
    }
  } else if (typeof expected === "function") {
    if (expected.prototype !== undefined && error instanceof expected) return;
    if (expected === Error || Error.isPrototypeOf(expected)) throw error;
    if (expected.call({}, error) !== true) {
      fail(
        message,
        `The ${expected.name ? `"${expected.name}" ` : ""}validation function is expected to return "true". Received ${inspect(expected.call({}, error))}`,
        error,
        expected,
        operator,
      );
    }
  } else {
    const keys = expected instanceof Error ? [...Object.keys(expected), "name", "message"] : Object.keys(expected);
    for (const key of keys) {
      const fits =
        expected[key] instanceof RegExp && typeof error?.[key] === "string"
          ? expected[key].test(error[key])
          : deepEqual(error?.[key], expected[key], true);
      if (!fits)
        fail(
          message,
          diff("Expected values to be strictly deep-equal:", pick(error, keys), pick(expected, keys)),
          error,
          expected,
          operator,
        );
    }
  }
}

const pick = (value, keys) => Object.fromEntries(keys.map((key) => [key, value?.[key]]));

export default function assert(value, message) {
  if (!value) fail(message, "The expression evaluated to a falsy value", value, true, "==");
}

const withEqual = (equal, deep) => ({
  equal(actual, expected, message) {
    if (equal(actual, expected)) return;
    const title =
      equal === Object.is
        ? `Expected values to be strictly equal:\n\n${both(actual, expected)}\n`
        : `${inspect(actual)} == ${inspect(expected)}`;
    fail(message, title, actual, expected, equal === Object.is ? "strictEqual" : "==");
  },
  notEqual(actual, expected, message) {
    if (!equal(actual, expected)) return;
    fail(
      message,
      `Expected "actual" to be strictly unequal to: ${inspect(expected)}`,
      actual,
      expected,
      "notStrictEqual",
    );
  },
  deepEqual(actual, expected, message) {
    if (deepEqual(actual, expected, deep)) return;
    const title = `Expected values to be ${deep ? "strictly" : "loosely"} deep-equal:`;
    fail(message, diff(title, actual, expected), actual, expected, deep ? "deepStrictEqual" : "deepEqual");
  },
  notDeepEqual(actual, expected, message) {
    if (!deepEqual(actual, expected, deep)) return;
    fail(
      message,
      `Expected "actual" not to be strictly deep-equal to: ${inspect(expected)}`,
      actual,
      expected,
      "notDeepStrictEqual",
    );
  },
});

const loose = withEqual((a, b) => a == b || (a !== a && b !== b), false);
const strict = withEqual(Object.is, true);
const common = {
  AssertionError,
  ok: (value, message) => assert(value, message),
  strictEqual: strict.equal,
  notStrictEqual: strict.notEqual,
  deepStrictEqual: strict.deepEqual,
  notDeepStrictEqual: strict.notDeepEqual,
  fail: (message) => fail(message, "Failed", undefined, undefined, "fail"),
  match(text, pattern, message) {
    if (typeof text === "string" && pattern.test(text)) return;
    fail(
      message,
      `The input did not match the regular expression ${inspect(pattern)}. Input:\n\n${inspect(text)}\n`,
      text,
      pattern,
      "match",
    );
  },
  doesNotMatch(text, pattern, message) {
    if (!pattern.test(text)) return;
    fail(
      message,
      `The input was expected to not match the regular expression ${inspect(pattern)}. Input:\n\n${inspect(text)}\n`,
      text,
      pattern,
      "doesNotMatch",
    );
  },
  throws(call, expected, message) {
    if (typeof expected === "string") [expected, message] = [undefined, expected];
    let thrown;
    try {
      call();
    } catch (error) {
      thrown = { error };
    }
    if (!thrown) fail(message, "Missing expected exception.", undefined, expected, "throws");
    matches(thrown.error, expected, message, "throws");
  },
  doesNotThrow(call, message) {
    try {
      call();
    } catch (error) {
      fail(
        typeof message === "string" ? message : undefined,
        `Got unwanted exception.\nActual message: "${error?.message}"`,
        error,
        undefined,
        "doesNotThrow",
      );
    }
  },
  async rejects(call, expected, message) {
    if (typeof expected === "string") [expected, message] = [undefined, expected];
    let thrown;
    try {
      await (typeof call === "function" ? call() : call);
    } catch (error) {
      thrown = { error };
    }
    if (!thrown) fail(message, "Missing expected rejection.", undefined, expected, "rejects");
    matches(thrown.error, expected, message, "rejects");
  },
  async doesNotReject(call, message) {
    try {
      await (typeof call === "function" ? call() : call);
    } catch (error) {
      fail(
        typeof message === "string" ? message : undefined,
        `Got unwanted rejection.\nActual message: "${error?.message}"`,
        error,
        undefined,
        "doesNotReject",
      );
    }
  },
  ifError(value) {
    if (value !== null && value !== undefined) throw value;
  },
};
const strictAssert = Object.assign((value, message) => assert(value, message), common, strict);
Object.assign(assert, common, loose, { strict: strictAssert });
strictAssert.strict = strictAssert;
