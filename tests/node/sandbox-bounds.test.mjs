// What keeps a command of MemoryEnvironment from holding the core: its own
// time passes about as fast as real time, and what never pauses is ended.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryEnvironment, createSession } from "../../js/node.js";
import { collect, dataOf } from "./support.mjs";

/** Guards against a hang, not a measurement: half a second of each takes about as long. */
const GUARD = { timeout: 30_000 };

for (const command of [
  "yes",
  "yes > /dev/null",
  "yes | tr y x > /dev/null",
  "while :; do :; done",
  "while true; do true | true; done",
  "while :; do x=$(echo a | cat); done",
  "for ((;;)); do ((i++)); done",
  "f() { echo x > f.txt; }; while :; do f; done",
  "awk 'BEGIN { while (1) i++ }'",
]) {
  test(`half a second of \`${command}\` ends`, GUARD, async () => {
    const env = await MemoryEnvironment.create();
    const result = await env.exec(`echo before; ${command}`, { timeoutMs: 500 });
    assert.deepEqual(
      [result.exitCode, result.timedOut, result.cancelled, result.durationMs, result.stdout.slice(0, 7)],
      [124, true, false, 500, "before\n"],
    );
  });
}

for (const command of [
  "yes | head -c 400000000 | wc -c",
  "yes | sort",
  "yes | tac | tail -1",
  "yes | base64 | tail -1",
  "seq 1 1000000000 | wc -l",
  "seq 1 1000000000 > numbers",
  "x=$(yes)",
  "while :; do cat /dev/zero; done | tail -c 1",
]) {
  test(`\`${command}\` ends in its time, whatever it pumps`, { timeout: 60_000 }, async () => {
    const env = await MemoryEnvironment.create();
    const { exitCode, timedOut } = await env.exec(command, { timeoutMs: 100 });
    assert.deepEqual([exitCode, timedOut], [124, true]);
    assert.equal((await env.exec("echo on we go")).stdout, "on we go\n");
  });
}

for (const command of ["yes | sort", "x=$(yes | head -c 300000000); echo ${#x}", "yes abc | tac"]) {
  test(`\`${command}\` ends where its memory ends`, { timeout: 120_000 }, async () => {
    const env = await MemoryEnvironment.create();
    await env.write("kept.txt", "kept");
    for (let run = 0; run < 2; run++) {
      const { exitCode, timedOut, stderr } = await env.exec(command, { timeoutMs: 3_600_000 });
      assert.deepEqual([exitCode, timedOut], [137, false], stderr);
      assert.match(stderr, /^hermitcrab: the command was ended: it held more memory than/);
    }
    assert.equal((await env.exec("cat kept.txt")).stdout, "kept");
  });
}

for (const command of [
  `jq -n '${"[".repeat(5000)}'`,
  `find . ${"\\( ".repeat(5000)}`,
  `awk 'BEGIN { print ${"(".repeat(5000)} }'`,
]) {
  test(`\`${command.slice(0, 20)}…\` is refused`, GUARD, async () => {
    const env = await MemoryEnvironment.create();
    const { exitCode, stderr } = await env.exec(command);
    assert.notEqual(exitCode, 0);
    assert.match(stderr, /^hermitcrab: (jq|find|awk): brackets nested more than 200 deep are not supported in the sandbox\n/);
  });
}

/** Runs `command` and stops it from a timer as soon as the core lets one through. */
async function stopped(env, command) {
  const stop = new AbortController();
  const running = env.exec(command, { signal: stop.signal, timeoutMs: 3_600_000 });
  setTimeout(() => stop.abort(), 1);
  return running;
}

for (const command of ["yes > /dev/null", "yes", "while :; do :; done"]) {
  test(`\`${command}\` pauses, so that it can be cancelled`, GUARD, async () => {
    const env = await MemoryEnvironment.create();
    const { exitCode, timedOut, cancelled } = await stopped(env, command);
    assert.deepEqual([exitCode, timedOut, cancelled], [143, false, true]);
  });
}

const DEAF = "echo before; awk 'BEGIN { while (1) i++ }'";

test("the work bound ends a builtin that never pauses", { timeout: 120_000 }, async () => {
  const env = await MemoryEnvironment.create();
  const result = await env.exec(DEAF, { timeoutMs: 3_600_000 });
  assert.deepEqual([result.exitCode, result.timedOut, result.cancelled, result.stdout], [124, true, false, "before\n"]);
  assert.match(result.stderr, /^hermitcrab: .*more than 1600000 units of work without a pause\n$/);
  assert.equal((await env.exec("echo on we go")).stdout, "on we go\n");
});

test("the work bound is a limit that can be set", GUARD, async () => {
  const env = await MemoryEnvironment.create({ limits: { workBound: 50_000 } });
  const { stderr, durationMs } = await env.exec(DEAF, { timeoutMs: 3_600_000 });
  assert.match(stderr, /more than 50000 units/);
  assert.ok(durationMs < 100, `${durationMs} ms`);
});

