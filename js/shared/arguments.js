// What the public calls take. Arguments are checked once, where a call comes in
// and before anything has happened: a mistake is a typed error that names the
// argument. What only the core can judge, such as the values of settings, it
// judges itself.

import { EnvironmentError, HermitcrabError, SessionError, text as what } from "./errors.js";
import { late } from "./late-events.js";
import { data, plainData } from "./plain-data.js";

/**
 * Says what is wrong with a value, if anything.
 * @typedef {(value: any, name: string) => string | undefined} Check
 */

/** @param {string} what @param {(value: any) => boolean} holds @returns {Check} */
const kind = (what, holds) => (value, name) => (holds(value) ? undefined : `${name} must be ${what}, not ${said(value)}`);

/**
 * Whether bytes cannot be read any more. Such have no length, and throw where they are copied.
 * @param {any} value a Uint8Array or an ArrayBuffer; of all else it says false
 */
export function isGone(value) {
  if (value.byteLength !== 0) return false;
  try {
    new Uint8Array(0).set(value instanceof ArrayBuffer ? new Uint8Array(value) : value);
    return false;
  } catch {
    return true;
  }
}

/** Objects of this package's classes. */
const genuine = new WeakSet();
/** What they have, also behind a proxy. */
const OURS = Symbol("hermitcrab");

/** Notes an object of this package; each constructor does. @param {object} object */
export function ours(object) {
  genuine.add(object);
}

/**
 * What an object of ours is wrapped in, and the way out. Reactive state takes
 * objects of classes for data, and gives them out behind proxies, which see no
 * private field.
 * @param {any} value not one of ours itself
 */
function wrapperOf(value) {
  // Vue's own mark, also on objects that are not of our classes.
  if (!value?.[OURS] && value?.__v_raw === undefined) return undefined;
  return "behind a proxy, as reactive state makes them: keep it out of that with shallowRef or markRaw (Vue), observable.ref (MobX)";
}

/** May be left out. @param {Check} check @returns {Check} */
const maybe = (check) => (value, name) => (value === undefined ? undefined : check(value, name));

/** May be left out or be `null`. @param {Check} check @returns {Check} */
const orNull = (check) => (value, name) => (value === undefined || value === null ? undefined : check(value, name));

const isObject = (value) => typeof value === "object" && value !== null;
const isRecord = (value) => isObject(value) && !Array.isArray(value);
const isFunction = (value) => typeof value === "function";
const hasMethods = (value, names) => isObject(value) && names.every((name) => isFunction(value[name]));

/** Right in every way. @param {...Check} checks @returns {Check} */
const all = (...checks) => (value, name) => {
  for (const check of checks) {
    const problem = check(value, name);
    if (problem) return problem;
  }
  return undefined;
};

