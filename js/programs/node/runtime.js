// One run of a program: its globals, `process`, `console` and timers, what
// keeps it alive, and how it ends.

import { makeFs } from "./fs.js";
import { makeLoader } from "./loader.js";
import { assert, Buffer, EventEmitter, format, inspect, path, stream, streamPromises, stringDecoder } from "./packages.js";
import { makeOs, makeUtil, url } from "./small.js";
import { makeOutput, makeReadline, makeStdin } from "./streams.js";
import { makeTest } from "./test.js";

const VERSION = "v22.0.0";

/** Modules of Node that there is no point in looking for in `node_modules`. */
const MISSING = (
  "async_hooks child_process cluster console constants dgram diagnostics_channel dns domain http http2 https inspector net " +
  "punycode querystring repl sea sqlite sys tls trace_events tty v8 vm wasi worker_threads zlib"
).split(" ");

const encoder = new TextEncoder();
const native = {
  setTimeout: globalThis.setTimeout.bind(globalThis),
  clearTimeout: globalThis.clearTimeout.bind(globalThis),
};

/**
 * Makes the globals of a run.
 * @param {{tree: import("../files.js").FileTree, args: string[], env: Record<string, string>, cwd: string,
 *   stdin: Uint8Array, write: (stream: "stdout" | "stderr", data: Uint8Array) => void,
 *   end: (exitCode: number) => never}} call `end` does not return
 */
