// A JavaScript object as the environment: tools reach it through effects.

import assert from "node:assert/strict";
import { test } from "node:test";

import { SessionError, createSession } from "./face.mjs";
import { callStep, collect, dataOf, moved, serveModel } from "./support.mjs";

const KEY = "sk-test-0000";

/** A flat file store in a map; commands are what `exec` makes of them. */
function mapEnvironment(files, exec) {
  const absolute = (path) => (path.startsWith("/") ? path : `/repo/${path}`).replace(/\/\.?$/, "") || "/";
  const lost = (path) => Object.assign(new Error(`no such file: ${path}`), { code: "ENOENT" });
  const isDir = (path) => [...files.keys()].some((file) => file.startsWith(`${path}/`));
  return {
    files,
    life: [],
    workingDirectory: "/repo",
    platform: "linux",
    async initialize() {
      this.life.push("initialize");
    },
    async cleanup() {
      this.life.push("cleanup");
    },
    async read(path) {
      const content = files.get(absolute(path));
      if (content === undefined) throw lost(path);
      return content;
    },
    async write(path, content) {
      files.set(absolute(path), new TextDecoder().decode(content));
    },
    async stat(path) {
      const content = files.get(absolute(path));
      if (content !== undefined) return { isDir: false, size: content.length, modifiedMs: 1.5 };
      if (isDir(absolute(path))) return { isDir: true };
      throw lost(path);
    },
    async list(path, { depth }) {
      const top = `${absolute(path)}/`;
      return [...files.keys()]
        .filter((file) => file.startsWith(top))
        .map((file) => file.slice(top.length))
        .filter((file) => file.split("/").length <= depth)
        .map((file) => ({ path: file, isDir: false, size: files.get(top + file).length, modifiedMs: 1 }));
    },
    async remove(path) {
      if (!files.delete(absolute(path))) throw lost(path);
    },
    async rename(from, to) {
      await this.write(to, new TextEncoder().encode(await this.read(from)));
      await this.remove(from);
    },
    async makeDir() {},
    exec,
  };
}

test("tools work on an object of the user's, searches on top of list and read", async (t) => {
  const model = await serveModel(t, {
    steps: [
      callStep("read_file", { file_path: "/repo/a.txt" }),
      callStep("edit_file", { file_path: "/repo/a.txt", old_string: "one", new_string: "two" }),
      callStep("grep", { pattern: "tw." }),
      callStep("glob", { pattern: "*.txt" }),
      callStep("shell", { command: "make", timeout_ms: 5000 }),
      callStep("read_file", { file_path: "/repo/missing" }),
      { text: "Done." },
    ],
  });
  const asked = [];
  const env = mapEnvironment(new Map([["/repo/a.txt", "one\n"]]), async (command, { timeoutMs, onOutput }) => {
    asked.push([command, timeoutMs]);
    onOutput("stdout", "built\n");
    onOutput("stderr", new TextEncoder().encode("careful\n"));
    return { exitCode: 2 };
  });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
  const events = await collect(session.run("go"));
  assert.equal(dataOf(events, "SESSION_START")[0].working_directory, "/repo");
  const ends = dataOf(events, "TOOL_CALL_END");
  const outputs = ends.map(({ output, error }) => output ?? error);
  assert.match(outputs[0], /one/);
  assert.match(outputs[2], /a\.txt:1:\s?two/);
  assert.match(outputs[3], /a\.txt/);
  assert.match(outputs[4], /built\n[^]*careful\n/);
  assert.equal(ends[4].exit_code, 2);
  assert.match(outputs[5], /missing/);
  assert.deepEqual(ends.map(({ is_error: failed }) => failed), [false, false, false, false, true, true]);
  assert.deepEqual(asked, [["make", 5000]]);
  assert.equal(env.files.get("/repo/a.txt"), "two\n");
  await session.close();
  assert.deepEqual(env.life, ["initialize", "cleanup"]);
});

test("an environment that cannot be initialized says why, also to who comes late", async () => {
  const initialize = async () => {
    throw new Error("no container", { cause: new Error("docker is not running") });
  };
  const why = /the environment could not be initialized: no container: docker is not running/;
  const session = await createSession({ apiKey: KEY, env: { ...mapEnvironment(new Map(), async () => ({ exitCode: 0 })), initialize } });
  // An idle session does not keep a process alive.
  const alive = setInterval(() => {}, 1_000);
  const [error] = dataOf(await collect(session.events()), "ERROR");
  clearInterval(alive);
  assert.match(error.message, why);
  for (const late of [() => collect(session.run("go")), () => session.submit("go")]) {
    await assert.rejects(late, (error) => error.kind === "closed" && why.test(error.message));
  }
});