const text = kind("a string", (value) => typeof value === "string");
/** Half a character would become another in UTF-8. @type {Check} */
const utf8 = (value, name) => (/\p{Surrogate}/u.test(value) ? `${name} holds half of a surrogate pair, which UTF-8 cannot carry; leave it out` : undefined);
const unicode = all(text, utf8);
/** @type {Check} */
const absolute = (value, name) => (value.startsWith("/") ? undefined : `${name} must be an absolute path, not ${JSON.stringify(value)}`);
const blank = kind("a text that is not blank", (value) => typeof value === "string" && value.trim() !== "");
const object = kind("an object", isRecord);
const callback = kind("a function", isFunction);
/** Less than a day to either side of UTC. */
const offset = all(
  kind("a whole number", (value) => Number.isSafeInteger(value)),
  (value, name) => (Math.abs(value) < 1440 ? undefined : `${name} must be less than a day of minutes, not ${value}`),
);
const whole = kind("a whole number, 0 or more", (value) => Number.isSafeInteger(value) && value >= 0);
const count = kind("a whole number, 1 or more", (value) => Number.isSafeInteger(value) && value >= 1);
const limit = kind("a number, 0 or more", (value) => typeof value === "number" && value >= 0);
const signal = kind("an AbortSignal", (value) => hasMethods(value, ["addEventListener"]) && typeof value.aborted === "boolean");
/** Bytes that were moved to a worker, or cut off by a resize, cannot be read any more. @type {Check} */
const there = (value, name) => (isGone(value) ? `${name} has no bytes any more: its buffer was moved or made smaller; give a copy` : undefined);
const content = all(
  kind(
    "a string, a Uint8Array or an ArrayBuffer",
    (value) => typeof value === "string" || value instanceof Uint8Array || value instanceof ArrayBuffer,
  ),
  there,
);
const archive = all(
  kind(
    "a Uint8Array, an ArrayBuffer or a Blob",
    (value) => value instanceof Uint8Array || value instanceof ArrayBuffer || value instanceof Blob,
  ),
  there,
);
/** @type {Check} */
const filled = (value, name) => ((value.size ?? value.byteLength) > 0 ? undefined : `${name} is empty; give the bytes of an archive`);
const packed = all(archive, filled);
const bytes = all(kind("a Uint8Array", (value) => value instanceof Uint8Array), there);
/** An object of ours that is not behind a proxy. @type {Check} */
const bare = (value, name) => {
  const wrapper = isObject(value) && !genuine.has(value) && wrapperOf(value);
  return wrapper ? `${name} is ${wrapper}` : undefined;
};
const snapshot = all(kind("what snapshot() gave", isObject), (value, name) => (value.__v_raw ? bare(value, name) : undefined));
const handle = kind("a directory handle", (value) => hasMethods(value, ["getFileHandle", "getDirectoryHandle"]));
const key = kind("a string, a function or null", (value) => value === null || typeof value === "string" || isFunction(value));
const address = kind("a string or a URL", (value) => typeof value === "string" || value instanceof URL);
const script = kind("a string or an object", (value) => typeof value === "string" || isObject(value));
const history = kind("an object or an array", isObject);
/** A sandbox: it has no methods of an environment but one, and only its own entry knows it. */
const isSandbox = (value) => isFunction(value.openShell) && isFunction(value.snapshot) && !isFunction(value.read);

/** Refuses the sandbox of another entry, which is no environment of the caller's. @param {object} environment */
export function acceptOwn(environment) {
  const isOther = readInSession("options.env", () => isSandbox(environment));
  if (!isOther) return;
  const message = "createSession: options.env is a MemoryEnvironment of another entry or copy of this package; create sandbox and session with the same one, such as hermitcrab/worker";
  throw new SessionError("invalid_input", message);
}

/** What an environment of the caller's must be able to do. */
const ENVIRONMENT = ["read", "write", "stat", "list", "remove", "rename", "makeDir", "exec"];
const environment = all(
  kind("a MemoryEnvironment or an object with the methods of an environment", isObject),
  (value, name) => (isFunction(value.then) ? `${name} is a promise; await it` : undefined),
  (value, name) => (value[OURS] ? bare(value, name) : undefined),
  (value, name) => {
    if (isSandbox(value)) return undefined;
    const missing = ENVIRONMENT.filter((method) => !isFunction(value[method]));
    if (missing.length === ENVIRONMENT.length) {
      return `${name} has no method of an environment; give a MemoryEnvironment (of a project: project.env), or an object with ${ENVIRONMENT.join(", ")}`;
    }
    return missing.length === 0 ? undefined : `${name} lacks ${missing.join(", ")}; one that cannot do it throws an EnvironmentError of kind "unsupported"`;
  },
);
const session = all(bare, kind("a session", (value) => hasMethods(value, ["record", "onActivity"])));
const program = kind("one word without a slash", (value) => typeof value === "string" && /^[^\s/]+$/.test(value));
const project = all(
  kind("a text of 1 to 100 characters", (value) => typeof value === "string" && value !== ""),
  (value, name) => (value.length > 100 ? `${name} must be a text of 1 to 100 characters, not of ${value.length}` : undefined),
  utf8,
);
const storage = kind("an object with read, write, remove, delete and list", (value) =>
  hasMethods(value, ["read", "write", "remove", "delete", "list"]),
);
const tool = kind("an object with name, description, parameters and execute", (value) => isObject(value) && typeof value.name === "string");