export function makeRuntime({ tree, args, env, cwd, stdin, write, end }) {
  /** What the program waits for: when nothing is left, it is over. */
  let waiting = 0;
  const hold = () => {
    let held = true;
    waiting += 1;
    return () => {
      if (held) waiting -= 1;
      held = false;
    };
  };
  const print = (stream, text) => write(stream, encoder.encode(text));
  const guarded = (task, ...rest) => {
    try {
      const result = task(...rest);
      if (result instanceof Promise) result.catch(fatal);
    } catch (error) {
      fatal(error);
    }
  };
  const later = (task) => {
    const release = hold();
    native.setTimeout(() => {
      guarded(task);
      release();
    }, 0);
  };

  // ---- Process --------------------------------------------------------------

  const process = new EventEmitter();
  let exiting = false;
  const exit = (code) => {
    process.exitCode = code ?? process.exitCode ?? 0;
    if (!exiting) {
      exiting = true;
      try {
        process.emit("exit", Number(process.exitCode));
      } catch (error) {
        print("stderr", `${inspect(error)}\n`);
        process.exitCode = 1;
      }
    }
    return end(Number(process.exitCode) & 0xff);
  };
  const fatal = (error) => {
    if (process.listenerCount("uncaughtException") > 0 && !exiting) {
      process.emit("uncaughtException", error, "uncaughtException");
      return;
    }
    print("stderr", `${uncaught(error)}\n\nNode.js ${VERSION} (sandbox)\n`);
    process.exitCode = 1;
    exit(1);
  };
  const started = performance.now();
  const hrtime = (since) => {
    const now = performance.now() - started;
    const [seconds, nanoseconds] = [Math.floor(now / 1000), Math.round((now % 1000) * 1e6)];
    if (!since) return [seconds, nanoseconds];
    const difference = (seconds - since[0]) * 1e9 + nanoseconds - since[1];
    return [Math.floor(difference / 1e9), difference % 1e9];
  };
  hrtime.bigint = () => BigInt(Math.round((performance.now() - started) * 1e6));
  Object.assign(process, {
    argv: ["/usr/local/bin/node", ...args],
    argv0: "node",
    execPath: "/usr/local/bin/node",
    execArgv: [],
    env: { ...env, PWD: cwd },
    pid: 1,
    ppid: 0,
    platform: "linux",
    arch: "wasm32",
    version: VERSION,
    versions: { node: VERSION.slice(1) },
    release: { name: "node" },
    features: {},
    config: {},
    title: "node",
    exitCode: undefined,
    exit,
    abort: () => end(134),
    cwd: () => cwd,
    chdir(directory) {
      const target = path.resolve(directory);
      if (!fs.statSync(target).isDirectory())
        throw Object.assign(new Error(`ENOTDIR: not a directory, chdir '${directory}'`), { code: "ENOTDIR" });
      cwd = target;
    },
    nextTick: (task, ...rest) => queueMicrotask(() => guarded(task, ...rest)),
    uptime: () => (performance.now() - started) / 1000,
    hrtime,
    umask: () => 0o22,
    memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }),
    cpuUsage: () => ({ user: 0, system: 0 }),
    emitWarning: (warning) => print("stderr", `(node:1) ${warning?.message ?? warning}\n`),
    getuid: () => 1000,
    getgid: () => 1000,
  });

  lazily(process, {
    stdin: () => makeStdin(stdin),
    stdout: () => makeOutput((data) => write("stdout", data), 1),
    stderr: () => makeOutput((data) => write("stderr", data), 2),
  });

  // ---- Timers ---------------------------------------------------------------

  class Timer {
    constructor(task, ms, rest, repeat) {
      Object.assign(this, { task, ms: Math.max(1, Number(ms) || 1), rest, repeat });
      this.release = hold();
      this.start();
    }

    start() {
      this.id = native.setTimeout(() => {
        if (this.repeat) this.start();
        guarded(this.task, ...this.rest);
        if (!this.repeat) this.release();
      }, this.ms);
    }

    stop() {
      native.clearTimeout(this.id);
      this.release();
    }

    ref() {
      return this;
    }

    unref() {
      this.release();
      return this;
    }

    hasRef() {
      return true;
    }

    refresh() {
      native.clearTimeout(this.id);
      this.start();
      return this;
    }

    close() {
      this.stop();
      return this;
    }

    [Symbol.toPrimitive]() {
      byNumber.set(this.id, this);
      return this.id;
    }
  }
  const byNumber = new Map();
  const clear = (timer) => (timer instanceof Timer ? timer : byNumber.get(timer))?.stop();
  const timers = {
    setTimeout: (task, ms, ...rest) => new Timer(task, ms, rest, false),
    setInterval: (task, ms, ...rest) => new Timer(task, ms, rest, true),
    setImmediate: (task, ...rest) => new Timer(task, 0, rest, false),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  };
  const timersPromises = {
    setTimeout: (ms, value) => new Promise((resolve) => timers.setTimeout(resolve, ms, value)),
    setImmediate: (value) => new Promise((resolve) => timers.setImmediate(resolve, value)),
  };
  const promised = Symbol.for("nodejs.util.promisify.custom");
  for (const [name, call] of Object.entries(timersPromises)) timers[name][promised] = call;
  timersPromises.scheduler = {
    wait: (ms) => timersPromises.setTimeout(ms),
    yield: () => timersPromises.setImmediate(),
  };

  // ---- Console --------------------------------------------------------------

  let indent = "";
  const counts = new Map();
  const since = new Map();
  const line = (stream, text) => print(stream, `${indent}${indent ? text.replaceAll("\n", `\n${indent}`) : text}\n`);
  const shown = (rest) => (rest.length === 1 && typeof rest[0] === "string" ? rest[0] : format(...rest));
  const log = (...rest) => line("stdout", shown(rest));
  const error = (...rest) => line("stderr", shown(rest));
  const elapsed = (label) => `${label}: ${(performance.now() - (since.get(label) ?? performance.now())).toFixed(3)}ms`;
  const console = {
    log,
    info: log,
    debug: log,
    error,
    warn: error,
    trace: (...rest) => error(`Trace: ${format(...rest)}`),
    dir: (value, options) => log(inspect(value, options)),
    assert: (value, ...rest) =>
      void (value || error(rest.length > 0 ? `Assertion failed: ${format(...rest)}` : "Assertion failed")),
    group: (...rest) => {
      if (rest.length > 0) log(...rest);
      indent += "  ";
    },
    groupEnd: () => void (indent = indent.slice(2)),
    count: (label = "default") => {
      counts.set(label, (counts.get(label) ?? 0) + 1);
      log(`${label}: ${counts.get(label)}`);
    },
    countReset: (label = "default") => void counts.delete(label),
    time: (label = "default") => void since.set(label, performance.now()),
    timeLog: (label = "default", ...rest) => log(elapsed(label), ...rest),
    timeEnd: (label = "default") => {
      log(elapsed(label));
      since.delete(label);
    },
    table: (rows, columns) => log(table(rows, columns)),
  };
  console.groupCollapsed = console.group;

  // ---- Modules --------------------------------------------------------------

  const fs = makeFs(tree, { cwd: () => cwd, stdin, write, later });
  const readline = once(() => makeReadline(write));
  const test = once(() =>
    makeTest({
      print: (text) => print("stdout", `${text}\n`),
      hold,
      later,
      fail: () => void (process.exitCode = 1),
      assert: assert(),
    }),
  );
  const own = (value) => () => value;
  const builtins = new Map(
    Object.entries({
      assert,
      "assert/strict": () => assert().strict,
      buffer: own({ Buffer, Blob, atob, btoa }),
      crypto: once(() =>
        Object.assign(Object.create(crypto), {
          webcrypto: crypto,
          randomUUID: () => uuid(),
          randomBytes: (size) => crypto.getRandomValues(Buffer.alloc(size)),
          randomInt: (low, high) =>
            Math.floor(Math.random() * ((high ?? low) - (high === undefined ? 0 : low))) + (high === undefined ? 0 : low),
        }),
      ),
      events: own(EventEmitter),
      fs: own(fs),
      "fs/promises": own(fs.promises),
      module: once(() => ({
        createRequire: (from) =>
          loader.requireFrom(from instanceof URL || String(from).startsWith("file:") ? url.fileURLToPath(from) : from),
        builtinModules: [...builtins.keys()],
      })),
      os: own(makeOs(env)),
      path: own(path),
      "path/posix": own(path),
      perf_hooks: own({ performance }),
      process: own(process),
      readline,
      "readline/promises": () => readline().promises,
      stream,
      "stream/promises": streamPromises,
      string_decoder: stringDecoder,
      test,
      timers: own(timers),
      "timers/promises": own(timersPromises),
      url: own(url),
      util: once(makeUtil),
    }),
  );
  const loader = makeLoader(tree, builtins, MISSING);

  return {
    globals: { process, console, Buffer, ...timers, global: globalThis, __import: loader.importFrom(`${cwd}/[eval]`) },
    /** What `node -e` has beside the globals: modules by name. */
    modules: [...builtins].filter(([name]) => !name.includes("/") && name !== "module" && name !== "test"),
    loader,
    fatal,
    exit,
    fs,
    test,
    hold,
    process,
    /** Waits until nothing can happen any more. @param {() => boolean} done whether the program came to its end */
    async drained(done) {
      for (let quiet = 0; quiet < 2; ) {
        await new Promise((resolve) => native.setTimeout(resolve, 0));
        quiet = waiting === 0 ? quiet + 1 : 0;
      }
      if (!done()) {
        print("stderr", "Warning: Detected unsettled top-level await\n");
        exit(13);
      }
      process.emit("beforeExit", Number(process.exitCode ?? 0));
    },
  };
}

