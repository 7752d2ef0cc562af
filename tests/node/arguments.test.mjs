// What a call is given by mistake: a typed error that names the argument, and
// nothing has happened.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { jsProgram } from "../../js/programs/javascript.js";
import { pythonProgram } from "../../js/programs/python.js";
import * as face from "./face.mjs";
import { collect, dataOf, moved } from "./support.mjs";

/** All that an environment must be able to do. */
const METHODS = Object.fromEntries(["read", "write", "stat", "list", "remove", "rename", "makeDir", "exec"].map((name) => [name, () => ""]));

const { EnvironmentError, MemoryEnvironment, SessionError, createSession, init } = face;
const onData = () => {};

let env;
let other;
let session;
let shell;
let project;

before(async () => {
  env = await MemoryEnvironment.create({ files: { keep: "precious" } });
  other = await (await MemoryEnvironment.create()).snapshot();
  session = await createSession({ env, script: { steps: [{ text: "Fine." }] } });
  shell = await env.openShell({ onData });
  project = await face.openProject("p");
});

after(async () => {
  await session.close();
  await shell.close();
  await project.close();
});

const GONE = "has no bytes any more: its buffer was moved or made smaller; give a copy";

/** `[call, problem]`: the call, and what its error says behind the name of the function. */
const SANDBOX = [
  [() => MemoryEnvironment.create(null), "options must be an object, not null"],
  [() => MemoryEnvironment.create(5), "options must be an object, not a number"],
  [() => MemoryEnvironment.create({ files: 5 }), "options.files must be an object of contents by path, or a list of files, not a number"],
  [() => MemoryEnvironment.create({ files: { a: 5 } }), 'options.files["a"] must be a string, a Uint8Array or an ArrayBuffer, not a number'],
  [() => MemoryEnvironment.create({ limits: 5 }), "options.limits must be an object, not a number"],
  [() => MemoryEnvironment.create({ readOnly: "files" }), 'options.readOnly must be true, false or "commands", not a string'],
  [() => MemoryEnvironment.create({ readOnly: null }), 'options.readOnly must be true, false or "commands", not null'],
  [() => MemoryEnvironment.create({ log: [] }), "options.log must be a function, not an array"],
  [() => MemoryEnvironment.create({ programs: { a: 5 } }), 'options.programs["a"] must be a function, not a number'],
  [() => env.exec(), "command must be a string, not nothing"],
  [() => env.exec("echo", null), "options must be an object, not null"],
  [() => env.exec("echo", { signal: 5 }), "options.signal must be an AbortSignal, not a number"],
  [() => env.exec("echo", { onOutput: 5 }), "options.onOutput must be a function, not a number"],
  [() => env.exec("echo", { timeoutMs: NaN }), "options.timeoutMs must be a whole number, 0 or more, not the number NaN"],
  [() => env.exec("echo", { env: { A: 5 } }), 'options.env["A"] must be a string, not a number'],
  [() => MemoryEnvironment.create({ workingDirectory: Symbol("w") }), "options.workingDirectory must be a string, not a symbol"],
  [() => MemoryEnvironment.create({ utcOffsetMinutes: 1.5 }), "options.utcOffsetMinutes must be a whole number, not the number 1.5"],
  [() => MemoryEnvironment.create({ utcOffsetMinutes: 1e9 }), "options.utcOffsetMinutes must be less than a day of minutes, not 1000000000"],
  [() => MemoryEnvironment.create({ workingDirectory: "x" }), 'options.workingDirectory must be an absolute path, not "x"'],
  [() => MemoryEnvironment.create({ programs: { "a b": async () => ({}) } }), "a name in options.programs must be one word without a slash, not a string"],
  [() => env.exec("echo", { timeout: 5 }), "options.timeout is not known; there are timeoutMs, cwd, env, signal, onOutput"],
  [() => env.replaceTree(new Uint8Array()), "archive is empty; give the bytes of an archive"],
  [() => env.readText(), "path must be a string, not nothing"],
  [() => env.readText(new URL("file:///keep")), "path must be a string, not an object"],
  [() => env.write(Symbol("p"), ""), "path must be a string, not a symbol"],
  [() => env.write("o", Symbol("c")), "content must be a string, a Uint8Array or an ArrayBuffer, not a symbol"],
  [() => env.write("o", Promise.resolve("")), "content must be a string, a Uint8Array or an ArrayBuffer, not an object"],
  [() => env.readBytes({}), "path must be a string, not an object"],
  [() => env.write("o", {}), "content must be a string, a Uint8Array or an ArrayBuffer, not an object"],
  [() => env.write("o"), "content must be a string, a Uint8Array or an ArrayBuffer, not nothing"],
  [() => env.stat(null), "path must be a string, not null"],
  [() => env.exists(5), "path must be a string, not a number"],
  [() => env.list(5), "path must be a string, not a number"],
  [() => env.list(".", { depth: -1 }), "options.depth must be a whole number, 0 or more, not the number -1"],
  [() => env.remove(), "path must be a string, not nothing"],
  [() => env.rename("keep"), "to must be a string, not nothing"],
  [() => env.makeDir([]), "path must be a string, not an array"],
  [() => env.importFiles(null), "files must be an object of contents by path, or a list of files, not null"],
  [() => env.importFiles("keep"), "files must be an object of contents by path, or a list of files, not a string"],
  ...[["a Blob", new Blob(["x"])], ["a buffer", new ArrayBuffer(2)], ["bytes", new Uint8Array(2)], ["a date", new Date()], ["an address", new URL("file:///a")]].map(
    ([, given]) => [() => env.importFiles(given), "files must be an object of contents by path, or a list of files, not an object"],
  ),
  [() => env.importFiles(Promise.resolve({ keep: "" })), "files is a promise; await it"],
  [() => MemoryEnvironment.create({ files: Promise.resolve([]) }), "options.files is a promise; await it"],
  [() => MemoryEnvironment.create({ readonly: true }), "options.readonly is not known; there are files, workingDirectory, utcOffsetMinutes, limits, programs, log, record, readOnly, saved"],
  [() => MemoryEnvironment.create({ limits: { bytes: 1 } }), "options.limits.bytes is not known; there are totalBytes, fileBytes, entries, pathBytes, outputBytes, workBound, idleShells"],
  [() => MemoryEnvironment.create({ limits: { totalBytes: -1 } }), "options.limits.totalBytes must be a whole number, 0 or more, not the number -1"],
  [() => env.remove(""), "path is empty; name a file or a directory"],
  [() => env.importDirectory([]), "handle must be a directory handle, not an array"],
  [() => env.openShell({ onData, columns: 80 }), "options.columns is not known; there are onData, cols, rows, history, env"],
  [() => face.openProject("x", { takeOver: 5 }), "options.takeOver must be true or false, not a number"],
  [() => face.openProject("x", { takeover: true }), "options.takeover is not known; there are files, workingDirectory, utcOffsetMinutes, limits, programs, log, record, readOnly, takeOver, storage, onStatus"],
  [async () => jsProgram({ net: true }), "options.net is not known; there are workers, worker, network"],
  [async () => pythonProgram({ network: true }), "options.network is not known; there are workers, worker, url, onProgress"],
  [() => env.importFiles([5]), "what is number 1 of the list is not a File"],
  [() => MemoryEnvironment.create({ files: { a: moved() } }), `options.files["a"] ${GONE}`],
  [() => env.importFiles({ a: moved() }), `files["a"] ${GONE}`],
  [() => env.importFiles({ a: moved().buffer }), `files["a"] ${GONE}`],
  // No message to a worker can carry them, which is reported with the reason.
  ...(face.inWorker ? [] : [
    [() => env.write("o", moved()), `content ${GONE}`],
    [() => env.importTar(moved()), `archive ${GONE}`],
    [() => env.replaceTree(moved()), `archive ${GONE}`],
    [() => env.applyDelta({ archive: moved(), removed: [] }), `delta.archive ${GONE}`],
  ]),
  [() => env.importTar(7), "archive must be a Uint8Array, an ArrayBuffer or a Blob, not a number"],
  [() => env.importZip("text"), "archive must be a Uint8Array, an ArrayBuffer or a Blob, not a string"],
  [() => env.importArchive(null), "archive must be a Uint8Array, an ArrayBuffer or a Blob, not null"],
  [() => env.importArchive(new Uint8Array(1), { exclude: ".git" }), "options.exclude must be an array, not a string"],
  [() => env.importZip(new Uint8Array(1), { maxBytes: "1 GB" }), "options.maxBytes must be a number, 0 or more, not a string"],
  [() => env.importZip(new Uint8Array(1), { maxFiles: 5 }), "options.maxFiles is not known; there are maxBytes, maxEntries, maxRatio, stripComponents, exclude"],
  [() => env.importTar(new Uint8Array()), "archive is empty; give the bytes of an archive"],
  [() => env.importZip(new ArrayBuffer(0)), "archive is empty; give the bytes of an archive"],
  [() => env.importArchive(new Blob([])), "archive is empty; give the bytes of an archive"],
  [() => env.exec("echo \ud800"), "command holds half of a surrogate pair, which UTF-8 cannot carry; leave it out"],
  [() => env.exec("echo", { cwd: "\ud800" }), "options.cwd holds half of a surrogate pair, which UTF-8 cannot carry; leave it out"],
  [() => env.exec("echo", { env: { "\udfff": "" } }), "a name in options.env holds half of a surrogate pair, which UTF-8 cannot carry; leave it out"],
  [() => env.write("\ud800", ""), "path holds half of a surrogate pair, which UTF-8 cannot carry; leave it out"],
  [() => env.readText("a\udc00b"), "path holds half of a surrogate pair, which UTF-8 cannot carry; leave it out"],
  [() => env.rename("keep", "\ud800"), "to holds half of a surrogate pair, which UTF-8 cannot carry; leave it out"],
  [() => env.importFiles({ "\ud800": "" }), "a name in files holds half of a surrogate pair, which UTF-8 cannot carry; leave it out"],
  [() => env.importDirectory(null), "handle must be a directory handle, not null"],
  [() => env.exportDirectory({}), "handle must be a directory handle, not an object"],
  [() => env.program("no name", onData), "name must be one word without a slash, not a string"],
  [() => env.program("x"), "program must be a function, not nothing"],
  [() => env.openShell(), "options must be an object, not nothing"],
  [() => env.openShell({ onData: 1 }), "options.onData must be a function, not a number"],
  [() => env.openShell({ onData, cols: -1 }), "options.cols must be a whole number, 1 or more, not the number -1"],
  [() => env.openShell({ onData, history: "ls" }), "options.history must be an array, not a string"],
  [() => env.exec("echo", ["-n"]), "options must be an object, not an array"],
  [() => env.restore(), "snapshot must be what snapshot() gave, not nothing"],
  [() => env.changesSince("x"), "snapshot must be what snapshot() gave, not a string"],
  [() => env.replaceTree("tar"), "archive must be a Uint8Array, not a string"],
  [() => env.applyDelta({ archive: new Uint8Array() }), "delta.removed must be an array, not nothing"],
  [() => env.onActivity(), "callback must be a function, not nothing"],
  [() => shell.write(5), "data must be a string or a Uint8Array, not a number"],
  [() => shell.resize("80", 24), "cols must be a whole number, 1 or more, not a string"],
  [() => project.keep({}), "session must be a session, not an object"],
  [() => face.openProject("x".repeat(300)), "name must be a text of 1 to 100 characters, not of 300"],
  [() => face.openProject(""), "name must be a text of 1 to 100 characters, not a blank text"],
  [() => face.openProject("x", null), "options must be an object, not null"],
  [() => face.openProject("x", { storage: {} }), "options.storage must be an object with read, write, remove, delete and list, not an object"],
  [() => face.openProject("x", { readOnly: "commands" }), "options.readOnly must be true or false, not a string"],
  [() => face.openProject("x", { onStatus: 5 }), "options.onStatus must be a function, not a number"],
  [() => face.listProjects(null), "options must be an object, not null"],
  [() => face.deleteProject(), "name must be a text of 1 to 100 characters, not nothing"],
  [() => face.directoryStorage(), "directory must be the path of a directory, not nothing"],
  [() => pythonProgram(null), "options must be an object, not null"],
  [() => pythonProgram({ workers: 0 }), "options.workers must be a whole number, 1 or more, not the number 0"],
  [() => jsProgram({ worker: "worker.js" }), "options.worker must be a function, not a string"],
];