/** An object whose known fields are right. @param {Record<string, Check>} fields @returns {Check} */
const fields = (fields) => (value, name) => {
  if (!isRecord(value)) return object(value, name);
  return first(Object.entries(fields).map(([field, check]) => check(value[field], `${name}.${field}`)));
};

/** An object that has no other fields. @param {Record<string, Check>} known @returns {Check} */
const only = (known) => (value, name) => {
  const other = isRecord(value) ? Object.keys(value).find((field) => !Object.hasOwn(known, field)) : undefined;
  return other === undefined ? fields(known)(value, name) : `${name}.${other} is not known; there are ${Object.keys(known).join(", ")}`;
};

/** Data, but for some fields. @param {string[]} names @returns {Check} */
const dataBut = (names) => (value, name) => {
  if (value === undefined) return undefined;
  return data(Object.fromEntries(Object.entries(value).filter(([field]) => !names.includes(field))), name);
};

/** Data that is an object; a date, for one, is a text once it is data. @type {Check} */
const record = (value, name) => object(value, name) ?? data(value, name) ?? object(plainData(value, name), name);

/** @param {Check} item @returns {Check} */
const listOf = (item) => (value, name) =>
  Array.isArray(value) ? first(value.map((one, index) => item(one, `${name}[${index}]`))) : kind("an array", () => false)(value, name);

/** Tools of which none has the name of another. @type {Check} */
const tools = all(listOf(tool), (value, name) => {
  const twice = value.findIndex((one, index) => value.findIndex((other) => other.name === one.name) < index);
  return twice < 0 ? undefined : `${name}[${twice}] has the name of another, \`${value[twice].name}\`; leave one of them out`;
});

/** @param {Check} item @param {Check} [key] @returns {Check} */
const recordOf = (item, key = () => undefined) => (value, name) => {
  if (!isRecord(value)) return object(value, name);
  const checked = ([field, one]) => key(field, `a name in ${name}`) ?? item(one, `${name}[${JSON.stringify(field)}]`);
  return first(Object.entries(value).map(checked));
};

/** Not one of the platform's own, such as a `File` or a `Date`, whose contents are no fields. */
const isPlain = (value) => isObject(value) && Object.prototype.toString.call(value) === "[object Object]";

/** Files by path, or a list of them. @type {Check} */
const files = (value, name) => {
  if (isObject(value) && isFunction(value.then)) return `${name} is a promise; await it`;
  if (isObject(value) && isFunction(value[Symbol.iterator]) && !ArrayBuffer.isView(value)) return undefined;
  return isPlain(value) ? recordOf(content, utf8)(value, name) : kind("an object of contents by path, or a list of files", () => false)(value, name);
};

const first = (problems) => problems.find((problem) => problem !== undefined);