const BROKEN = [
  ["rejects", async () => { throw new Error("the container is gone"); }, /the container is gone/],
  ["throws at once", () => { throw new Error("no container"); }, /no container/],
  ["throws something that is no error", async () => { throw { reason: 7 }; }, /reason/],
  ["returns nonsense", async () => ({}), /exitCode/],
];

for (const [what, exec, message] of BROKEN) {
  test(`an exec that ${what} is a result that the model can read`, async (t) => {
    const model = await serveModel(t, { steps: [callStep("shell", { command: "ls" }), { text: "Done." }] });
    const session = await createSession({ apiKey: KEY, baseUrl: model.url, env: mapEnvironment(new Map(), exec) });
    const events = await collect(session.run("go"));
    const [end] = dataOf(events, "TOOL_CALL_END");
    assert.equal(end.is_error, true);
    assert.match(end.error ?? end.output, message);
    assert.equal(dataOf(events, "PROCESSING_END")[0].reason, "completed");
  });
}

test("an interrupted command is aborted, and given up when it does not end", async (t) => {
  const model = await serveModel(t, {
    steps: [callStep("shell", { command: "polite" }), callStep("shell", { command: "deaf" }), { text: "Done." }],
  });
  const seen = [];
  const env = mapEnvironment(new Map(), (command, { signal, onOutput }) => {
    onOutput("stdout", `${command} started\n`);
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        seen.push(command);
        if (command === "polite") resolve({ exitCode: 143 });
        // Too late for anyone to hear.
        else setTimeout(() => onOutput("stdout", "late"), 3000).unref();
      });
    });
  });
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
  for (const command of ["polite", "deaf"]) {
    const events = [];
    for await (const event of session.run("go")) {
      events.push(event);
      if (event.kind === "TOOL_CALL_OUTPUT_DELTA") await session.interrupt();
    }
    assert.equal(dataOf(events, "PROCESSING_END")[0].reason, "interrupted");
    const [end] = dataOf(events, "TOOL_CALL_END");
    assert.match(end.output ?? end.error, new RegExp(`${command} started`));
  }
  assert.deepEqual(seen, ["polite", "deaf"]);
  assert.equal(dataOf(await collect(session.run("go")), "PROCESSING_END")[0].reason, "completed");
});

test("where a path leads is the environment's to say", async (t) => {
  const env = mapEnvironment(new Map(), async () => ({ exitCode: 0 }));
  const asked = [];
  const leads = (path) => (path.startsWith("/") ? path : `/repo/${path}`).replace("/repo/out", "/etc");
  const write = callStep("write_file", { file_path: "/repo/out/x", content: "x" });
  const plain = callStep("write_file", { file_path: "/repo/in/x", content: "x" });
  const run = async (realPath) => {
    const model = await serveModel(t, { steps: [write, plain, { text: "Done." }] });
    const session = await createSession({
      apiKey: KEY,
      baseUrl: model.url,
      env: { ...env, realPath },
      approval: { writePaths: ["**"] },
      approve: ({ reason }) => void asked.push(reason),
    });
    const ends = dataOf(await collect(session.run("go")), "TOOL_CALL_END");
    return ends.map(({ is_error: failed }) => failed);
  };
  // Without it, every path leads where it says.
  assert.deepEqual(await run(undefined), [false, false]);
  assert.deepEqual(await run(async (path) => leads(path)), [true, false]);
  assert.deepEqual(await run(async () => "no/absolute/path"), [true, true]);
  assert.equal(asked[0], "it writes /repo/out/x, which leads to /etc/x, outside of write_paths");
  assert.match(asked[1], /^it is not known where it writes: realPath\(.*\) returned no absolute path$/);
});