const tool = { name: "x", description: "Does x.", parameters: { type: "object" }, execute: () => "" };

const SESSION = [
  [() => init(null), "options must be an object, not null"],
  [() => createSession(null), "options must be an object, not null"],
  [() => createSession([]), "options must be an object, not an array"],
  [() => createSession({ endpoints: { openai: [] } }), 'options.endpoints["openai"] must be an object, not an array'],
  [() => createSession({ tools: [tool, { ...tool, name: "y" }, tool] }), "options.tools[2] has the name of another, `x`; leave one of them out"],
  [() => createSession({ env: 5 }), "options.env must be a MemoryEnvironment or an object with the methods of an environment, not a number"],
  [() => createSession({ env: MemoryEnvironment.create() }), "options.env is a promise; await it"],
  [() => createSession({ tools: {} }), "options.tools must be an array, not an object"],
  [() => createSession({ tools: [null] }), "options.tools[0] must be an object with name, description, parameters and execute, not null"],
  [() => createSession({ fetch: "https://proxy.example" }), "options.fetch must be a function, not a string"],
  [() => createSession({ approve: true }), "options.approve must be a function, not a boolean"],
  [() => createSession({ signal: new AbortController() }), "options.signal must be an AbortSignal, not an object"],
  [() => createSession({ apiKey: 5 }), "options.apiKey must be a string, a function or null, not a number"],
  [() => createSession({ apiKeys: "k" }), "options.apiKeys must be an object, not a string"],
  [() => createSession({ history: "[]" }), "options.history must be an object or an array, not a string"],
  [() => createSession({ retry: 5 }), "options.retry must be an object, not a number"],
  [() => createSession({ endpoints: { openai: "x" } }), 'options.endpoints["openai"] must be an object, not a string'],
  [() => createSession({ script: 5 }), "options.script must be a string or an object, not a number"],
  [() => face.scriptedFetch(), "script must be a string or an object, not nothing"],
  [() => collect(session.run("")), "input must be a text that is not blank, not a blank text"],
  [() => collect(session.run(" \n\t")), "input must be a text that is not blank, not a blank text"],
  [() => collect(session.run()), "input must be a text that is not blank, not nothing"],
  [() => collect(session.run(7)), "input must be a text that is not blank, not a number"],
  [() => collect(session.run("x", { signal: 5 })), "options.signal must be an AbortSignal, not a number"],
  [() => collect(session.run("x", null)), "options must be an object, not null"],
  [() => collect(session.resume(5)), "options must be an object, not a number"],
  [() => session.submit(""), "input must be a text that is not blank, not a blank text"],
  [() => session.submit([]), "input is an empty list; give a text, or parts"],
  [() => session.submit([{ type: "text" }]), "input[0].text must be a string, not nothing"],
  [() => session.submit([{ type: "sound" }]), "input[0] must be an object whose type is one of text, image, document"],
  [() => session.submit(["x"]), "input[0] must be an object whose type is one of text, image, document"],
  [() => collect(session.run([{ type: "image" }])), "input[0].data must be a Uint8Array, an ArrayBuffer, a Blob or a string of base64, not nothing"],
  [() => session.steer([{ type: "document", data: "" }]), "message[0].data is empty; give a file"],
  [() => session.followUp([{ type: "image", data: moved() }]), `message[0].data ${GONE}`],
  [() => session.steerAgent(5, "x"), "agent must be a string, not a number"],
  [() => session.steerAgent("a", ""), "message must be a text that is not blank, not a blank text"],
  [() => session.closeAgent(), "agent must be a string, not nothing"],
  [() => session.answer(), "input must be a text that is not blank, not nothing"],
  [() => session.steer(" "), "message must be a text that is not blank, not a blank text"],
  [() => session.followUp({}), "message must be a text that is not blank, not an object"],
  [() => session.addSystemTurn(""), "content must be a text that is not blank, not a blank text"],
  [() => session.configure(null), "settings must be an object, not null"],
  [() => session.configure(new Date(NaN)), "settings must be an object, not null"],
  [() => session.configure(new Date(0)), "settings must be an object, not a string"],
  [() => createSession({ env: {} }), "options.env has no method of an environment; give a MemoryEnvironment (of a project: project.env), or an object with read, write, stat, list, remove, rename, makeDir, exec"],
  [() => createSession({ env: { ...METHODS, get workingDirectory() { throw new RangeError("a getter"); } } }), "options.env cannot be read: a getter"],
  [() => createSession({ env: { ...METHODS, get log() { throw new Error("a getter"); } } }), "options.env cannot be read: a getter"],
  [() => session.registerTool(null), "tool must be an object with name, description, parameters and execute, not null"],
  [() => session.unregisterTool(5), "name must be a string, not a number"],
  [() => session.onActivity("x"), "callback must be a function, not a string"],
];

