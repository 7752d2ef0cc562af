// NodeEnvironment beyond the contract (contract.test.mjs): what becomes of
// processes, what they inherit, and sessions that work on the disk.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { chmod, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { once } from "node:events";
import { setImmediate as immediate } from "node:timers/promises";

import { looksSecret, select } from "../../js/environment/node-variables.js";
import * as here from "../../js/node.js";
import * as worker from "../../js/worker-node.js";
import { callStep, collect, dataOf } from "./support.mjs";

const { EnvironmentError, NodeEnvironment } = here;

async function place(t, options) {
  const root = await mkdtemp(join(realpathSync(tmpdir()), "hermitcrab-node-"));
  t.after(() => rm(root, { recursive: true, force: true }));
  return { root, env: new NodeEnvironment({ root, ...options }) };
}

async function run(env, command, options = {}, onBegun = () => {}) {
  const output = { stdout: "", stderr: "" };
  const started = performance.now();
  const status = await env.exec(command, { ...options, onOutput: (stream, data) => {
    if (output[stream] === "") onBegun();
    output[stream] += data;
  } });
  return { ...output, ...status, took: performance.now() - started };
}

/** Whether a process with this mark in its arguments runs. */
const lives = (mark) => execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).split("\n").some((line) => line.includes(mark) && !/bash -c/.test(line));

const ENDS = [
  ["a command", "sleep 31.01", "31.01", 143],
  ["a group of its own", "timeout 60 sleep 31.02; true", "31.02", 143],
  ["one that left the session", "setsid sleep 31.03; true", "31.03", 143],
  ["one that hears no SIGTERM", "trap '' TERM; sleep 31.04; sleep 31.04", "31.04", 137],
];

for (const [what, command, mark, code] of ENDS) {
  for (const way of ["abort", "limit"]) {
    test(`${what} ends with all that it started, by ${way}`, { timeout: 20_000 }, async (t) => {
      const { env } = await place(t);
      const stop = new AbortController();
      const limit = way === "limit" ? { timeoutMs: 1_000 } : { signal: stop.signal };
      // Some time after it has begun, however long that takes.
      const onBegun = () => way === "abort" && setTimeout(() => stop.abort(), 300);
      const result = await run(env, `echo begun; ${command}`, limit, onBegun);
      assert.equal(result.stdout, "begun\n");
      assert.deepEqual([result.exitCode, result.timedOut], way === "limit" ? [124, true] : [code, false]);
      assert.ok(result.took < 15_000, `${result.took} ms`);
      assert.equal(lives(mark), false);
    });
  }
}

test("a command that was aborted before it began does not begin", async (t) => {
  const { env, root } = await place(t);
  const { exitCode } = await env.exec("touch ran", { signal: AbortSignal.abort(), onOutput() {} });
  assert.equal(exitCode, 143);
  assert.deepEqual(await readdir(root), []);
});

test("what a command leaves in the background lives on and holds nobody up", { timeout: 20_000 }, async (t) => {
  const { env } = await place(t);
  // Held up, it would run into the time limit of this test.
  const { stdout } = await run(env, "sleep 300 & echo $!");
  process.kill(Number(stdout), "SIGKILL");
});

