// MemoryEnvironment from JavaScript: files, commands, stopping, snapshots.

import assert from "node:assert/strict";
import { test } from "node:test";

import { EnvironmentError, MemoryEnvironment, createSession } from "./face.mjs";
import { collect, dataOf, serveModel } from "./support.mjs";

test("files of all sizes and kinds come in as they are", async () => {
  const large = new Uint8Array(100_000).fill(7);
  const files = {
    "empty.bin": new Uint8Array(),
    "small.bin": Uint8Array.of(0, 255, 128),
    "part.bin": large.subarray(99_990),
    "text.txt": "grün\n",
    "large.bin": large,
    "dir/edge.bin": large.subarray(0, 65_536),
    "dir/over.bin": large.subarray(0, 65_537),
    ["__proto__"]: Uint8Array.of(1),
  };
  const given = await MemoryEnvironment.create({ files });
  const env = await MemoryEnvironment.create();
  await env.importFiles(files);
  for (const environment of [given, env]) {
    for (const [path, content] of Object.entries(files)) {
      const expected = typeof content === "string" ? new TextEncoder().encode(content) : content;
      assert.deepEqual(await environment.readBytes(path), expected, path);
    }
    assert.equal((await environment.list(".", { depth: 2 })).filter(({ isDir }) => !isDir).length, 8);
    await environment.dispose();
  }
});

test("files go in and come out", async () => {
  const env = await MemoryEnvironment.create({ files: { "src/a.txt": "ä\n", "b.bin": new Uint8Array([0, 255]) } });
  assert.equal(await env.readText("src/a.txt"), "ä\n");
  assert.deepEqual(await env.readBytes("/workspace/b.bin"), new Uint8Array([0, 255]));
  await env.write("deep/er/c.txt", "c");
  assert.deepEqual(
    (await env.list(".", { depth: 9 })).filter(({ isDir }) => !isDir).map(({ path, size }) => [path, size]),
    [["b.bin", 2], ["deep/er/c.txt", 1], ["src/a.txt", 3]],
  );
  await env.rename("b.bin", "d.bin");
  await env.remove("deep");
  await env.makeDir("empty");
  assert.deepEqual((await env.list()).map(({ path }) => path), ["d.bin", "empty", "src"]);
  assert.equal((await env.stat("src")).isDir, true);
  assert.equal(await env.exists("b.bin"), false);
  await assert.rejects(env.readText("b.bin"), (error) => {
    assert.ok(error instanceof EnvironmentError);
    assert.equal(error.kind, "not_found");
    assert.match(error.message, /b\.bin/);
    return true;
  });
});

test("tar goes out and in", async () => {
  const one = await MemoryEnvironment.create({ files: { "a/b.txt": "b", "c.txt": "c" } });
  const two = await MemoryEnvironment.create();
  await two.importTar(await one.exportTar());
  assert.equal(await two.readText("a/b.txt"), "b");
  assert.ok(Buffer.from(await two.exportTar()).equals(Buffer.from(await one.exportTar())));
  await assert.rejects(two.importTar(new TextEncoder().encode("x".repeat(2000))), EnvironmentError);
  await assert.rejects(two.importFiles({ "../evil": "" }), EnvironmentError);
});

test("a program that the sandbox does not have says so", async () => {
  const env = await MemoryEnvironment.create();
  for (const name of ["curl", "git", "http", "scp", "sftp", "ssh", "wget"]) {
    const { exitCode, stdout, stderr } = await env.exec(`${name} get x`);
    assert.deepEqual([exitCode, stdout], [127, ""], name);
    assert.match(stderr, new RegExp(`^${name}: the sandbox has no ${name}, so '${name} get' did nothing; [a-z]`));
  }
});

