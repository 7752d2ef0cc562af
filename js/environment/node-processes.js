// Commands of the machine below Node: a shell in a session without a terminal,
// whose processes end together. The rules are those of the native host
// (host/src/local/system/exec.rs).

import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";

/** @import { AbortSignal } from "../platform.js" */

/** Between SIGTERM and SIGKILL, in ms. */
const POLITE_MS = 2_000;
/** How often a wait without a notification looks again, in ms. */
const TICK_MS = 20;
/** Ticks of silence after which a pipe that somebody else holds is closed. */
const SILENT_TICKS = 5;
/** Longest stay with a pipe that somebody else keeps filling, in ms. */
const NOISY_MS = 500;
/** What shells call a command that its limit ended. */
const TIMED_OUT = 124;

const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGILL: 4, SIGTRAP: 5, SIGABRT: 6, SIGBUS: 7, SIGFPE: 8, SIGKILL: 9, SIGSEGV: 11, SIGPIPE: 13, SIGALRM: 14, SIGTERM: 15 };

/** Leaders of commands that run. They end with this process, if that ends by itself. @type {Set<number>} */
const running = new Set();
let watched = false;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Runs a command to its end. It has ended when its shell has: what that left in
 * the background lives on, and its output is read until it is silent.
 * @param {string} shell @param {string} command
 * @param {{cwd: string, env: Record<string, string>, timeoutMs: number, signal?: AbortSignal,
 *   onOutput: (stream: "stdout" | "stderr", data: Uint8Array) => void}} options
 * @returns {Promise<{exitCode: number, timedOut: boolean, durationMs: number}>} rejects with the system's error
 *   if it could not be started
 */
export async function run(shell, command, { cwd, env, timeoutMs, signal, onOutput }) {
  if (signal?.aborted) return { exitCode: 128 + SIGNALS.SIGTERM, timedOut: false, durationMs: 0 };
  const started = performance.now();
  const child = spawn(shell, ["-c", command], { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, name) => resolve(code ?? 128 + (SIGNALS[name] ?? 0)));
  });
  const pipes = new Pipes(child, onOutput);
  if (child.pid !== undefined) enter(child.pid);
  let timedOut = false;
  let ending;
  const stop = () => (ending ??= end(child.pid, ended));
  const timer = timeoutMs > 0 && setTimeout(() => {
    timedOut = true;
    stop();
  }, Math.min(timeoutMs, 2 ** 31 - 1));
  signal?.addEventListener("abort", stop, { once: true });
  try {
    const exitCode = await ended;
    clearTimeout(timer);
    await ending;
    await pipes.drained();
    return { exitCode: timedOut ? TIMED_OUT : exitCode, timedOut, durationMs: Math.round(performance.now() - started) };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    running.delete(child.pid);
    pipes.close();
  }
}

/** What a command prints. */
class Pipes {
  #streams;
  #open = 2;
  #chunks = 0;

  constructor({ stdout, stderr }, onOutput) {
    this.#streams = [stdout, stderr].filter(Boolean);
    this.#open = this.#streams.length;
    for (const [name, stream] of Object.entries({ stdout, stderr })) {
      stream?.on("data", (data) => {
        this.#chunks += 1;
        onOutput(name, data);
      });
      stream?.once("close", () => (this.#open -= 1));
      stream?.on("error", () => {});
    }
  }

  /** Resolves when all is read, or when who still holds the pipes is silent. */
  async drained() {
    const longest = performance.now() + NOISY_MS;
    let silent = 0;
    let seen = this.#chunks;
    while (this.#open > 0 && silent < SILENT_TICKS && performance.now() < longest) {
      await pause(TICK_MS);
      silent = this.#chunks === seen ? silent + 1 : 0;
      seen = this.#chunks;
    }
  }

  close() {
    for (const stream of this.#streams) stream.destroy();
  }
}

/** Ends a command and all that it started: politely, then by force. */
async function end(leader, ended) {
  if (leader === undefined) return;
  const family = new Family(leader);
  family.signal("SIGTERM");
  let isOver = false;
  void ended.then(() => (isOver = true), () => (isOver = true));
  const patience = performance.now() + POLITE_MS;
  await pause(TICK_MS / 4);
  while (performance.now() < patience && !(isOver && !family.lives())) await pause(TICK_MS);
  // Also after a polite end: somebody may have been born since the last look.
  family.signal("SIGKILL");
}

/**
 * Everybody who comes from a leader: its group, its session, and their children.
 * The latter two are known on Linux only; `timeout` and `set -m` make groups.
 */
class Family {
  #leader;
  /** By number: when it started, which tells apart two that had the same. @type {Map<number, string>} */
  #known = new Map();

  constructor(leader) {
    this.#leader = leader;
  }

  signal(name) {
    // Listed first: killing a parent hides the children that left.
    this.#look();
    for (const pid of [-this.#leader, ...this.#known.keys()]) send(pid, name);
  }

  lives() {
    this.#look();
    return this.#known.size > 0 || send(-this.#leader, 0);
  }

  #look() {
    let strangers = processes();
    const family = new Map();
    for (;;) {
      const isOurs = ({ pid, parent, session, started }) =>
        pid === this.#leader || session === this.#leader || this.#known.get(pid) === started || family.has(parent);
      const found = strangers.filter(isOurs);
      if (found.length === 0) break;
      for (const { pid, started } of found) family.set(pid, started);
      strangers = strangers.filter(({ pid }) => !family.has(pid));
    }
    this.#known = family;
  }
}

/** Whether there was somebody to get it. */
function send(pid, name) {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/** What runs, from `/proc/PID/stat`: `PID (NAME) STATE PARENT GROUP SESSION …`, started in field 22. */
function processes() {
  if (process.platform !== "linux") return [];
  const found = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (/[ZXx]/.test(fields[0])) continue;
      found.push({ pid: Number(name), parent: Number(fields[1]), session: Number(fields[3]), started: fields[19] });
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

function enter(pid) {
  running.add(pid);
  if (watched) return;
  watched = true;
  process.on("exit", () => {
    for (const leader of running) new Family(leader).signal("SIGKILL");
  });
}
