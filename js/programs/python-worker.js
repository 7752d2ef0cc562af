// The worker in which CPython runs: one instance of python.wasm per call, all
// calls on one file tree. `postMessage` and `onmessage` are those of a worker.

import { Device, File, FileTree } from "./files.js";
import { output } from "./output.js";
import { Exit, wasi } from "./wasi.js";

/** Where the snapshot in python.wasm expects its library, and where ours is. */
const LIBRARY = "/usr/local/lib/python314.zip";
const MORE = "/usr/local/lib/more.zip";

/**
 * Runs first in every call. The interpreter was started when python.wasm was
 * made, isolated: without PYTHONPATH, and with the modules that it found then.
 * Its own driver is called a second time, with the arguments of the user.
 */
const BOOT = `
import os, sys, _bashkit, _bashkit_boot
_bashkit.argv = lambda argv=["python3", *sys.argv[1:]]: argv
del sys.path[0]
sys.path.append("${MORE}")
sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
sys.executable = "/usr/local/bin/python3"
sys.exit(_bashkit_boot.main())
`;

const tree = new FileTree();
/** @type {{module: WebAssembly.Module, library: File, more?: File, outputBytes: number}} */
let python;

globalThis.onmessage = ({ data: { kind, ...data } }) => {
  if (kind === "setup") {
    const file = (bytes) => bytes && new File(bytes, 0);
    python = { ...data, library: file(data.library), more: file(data.more) };
  } else {
    postMessage({ kind: "end", ...run(data.call) });
  }
};

/** @param {Omit<import("../environment/program.js").ProgramCall, "signal">} call */
function run({ name, args, env, cwd, stdin, since, changes }) {
  if (since === undefined) tree.clear();
  tree.apply(changes, Date.now());
  tree.mount(LIBRARY, python.library);
  if (python.more) tree.mount(MORE, python.more);
  tree.mount("/dev/null", new Device(() => 0));
  tree.mount("/dev/zero", new Device((target) => target.fill(0).length));
  tree.mount("/dev/urandom", new Device(random));
  tree.mark();
  const out = output(python.outputBytes);
  const system = wasi({
    tree,
    args: [name, "-c", BOOT, ...args],
    env: { ...env, PWD: cwd },
    stdin,
    write: out.write,
    beforePause: out.flush,
  });
  const ended = finish(name, () => {
    const { exports } = new WebAssembly.Instance(python.module, {
      wasi_snapshot_preview1: system.imports,
      bashkit: noNetwork(() => exports.memory.buffer),
    });
    system.start(exports.memory);
    return exports.bashkit_run();
  });
  out.flush();
  return { ...ended, changes: tree.changes() };
}

/** What its HTTP modules call: the answer to every request is a `ConnectionError`. */
function noNetwork(memory) {
  const sentence = new TextEncoder().encode("the sandbox has no network");
  const CONNECTION_ERROR = 1;
  return {
    http_request(request, length, timeoutMs, answerLength) {
      new DataView(memory()).setUint32(answerLength, sentence.length, true);
      return CONNECTION_ERROR;
    },
    http_take(buffer, length) {
      if (length > 0) new Uint8Array(memory(), buffer, length).set(sentence.subarray(0, length));
      return 0;
    },
  };
}

/** How it ended; a failure of the machine below it is a sentence on standard error. */
function finish(name, program) {
  try {
    return { exitCode: program() & 0xff };
  } catch (error) {
    if (error instanceof Exit) return { exitCode: error.code & 0xff };
    // A trap: 128 + SIGSEGV where the stack is exhausted, otherwise 128 + SIGABRT.
    const exitCode = error instanceof RangeError ? 139 : 134;
    return { exitCode, stderr: `${name}: the interpreter broke down: ${error.message}\n` };
  }
}

function random(target) {
  for (let at = 0; at < target.length; at += 65_536) {
    crypto.getRandomValues(target.subarray(at, Math.min(at + 65_536, target.length)));
  }
  return target.length;
}
