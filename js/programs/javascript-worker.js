// The worker in which a JavaScript program runs: one program, one worker. What
// the page or process around it has is taken away first, as far as a realm can.

import { Device, FileTree } from "./files.js";
import { makeRuntime } from "./node/runtime.js";
import { output } from "./output.js";
import { Exit, pause } from "./wasi.js";

const POLICY =
  "the Content-Security-Policy of javascript-worker.js forbids it to run code: serve that file with a policy that has script-src 'unsafe-eval', or with none";

const USAGE = `Usage: node [options] [-e code | -p code | file | -] [arguments]
       node --test [files]
`;

/** Ways out of the sandbox; `Bun` first, which is made in parts that look for the others. */
const OUTSIDE = (
  "Bun Deno postMessage onmessage importScripts Worker SharedWorker BroadcastChannel MessageChannel indexedDB caches " +
  "navigator cookieStore close self name location process require module"
).split(" ");
const NETWORK = "fetch XMLHttpRequest WebSocket WebSocketStream EventSource WebTransport RTCPeerConnection".split(" ");

const post = globalThis.postMessage.bind(globalThis);
const host = globalThis.process;

/**
 * Where the files of this worker are. Asked for while the globals are whole:
 * bundlers make an address of the page's kind from `import.meta.url`. A worker
 * that began as a blob knows it by that alone.
 */
const ADDRESS = globalThis.location?.protocol === "blob:" ? import.meta.url : (globalThis.location?.href ?? import.meta.url);
const OURS = new URL(".", ADDRESS);
/** What frames of code begin with that is not the program's. Bun and Deno name files by their paths. */
const OUTER = [OURS.href, "node:", "ext:", "native", ...(OURS.protocol === "file:" ? [decodeURI(OURS.pathname)] : [])];

let settings;
const receive = ({ data: { kind, ...data } }) => {
  if (kind === "setup") settings = data;
  else run(data.call);
};
globalThis.onmessage = receive;

function run({ args, env, cwd, stdin, changes }) {
  const tree = new FileTree();
  tree.apply(changes, Date.now());
  tree.mount("/dev/null", new Device(() => 0));
  tree.mark();
  const out = output(settings.outputBytes, post);
  const end = (exitCode) => {
    out.flush();
    post({ kind: "end", exitCode, changes: tree.changes() });
    // The pool ends this worker; nothing of the program runs until then.
    for (;;) pause(60_000);
  };
  const write = (stream, data) => {
    try {
      out.write(stream, data);
    } catch (error) {
      if (!(error instanceof Exit)) throw error;
      end(error.code);
    }
  };
  const order = parse(args);
  const sentence = (text, code) => {
    write("stderr", new TextEncoder().encode(`${text}\n`));
    end(code);
  };
  if (order.error) sentence(`node: ${order.error}\n${USAGE}`, 9);
  if (!mayEvaluate()) sentence(`node: ${POLICY}`, 126);

  const runtime = makeRuntime({ tree, args: order.args, env, cwd, stdin, write, end });
  close(settings.network ? [] : NETWORK);
  showOwnFrames();
  Object.assign(globalThis, runtime.globals);
  listen(runtime);

  let done = false;
  start(order, runtime, cwd, stdin).then(
    () => void (done = true),
    (error) => runtime.fatal(error),
  );
  runtime.drained(() => done).then(() => runtime.exit());
}

/** What is asked for: `{kind, code?, file?, files?, args, module, print}` or `{error}`. */
function parse(args) {
  const order = { kind: "stdin", module: false, print: false, args: [], files: [] };
  const rest = [...args];
  while (rest.length > 0 && rest[0].startsWith("-") && rest[0] !== "-") {
    const [option, value] = rest.shift().split(/=(.*)/s);
    if (option === "--") break;
    else if (option === "-e" || option === "--eval" || option === "-p" || option === "--print" || option === "-pe") {
      if (value === undefined && rest.length === 0) return { error: `${option} requires an argument` };
      Object.assign(order, {
        kind: "code",
        code: value ?? rest.shift(),
        print: order.print || option.startsWith("-p") || option === "--print",
      });
    } else if (option === "--input-type") order.module = (value ?? rest.shift()) === "module";
    else if (option === "-v" || option === "--version") order.kind = "version";
    else if (option === "-h" || option === "--help") order.kind = "help";
    else if (option === "-c" || option === "--check") order.kind = "check";
    else if (option === "--test") order.kind = "test";
    else if (option === "-r" || option === "--require" || option === "--import") rest.shift();
    // Options that change nothing here: warnings, limits, reporters.
    else if (!/^--(?:no-|trace-|enable-|experimental-|test-|max-|stack-|unhandled-)/.test(option))
      return { error: `bad option: ${option}` };
  }
  if (order.kind === "test") order.files = rest;
  else if (order.kind === "stdin" && rest.length > 0 && rest[0] !== "-")
    Object.assign(order, { kind: "file", file: rest[0] });
  if (order.kind === "check") order.file = rest[0];
  order.args = order.kind === "stdin" ? rest.slice(rest[0] === "-" ? 0 : 1) : rest;
  return order;
}