/** A circle: data that no JSON holds. */
const circle = { deep: [{}] };
circle.deep[0].back = circle;
const throwing = new Proxy({}, { ownKeys() { throw new Error("a trap"); } });
const getter = { get retry() { throw new RangeError("a getter"); } };
const { execute: _, ...inert } = tool;
const { description: _d, ...silent } = tool;
const { parameters: _p, ...bare } = tool;

const CIRCLES = [
  [() => createSession({ providerOptions: { anthropic: circle } }), "options.providerOptions.anthropic.deep[0].back refers back to what it is in; give data that JSON holds"],
  [() => createSession({ history: circle }), "options.history.deep[0].back refers back to what it is in; give data that JSON holds"],
  [() => createSession({ script: circle }), "options.script.deep[0].back refers back to what it is in; give data that JSON holds"],
  [() => createSession({ contextWindow: NaN }), "options.contextWindow must be a finite number, not the number NaN"],
  [() => createSession({ temperature: 1n }), "options.temperature must be data that JSON holds, not a bigint"],
  [() => session.configure({ providerOptions: circle }), "settings.providerOptions.deep[0].back refers back to what it is in; give data that JSON holds"],
  [() => createSession({ providerOptions: new Map() }), "options.providerOptions must be data that JSON holds, not a Map"],
  [() => createSession({ providerOptions: { "a b": [{ seen: new Set(), __proto__: null }] } }), 'options.providerOptions["a b"][0].seen must be data that JSON holds, not a Set'],
  [() => session.configure(throwing), "settings cannot be read: a trap"],
  [() => session.configure({ providerOptions: throwing }), "settings.providerOptions cannot be read: a trap"],
  [() => session.configure(getter), "settings cannot be read: a getter"],
  [() => session.configure({ contextWindow: NaN }), "settings.contextWindow must be a finite number, not the number NaN"],
];
SESSION.push(...CIRCLES);