test("commands end with their process", { timeout: 20_000 }, async (t) => {
  const { root } = await place(t);
  const program = `import { NodeEnvironment } from ${JSON.stringify(new URL("../../js/node.js", import.meta.url).href)};
    const onOutput = () => process.exit(0);
    new NodeEnvironment({ root: ${JSON.stringify(root)} }).exec("sleep 31.05 & echo begun; wait", { onOutput });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "inherit" });
  await once(child, "exit");
  // What is killed is listed until the system has come to it.
  while (lives("31.05")) await immediate();
});

test("commands inherit no secrets", async (t) => {
  const before = { ...process.env };
  t.after(() => {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  });
  Object.assign(process.env, { HC_TOKEN: "t", HC_HEADERS: "x-api-key: canary-key", HC_PLAIN: "p", DATABASE_URL: "postgres://app:hunter2@db/app" });
  const seen = async (options) => {
    const { env } = await place(t, options);
    const { stdout } = await run(env, "env");
    return ["HC_TOKEN", "HC_HEADERS", "HC_PLAIN", "DATABASE_URL", "PATH", "MY_TOKEN"].filter((name) => new RegExp(`^${name}=`, "m").test(stdout));
  };
  assert.deepEqual(await seen({}), ["HC_HEADERS", "HC_PLAIN", "PATH"]);
  assert.deepEqual(await seen({ secrets: ["canary-key"] }), ["HC_PLAIN", "PATH"]);
  assert.deepEqual(await seen({ inherit: "all" }), ["HC_TOKEN", "HC_HEADERS", "HC_PLAIN", "DATABASE_URL", "PATH"]);
  assert.deepEqual(await seen({ inherit: "core", variables: { MY_TOKEN: "given" } }), ["PATH", "MY_TOKEN"]);
});

/** The native host's own tables (host/src/local/secret.rs). */
test("variables look secret as they do to the native host", async () => {
  const source = await readFile(new URL("../../host/src/local/secret.rs", import.meta.url), "utf8");
  const tables = { names_of_secrets: true, values_with_secrets: true, what_commands_need: false };
  for (const [name, expected] of Object.entries(tables)) {
    const [, body] = new RegExp(`fn ${name}\\(\\)[^]*?&\\[([^]*?)\\]`).exec(source);
    const variables = [...body.matchAll(/"([^"]+)"/g)].map(([, variable]) => variable);
    assert.ok(variables.length > 5, name);
    for (const variable of variables) {
      const at = variable.indexOf("=");
      assert.equal(looksSecret(variable.slice(0, at), variable.slice(at + 1)), expected, variable);
    }
  }
  assert.deepEqual(select({ A: "1", B: "ab" }, "all", ["1", "a"]), { B: "ab" });
});

test("a file that is replaced keeps its permissions, its other names and its links", async (t) => {
  const { root, env } = await place(t);
  await env.write("run.sh", "old");
  await chmod(join(root, "run.sh"), 0o750);
  await env.write("run.sh", "new");
  assert.equal((await stat(join(root, "run.sh"))).mode & 0o777, 0o750);
  await run(env, "ln run.sh other; ln -s run.sh link");
  await env.write("link", "through");
  for (const name of ["run.sh", "other", "link"]) assert.equal(await readFile(join(root, name), "utf8"), "through");
  // Shorter than before.
  await env.write("other", "x");
  assert.equal(await readFile(join(root, "run.sh"), "utf8"), "x");
  assert.deepEqual((await readdir(root)).sort(), ["link", "other", "run.sh"]);
});

test("pipes, devices, wrong paths and wrong options are reported by name, and hang nobody", async (t) => {
  const { root, env } = await place(t);
  await run(env, "mkfifo pipe");
  await symlink("round", join(root, "round"));
  await writeFile(join(root, "file"), "");
  const refused = async (call, kind, message) => assert.rejects(call, (error) => {
    assert.ok(error instanceof EnvironmentError, error.stack);
    assert.deepEqual([error.kind, error.message], [kind, message]);
    return true;
  });
  await refused(env.read("pipe"), "invalid_input", "cannot read `pipe`: it is a named pipe, not a regular file");
  await refused(env.write("/dev/null", "x"), "invalid_input", "cannot write `/dev/null`: it is a device, not a regular file");
  await refused(env.read("gone\0x"), "invalid_input", "the path `gone\\0x` holds a NUL byte");
  await refused(env.exec("echo \0"), "invalid_input", "the command holds a NUL byte");
  await refused(env.exec(`: ${"x".repeat(4 << 20)}`), "too_large", "the command is too long for the system (4194306 characters); write it to a file and run that");
  await refused(env.stat("gone"), "not_found", "cannot look at `gone`: no such file or directory");
  for (const [options, kind, message] of [
    [{ root: join(root, "none") }, "not_found", `cannot work in \`${root}/none\`: no such file or directory`],
    [{ root: join(root, "file") }, "not_directory", /not a directory/],
    [{}, "invalid_input", "NodeEnvironment: options.root must be the path of a directory, not nothing"],
    [{ root, inherit: "some" }, "invalid_input", "NodeEnvironment: options.inherit must be one of filtered, all, core, none, not a string"],
    [{ root, cwd: "x" }, "invalid_input", /^NodeEnvironment: options.cwd is not known; there are root,/],
  ]) {
    assert.throws(() => new NodeEnvironment(options), { kind, message });
  }
});

for (const [face, api] of Object.entries({ here, worker })) {
  test(`${face}: a session works on the disk`, { timeout: 60_000 }, async (t) => {
    if (api === worker) t.after(() => worker.terminate());
    const { root } = await place(t);
    const lines = [];
    const env = new api.NodeEnvironment({ root, log: (line) => lines.push(line) });
    const steps = [
      callStep("write_file", { file_path: join(root, "src/a.txt"), content: "one\n" }),
      callStep("shell", { command: "cat src/a.txt; git init -q . 2>/dev/null; echo 'target' > .gitignore; mkdir target; echo one > target/b.txt" }),
      callStep("grep", { pattern: "one" }),
      callStep("glob", { pattern: "**/*.txt" }),
      { text: "Done." },
    ];
    const session = await api.createSession({ script: { steps }, env });
    const ends = dataOf(await collect(session.run("go")), "TOOL_CALL_END");
    assert.deepEqual(ends.map(({ is_error: failed }) => failed), [false, false, false, false], JSON.stringify(ends));
    assert.match(ends[1].output, /^one\n/);
    for (const { output } of ends.slice(2)) assert.ok(/src\/a\.txt/.test(output) && !/target/.test(output), output);
    await session.close();
    assert.ok(existsSync(join(root, "src/a.txt")));
    assert.ok(lines.includes("exit: 0 in ") || lines.some((line) => /^exit: 0 in \d+ ms$/.test(line)), lines.join("; "));
  });
}