test("work with pauses is not bounded", GUARD, async () => {
  const env = await MemoryEnvironment.create({ limits: { workBound: 50_000 } });
  const { stdout } = await env.exec("for i in $(seq 20000); do :; done; seq 100000 | tail -1", { timeoutMs: 60_000 });
  assert.equal(stdout, "100000\n");
});

test("a cancellation asked for during deaf work is one, whatever ended the work", GUARD, async () => {
  const env = await MemoryEnvironment.create({ limits: { workBound: 200_000 } });
  const stop = new AbortController();
  // The output comes out when the work does: the first moment at which a stop can be heard.
  const onOutput = () => stop.abort();
  const { exitCode, timedOut, cancelled, stdout } = await env.exec(DEAF, { signal: stop.signal, onOutput, timeoutMs: 3_600_000 });
  assert.deepEqual([exitCode, timedOut, cancelled, stdout], [143, false, true, "before\n"]);
});

test("a cancellation asked for during deaf work that ends by itself is one, too", { timeout: 120_000 }, async () => {
  const env = await MemoryEnvironment.create();
  const stop = new AbortController();
  const onOutput = () => stop.abort();
  const command = "echo before; awk 'BEGIN { while (i < 1000000) i++ }'; cat /dev/zero";
  const { exitCode, timedOut, cancelled } = await env.exec(command, { signal: stop.signal, onOutput, timeoutMs: 3_600_000 });
  assert.deepEqual([exitCode, timedOut, cancelled], [143, false, true]);
});

test("an awk loop that does nothing is ended by its work bound", { timeout: 120_000 }, async () => {
  const env = await MemoryEnvironment.create();
  const { exitCode, stderr } = await env.exec("awk 'BEGIN { while (1) {} }'");
  assert.equal(exitCode, 124);
  assert.match(stderr, /more than 1600000 units of work without a pause/);
});

test("head reads a pipe once, however many lines", GUARD, async () => {
  const env = await MemoryEnvironment.create();
  const { stdout } = await env.exec(
    "yes | head -3; seq 400000 | head -n 300000 | tail -1; yes abc | head -n 300000 | sort -u; yes | head -n 2K | wc -l",
  );
  assert.equal(stdout, "y\ny\ny\n300000\nabc\n2048\n");
});

// Addresses without memory behind them: nobody writes there.
const HUGE = new Uint8Array(2 ** 32 - 1);

/** What takes bytes into the core. */
const TAKERS = {
  write: (env) => env.write("huge", HUGE),
  importFiles: (env) => env.importFiles({ huge: HUGE }),
  importTar: (env) => env.importTar(HUGE),
  replaceTree: (env) => env.replaceTree(HUGE),
  applyDelta: (env) => env.applyDelta({ archive: HUGE, removed: [] }),
};
for (const [name, take] of Object.entries(TAKERS)) {
  test(`${name} refuses what does not fit the memory of the core, which goes on`, GUARD, async () => {
    const env = await MemoryEnvironment.create({ files: { kept: "here" } });
    await assert.rejects(take(env), { name: "EnvironmentError", kind: "too_large" });
    assert.equal((await env.exec("cat kept")).stdout, "here");
    await env.dispose();
  });
}

test("files that are too many bytes together are refused before they take memory", GUARD, async () => {
  const env = await MemoryEnvironment.create();
  const piece = new Uint8Array(1 << 20);
  const files = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`f${index}`, piece]));
  await assert.rejects(env.importFiles(files), {
    name: "EnvironmentError", kind: "too_large", message: "cannot take f512: the sandbox limit on bytes of all files is 536870912",
  });
  assert.equal((await env.exec("ls | wc -l")).stdout.trim(), "0");
  await env.dispose();
});

test("a lent program that prints more than fits the memory of the core fails, and nothing else", GUARD, async () => {
  const env = await MemoryEnvironment.create({ programs: { flood: async () => ({ exitCode: 0, stdout: HUGE }) } });
  const { exitCode, stderr } = await env.exec("flood");
  assert.deepEqual([exitCode, stderr], [126, "flood: stdout: 4294967295 bytes do not fit the memory of the core\n"]);
  assert.equal((await env.exec("echo on")).stdout, "on\n");
  await env.dispose();
});

// Half a minute of a fast machine: 4 GiB are looked through for keys.
test("a piece of a response that does not fit the memory of the core breaks that stream, and nothing else", { timeout: 600_000 }, async () => {
  const body = () => new ReadableStream({ pull: (controller) => controller.enqueue(HUGE) });
  const fetch = async () => new Response(body(), { headers: { "content-type": "text/event-stream" } });
  const session = await createSession({ apiKey: "sk-test-0000", fetch, retry: { maxRetries: 0 } });
  const errors = dataOf(await collect(session.run("go")), "ERROR");
  assert.equal(errors.length, 1);
  assert.match(errors[0].message, /4294967295 bytes do not fit the memory of the core/);
  await session.close();
});