async function start(order, runtime, cwd, stdin) {
  const { loader, process, fs } = runtime;
  const absolute = (file) => (file.startsWith("/") ? file : `${cwd}/${file}`);
  const found = (file) => {
    const path = loader.resolve(fs.existsSync(file) ? fs.realpathSync(file) : absolute(file));
    if (path) return path;
    throw Object.assign(new Error(`Cannot find module '${absolute(file)}'`), { code: "MODULE_NOT_FOUND" });
  };
  if (order.kind === "version") process.stdout.write(`${process.version}\n`);
  else if (order.kind === "help") process.stdout.write(USAGE);
  else if (order.kind === "file") {
    const path = found(order.file);
    process.argv[1] = path;
    await loader.runFile(path);
  } else if (order.kind === "test") {
    const files =
      order.files.length > 0 ? order.files.flatMap((file) => testFiles(fs, file)) : testFiles(fs, ".", true);
    if (files.length === 0) throw new Error("no test files were found");
    runtime.test().begin();
    const release = runtime.hold();
    for (const file of files) {
      try {
        await loader.runFile(found(file));
      } catch (error) {
        runtime.test().broken(file, error);
      }
    }
    release();
  } else if (order.kind === "check") {
    await loader.runCode(`(function () {${fs.readFileSync(order.file, "utf8")}\n})`, absolute(order.file), {
      print: true,
    });
  } else {
    const code = order.kind === "code" ? order.code : new TextDecoder().decode(stdin);
    const path = `${cwd}/${order.kind === "code" ? "[eval]" : "[stdin]"}`;
    if (order.kind === "code") show(runtime.modules);
    const value = await loader.runCode(code, path, order);
    if (order.print) console.log(value);
  }
}

/** Makes globals of modules, which code may replace by its variables. */
function show(modules) {
  for (const [name, make] of modules) {
    if (name in globalThis) continue;
    const set = (value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
    Object.defineProperty(globalThis, name, { get: make, set, configurable: true });
  }
}

/** The test files at or below `place`, by the names that Node looks for. */
function testFiles(fs, place, recursive = fs.existsSync(place) && fs.statSync(place).isDirectory()) {
  if (!recursive) return [place];
  const isTest = (path) =>
    /\.[cm]?js$/.test(path) &&
    !/(?:^|\/)node_modules\//.test(path) &&
    (/(?:^|\/)(?:test|test-[^/]*|[^/]*[._-]test)\.[cm]?js$/.test(path) || /(?:^|\/)test\/.*\.[cm]?js$/.test(path));
  return fs
    .readdirSync(place, { recursive: true })
    .filter(isTest)
    .map((path) => (place === "." ? path : `${place}/${path}`));
}

function mayEvaluate() {
  try {
    return (0, eval)("1") === 1;
  } catch {
    return false;
  }
}

/** Takes `names` and what leads out of the sandbox from the globals. */
function close(names) {
  for (const name of [...OUTSIDE, ...names]) {
    for (let object = globalThis; object && object !== Object.prototype; object = Object.getPrototypeOf(object)) {
      if (Object.hasOwn(object, name)) take(object, name);
    }
    if (name in globalThis) Reflect.defineProperty(globalThis, name, { value: undefined, writable: true, configurable: true });
  }
}

/** What cannot be taken away, as `Bun`, is emptied. */
function take(object, name) {
  if (Reflect.deleteProperty(object, name)) return;
  const held = object[name];
  for (const key of Reflect.ownKeys(held)) {
    if (!Reflect.deleteProperty(held, key)) Reflect.defineProperty(held, key, { value: undefined });
  }
}

/** Stack traces name the program's code only; where the engine is not V8, they stay as they are. */
function showOwnFrames() {
  Error.prepareStackTrace = (error, frames) => {
    const lines = frames
      .filter((frame) => {
        const file = frame.getFileName() ?? frame.getScriptNameOrSourceURL();
        return file && !OUTER.some((start) => file.startsWith(start));
      })
      .map((frame) => `    at ${String(frame).replace(/^(?:\w+\.)?eval \(/, "<module> (")}`);
    return [Error.prototype.toString.call(error), ...lines].join("\n");
  };
}

/** Failures that nobody catches arrive as events. */
function listen({ fatal }) {
  const node = typeof host?.on === "function";
  if (node) {
    host.on("uncaughtException", fatal);
    host.on("unhandledRejection", fatal);
    return;
  }
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    fatal(event.error ?? new Error(event.message));
  });
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    fatal(event.reason);
  });
}
