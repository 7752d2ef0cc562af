// @ts-check
// Lends pyodide instead of `pythonProgram`, for programs that need its packages
// (numpy, pandas, …). It runs where it is called, so a loop that never ends stands
// in the way of everything: load it in a separate worker in a page.
//
//   import { loadPyodide } from "pyodide";
//   env.program("python3", pyodideProgram(() => loadPyodide()));
//
// State stays between calls, as pyodide's modules do.

/**
 * @typedef {import("../js/environment/program.js").Program} Program
 * @typedef {import("../js/environment/program.js").FileChange} FileChange
 *
 * @typedef {object} Pyodide the part of pyodide's interface that is used here
 * @property {{
 *   mkdirTree: (path: string) => void,
 *   writeFile: (path: string, data: Uint8Array) => void,
 *   readFile: (path: string) => Uint8Array,
 *   unlink: (path: string) => void,
 *   rmdir: (path: string) => void,
 *   readdir: (path: string) => string[],
 *   stat: (path: string) => {mode: number, size: number, mtime: Date},
 *   lstat: (path: string) => {mode: number, size: number, mtime: Date},
 *   symlink: (target: string, path: string) => void,
 *   readlink: (path: string) => string,
 *   isDir: (mode: number) => boolean,
 *   isLink: (mode: number) => boolean,
 *   chmod: (path: string, mode: number) => void,
 * }} FS
 * @property {{set: (name: string, value: unknown) => void}} globals
 * @property {(value: unknown) => unknown} toPy
 * @property {(options: {stdin: () => string | null}) => void} setStdin
 * @property {(options: {write: (bytes: Uint8Array) => number}) => void} setStdout
 * @property {(options: {write: (bytes: Uint8Array) => number}) => void} setStderr
 * @property {(code: string) => Promise<unknown>} runPythonAsync
 */

/** Runs `-c code`, `-m module`, a file or standard input, as `python3` does. */
const RUN = `
import os, runpy, sys, traceback
os.environ.clear(); os.environ.update(call_env); os.chdir(call_cwd)
code = 0
try:
    first = call_args[0] if call_args else "-"
    sys.path[:0] = [call_cwd]
    if first == "-c":
        sys.argv = ["-c", *call_args[2:]]
        exec(compile(call_args[1], "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv = call_args[1:]
        runpy.run_module(call_args[1], run_name="__main__", alter_sys=True)
    elif first == "-":
        sys.argv = ["-", *call_args[1:]]
        exec(compile(sys.stdin.read(), "<stdin>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = list(call_args)
        runpy.run_path(first, run_name="__main__")
except SystemExit as exit:
    code = exit.code if isinstance(exit.code, int) else 0 if exit.code is None else 1
    if code == 1 and not isinstance(exit.code, int): print(exit.code, file=sys.stderr)
except BaseException:
    traceback.print_exc()
    code = 1
finally:
    sys.path.remove(call_cwd)
    # The next call may find other modules under the same names.
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith("/workspace"): del sys.modules[name]
    sys.stdout.flush(); sys.stderr.flush()
code
`;

/**
 * @param {() => Promise<Pyodide>} load
 * @param {string} [root] the directory that is shared with the sandbox
 * @returns {Program}
 */
export function pyodideProgram(load, root = "/workspace") {
  /** @type {Promise<Pyodide> | undefined} */
  let loading;
  /** The state that its files are in. @type {string | undefined} */
  let state;

  return async (call) => {
    if (call.since !== undefined && call.since !== state) return { files: "missing" };
    loading ??= load();
    const python = await loading;
    const { FS } = python;
    if (call.since === undefined) empty(FS, root);
    FS.mkdirTree(root);
    apply(FS, root, call.changes);
    state = call.state;

    const before = stamps(FS, root);
    /** @type {{stdout: Uint8Array[], stderr: Uint8Array[]}} */
    const output = { stdout: [], stderr: [] };
    /** @param {"stdout" | "stderr"} stream */
    const collect = (stream) => ({
      write: (/** @type {Uint8Array} */ bytes) => output[stream].push(bytes.slice()) && bytes.length,
    });
    python.setStdout(collect("stdout"));
    python.setStderr(collect("stderr"));
    /** @type {(string | null)[]} */
    const input = [new TextDecoder().decode(call.stdin), null];
    python.setStdin({ stdin: () => input.shift() ?? null });
    python.globals.set("call_args", python.toPy(call.args));
    python.globals.set("call_env", python.toPy(call.env));
    python.globals.set("call_cwd", call.cwd);
    const exitCode = Number(await python.runPythonAsync(RUN));
    return {
      exitCode: exitCode & 0xff,
      stdout: join(output.stdout),
      stderr: join(output.stderr),
      changes: changed(FS, before, stamps(FS, root)),
    };
  };
}