test("a document that leads out of the sandbox's repository is not read", async (t) => {
  const env = await MemoryEnvironment.create({
    files: { ".git/HEAD": "ref: refs/heads/main\n", "docs/a.md": "the rules" },
  });
  await env.exec("echo 'the secret' > /tmp/secret; ln -s /tmp/secret AGENTS.md; ln -s docs/a.md CLAUDE.md");
  const model = await serveModel(t, { steps: [{ text: "Done." }] });
  const session = await createSession({ apiKey: "sk-test-0000", baseUrl: model.url, env });
  const events = await collect(session.run("go"));
  const [warning] = dataOf(events, "WARNING");
  assert.match(warning.message, /^\/workspace\/AGENTS\.md is left out .* link out of \/workspace to \/tmp\/secret;/);
  const [request] = await model.requests();
  assert.ok(!JSON.stringify(request).includes("the secret"));
  assert.ok(JSON.stringify(request).includes("the rules"));
});

test("empty directories go out and in, whoever made them", async () => {
  const one = await MemoryEnvironment.create();
  await one.makeDir("mine");
  await one.exec("mkdir -p theirs/inner");
  const two = await MemoryEnvironment.create();
  await two.importTar(await one.exportTar());
  const listed = await two.list(".", { depth: 9 });
  assert.deepEqual(listed.map(({ path, isDir }) => [path, isDir]), [["mine", true], ["theirs", true], ["theirs/inner", true]]);
});

test("a command streams its output and reports its end", async () => {
  const env = await MemoryEnvironment.create({ files: { "a.txt": "one\ntwo\n" } });
  const pieces = [];
  const { stdout, ...result } = await env.exec('wc -l < a.txt; echo "$WHO" >&2; pwd; exit 3', {
    env: { WHO: "me" },
    cwd: "../workspace",
    onOutput: (stream, data) => pieces.push([stream, new TextDecoder().decode(data)]),
  });
  delete result.durationMs;
  assert.deepEqual(result, { exitCode: 3, stderr: "me\n", timedOut: false, cancelled: false });
  assert.match(stdout, /^ *2\n\/workspace\n$/);
  const written = (name) => pieces.filter(([stream]) => stream === name).map(([, text]) => text).join("");
  assert.deepEqual([written("stdout"), written("stderr")], [stdout, "me\n"]);
});

test("a callback that throws ends its command, and only that", async () => {
  const env = await MemoryEnvironment.create();
  const onOutput = () => {
    throw new Error("full");
  };
  await assert.rejects(env.exec("echo a; while :; do :; done", { onOutput }), /full/);
  assert.equal((await env.exec("echo b")).stdout, "b\n");
});

test("a sleep costs no time, a timeout is virtual", async () => {
  const env = await MemoryEnvironment.create();
  const start = performance.now();
  const slept = await env.exec("sleep 30; echo awake");
  assert.equal(slept.stdout, "awake\n");
  assert.ok(slept.durationMs >= 30_000);
  const late = await env.exec("sleep 30", { timeoutMs: 500 });
  assert.deepEqual([late.timedOut, late.exitCode], [true, 124]);
  assert.ok(performance.now() - start < 20_000);
});

test("a busy loop leaves the event loop alive and can be stopped", async (t) => {
  const env = await MemoryEnvironment.create();
  const stop = new AbortController();
  let ticks = 0;
  const timer = setInterval(() => (ticks += 1), 5);
  const running = env.exec("while :; do :; done", { signal: stop.signal });
  while (ticks < 20) await new Promise((resolve) => setTimeout(resolve, 5));
  const before = performance.now();
  stop.abort();
  const result = await running;
  t.diagnostic(`stopped after ${(performance.now() - before).toFixed(1)} ms`);
  clearInterval(timer);
  assert.equal(result.cancelled, true);
  assert.equal((await env.exec("echo on we go")).stdout, "on we go\n");
});

test("commands run side by side", async () => {
  const env = await MemoryEnvironment.create();
  const stop = new AbortController();
  const endless = env.exec("while :; do :; done", { signal: stop.signal });
  assert.equal((await env.exec("echo quick")).stdout, "quick\n");
  stop.abort();
  await endless;
});