for (const [wrong, problem] of [
  [inert, "tool `x` has no execute function"],
  [silent, "tool `x` has no description; say for the model what it does"],
  [bare, 'tool `x` has no parameters; give a JSON Schema such as { type: "object", properties: {} }, or a schema of zod, valibot or arktype'],
  [{ ...tool, timeout: 5 }, "tool `x` has a field timeout that is not known; there are name, description, parameters, custom, strict, unchecked, timeoutMs, execute"],
  [{ ...tool, timeoutMs: -1 }, "timeoutMs of tool `x` is not a number of ms"],
  [{ ...tool, timeoutMs: NaN }, "timeoutMs of tool `x` is not a number of ms"],
  [{ ...tool, parameters: circle }, "tool `x`.parameters.deep[0].back refers back to what it is in; give data that JSON holds"],
  [{ ...tool, parameters: throwing }, "tool `x`.parameters cannot be read: a trap"],
]) {
  test(`a tool is refused before anything happens: ${problem}`, async () => {
    for (const call of [() => session.registerTool(wrong), () => createSession({ env, tools: [wrong] })]) {
      await assert.rejects(call, (error) => {
        assert.ok(error instanceof SessionError, error.stack);
        assert.deepEqual([error.kind, error.message], ["invalid_tool", problem]);
        return true;
      });
    }
    assert.equal(session.state, "IDLE");
    assert.equal(await env.readText("keep"), "precious");
  });
}