/** @param {Pyodide["FS"]} FS @param {string} root @param {FileChange[]} changes */
function apply(FS, root, changes) {
  for (const { path, type, content, target, mode } of changes) {
    if (!path.startsWith(`${root}/`)) continue;
    // What was there is reported as removed only where nothing takes its place.
    if (type !== kindOf(FS, path) || type === "link") empty(FS, path);
    if (type === "removed") continue;
    FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    if (type === "directory") FS.mkdirTree(path);
    else if (type === "link") FS.symlink(String(target), path);
    else if (content instanceof Uint8Array) {
      FS.writeFile(path, content);
      if (mode !== undefined) FS.chmod(path, mode);
    }
  }
}

/** @param {Pyodide["FS"]} FS @param {string} path @returns {"file" | "directory" | "link" | undefined} */
function kindOf(FS, path) {
  try {
    const { mode } = FS.lstat(path);
    if (FS.isLink(mode)) return "link";
    return FS.isDir(mode) ? "directory" : "file";
  } catch {
    return undefined;
  }
}

/** @param {Pyodide["FS"]} FS @param {string} path */
function empty(FS, path) {
  const kind = kindOf(FS, path);
  if (kind === undefined) return;
  if (kind !== "directory") return FS.unlink(path);
  for (const name of names(FS, path)) empty(FS, `${path}/${name}`);
  FS.rmdir(path);
}

/** @param {Pyodide["FS"]} FS @param {string} path */
const names = (FS, path) => FS.readdir(path).filter((name) => name !== "." && name !== "..");

/**
 * @typedef {{kind: "file" | "directory" | "link" | undefined, stamp: string}} Stamp `stamp` tells whether it changed
 *
 * What is below `path`, by path.
 * @param {Pyodide["FS"]} FS @param {string} path @param {Map<string, Stamp>} [found]
 */
function stamps(FS, path, found = new Map()) {
  for (const name of names(FS, path)) {
    const below = `${path}/${name}`;
    const kind = kindOf(FS, below);
    const { mode, size, mtime } = FS.lstat(below);
    const stamp = kind === "link" ? FS.readlink(below) : kind === "file" ? `${size} ${mtime.getTime()} ${mode}` : "";
    found.set(below, { kind, stamp });
    if (kind === "directory") stamps(FS, below, found);
  }
  return found;
}

/**
 * @param {Pyodide["FS"]} FS @param {Map<string, Stamp>} before @param {Map<string, Stamp>} after
 * @returns {FileChange[]}
 */
function changed(FS, before, after) {
  /** @type {FileChange[]} */
  const changes = [];
  for (const [path, { kind }] of before) if (after.get(path)?.kind !== kind) changes.push({ path, type: "removed" });
  for (const [path, { kind, stamp }] of after) {
    const old = before.get(path);
    if (old?.kind === kind && old?.stamp === stamp) continue;
    if (kind === "directory") changes.push({ path, type: "directory" });
    else if (kind === "link") changes.push({ path, type: "link", target: FS.readlink(path) });
    // Its file system has no umask for what is new.
    else changes.push({ path, type: "file", content: FS.readFile(path), mode: FS.stat(path).mode & (old ? 0o777 : 0o755) });
  }
  return changes;
}

/** @param {Uint8Array[]} pieces */
function join(pieces) {
  const bytes = new Uint8Array(pieces.reduce((total, { length }) => total + length, 0));
  let end = 0;
  for (const piece of pieces) {
    bytes.set(piece, end);
    end += piece.length;
  }
  return bytes;
}