const importing = maybe(
  only({ maxBytes: maybe(limit), maxEntries: maybe(limit), maxRatio: maybe(limit), stripComponents: maybe(whole), exclude: maybe(listOf(text)) }),
);
/** A file, or base64 of one. */
const file = all(
  kind(
    "a Uint8Array, an ArrayBuffer, a Blob or a string of base64",
    (value) => typeof value === "string" || value instanceof Uint8Array || value instanceof ArrayBuffer || value instanceof Blob,
  ),
  (value, name) => (value === "" ? `${name} is empty; give a file` : there(value, name)),
);
const PARTS = {
  text: fields({ text }),
  image: fields({ data: file, name: orNull(text), detail: orNull(text) }),
  document: fields({ data: file, name: orNull(text) }),
};
/** @type {Check} */
const part = (value, name) => {
  const check = isRecord(value) && Object.hasOwn(PARTS, value.type) ? PARTS[value.type] : undefined;
  return check ? check(value, name) : `${name} must be an object whose type is one of ${Object.keys(PARTS).join(", ")}`;
};
/** What a user says: a text, or parts. @type {Check} */
const input = (value, name) => {
  if (!Array.isArray(value)) return blank(value, name);
  return value.length === 0 ? `${name} is an empty list; give a text, or parts` : listOf(part)(value, name);
};
const flag = kind("true or false", (value) => typeof value === "boolean");
const readOnly = kind('true, false or "commands"', (value) => typeof value === "boolean" || value === "commands");
const LIMITS = Object.fromEntries(
  ["totalBytes", "fileBytes", "entries", "pathBytes", "outputBytes", "workBound", "idleShells"].map((name) => [name, maybe(whole)]),
);
const recorded = (value, name) => {
  if (isRecord(value)) return only({ maxBytes: whole })(value, name);
  return kind("true, false, a function or {maxBytes}", (value) => typeof value === "boolean" || isFunction(value))(value, name);
};
const memory = {
  files: maybe(files), workingDirectory: maybe(all(unicode, absolute)), utcOffsetMinutes: maybe(offset),
  limits: maybe(only(LIMITS)), programs: maybe(recordOf(callback, program)), log: maybe(callback),
  record: maybe(recorded),
};
const listening = maybe(only({ signal: orNull(signal) }));
const stored = maybe(fields({ storage: orNull(storage) }));
const settings = { retry: orNull(object), approval: orNull(object), endpoints: orNull(recordOf(object)), prices: orNull(recordOf(object)) };
const worked = { workers: maybe(count), worker: maybe(callback) };

/** A saved sandbox has a directory. @type {Check} */
const onceMade = (value, name) =>
  value.saved !== undefined && value.workingDirectory !== undefined ? `${name}.workingDirectory cannot be given with saved, which has its own; leave it out` : undefined;

/**
 * What each call takes, by name.
 * @typedef {Record<string, [name: string, check: Check][]>} Signatures
 */

/** @type {Signatures} */
const SANDBOX = {
  create: [["options", maybe(all(only({ ...memory, readOnly: maybe(readOnly), saved: maybe(packed) }), onceMade))]],
  exec: [
    ["command", unicode],
    ["options", maybe(only({
      timeoutMs: maybe(whole), cwd: orNull(unicode), env: maybe(recordOf(unicode, utf8)), signal: orNull(signal), onOutput: orNull(callback),
    }))],
  ],
  readBytes: [["path", unicode]],
  readText: [["path", unicode]],
  write: [["path", unicode], ["content", content]],
  stat: [["path", unicode]],
  exists: [["path", unicode]],
  list: [["path", maybe(unicode)], ["options", maybe(fields({ depth: maybe(whole) }))]],
  remove: [["path", all(unicode, (value, name) => (value === "" ? `${name} is empty; name a file or a directory` : undefined))]],
  rename: [["from", unicode], ["to", unicode]],
  makeDir: [["path", unicode]],
  importFiles: [["files", files], ["options", importing]],
  importTar: [["archive", packed], ["options", importing]],
  importZip: [["archive", packed], ["options", importing]],
  importArchive: [["archive", packed], ["options", importing]],
  importDirectory: [["handle", kind("a directory handle", (value) => hasMethods(value, ["entries"]) && !isFunction(value[Symbol.iterator]))], ["options", importing]],
  exportDirectory: [["handle", handle]],
  program: [["name", program], ["program", callback]],
  openShell: [["options", only({
    onData: callback, cols: maybe(count), rows: maybe(count), history: maybe(listOf(text)), env: maybe(recordOf(unicode, utf8)),
  })]],
  restore: [["snapshot", snapshot]],
  changesSince: [["snapshot", snapshot]],
  replaceTree: [["archive", all(bytes, filled)]],
  applyDelta: [["delta", fields({ archive: bytes, removed: listOf(text) })]],
  onActivity: [["callback", callback]],
};

