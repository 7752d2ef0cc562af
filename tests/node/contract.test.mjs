// The contract of an execution environment (tests/contract/README.md) over the
// environments of the web face: the sandbox, a JavaScript object of the user's,
// which tools reach through effects, and the machine below Node.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, realpathSync } from "node:fs";
import { mkdtemp, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { attach } from "../../js/environment/custom-environment.js";
import { MemoryEnvironment, NodeEnvironment } from "../../js/node.js";
import { EnvironmentError } from "../../js/shared/errors.js";
import { bytes, expand } from "./play.mjs";

const CLAUSES = new URL("../contract/", import.meta.url);
const WORK = "/workspace";

/**
 * Where a clause is checked: the environment, wrapped, what has its files, and
 * how that ends.
 */
const SUBJECTS = {
  async sandbox(files, wrapping) {
    const sandbox = await MemoryEnvironment.create({ workingDirectory: WORK, files, ...wrapping });
    return { env: sandbox, directory: WORK, disk: diskOf(sandbox), end: () => sandbox.dispose() };
  },
  async custom(files, wrapping) {
    const sandbox = await MemoryEnvironment.create({ workingDirectory: WORK, files });
    return { env: { ...forwarding(sandbox), ...wrapping }, directory: WORK, disk: diskOf(sandbox), end: () => sandbox.dispose() };
  },
  async node(files, wrapping) {
    const root = await mkdtemp(join(realpathSync(tmpdir()), "hermitcrab-contract-"));
    const plain = new NodeEnvironment({ root });
    for (const [path, content] of Object.entries(files)) {
      await plain.write(path, content);
      // As in a sandbox, whose clock stands still meanwhile.
      await utimes(join(root, path), 0, 1_000_000);
    }
    const disk = { list: async () => (await plain.list(".", { depth: 1000 })).entries, read: (path) => plain.read(path) };
    return { env: new NodeEnvironment({ root, ...wrapping }), directory: root, disk, end: () => rm(root, { recursive: true }) };
  },
};

const diskOf = (sandbox) => ({ list: () => sandbox.list(".", { depth: 1000 }), read: (path) => sandbox.readBytes(path) });

/** What is around the environment, by the name that clauses have for it. */
const WRAPPINGS = {
  none: () => ({}),
  read_only: () => ({ readOnly: true }),
  read_only_with_commands: () => ({ readOnly: "commands" }),
  logging: (log) => ({ log }),
};

/** A JavaScript object with the calls of an environment, all but the searches. */
function forwarding(sandbox) {
  return {
    workingDirectory: WORK,
    platform: "linux",
    async read(path, { maxBytes }) {
      const content = await sandbox.readBytes(path);
      if (content.length <= maxBytes) return content;
      throw new EnvironmentError("too_large", `${path} has more than ${maxBytes} bytes`);
    },
    async readPart(path, { offset, maxBytes }) {
      return (await sandbox.readBytes(path)).subarray(offset, offset + maxBytes);
    },
    write: (path, content) => sandbox.write(path, content),
    stat: (path) => sandbox.stat(path),
    list: (path, { depth }) => sandbox.list(path, { depth }),
    remove: (path) => sandbox.remove(path),
    rename: (from, to) => sandbox.rename(from, to),
    makeDir: (path) => sandbox.makeDir(path),
    async realPath(path) {
      const { runtime, number } = await attach(sandbox);
      const { value } = await runtime.job((core) => core.startCall(number, { call: "real_path", path }));
      return value;
    },
    exec: (command, options) => sandbox.exec(command, options),
  };
}

for (const file of readdirSync(CLAUSES).filter((file) => file.endsWith(".json")).sort()) {
  const clause = expand(JSON.parse(readFileSync(new URL(file, CLAUSES), "utf8")));
  for (const [subject, make] of Object.entries(SUBJECTS)) {
    // Real time is not to be had in the sandbox.
    if (clause.needs?.includes("local") && subject !== "node") continue;
    test(`${subject}::${file.slice(0, -".json".length)}`, () => check(clause, make));
  }
}

async function check({ wrap = "none", files = {}, steps, after = {}, log = [] }, make) {
  const contents = (entries) =>
    Object.fromEntries(Object.entries(entries).map(([path, content]) => [path, content === null ? null : bytes(content)]));
  const before = contents(files);
  const lines = [];
  const wrapping = WRAPPINGS[wrap]((line) => lines.push(line));
  const { env, directory, disk, end } = await make(before, wrapping);
  try {
    const place = { ...(await attach(env)), directory };
    for (const [index, step] of steps.entries()) {
      await checkStep(place, step, `step ${index + 1}`);
    }
    // A duration differs from run to run.
    const said = lines.map((line) => placeless(place, line));
    const open = log.map((line, index) => (line.endsWith("…") && said[index]?.startsWith(line.slice(0, -1)) ? said[index] : line));
    assert.deepEqual(said, open);
    const expected = Object.entries({ ...before, ...contents(after) })
      .filter(([, content]) => content !== null)
      .map(([path, content]) => [path, Buffer.from(content).toString()]);
    const found = [];
    for (const { path, isDir } of await disk.list()) {
      if (!isDir) found.push([path, Buffer.from(await disk.read(path)).toString()]);
    }
    assert.deepEqual(Object.fromEntries(found), Object.fromEntries(expected));
  } finally {
    await end();
  }
}

async function checkStep(place, step, name) {
  if (step.parallel) return Promise.all(step.parallel.map((each) => checkStep(place, each, name)));
  const work = step.exec === undefined ? makeCall(place, step) : run(place, step);
  if (step.error) {
    const error = await work.then(
      (reply) => assert.fail(`${name} should fail, answered ${JSON.stringify(reply)}`),
      (error) => error,
    );
    assert.equal(error.kind, step.error.kind, `${name}: ${error.message}`);
    assert.ok(error.message.includes(placed(place, step.error.names ?? "")), `${name}: ${error.message}`);
    return;
  }
  const found = await work;
  if (step.exec === undefined) {
    assert.deepEqual(found, step.reply, name);
    return;
  }
  const { status: differs, stdout = "", stderr = "" } = step;
  const status = { exit_code: 0, timed_out: false, cancelled: false, ...differs };
  // How a cancelled command's exit code comes about is the environment's affair.
  if (status.cancelled) status.exit_code = found.exit_code;
  assert.deepEqual(found, { stdout, stderr, ...status }, name);
}

/** `<dir>` in a clause. */
function placed({ directory }, text) {
  return text.replaceAll("<dir>", directory);
}

function placeless({ directory }, text) {
  return text.replaceAll(directory, "<dir>");
}

async function run(place, step) {
  const { runtime, number } = place;
  const request = {
    command: placed(place, step.exec),
    timeout_ms: step.timeout_ms ?? 20_000,
    working_dir: step.cwd === undefined ? null : placed(place, step.cwd),
    env: step.env ?? {},
  };
  const stop = new AbortController();
  const output = { stdout: [], stderr: [] };
  const { exit_code, timed_out, cancelled } = await runtime.job((core) => core.startExec(number, request), {
    signal: stop.signal,
    onOutput: (stream, data) => {
      output[stream].push(Buffer.from(data));
      if (step.cancel_on_output) stop.abort();
    },
  });
  const text = (pieces) => placeless(place, Buffer.concat(pieces).toString());
  return { stdout: text(output.stdout), stderr: text(output.stderr), exit_code, timed_out, cancelled };
}

async function makeCall(place, step) {
  const { runtime, number } = place;
  const { content, ...call } = toCall(place, step);
  return simple(place, await runtime.job((core) => core.startCall(number, call, content)));
}

function toCall(place, step) {
  const path = placed(place, step.path ?? "");
  const max_results = step.max_results ?? 0;
  if (step.read !== undefined) {
    return { call: "read", path: placed(place, step.read), max_bytes: step.max_bytes ?? Number.MAX_SAFE_INTEGER };
  }
  if (step.read_part !== undefined) {
    return { call: "read_part", path: placed(place, step.read_part), offset: step.offset, max_bytes: step.max_bytes };
  }
  if (step.write !== undefined) return { call: "write", path: placed(place, step.write), content: bytes(step.content) };
  if (step.list !== undefined) return { call: "list", path: placed(place, step.list), depth: step.depth ?? 1 };
  if (step.rename !== undefined) return { call: "rename", from: placed(place, step.rename), to: placed(place, step.to) };
  for (const call of ["stat", "remove", "make_dir", "real_path"]) {
    if (step[call] !== undefined) return { call, path: placed(place, step[call]) };
  }
  if (step.grep !== undefined) {
    const { glob_filter = null, case_insensitive = false } = step;
    return { call: "grep", pattern: step.grep, path, glob_filter, case_insensitive, max_results };
  }
  if (step.glob !== undefined) return { call: "glob", pattern: step.glob, path, max_results };
  throw new Error(`the step asks for nothing: ${JSON.stringify(step)}`);
}

/** A reply as the contract writes it: times left out, bytes as text. */
function simple(place, reply) {
  if (reply instanceof Uint8Array) {
    const text = Buffer.from(reply).toString();
    return Buffer.from(text).equals(reply) ? { text } : { bytes: [...reply] };
  }
  const { reply: kind, value } = reply;
  switch (kind) {
    case "done":
      return "done";
    case "path":
      return { path: placeless(place, value) };
    case "stat": {
      const dated = value.modified_ms !== null;
      return value.is_dir ? { dir: dated } : { size: value.size, dated };
    }
    case "entries": {
      const entries = value.entries.map(({ path, is_dir: isDir }) => placeless(place, path) + (isDir ? "/" : ""));
      return { entries, truncated: value.truncated };
    }
    default: {
      const matches = value.matches.map(({ path, line, text }) => placeless(place, `${path}:${line}:${text}`));
      return { matches, truncated: value.truncated };
    }
  }
}