test("a snapshot brings everything back", async () => {
  const env = await MemoryEnvironment.create({ files: { a: "1", b: "1" } });
  const snapshot = await env.snapshot();
  await env.exec("echo 2 > a; rm b; echo 3 > c");
  assert.deepEqual(await env.changesSince(snapshot), [
    { path: "/workspace/a", change: "changed" },
    { path: "/workspace/b", change: "removed" },
    { path: "/workspace/c", change: "added" },
  ]);
  await env.restore(snapshot);
  assert.deepEqual(await env.changesSince(snapshot), []);
  assert.deepEqual([await env.readText("a"), await env.exists("c")], ["1", false]);
});

test("arguments of the wrong type are refused and change nothing", async () => {
  const env = await MemoryEnvironment.create({ files: { keep: "precious" } });
  const wrong = [
    () => env.restore(undefined),
    () => env.restore({}),
    () => env.restore(99999),
    () => env.changesSince("x"),
    () => env.importTar(undefined),
    () => env.importTar(7),
    () => env.exec(undefined),
    () => env.readText(undefined),
    () => env.readText({}),
    () => env.write("a", undefined),
  ];
  for (const call of wrong) {
    await assert.rejects(call, (error) => error.kind !== "core", String(call));
    assert.equal(await env.readText("keep"), "precious", String(call));
  }
});

test("a lent program sees the files and changes them, also in a pipeline", async () => {
  const calls = [];
  const env = await MemoryEnvironment.create({
    files: { "in.txt": "hello\n" },
    programs: {
      shout: async ({ args, stdin, changes, cwd }) => {
        calls.push([args, cwd, changes.filter(({ type }) => type === "file").map(({ path }) => path)]);
        const text = new TextDecoder().decode(stdin).toUpperCase();
        return { exitCode: 0, stdout: text, changes: [{ path: `${cwd}/out.txt`, type: "file", content: text }] };
      },
      broken: async () => {
        throw new Error("it is broken");
      },
    },
  });
  const result = await env.exec("echo got: $(cat in.txt | shout -x | tr -d '\\n')");
  assert.equal(result.stdout, "got: HELLO\n");
  assert.equal(await env.readText("out.txt"), "HELLO\n");
  assert.deepEqual(calls, [[["-x"], "/workspace", ["/workspace/in.txt"]]]);
  const failed = await env.exec("broken");
  assert.equal(failed.exitCode, 126);
  assert.match(failed.stderr, /broken: it is broken/);
});

test("a lent program gets permission bits and may set them", async () => {
  const told = [];
  const env = await MemoryEnvironment.create({
    files: { "run.sh": "1" },
    programs: {
      move: async ({ changes, cwd }) => {
        const files = changes.filter(({ type }) => type === "file");
        told.push(files.map(({ path, mode }) => [path, mode.toString(8)]));
        const [{ content, mode }] = files;
        const file = { type: "file", content };
        return {
          exitCode: 0,
          changes: [{ path: `${cwd}/run.sh`, type: "removed" }, { path: `${cwd}/moved.sh`, ...file, mode }, { path: `${cwd}/plain`, ...file }],
        };
      },
    },
  });
  const { stdout, stderr } = await env.exec("chmod 750 run.sh; move; stat -c '%a %n' *");
  assert.deepEqual([stdout, stderr], ["750 moved.sh\n644 plain\n", ""]);
  assert.deepEqual(told, [[["/workspace/run.sh", "750"]]]);
});

test("what something else made of a file while a lent program ran is named", async () => {
  const env = await MemoryEnvironment.create({ files: { both: "1", mine: "1", theirs: "1" } });
  await env.program("slow", async ({ cwd }) => {
    await env.write("both", "theirs");
    await env.write("theirs", "theirs");
    const changed = (name) => ({ path: `${cwd}/${name}`, type: "file", content: "mine" });
    return { exitCode: 0, changes: [changed("both"), changed("mine")] };
  });
  const { exitCode, stdout, stderr } = await env.exec("slow; head both mine theirs");
  assert.deepEqual(
    [exitCode, stdout, stderr],
    [
      0,
      "==> both <==\nmine\n==> mine <==\nmine\n==> theirs <==\ntheirs",
      "slow: something else changed /workspace/both while it ran; what slow made of it has taken the place of that\n",
    ],
  );
});

