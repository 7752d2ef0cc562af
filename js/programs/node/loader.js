// Modules of the sandbox: CommonJS by `require`, ECMAScript modules by
// `import`, found as Node finds them. Code becomes a function by `eval`, the one
// thing that a page's policy must allow this worker.

import { Directory, File } from "../files.js";
import { looksLikeModule, transform, withoutImport } from "./esm.js";
import { path as paths } from "./packages.js";

const { dirname, join, normalize } = paths;
const decoder = new TextDecoder();
// Indirect, so that code sees globals only; its lines and name stay as they are.
const evaluate = (0, eval);
const compile = (parameters, code, path, kind = "function") =>
  evaluate(`(${kind} (${parameters}) {${code}\n})\n//# sourceURL=${path}`);

/**
 * @param {import("../files.js").FileTree} tree
 * @param {Map<string, () => unknown>} builtins by name without `node:`, made at their first use
 * @param {string[]} known names of Node's modules that this is not
 */
export function makeLoader(tree, builtins, known) {
  /** @type {Map<string, {exports: unknown, loaded: boolean}>} */
  const commons = new Map();
  const modules = new Map();

  const node = (path) => tree.lookup(path).node;
  /** Without links: a module is one, by whichever path it is found. */
  const real = (path) => {
    const { names } = tree.lookup(path);
    return names ? `/${names.join("/")}` : path;
  };
  const isFile = (path) => node(path) instanceof File;
  const text = (path) => decoder.decode(node(path).content).replace(/^\ufeff/, "");
  const json = (path) => {
    try {
      return JSON.parse(text(path));
    } catch (error) {
      throw new SyntaxError(`${path}: ${error.message}`);
    }
  };
  const packageOf = (path) => {
    for (let directory = dirname(path); ; directory = dirname(directory)) {
      const manifest = join(directory, "package.json");
      if (isFile(manifest)) return { directory, manifest: json(manifest) };
      if (directory === "/") return undefined;
    }
  };

  const builtin = (specifier) => {
    const name = specifier.replace(/^node:/, "");
    if (builtins.has(name)) return { name };
    if (specifier.startsWith("node:") || known.includes(name)) {
      const error = new Error(
        `the sandbox's node has no module \`${name}\`: it runs in a worker without processes, sockets and threads`,
      );
      throw Object.assign(error, { code: "ERR_UNKNOWN_BUILTIN_MODULE" });
    }
    return undefined;
  };

  /** What `exports` or `imports` of a manifest names for `subpath`. */
  const target = (map, subpath, conditions) => {
    if (typeof map === "string" || Array.isArray(map) || map === null) map = { ".": map };
    if (!Object.keys(map).some((key) => /^[.#]/.test(key))) map = { ".": map };
    const choose = (value, star) => {
      if (typeof value === "string") return value.replaceAll("*", star);
      if (Array.isArray(value)) return value.map((item) => choose(item, star)).find(Boolean);
      for (const [condition, item] of Object.entries(value ?? {})) {
        const chosen = conditions.includes(condition) ? choose(item, star) : undefined;
        if (chosen) return chosen;
      }
      return undefined;
    };
    if (subpath in map) return choose(map[subpath], "");
    const patterns = Object.keys(map)
      .filter((key) => key.includes("*"))
      .sort((a, b) => b.length - a.length);
    for (const pattern of patterns) {
      const [before, after] = pattern.split("*");
      if (subpath.startsWith(before) && subpath.endsWith(after) && subpath.length >= pattern.length - 1) {
        return choose(map[pattern], subpath.slice(before.length, subpath.length - after.length));
      }
    }
    return undefined;
  };

  const fileOf = (path, guess) => {
    if (isFile(path)) return path;
    if (!guess) return undefined;
    const endings = [".js", ".json", ".cjs", ".mjs"].map((ending) => path + ending);
    const found = endings.find(isFile);
    if (found || !(node(path) instanceof Directory)) return found;
    const main = isFile(join(path, "package.json")) ? json(join(path, "package.json")).main : undefined;
    return (
      (main && fileOf(join(path, main), true)) ||
      ["index.js", "index.json", "index.cjs", "index.mjs"].map((name) => join(path, name)).find(isFile)
    );
  };

  /** The path of the file that `specifier` means in the module `from`. */
  const resolve = (specifier, from, kind) => real(locate(specifier, from, kind));
  const locate = (specifier, from, kind) => {
    const conditions = [kind, "node", "default", ...(kind === "require" ? ["module-sync"] : [])];
    const missing = (what) => {
      const message =
        kind === "require"
          ? `Cannot find module '${specifier}'\nRequire stack:\n- ${from}`
          : `Cannot find ${what} '${/^[./]/.test(specifier) ? normalize(join(dirname(from), specifier)) : specifier}' imported from ${from}`;
      return Object.assign(new Error(message), {
        code: kind === "require" ? "MODULE_NOT_FOUND" : "ERR_MODULE_NOT_FOUND",
      });
    };
    if (specifier.startsWith("file://")) specifier = decodeURIComponent(new URL(specifier).pathname);
    if (/^(?:\.{0,2}\/|\.{1,2}$)/.test(specifier)) {
      const path = specifier.startsWith("/")
        ? normalize(specifier)
        : join(dirname(from), decodeURI(specifier).replace(/[?#].*$/, ""));
      const found = fileOf(path.replace(/(.)\/$/, "$1"), kind === "require");
      if (!found) throw missing("module");
      return found;
    }
    if (specifier.startsWith("#")) {
      const home = packageOf(from);
      const found = home?.manifest.imports && target(home.manifest.imports, specifier, conditions);
      if (!found) throw missing("package import");
      return found.startsWith(".") ? join(home.directory, found) : locate(found, from, kind);
    }
    const [, name, rest] = /^((?:@[^/]+\/)?[^/]+)(.*)$/.exec(specifier);
    const own = packageOf(from);
    const homes = own?.manifest.name === name && own.manifest.exports ? [own.directory] : [];
    for (let directory = dirname(from); ; directory = dirname(directory)) {
      homes.push(join(directory, "node_modules", name));
      if (directory === "/") break;
    }
    for (const home of homes) {
      if (!(node(home) instanceof Directory)) continue;
      const manifest = isFile(join(home, "package.json")) ? json(join(home, "package.json")) : {};
      if (manifest.exports !== undefined) {
        const found = target(manifest.exports, `.${rest}`, conditions);
        if (found && isFile(join(home, found))) return join(home, found);
        const message = `Package subpath '.${rest}' is not defined by "exports" in ${home}/package.json`;
        throw Object.assign(new Error(message), { code: "ERR_PACKAGE_PATH_NOT_EXPORTED" });
      }
      const found = fileOf(join(home, rest || "."), kind === "require" || rest === "");
      if (found) return found;
    }
    throw missing("package");
  };

  const isModule = (path) => {
    if (path.endsWith(".mjs")) return true;
    if (path.endsWith(".cjs") || path.endsWith(".json")) return false;
    const type = packageOf(path)?.manifest.type;
    return type ? type === "module" : looksLikeModule(text(path));
  };

  // ---- CommonJS -----------------------------------------------------------

  const requireFrom = (from) => {
    const require = (specifier) => {
      if (typeof specifier !== "string") {
        throw Object.assign(new TypeError('The "id" argument must be of type string'), {
          code: "ERR_INVALID_ARG_TYPE",
        });
      }
      const known = builtin(specifier);
      return known ? builtins.get(known.name)() : requirePath(resolve(specifier, from, "require"), from);
    };
    require.resolve = (specifier) => (builtin(specifier) ? specifier : resolve(specifier, from, "require"));
    require.cache = {};
    return require;
  };
  const requirePath = (path, from) => {
    const found = commons.get(path);
    if (found) return found.exports;
    if (path.endsWith(".json")) {
      commons.set(path, { exports: json(path), loaded: true });
      return commons.get(path).exports;
    }
    if (modules.get(path)?.done) return modules.get(path).namespace;
    if (isModule(path)) {
      const message = `require() of ES Module ${path} from ${from} not supported: use import() or import`;
      throw Object.assign(new Error(message), { code: "ERR_REQUIRE_ESM" });
    }
    return runCommon(path, text(path));
  };
  const runCommon = (path, source, isMain = false) => {
    const module = {
      exports: {},
      loaded: false,
      id: path,
      filename: path,
      path: dirname(path),
      children: [],
      paths: [],
    };
    commons.set(path, module);
    if (isMain) main = module;
    try {
      const call = compile("exports, require, module, __filename, __dirname, __import", withoutImport(source), path);
      const require = Object.assign(requireFrom(path), { main });
      call.call(module.exports, module.exports, require, module, path, dirname(path), importFrom(path));
    } catch (error) {
      commons.delete(path);
      throw error;
    }
    module.loaded = true;
    return module.exports;
  };

  // ---- ECMAScript modules -------------------------------------------------

  const importFrom = (from) => async (specifier) => (await load(String(specifier), from)).namespace;

  const synthetic = (value) => {
    const namespace = Object.create(null);
    const names =
      (typeof value === "object" && value !== null) || typeof value === "function" ? Object.keys(value) : [];
    for (const name of names) {
      if (name !== "default") Object.defineProperty(namespace, name, { enumerable: true, get: () => value[name] });
    }
    const plain = value?.__esModule && "default" in value;
    Object.defineProperty(namespace, "default", { enumerable: true, value: plain ? value.default : value });
    return { namespace, done: true, fixed: new Set(names) };
  };

  /** The module that `specifier` means, evaluated; one that waits for itself is as far as it is. */
  const load = async (specifier, from, waiting = new Set()) => {
    const name = builtin(specifier)?.name;
    if (name) {
      if (!modules.has(`node:${name}`)) modules.set(`node:${name}`, synthetic(builtins.get(name)()));
      return modules.get(`node:${name}`);
    }
    const path = resolve(specifier, from, "import");
    if (!modules.has(path)) {
      if (!isModule(path)) modules.set(path, synthetic(requirePath(path, from)));
      else start(path, text(path), waiting);
    }
    const module = modules.get(path);
    if (!module.done && !waiting.has(path)) await module.evaluated;
    return module;
  };

  const start = (path, source, waiting) => {
    const module = { namespace: Object.create(null), done: false, fixed: new Set(), evaluated: undefined };
    Object.defineProperty(module.namespace, Symbol.toStringTag, { value: "Module" });
    modules.set(path, module);
    module.evaluated = run(path, source, module, new Set([...waiting, path]));
    module.evaluated.catch(() => {});
    return module;
  };
  const run = async (path, source, module, waiting) => {
    const { code, imports, passedOn, fixed } = transform(source, path);
    module.fixed = new Set(fixed);
    const define = (name, get) =>
      Object.defineProperty(module.namespace, name, { enumerable: true, configurable: true, get });
    const found = new Map();
    const passOn = (specifier) => {
      const { namespace } = found.get(specifier);
      for (const { name, imported } of passedOn.filter((item) => item.specifier === specifier)) {
        if (name !== "*") define(name, () => (imported === "*" ? namespace : namespace[imported]));
        else
          for (const key of Object.keys(namespace))
            if (key !== "default" && !(key in module.namespace)) define(key, () => namespace[key]);
      }
    };
    for (const { specifier } of imports) {
      found.set(specifier, await load(specifier, path, waiting));
      passOn(specifier);
    }
    // What a module under way has not set yet, and what may change, is looked
    // up each time; everything else is a constant, which is faster.
    const [constants, live] = [{}, {}];
    for (const { specifier, names } of imports) {
      const { namespace, done, fixed } = found.get(specifier);
      for (const { imported, local } of names) {
        if (imported === "*") constants[local] = namespace;
        else if (done && !(imported in namespace)) {
          throw new SyntaxError(
            `The requested module '${specifier}' does not provide an export named '${imported}' (${path})`,
          );
        } else if (done && (fixed.has(imported) || isConstant(namespace, imported)))
          constants[local] = namespace[imported];
        else Object.defineProperty(live, local, { enumerable: true, get: () => namespace[imported] });
      }
    }
    const meta = {
      url: `file://${path}`,
      filename: path,
      dirname: dirname(path),
      resolve: (specifier) => `file://${resolve(specifier, path, "import")}`,
    };
    const given = { __export: define, __import: importFrom(path), __meta: meta, ...constants };
    const names = Object.keys(given);
    const body = `"use strict"; ${code}`;
    if (Object.keys(live).length === 0)
      await compile(names.join(", "), body, path, "async function")(...Object.values(given));
    else {
      const inner = `with (__live) return (async function (${names.join(", ")}) {${body}\n})(...__given);`;
      await compile("__live, __given", inner, path)(live, Object.values(given));
    }
    module.done = true;
  };
  const isConstant = (namespace, name) => {
    // It may stand for `let`; objects and functions are hardly ever set again.
    const { get } = Object.getOwnPropertyDescriptor(namespace, name);
    if (!get) return true;
    const value = get();
    return typeof value === "function" || (typeof value === "object" && value !== null);
  };

  /** The module that the program began with. */
  let main;
  return {
    requireFrom,
    resolve: (path) => {
      const found = fileOf(path, true);
      return found && real(found);
    },
    /** Runs the file at `path`; resolves when it is evaluated. */
    async runFile(path) {
      if (isModule(path)) return void (await load(path, path));
      if (path.endsWith(".json")) return void json(path);
      return void runCommon(path, text(path), true);
    },
    /** Runs code that is in no file; the value of the last expression for `print`. */
    async runCode(source, path, { module = false, print = false } = {}) {
      if (module || (!print && looksLikeModule(source))) {
        await start(path, source, new Set()).evaluated;
        return undefined;
      }
      const require = requireFrom(path);
      Object.assign(globalThis, { require, module: { exports: {} }, exports: {}, __filename: path, __dirname: "." });
      return evaluate(`${withoutImport(source)}\n//# sourceURL=${path}`);
    },
    importFrom,
  };
}
