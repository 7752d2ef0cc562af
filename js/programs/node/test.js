// `node:test`: tests, suites and hooks, one after the other, reported on
// standard output as Node's `spec` reporter does.

import { inspect } from "./packages.js";

/**
 * @param {{print: (line: string) => void, hold: () => () => void, later: (task: () => void) => void,
 *   fail: () => void, assert: object}} host `hold` keeps the program alive until what it returns is called
 */
export function makeTest({ print, hold, later, fail, assert }) {
  const counts = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 };
  const failures = [];
  const root = suite("", undefined);
  let current = root;
  let started;

  function suite(name, parent) {
    return {
      name,
      parent,
      entries: [],
      hooks: { before: [], after: [], beforeEach: [], afterEach: [] },
      started: false,
    };
  }

  const begin = () => {
    if (started !== undefined) return;
    started = performance.now();
    const release = hold();
    later(async () => {
      await runEntries(root, 0);
      report();
      release();
    });
  };

  const parse = (args) => {
    const name = typeof args[0] === "string" ? args.shift() : undefined;
    const options = typeof args[0] === "object" ? args.shift() : {};
    const body = args[0];
    return { name: name ?? (body?.name || "<anonymous>"), options: options ?? {}, body };
  };
  const add = (kind, parent, { name, options, body }, forced = {}) => {
    begin();
    return new Promise((resolve) => {
      parent.entries.push({ kind, name, options: { ...options, ...forced }, body, resolve });
    });
  };
  const withVariants = (make) =>
    Object.assign((...args) => make(args, {}), {
      skip: (...args) => make(args, { skip: true }),
      todo: (...args) => make(args, { todo: true }),
      only: (...args) => make(args, {}),
    });
  const test = withVariants((args, forced) => add("test", current, parse(args), forced));
  const describe = withVariants((args, forced) => add("suite", current, parse(args), forced));
  const hook = (kind) => (body) => {
    begin();
    current.hooks[kind].push(body);
  };

  /** The entries may grow while they run. */
  async function runEntries(parent, level) {
    const result = { failed: 0 };
    try {
      for (let index = 0; index < parent.entries.length; index += 1) {
        if (index === 0) for (const body of parent.hooks.before) await body({});
        const entry = parent.entries[index];
        const ok = await (entry.kind === "suite" ? runSuite(entry, parent, level) : runTest(entry, parent, level));
        if (!ok) result.failed += 1;
        entry.resolve();
      }
      for (const body of parent.hooks.after) await body({});
    } catch (error) {
      result.failed += 1;
      counts.fail += 1;
      failures.push({ name: `${parent.name || "hooks"}`, error });
      print(`${"  ".repeat(level)}✖ a hook failed: ${error?.message}`);
    }
    return result;
  }

  async function runSuite(entry, parent, level) {
    counts.suites += 1;
    const indent = "  ".repeat(level);
    if (skips(entry, indent)) return true;
    const start = performance.now();
    const inner = suite(entry.name, parent);
    print(`${indent}▶ ${entry.name}`);
    const before = current;
    current = inner;
    let thrown;
    try {
      await entry.body?.({ name: entry.name });
    } catch (error) {
      thrown = { error };
    } finally {
      current = before;
    }
    if (thrown) {
      counts.fail += 1;
      failures.push({ name: entry.name, error: thrown.error });
    }
    const { failed } = await runEntries(inner, level + 1);
    print(`${indent}${failed || thrown ? "✖" : "✔"} ${entry.name} (${ms(start)}ms)`);
    return failed === 0 && !thrown;
  }

  async function runTest(entry, parent, level) {
    counts.tests += 1;
    const indent = "  ".repeat(level);
    if (skips(entry, indent)) return true;
    const start = performance.now();
    const inner = suite(entry.name, parent);
    const chain = [];
    for (let at = parent; at; at = at.parent) chain.unshift(at);
    let subtests = Promise.resolve();
    let failed = 0;
    let heading = false;
    const context = {
      name: entry.name,
      signal: new AbortController().signal,
      assert,
      diagnostic: (text) => print(`${indent}ℹ ${text}`),
      skip: (reason) => void (entry.options.skip = reason ?? true),
      todo: (reason) => void (entry.options.todo = reason ?? true),
      before: (body) => body(),
      after: (body) => void inner.hooks.after.push(body),
      beforeEach: (body) => void inner.hooks.beforeEach.push(body),
      afterEach: (body) => void inner.hooks.afterEach.push(body),
      mock,
      test: (...args) => {
        const parsed = parse(args);
        if (!heading) print(`${indent}▶ ${entry.name}`);
        heading = true;
        subtests = subtests.then(async () => {
          if (!(await runTest({ kind: "test", ...parsed, resolve() {} }, inner, level + 1))) failed += 1;
        });
        return subtests;
      },
    };
    let thrown;
    try {
      for (const { hooks } of chain) for (const body of hooks.beforeEach) await body(context);
      await limited(entry, context);
      await subtests;
      if (failed > 0) throw new Error(`${failed} subtest${failed > 1 ? "s" : ""} failed`);
    } catch (error) {
      thrown = { error };
    }
    try {
      for (const body of inner.hooks.after) await body(context);
      for (const { hooks } of chain.reverse()) for (const body of hooks.afterEach) await body(context);
    } catch (error) {
      thrown ??= { error };
    }
    const note = entry.options.todo ? " # TODO" : entry.options.skip ? " # SKIP" : "";
    if (!thrown || entry.options.todo) {
      counts[entry.options.todo ? "todo" : entry.options.skip ? "skipped" : "pass"] += 1;
      print(`${indent}${thrown ? "⚠" : entry.options.skip ? "﹣" : "✔"} ${entry.name} (${ms(start)}ms)${note}`);
      return true;
    }
    counts.fail += 1;
    failures.push({ name: entry.name, error: thrown.error });
    print(`${indent}✖ ${entry.name} (${ms(start)}ms)`);
    return false;
  }

  function skips({ name, options, body }, indent) {
    if (!options.skip && body) return false;
    counts[options.skip ? "skipped" : "todo"] += 1;
    const reason = typeof options.skip === "string" ? options.skip : options.skip ? "SKIP" : "TODO";
    print(`${indent}﹣ ${name} # ${reason}`);
    return true;
  }

  async function limited({ body, options }, context) {
    // A body with a second parameter says through it when it is done.
    const run =
      body.length >= 2
        ? new Promise((resolve, reject) => body(context, (error) => (error ? reject(error) : resolve())))
        : (async () => body(context))();
    if (!options.timeout || options.timeout === Infinity) return run;
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`test timed out after ${options.timeout}ms`)), options.timeout);
    });
    try {
      return await Promise.race([run, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  const ms = (start) => (performance.now() - start).toFixed(3);

  function report() {
    for (const [name, count] of Object.entries(counts)) print(`ℹ ${name} ${count}`);
    print(`ℹ duration_ms ${ms(started)}`);
    if (failures.length === 0) return;
    fail();
    print("\n✖ failing tests:");
    for (const { name, error } of failures) {
      print(`\n✖ ${name}`);
      print(`  ${inspect(error).replaceAll("\n", "\n  ")}`);
    }
  }

  const mock = {
    fn(original = () => undefined, implementation = original) {
      const calls = [];
      const mocked = function (...args) {
        const call = { arguments: args, this: this, result: undefined, error: undefined };
        calls.push(call);
        try {
          call.result = implementation.apply(this, args);
          return call.result;
        } catch (error) {
          call.error = error;
          throw error;
        }
      };
      mocked.mock = {
        calls,
        callCount: () => calls.length,
        resetCalls: () => void calls.splice(0),
        mockImplementation: (next) => void (implementation = next),
        restore: () => void (implementation = original),
      };
      return mocked;
    },
    method(object, name, implementation = object[name]) {
      const original = object[name];
      const mocked = mock.fn(original, implementation);
      mocked.mock.restore = () => void (object[name] = original);
      object[name] = mocked;
      return mocked;
    },
    reset() {},
    restoreAll() {},
  };
  return Object.assign(test, {
    test,
    it: test,
    describe,
    suite: describe,
    before: hook("before"),
    after: hook("after"),
    beforeEach: hook("beforeEach"),
    afterEach: hook("afterEach"),
    mock,
    /** A file that could not even be loaded. */
    broken(name, error) {
      begin();
      counts.tests += 1;
      counts.fail += 1;
      failures.push({ name, error });
      print(`✖ ${name}`);
    },
    begin,
  });
}