test("a chmod while a lent program ran stays, where the program set no bits", async () => {
  const env = await MemoryEnvironment.create({ files: { a: "1", b: "1" } });
  await env.program("slow", async ({ changes }) => {
    await env.exec("chmod 755 a b");
    const files = changes.filter(({ type }) => type === "file").map((change) => ({ ...change, content: "2" }));
    return { exitCode: 0, changes: files.map((file) => (file.path.endsWith("b") ? { ...file, mode: 0o600 } : file)) };
  });
  const { stdout } = await env.exec("slow; stat -c '%a %n' a b; cat a b");
  assert.equal(stdout, "755 a\n600 b\n22");
});

/** What a lent program may not return: `[result, sentence]`. */
const RESULTS = [
  [undefined, "result must be an object, not nothing"],
  ["done", "result must be an object, not a string"],
  [{}, "result.exitCode must be a whole number from 0 to 255, not nothing"],
  [{ exitCode: "0" }, "result.exitCode must be a whole number from 0 to 255, not a string"],
  [{ exitCode: 999 }, "result.exitCode must be a whole number from 0 to 255, not a number"],
  [{ exitCode: -1 }, "result.exitCode must be a whole number from 0 to 255, not the number -1"],
  [{ exitCode: 0, stdout: 5 }, "result.stdout must be a string or a Uint8Array, not a number"],
  [{ exitCode: 0, stderr: ["a"] }, "result.stderr must be a string or a Uint8Array, not an array"],
  [{ exitCode: 0, changes: {} }, "result.changes must be an array, not an object"],
  [{ exitCode: 0, changes: [{ path: 1, type: "file", content: "" }] }, "result.changes[0].path must be a string, not a number"],
  [{ exitCode: 0, changes: [{ path: "/a", type: "pipe" }] }, "result.changes[0].type must be one of file, directory, link, removed, not a string"],
  [{ exitCode: 0, changes: [{ path: "/a", type: "link" }] }, "result.changes[0].target must be a string, not nothing"],
  [{ exitCode: 0, changes: [{ path: "/a", type: "file" }] }, "result.changes[0].content must be a string or a Uint8Array, not nothing"],
  [{ exitCode: 0, changes: [{ path: "/a", type: "file", content: "", mode: 0o10000 }] }, "result.changes[0].mode must be permission bits, 0 to 0o7777, not a number"],
  [{ exitCode: 0, files: "gone" }, "result.files must be one of kept, lost, missing, not a string"],
  [{ files: "missing" }, "result.files must not be missing where all files were given, as they are without `since`"],
];
for (const [result, sentence] of RESULTS) {
  test(`a lent program that returns ${JSON.stringify(result)} is refused`, async () => {
    const env = await MemoryEnvironment.create({ programs: { odd: async () => result } });
    const { exitCode, stdout, stderr } = await env.exec("odd");
    assert.deepEqual({ exitCode, stdout, stderr }, { exitCode: 126, stdout: "", stderr: `odd: what the program returned cannot be used: ${sentence}\n` });
  });
}

test("a lent program may leave out what it has nothing to say about", async () => {
  const env = await MemoryEnvironment.create({ programs: { brief: async () => ({ exitCode: 255, stdout: null, stderr: undefined, changes: null }) } });
  assert.equal((await env.exec("brief")).exitCode, 255);
});

for (const [command, stdout] of [
  ["talk; echo never; touch made", "before\n"],
  ["echo first; talk", "first\nbefore\n"],
  ["talk | cat; touch made", "before\n"],
  ["talk > out; touch made", ""],
  ["x=$(talk); echo never; touch made", ""],
]) {
  test(`what a lent program printed before it was cancelled comes out: ${command}`, { timeout: 30_000 }, async () => {
    const stop = new AbortController();
    const talk = ({ signal }) => {
      const ended = new Promise((resolve) => signal.addEventListener("abort", () => resolve({ exitCode: 143, stdout: "before\n", files: "lost" })));
      stop.abort();
      return ended;
    };
    const env = await MemoryEnvironment.create({ programs: { talk } });
    const result = await env.exec(command, { signal: stop.signal });
    assert.deepEqual(
      [result.cancelled, result.timedOut, result.exitCode, result.stdout, result.stderr, await env.exists("made")],
      [true, false, 143, stdout, "", false],
    );
    assert.equal((await env.exec("echo on we go")).stdout, "on we go\n");
  });
}