/** @type {Signatures} */
const SHELL = {
  write: [["data", kind("a string or a Uint8Array", (value) => typeof value === "string" || value instanceof Uint8Array)]],
  resize: [["cols", count], ["rows", count]],
};

/** @type {Signatures} */
const SESSION = {
  prompt: [["input", input], ["options", listening]],
  run: [["input", input], ["options", listening]],
  resume: [["options", listening]],
  pauseAt: [["answers", maybe(whole)]],
  submit: [["input", input]],
  answer: [["input", input]],
  steer: [["message", input]],
  followUp: [["message", input]],
  addSystemTurn: [["content", blank]],
  agentHistory: [["agent", text]],
  steerAgent: [["agent", text], ["message", input]],
  interruptAgent: [["agent", text]],
  closeAgent: [["agent", text]],
  configure: [["settings", all(fields(settings), record)]],
  registerTool: [["tool", tool]],
  unregisterTool: [["name", text]],
  onActivity: [["callback", callback]],
};

/** A request without a session. @type {Check} */
const modelRequest = all(
  fields({ model: maybe(text), prompt: maybe(input), messages: maybe(listOf(object)), tools: maybe(listOf(object)), signal: orNull(signal) }),
  (value, name) => (value.prompt === undefined && !value.messages?.length ? `${name} asks nothing: give prompt or messages` : undefined),
);

/** @type {Signatures} */
const MODELS = {
  generate: [["request", modelRequest]],
  stream: [["request", modelRequest]],
  generateObject: [["request", all(modelRequest, (value, name) => (isObject(value.schema) || isFunction(value.schema) ? undefined : `${name}.schema must be a JSON Schema, or a schema of zod, valibot or arktype`))]],
};

/** @type {Signatures} */
const PROJECT = { keep: [["session", maybe(session)]] };

/** One conversation to go on with. @type {Check} */
const onePast = (value, name) =>
  value?.saved !== undefined && value.history !== undefined && value.history !== null ? `${name} has history and saved; give one of them` : undefined;

/** @type {Signatures} */
const FUNCTIONS = {
  init: [["options", maybe(only({
    wasm: () => undefined, onProgress: maybe(callback), worker: maybe(callback), onRestart: maybe(callback), unresponsiveMs: maybe(limit), stopMs: maybe(limit),
  }))]],
  createSession: [["options", all(maybe(fields({
    apiKey: maybe(key), apiKeys: maybe(recordOf(key)), env: orNull(environment), tools: maybe(tools), history: orNull(history),
    approve: orNull(callback), fetch: orNull(callback), script: maybe(script), signal: orNull(signal), record: maybe(recorded), saved: maybe(packed), ...settings,
  })), onePast, dataBut(["apiKey", "apiKeys", "env", "tools", "approve", "fetch", "signal", "record", "saved"]))]],
  replay: [["log", packed], ["options", maybe(only({ until: maybe(whole), onEvent: maybe(callback), onFiles: maybe(callback), signal: orNull(signal) }))]],
  fork: [["log", packed], ["options", only({
    at: whole, files: maybe(files), programs: maybe(recordOf(callback, program)), env: orNull(environment), settings: maybe(all(fields(settings), record)),
    apiKey: maybe(key), apiKeys: maybe(recordOf(key)), tools: maybe(tools), approve: orNull(callback), fetch: orNull(callback), script: maybe(script),
    signal: orNull(signal), record: maybe(recorded),
  })]],
  ModelClient: [["options", only({
    provider: maybe(text), apiKey: maybe(key), baseUrl: maybe(text), retry: maybe(record), fetch: orNull(callback), script: maybe(script),
  })]],
  scriptedFetch: [["script", all(script, data)]],
  openProject: [
    ["name", project],
    ["options", maybe(only({ ...memory, readOnly: maybe(flag), takeOver: maybe(flag), storage: orNull(storage), onStatus: orNull(callback) }))],
  ],
  listProjects: [["options", stored]],
  deleteProject: [["name", project], ["options", stored]],
  directoryStorage: [["directory", kind("the path of a directory", (value) => typeof value === "string" && value !== "")]],
  NodeEnvironment: [["options", only({
    root: kind("the path of a directory", (value) => typeof value === "string" && value !== ""),
    inherit: maybe(kind("one of filtered, all, core, none", (value) => ["filtered", "all", "core", "none"].includes(value))),
    variables: maybe(recordOf(unicode, utf8)), secrets: maybe(listOf(text)), readOnly: maybe(readOnly), log: maybe(callback),
  })]],
  pythonProgram: [["options", maybe(only({ ...worked, url: maybe(address), onProgress: maybe(callback) }))]],
  jsProgram: [["options", maybe(only({ ...worked, network: maybe(flag) }))]],
};