/** An error that nobody caught. One without frames of the program is not in brackets, unlike elsewhere. */
function uncaught(error) {
  const shown = inspect(error);
  if (!(error instanceof Error)) return `Uncaught ${shown}`;
  const head = `[${Error.prototype.toString.call(error)}]`;
  return shown.startsWith(head) ? head.slice(1, -1) + shown.slice(head.length) : shown;
}

/** @template T @param {() => T} make */
function once(make) {
  let made;
  return () => (made ??= make());
}

/** Properties that are made at their first use. @param {object} object @param {Record<string, () => unknown>} properties */
function lazily(object, properties) {
  for (const [name, make] of Object.entries(properties)) {
    const set = (value) => Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
    const get = () => set(make())[name];
    Object.defineProperty(object, name, { get, set, enumerable: true, configurable: true });
  }
}

/** Not in pages without https, where `crypto.randomUUID` is missing. */
function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  return Buffer.from(bytes)
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** `console.table`. */
function table(rows, columns) {
  if (typeof rows !== "object" || rows === null) return inspect(rows);
  const entries = Object.entries(rows);
  const keys = columns ?? [
    ...new Set(entries.flatMap(([, row]) => (typeof row === "object" && row !== null ? Object.keys(row) : []))),
  ];
  const plain = entries.some(([, row]) => typeof row !== "object" || row === null);
  const head = ["(index)", ...keys, ...(plain ? ["Values"] : [])];
  const body = entries.map(([index, row]) => {
    const object = typeof row === "object" && row !== null;
    const cells = keys.map((key) => (object && key in row ? inspect(row[key]) : ""));
    return [index, ...cells, ...(plain ? [object ? "" : inspect(row)] : [])];
  });
  const widths = head.map((_, column) => Math.max(...[head, ...body].map((row) => row[column].length)) + 2);
  const rule = (left, middle, right) => left + widths.map((width) => "─".repeat(width)).join(middle) + right;
  const row = (cells) => `│${cells.map((cell, column) => ` ${cell}`.padEnd(widths[column])).join("│")}│`;
  return [rule("┌", "┬", "┐"), row(head), rule("├", "┼", "┤"), ...body.map(row), rule("└", "┴", "┘")].join("\n");
}