test("limits are options, and misspelt options are errors", async () => {
  const env = await MemoryEnvironment.create({ limits: { fileBytes: 10 } });
  await assert.rejects(env.write("big", "x".repeat(11)), (error) => error.kind === "too_large");
  await assert.rejects(MemoryEnvironment.create({ limitz: {} }), /limitz/);
});

test("an environment that was given up answers with a typed error", async () => {
  const env = await MemoryEnvironment.create();
  const running = assert.rejects(env.exec("while :; do :; done"), (error) => error.kind === "cancelled");
  await env.dispose();
  await running;
  await assert.rejects(env.exec("echo"), (error) => error.kind === "cancelled");
});

test("names with a backslash are names like others", async () => {
  const env = await MemoryEnvironment.create();
  const long = `${"d\\\\".repeat(60)}x`;
  await env.exec(`echo one > 'a\\b'; mkdir 'C:\\'; echo two > 'C:\\/tmp'; ln -s 'a\\b' 'l\\'; echo three > '${long}'`);
  const other = await MemoryEnvironment.create();
  await other.importTar(await env.exportTar());
  const expected = { "a\\b": "one\n", "C:\\/tmp": "two\n", "l\\": "one\n", [long]: "three\n" };
  for (const [path, content] of Object.entries(expected)) assert.equal(await other.readText(path), content, path);
  await other.exec(`rm 'a\\b'`);
  await assert.rejects(other.readText("a\\b"), { kind: "not_found" });
  await assert.rejects(env.write("a\0b", "x"), { kind: "invalid_input" });
  assert.equal(await env.readText("a\\b"), "one\n");
});

test("a snapshot that was freed is refused, and nothing else happens", async () => {
  const env = await MemoryEnvironment.create({ files: { a: "a" } });
  const snapshot = await env.snapshot();
  await snapshot.free();
  await assert.rejects(async () => env.restore(snapshot), EnvironmentError);
  await assert.rejects(async () => env.changesSince(snapshot), EnvironmentError);
  assert.equal(await env.readText("a"), "a");
});

for (const readOnly of [true, "commands"]) {
  test(`a sandbox may be read-only (${readOnly}) and logged`, async () => {
    const lines = [];
    const log = (line) => lines.push(line.replace(/\d+ ms$/, "… ms"));
    const env = await MemoryEnvironment.create({ files: { a: "private" }, readOnly, log });
    const refused = (call) => assert.rejects(call, (error) => error instanceof EnvironmentError && error.kind === "read_only");
    assert.equal(await env.readText("a"), "private");
    await refused(env.write("a", "secret"));
    const end = [];
    if (readOnly === true) {
      await refused(env.exec("echo x > b"));
      await refused(env.openShell({ onData: () => {} }));
      end.push("exec: commands are disabled in read-only mode");
    } else {
      // A guard, no boundary.
      await env.exec("echo x > b");
      assert.equal((await env.exec("cat b")).stdout, "x\n");
      await (await env.openShell({ onData: () => {} })).close();
      end.push("exit: 0 in … ms", "exec: cat b", "exit: 0 in … ms");
    }
    assert.deepEqual(lines, [
      ...["read a", "read a: ok"],
      ...["write a (6 bytes)", "write a (6 bytes): write operations are disabled in read-only mode"],
      ...["exec: echo x > b", ...end],
    ]);
    // Bulk calls are not of the agent.
    await env.importFiles({ c: "c" });
    assert.equal(await env.readText("c"), "c");
  });
}