for (const [name, exec] of [
  ["never settles", () => new Promise(() => {})],
  ["throws when it is stopped", (_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))],
  ["ends late", (_, { signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve({ exitCode: 143 })))],
]) {
  test(`the time limit holds for a command that ${name}`, { timeout: 60_000 }, async (t) => {
    const model = await serveModel(t, { steps: [callStep("shell", { command: "wait", timeout_ms: 50 }), { text: "Done." }] });
    let fired = 0;
    const env = mapEnvironment(new Map(), (command, options) => {
      options.signal.addEventListener("abort", () => (fired += 1));
      options.onOutput("stdout", "so far\n");
      return exec(command, options);
    });
    const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
    const events = await collect(session.run("go"));
    const [end] = dataOf(events, "TOOL_CALL_END");
    assert.match(end.output ?? end.error, /so far/);
    assert.match(end.output ?? end.error, /timed out after 50ms/i);
    assert.equal(fired, 1);
    assert.equal(end.exit_code, 124);
    assert.equal(dataOf(events, "PROCESSING_END")[0].reason, "completed");
  });
}

test("an environment says what is not allowed there, and warns", async (t) => {
  const model = await serveModel(t, { steps: [{ text: "Done." }] });
  const env = {
    ...mapEnvironment(new Map([["/repo/a", "x"]]), async () => ({ exitCode: 0 })),
    bounds: "Commands have no network.",
    warning: "the container is shared with others",
  };
  const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
  const events = await collect(session.run("go"));
  assert.deepEqual(dataOf(events, "WARNING"), [{ code: "environment", message: "the container is shared with others" }]);
  assert.match(JSON.stringify((await model.requests())[0].body), /Limits: Commands have no network\./);
});