/** @param {[string, Check][]} signature @param {unknown[]} given @param {string} call */
function problemOf(signature, given, call) {
  const problem = first(signature.map(([name, check], index) => {
    try {
      return check(given[index], name);
    } catch (error) {
      return `${name} cannot be read: ${what(error)}`;
    }
  }));
  return problem && `${call}: ${problem}`;
}

/**
 * Throws unless `given` is what the function `call` takes.
 * @param {keyof typeof FUNCTIONS} call @param {unknown[]} given @param {typeof HermitcrabError} Refusal
 */
function accept(call, given, Refusal) {
  const problem = problemOf(FUNCTIONS[call], given, call);
  if (problem) throw new Refusal("invalid_input", problem);
}

const printed = kind("a string or a Uint8Array", (value) => typeof value === "string" || value instanceof Uint8Array);
const oneOf = (...names) => kind(`one of ${names.join(", ")}`, (value) => names.includes(value));

/** Permission bits. @type {Check} */
const permissions = kind("permission bits, 0 to 0o7777", (value) => Number.isInteger(value) && value >= 0 && value <= 0o7777);

/** A change of a file that a program made. @type {Check} */
const change = all(
  fields({ path: text, type: oneOf("file", "directory", "link", "removed"), mode: orNull(permissions) }),
  (value, name) => (value.type === "file" ? printed(value.content, `${name}.content`) : undefined),
  (value, name) => (value.type === "link" ? text(value.target, `${name}.target`) : undefined),
);

/** @type {Check} */
const programResult = all(
  fields({ stdout: orNull(printed), stderr: orNull(printed), changes: orNull(listOf(change)), files: orNull(oneOf("kept", "lost", "missing")) }),
  // One that has not run has no exit code.
  ({ exitCode, files }, name) => (files === "missing" ? undefined : exitStatus(exitCode, `${name}.exitCode`)),
);
const exitStatus = kind("a whole number from 0 to 255", (value) => Number.isInteger(value) && value >= 0 && value <= 255);

/**
 * Throws unless a lent program may return `result`.
 * @param {any} result @param {boolean} mayMiss whether it was sent less than all files
 */
export function acceptProgramResult(result, mayMiss) {
  // Called again, it would get the same.
  const asks = result?.files === "missing" && !mayMiss;
  const problem = asks ? "result.files must not be missing where all files were given, as they are without `since`" : programResult(result, "result");
  if (problem) throw new EnvironmentError("io", `what the program returned cannot be used: ${problem}`);
}

/**
 * What `read` makes of `name`, an argument of `createSession` with getters of the caller's.
 * @template T @param {string} name @param {() => T} read @returns {T}
 */
