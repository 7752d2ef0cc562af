// Objects of this package in the reactive state of frameworks: they are told to
// be there, by name, and what is plain data works from there.

import assert from "node:assert/strict";
import { test } from "node:test";

import { isReactive, markRaw, reactive, shallowRef } from "@vue/reactivity";
import { isObservable, observable } from "mobx";

import { EnvironmentError, MemoryEnvironment, SessionError, createSession, openProject } from "./face.mjs";
import { callStep, collect, dataOf } from "./support.mjs";

const REMEDY = "is behind a proxy, as reactive state makes them: keep it out of that with shallowRef or markRaw (Vue), observable.ref (MobX)";
const script = { steps: [callStep("add", { a: 1 }), { text: "Done." }] };
const memory = () => {
  const records = new Map();
  return { read: async (name) => records.get(name), write: async (name, value) => void records.set(name, value), remove: async () => {}, delete: async () => records.clear(), list: async () => [] };
};

/** Ways to put an object behind a proxy: `[name, wrap]`. */
const WAYS = [
  ["Vue", (value) => reactive({ value }).value],
  ["a plain proxy", (value) => new Proxy(value, {})],
];

for (const [name, wrap] of WAYS) {
  test(`objects behind a proxy are reported: ${name}`, async () => {
    const env = await MemoryEnvironment.create({ files: { a: "b" } });
    const session = await createSession({ script, env });
    const project = await openProject("mine", { storage: memory() });
    const shell = await env.openShell({ onData: () => {} });
    const snapshot = await env.snapshot();
    const refusal = (Class, call, what) => ({ name: Class.name, kind: "invalid_input", message: `${call}: ${what} ${REMEDY}` });
    const calls = [
      [() => wrap(session).prompt("go"), refusal(SessionError, "prompt", "the session")],
      [() => wrap(session).close(), refusal(SessionError, "close", "the session")],
      [() => collect(wrap(session).run("go")), refusal(SessionError, "run", "the session")],
      [() => collect(wrap(session).events()), refusal(SessionError, "events", "the session")],
      [async () => wrap(session).state, refusal(SessionError, "state", "the session")],
      [() => wrap(env).readText("a"), refusal(EnvironmentError, "readText", "the environment")],
      [() => wrap(env).snapshot(), refusal(EnvironmentError, "snapshot", "the environment")],
      [() => wrap(shell).write("ls\r"), refusal(EnvironmentError, "write", "the shell")],
      [() => wrap(project).save(), refusal(EnvironmentError, "save", "the project")],
      [async () => project.keep(wrap(session)), refusal(EnvironmentError, "keep", "session")],
      [() => createSession({ script, env: wrap(env) }), refusal(SessionError, "createSession", "options.env")],
    ];
    if (name === "Vue") calls.push([() => env.restore(wrap(snapshot)), refusal(EnvironmentError, "restore", "snapshot")]);
    for (const [call, expected] of calls) await assert.rejects(call, expected);
    await session.close();
    await shell.close();
    await project.close();
    await env.dispose();
  });
}

test("what Vue is told to leave alone works from its state", async () => {
  const state = reactive({ env: markRaw(await MemoryEnvironment.create({ files: { a: "b" } })) });
  assert.equal(await state.env.readText("a"), "b");
  const session = shallowRef(await createSession({ script, env: state.env, tools: [adder()] }));
  assert.equal((await session.value.prompt("go")).text, "Done.");
  await session.value.close();
});

const adder = () => ({ name: "add", description: "Adds.", parameters: { type: "object", properties: { a: { type: "number" } } }, execute: ({ a }) => String(a + 1) });

/** An environment of one's own: a plain object, which frameworks wrap, and which works so. */
const plain = () => {
  const files = { a: "one\n" };
  const no = async () => {};
  return {
    workingDirectory: "/repo",
    read: async (path) => files[path.replace("/repo/", "")],
    write: async (path, content) => void (files[path] = content),
    stat: async () => ({ isDir: false, size: 4 }),
    list: async () => [{ path: "a", isDir: false }],
    remove: no,
    rename: no,
    makeDir: no,
    exec: async () => ({ exitCode: 0 }),
  };
};

for (const [name, wrap, isWrapped] of [["Vue", reactive, isReactive], ["MobX", observable, isObservable]]) {
  test(`options, tools, histories and plain environments work from the state of ${name}`, async () => {
    const first = await createSession({ script, tools: [adder()] });
    await first.prompt("go");
    const history = await first.history();
    await first.close();
    const steps = [callStep("add", { a: 1 }), callStep("read_file", { file_path: "/repo/a" }), { text: "Done." }];
    const state = wrap({ script: { steps }, env: plain(), tools: [adder()], history, maxTurns: 9, retry: { jitter: false } });
    assert.ok(isWrapped(state) && isWrapped(state.env) && isWrapped(state.tools));
    const session = await createSession(state);
    const ends = dataOf(await collect(session.run("go")), "TOOL_CALL_END");
    assert.deepEqual(ends.map(({ output }) => output?.trim()), ["2", ends[1].output.trim()]);
    assert.match(ends[1].output, /one/);
    assert.equal((await session.history()).length, history.length + 6);
    await session.close();
  });
}