for (const [Class, calls] of [[EnvironmentError, SANDBOX], [SessionError, SESSION]]) {
  for (const [call, problem] of calls) {
    test(String(call).slice(6), async () => {
      await assert.rejects(async () => call(), (error) => {
        assert.ok(error instanceof Class, error.stack);
        assert.equal(error.kind, "invalid_input");
        assert.match(error.message, /^[\w.]+: /);
        assert.equal(error.message.replace(/^[\w.]+: /, ""), problem);
        return true;
      });
      assert.equal(session.state, "IDLE");
    });
  }
}

test("after all of them everything is as it was", async () => {
  assert.deepEqual((await env.list()).map(({ path }) => path), ["keep"]);
  const events = await collect(session.run("go"));
  assert.deepEqual(dataOf(events, "USER_INPUT"), [{ content: "go" }]);
  assert.equal(dataOf(events, "PROCESSING_END")[0].reason, "completed");
});

test("a snapshot that was freed says so, whatever it is asked", async () => {
  const [kept, freed] = [await env.snapshot(), await env.snapshot()];
  await freed.free();
  const calls = [() => freed.exportTar("/"), () => freed.read("/x"), () => freed.entries("/"), () => freed.deltaSince(kept), () => kept.deltaSince(freed), () => kept.isSame(freed)];
  for (const call of [...calls, () => env.restore(freed)]) {
    await assert.rejects(async () => call(), (error) => {
      assert.ok(error instanceof EnvironmentError, error.stack);
      assert.deepEqual([error.kind, error.message], ["invalid_input", "the snapshot was freed; take another with snapshot()"]);
      return true;
    });
  }
  await assert.rejects(async () => kept.read("/no/such"), EnvironmentError);
  assert.equal(await kept.deltaSince(kept), undefined);
  await kept.free();
});

