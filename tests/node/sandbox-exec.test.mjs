// How MemoryEnvironment runs commands: virtual time, order, randomness,
// pristine state.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryEnvironment } from "./face.mjs";

/** Guards against a hang; nothing here sleeps in real time. */
const GUARD = { timeout: 10_000 };

test("timeout ends a sleep in virtual time", GUARD, async () => {
  const env = await MemoryEnvironment.create();
  const { stdout, exitCode } = await env.exec("timeout 1 sleep 5; echo $?; sleep 100; echo slept");
  assert.deepEqual([stdout, exitCode], ["124\nslept\n", 0]);
});

test("a command that passes its time limit lasted exactly that long", GUARD, async () => {
  const env = await MemoryEnvironment.create();
  const result = await env.exec("echo before; sleep 60; echo after", { timeoutMs: 2_000 });
  assert.deepEqual(result, {
    exitCode: 124, stdout: "before\n", stderr: "", timedOut: true, cancelled: false, durationMs: 2_000,
  });
});

test("parallel commands end in the order of their virtual sleeps", GUARD, async () => {
  const env = await MemoryEnvironment.create();
  const ended = [];
  await Promise.all([30, 10, 20].map((s) => env.exec(`sleep ${s}`).then(() => ended.push(s))));
  assert.deepEqual(ended, [10, 20, 30]);
});

test("$RANDOM differs between environments and between commands", GUARD, async () => {
  const draws = [];
  for (let round = 0; round < 2; round += 1) {
    const env = await MemoryEnvironment.create();
    for (let i = 0; i < 2; i += 1) draws.push((await env.exec("echo $RANDOM $RANDOM $RANDOM")).stdout);
  }
  assert.equal(new Set(draws).size, draws.length);
});

test("every command starts pristine", GUARD, async () => {
  const env = await MemoryEnvironment.create();
  await env.exec("x=1; export y=2; f() { echo f; }; set -f; alias g=f; cd /; umask 077");
  const { stdout } = await env.exec('echo "[$x$y]" "$PWD"; type f >/dev/null 2>&1 || echo none; umask; echo $-');
  assert.match(stdout, /^\[\] \/workspace\nnone\n0022\n[^f]*\n$/);
});

test("a command does not see the history of another", GUARD, async () => {
  const env = await MemoryEnvironment.create();
  await env.exec("echo one");
  assert.equal((await env.exec("echo two; history")).stdout, "two\n");
});

test("environment variables are those of a process", GUARD, async () => {
  const env = await MemoryEnvironment.create();
  const { stdout } = await env.exec('echo "$GOOD"; env | grep -a odd | sort; env | grep -c lost', {
    env: { GOOD: "yes", "A B": "odd", "1X": "odd", "": "lost", "C=D": "lost", NUL: "lost\0" },
  });
  assert.equal(stdout, "yes\n1X=odd\nA B=odd\n0\n");
});

test("a command with a NUL byte is refused", GUARD, async () => {
  const env = await MemoryEnvironment.create();
  await assert.rejects(env.exec("echo a\0b"), ({ kind, message }) => {
    assert.deepEqual([kind, message], ["invalid_input", "the command `echo a\\0b` holds a NUL byte"]);
    return true;
  });
});

test("$RANDOM and $SECONDS start anew without a trace of how", GUARD, async () => {
  const env = await MemoryEnvironment.create();
  await env.exec("sleep 5");
  const { stdout } = await env.exec('echo $SECONDS $LINENO "$_"; set | grep -c "^RANDOM=[0-9]* SECONDS"');
  assert.match(stdout, /^0 1 [^=]*\n0\n$/);
  assert.match((await env.exec("&& x")).stderr, /^bash: -c: line 1: syntax error near unexpected token `&&'\n$/);
});

test("going back to a snapshot repeats the randomness", GUARD, async () => {
  const env = await MemoryEnvironment.create();
  const snapshot = await env.snapshot();
  const draw = async () => (await env.exec("echo $RANDOM $RANDOM")).stdout;
  const first = await draw();
  await env.restore(snapshot);
  assert.equal(await draw(), first);
});

test("timeout ends a lent program, and the line goes on", GUARD, async () => {
  const ended = [];
  const forever = ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => (ended.push("aborted"), reject(signal.reason))));
  const env = await MemoryEnvironment.create({ programs: { forever, brief: async () => ({ exitCode: 3 }) } });
  for (const [command, stdout] of [
    ["timeout 0.2 forever; echo $?", "124\n"],
    ["timeout 60 sh -c 'timeout 0.2 forever; echo $?'; echo $?", "124\n0\n"],
    ["timeout 0.2 sh -c 'timeout 60 forever'; echo $?", "124\n"],
    ["timeout 0.1 true; timeout 0.3 forever; echo $?; timeout 60 brief; echo $?", "124\n3\n"],
  ]) {
    assert.equal((await env.exec(command, { timeoutMs: 50_000 })).stdout, stdout, command);
  }
  assert.deepEqual(ended, ["aborted", "aborted", "aborted", "aborted"]);
  env.dispose();
});

test("lent programs work at every place of a pipe", GUARD, async () => {
  const programs = { up: async ({ stdin }) => ({ exitCode: 0, stdout: new TextDecoder().decode(stdin).toUpperCase() }) };
  const env = await MemoryEnvironment.create({ programs });
  const { stdout } = await env.exec('echo a | up | sed s/A/b/ | up; echo "$(echo c | up)"');
  assert.equal(stdout, "B\nC\n");
});