export function readInSession(name, read) {
  try {
    return read();
  } catch (error) {
    if (error instanceof HermitcrabError) throw error;
    throw new SessionError("invalid_input", `createSession: ${name} cannot be read: ${what(error)}`, { cause: error });
  }
}

/** @param {string} call @param {...unknown} given */
export const acceptInSession = (call, ...given) => accept(call, given, SessionError);

/** @param {string} call @param {...unknown} given */
export const acceptInEnvironment = (call, ...given) => accept(call, given, EnvironmentError);

/**
 * Has the methods of `Class` check whether they are called of an object of its
 * own, and those that `table` knows what they are given. Called once for each class.
 * @param {Function} Class @param {Signatures} table @param {typeof HermitcrabError} Refusal
 * @param {Record<string, (error: HermitcrabError) => unknown>} [refuse] what a
 *   call that returns no promise does with a refusal
 */
function guard(Class, table, Refusal, refuse = {}) {
  Object.defineProperty(Class.prototype, OURS, { value: true, configurable: true });
  for (const [holder, name, { value: method, get }] of [...members(Class.prototype), ...members(Class)]) {
    const isStatic = holder === Class;
    const call = isStatic ? `MemoryEnvironment.${name}` : name;
    const refusalOf = (self, given) => {
      const wrapper = isStatic || genuine.has(self) ? undefined : wrapperOf(self);
      const problem = wrapper ? `${call}: the ${KINDS.get(table)} is ${wrapper}` : problemOf(table[name] ?? [], given, call);
      return problem && new Refusal("invalid_input", problem);
    };
    const checked = {
      [name](...given) {
        const refusal = refusalOf(this, given);
        return refusal ? (refuse[name] ?? rejected)(refusal) : method.apply(this, given);
      },
      get value() {
        const refusal = refusalOf(this, []);
        if (refusal) throw refusal;
        return get.call(this);
      },
    };
    const replaced = get
      ? { get: Object.getOwnPropertyDescriptor(checked, "value").get }
      : { value: checked[name], writable: true };
    Object.defineProperty(holder, name, { ...replaced, configurable: true });
  }
}

/** Methods and getters of a class, or of its objects. */
function* members(holder) {
  for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(holder))) {
    if (name !== "constructor" && typeof (descriptor.value ?? descriptor.get) === "function") yield [holder, name, descriptor];
  }
}

const rejected = (error) => Promise.reject(error);
const thrown = (error) => {
  throw error;
};
const told = (error) => late(rejected(error));

/** What the objects are called. */
const KINDS = new Map([[SANDBOX, "environment"], [SHELL, "shell"], [PROJECT, "project"], [SESSION, "session"], [MODELS, "client"]]);

/** @param {Function} Class of sandboxes, here or in a page whose worker has them */
export const guardSandbox = (Class) => guard(Class, SANDBOX, EnvironmentError, { onActivity: thrown });

/** @param {Function} Class of environments that tools have */
export const guardToolEnvironment = (Class) => guard(Class, SANDBOX, EnvironmentError);

/** @param {Function} Class of clients of models */
export const guardModels = (Class) => guard(Class, MODELS, SessionError, { stream: told });

/** @param {Function} Class of shells */
export const guardShell = (Class) => guard(Class, SHELL, EnvironmentError);

/** @param {Function} Class of projects */
export const guardProject = (Class) => guard(Class, PROJECT, EnvironmentError, { keep: thrown });

/** @param {Function} Class of sessions */
export const guardSession = (Class) =>
  guard(Class, SESSION, SessionError, { run: told, resume: told, events: told, onActivity: thrown });

/** What a value is, without what is in it: it may be a key. */
function said(value) {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "string") return value.trim() === "" ? "a blank text" : "a string";
  if (typeof value === "number") return Number.isSafeInteger(value) && value > 0 ? "a number" : `the number ${value}`;
  return `${/^[aeiou]/.test(typeof value) ? "an" : "a"} ${typeof value}`;
}