const NONSENSE = [
  ["list", 5, callStep("grep", { pattern: "x" }), /the environment's list\(.*\) must return a list of \{path, isDir\}, and returned something else/],
  ["list", [null], callStep("grep", { pattern: "x" }), /the environment's list\(.*\) must return a list of \{path, isDir\}/],
  ["glob", undefined, callStep("glob", { pattern: "*" }), /the environment's glob\(\*\) must return a list of \{path, isDir\}/],
  ["grep", { matches: [{}] }, callStep("grep", { pattern: "x" }), /the environment's grep must return \{matches\}, a list of \{path, line, text\}/],
  ["stat", undefined, callStep("grep", { pattern: "x", path: "a" }), /the environment's stat\(.*a\) must return \{isDir, size\}/],
  ["exec", undefined, callStep("shell", { command: "make" }), /the environment's exec must return \{exitCode\}, and returned something else/],
  ["exec", {}, callStep("shell", { command: "make" }), /exec returned no integer `exitCode`/],
  ["read", 5, callStep("read_file", { file_path: "/repo/a" }), /read\(\/repo\/a\) returned neither a Uint8Array nor a string/],
  // Over a worker it is the message that cannot carry them.
  ["read", moved(), callStep("read_file", { file_path: "/repo/a" }), /read\(\/repo\/a\) returned bytes whose buffer was moved or made smaller|the result cannot be sent to the worker: An ArrayBuffer is detached/],
];

for (const [method, value, step, message] of NONSENSE) {
  test(`an environment whose ${method} returns ${JSON.stringify(value)} is reported by the call`, async (t) => {
    const model = await serveModel(t, { steps: [step, { text: "Done." }] });
    const env = { ...mapEnvironment(new Map([["/repo/a", "x"]]), async () => ({ exitCode: 0 })), [method]: async () => value };
    const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
    const events = await collect(session.run("go"));
    const [end] = dataOf(events, "TOOL_CALL_END");
    assert.equal(end.is_error, true);
    assert.match(end.error ?? end.output, message);
    assert.equal(dataOf(events, "PROCESSING_END")[0].reason, "completed");
  });
}

for (const [facts, problem] of [
  [{ workingDirectory: "rel" }, "workingDirectory must be an absolute path"],
  [{ workingDirectory: 5 }, "workingDirectory must be an absolute path"],
  [{ workingDirectory: "C:\\x", platform: "linux" }, "workingDirectory must be an absolute path"],
  [{ platform: "beos" }, "platform must be one of darwin, linux, windows, wasm"],
  [{ osVersion: 5 }, "osVersion must be a string"],
  [{ bounds: 5 }, "bounds must be a string"],
  [{ warning: ["x"] }, "warning must be a string"],
  [{ utcOffsetMinutes: NaN }, "utcOffsetMinutes must be a number of minutes"],
  [{ readOnly: "files" }, 'readOnly must be true, false or "commands"'],
  [{ readOnly: null }, 'readOnly must be true, false or "commands"'],
  [{ log: [] }, "log must be a function"],
]) {
  test(`an environment is refused: ${problem} (${JSON.stringify(facts)})`, async () => {
    const env = { ...mapEnvironment(new Map(), async () => ({ exitCode: 0 })), ...facts };
    await assert.rejects(createSession({ apiKey: KEY, env }), (error) => {
      assert.ok(error instanceof SessionError, error.stack);
      assert.deepEqual([error.kind, error.message], ["invalid_input", `createSession: options.env.${problem}`]);
      return true;
    });
  });
}

test("an object that lacks a method is refused, by the names of what it lacks", async () => {
  const env = mapEnvironment(new Map(), async () => ({ exitCode: 0 }));
  for (const [lacks, named] of [[["exec"], "exec"], [["rename", "makeDir"], "rename, makeDir"]]) {
    const partial = { ...env, ...Object.fromEntries(lacks.map((name) => [name, undefined])) };
    await assert.rejects(createSession({ apiKey: KEY, env: partial }), {
      name: "SessionError",
      kind: "invalid_input",
      message: `createSession: options.env lacks ${named}; one that cannot do it throws an EnvironmentError of kind "unsupported"`,
    });
  }
});

test("sessions that are given the same object share it", async (t) => {
  const env = mapEnvironment(new Map(), async () => ({ exitCode: 0 }));
  const model = await serveModel(t, { steps: [{ text: "One." }, { text: "Two." }] });
  const sessions = await Promise.all([1, 2].map(() => createSession({ apiKey: KEY, baseUrl: model.url, env })));
  for (const session of sessions) await collect(session.run("go"));
  for (const session of sessions) await session.close();
  assert.deepEqual(env.life, ["initialize", "cleanup"]);
});

for (const readOnly of [true, "commands"]) {
  test(`an object may ask to be read-only (${readOnly}) and logged`, async (t) => {
    const model = await serveModel(t, {
      steps: [
        callStep("read_file", { file_path: "/repo/a.txt" }),
        callStep("write_file", { file_path: "/repo/b.txt", content: "secret" }),
        callStep("shell", { command: "make" }),
        { text: "Done." },
      ],
    });
    const lines = [];
    const env = {
      ...mapEnvironment(new Map([["/repo/a.txt", "private\n"]]), async () => ({ exitCode: 0, durationMs: 7 })),
      readOnly,
      log(line) {
        lines.push([this.workingDirectory, line]);
      },
    };
    const session = await createSession({ apiKey: KEY, baseUrl: model.url, env });
    const events = await collect(session.run("go"));
    await session.close();
    const [read, write, shell] = dataOf(events, "TOOL_CALL_END");
    assert.match(read.output, /private/);
    assert.match(write.error, /write operations are disabled in read-only mode/);
    if (readOnly === true) assert.match(shell.error, /commands are disabled in read-only mode/);
    else assert.equal(shell.is_error, false);
    assert.deepEqual([...env.files.keys()], ["/repo/a.txt"]);
    assert.deepEqual(env.life, ["initialize", "cleanup"]);
    const said = lines.map(([directory, line]) => (assert.equal(directory, "/repo"), line));
    assert.deepEqual([said[0], said.at(-1)], ["initialize", "cleanup: ok"]);
    const last = { true: "exec: commands are disabled in read-only mode", commands: "exit: 0 in 7 ms" }[readOnly];
    for (const line of ["read /repo/a.txt", "read /repo/a.txt: ok", "write /repo/b.txt (6 bytes)", "exec: make", last]) {
      assert.ok(said.includes(line), `${line}: ${said.join("; ")}`);
    }
    assert.ok(!said.some((line) => /secret|private/.test(line)), said.join("; "));
  });
}

test("a cleanup that never ends holds up no session for good", async () => {
  const env = { ...mapEnvironment(new Map(), async () => ({ exitCode: 0 })), cleanup: () => new Promise(() => {}) };
  const session = await createSession({ script: { steps: [{ text: "done" }] }, env });
  await collect(session.run("go"));
  const started = performance.now();
  await session.close();
  assert.ok(performance.now() - started > 9_000);
  assert.equal(session.state, "CLOSED");
});