test("the snapshot of another sandbox is refused, and the way to its files is named", async () => {
  for (const call of [() => env.restore(other), () => env.changesSince(other), () => env.restore({})]) {
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof EnvironmentError);
      assert.equal(error.kind, "invalid_input");
      assert.match(error.message, /not one of this environment; .*replaceTree/);
      return true;
    });
  }
  const source = await MemoryEnvironment.create({ files: { b: "b" } });
  const target = await MemoryEnvironment.create({ files: { a: "a" } });
  await target.replaceTree(await source.exportTree());
  assert.deepEqual((await target.list()).map(({ path }) => path), ["b"]);
});

test("a snapshot may be given back twice", async () => {
  const snapshot = await env.snapshot();
  await snapshot.free();
  await snapshot.free();
  await assert.rejects(async () => env.restore(snapshot), (error) => error instanceof EnvironmentError && /was freed|lost|does not exist/.test(error.message));
  assert.equal((await env.exec("echo 😀")).stdout, "😀\n");
});

for (const options of [
  { baseUrl: "https://user:hunter2@api.example" },
  { baseUrl: "https://hunter2@api.example" },
  { baseUrl: "https//user:hunter2@api.example" },
  { baseUrl: "https://user:hunter2@api.example", script: { steps: [{ text: "x" }] } },
  { endpoints: { openai: { baseUrl: "https://user:hunter2@api.example" } } },
  { baseUrl: "https://api.example/v1?k=hunter2" },
  { baseUrl: "https://api.example/v1#hunter2" },
]) {
  test(`an address with a user or a query is refused, and what it holds is not told: ${Object.keys(options)}, ${options.baseUrl?.replace("hunter2", "")}`, async () => {
    for (const keys of [{}, { apiKey: "k" }]) {
      await assert.rejects(createSession({ ...keys, ...options }), (error) => {
        assert.ok(error instanceof SessionError);
        assert.equal(error.kind, "invalid_input");
        assert.match(error.message, /^baseUrl (holds a user name or a password|holds a query or a fragment|is not an absolute http or https URL)/);
        assert.ok(!error.stack.includes("hunter2"), error.stack);
        return true;
      });
    }
  });
}

test("what an argument holds is not repeated: it may be a key", async () => {
  const key = { secret: "sk-canary" };
  await assert.rejects(createSession({ apiKey: key }), (error) => !error.message.includes("canary"));
});
