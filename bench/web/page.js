// Runs one subject in the page. `run.mjs` calls these through the window.

import { subjects } from "./subjects.js";

const FILES = 1_000;
const REPEATS = 11;

/** `work` and how long it took, in ms. */
async function timed(work) {
  const start = performance.now();
  const value = await work();
  return [performance.now() - start, value];
}

/** 1,000 files in 50 directories, 5 MB; every tenth has a line with `needle`. */
function project() {
  const words = ["let", "value", "return", "const", "index", "match", "while", "buffer"];
  const encoder = new TextEncoder();
  const files = {};
  let seed = 7;
  const word = () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return words[(seed >>> 16) % words.length];
  };
  for (let number = 0; number < FILES; number += 1) {
    const lines = [];
    let size = 0;
    while (size < 5_000) {
      const line = Array.from({ length: 8 }, word).join(" ");
      lines.push(line);
      size += line.length + 1;
    }
    if (number % 10 === 0) lines[50] = "here is the needle";
    files[`dir${number % 50}/file${number}.txt`] = encoder.encode(`${lines.join("\n")}\n`);
  }
  return files;
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

/** How long a visitor looks at a page before doing anything in it, ms. */
const LOOKS = 3_000;

/** What a visitor may do in some seconds of work. */
const WORK = [
  "grep -rn needle . | sort | uniq -c | head -5",
  "find . -name '*7.txt' | head -20 | xargs wc -l",
  "sed -e s/let/var/g dir1/file1.txt | awk '{print $2, $1}' | tr a-z A-Z | tail -3",
  "for i in $(seq 1 100); do x=$((i*2)); [ $x -gt 5 ] && echo ${x#1}; done | tail -3",
  "cat dir2/*.txt | cut -c1-5 | sort | uniq | wc -l",
  "f() { local a=$1; echo ${a//x/y}; }; f xxa; case $PWD in /w*) echo in;; esac",
  "printf '%s %d\\n' a 3; ls -la dir1 | tail -2; cp dir1/file1.txt f2; mv f2 f3; rm f3",
  "echo '{\"a\": [1, 2, {\"b\": null}]}' | jq -c '.a | length'",
  "sha256sum dir3/file3.txt; diff dir1/file1.txt dir2/file2.txt | wc -l",
];
const TURNS = 100;

/** Reads the module, as far as there is one, and does nothing with it. */
async function bytesOf(core) {
  if (core) await (await fetch(core)).arrayBuffer();
}

/**
 * Loads a subject and measures it, in ms.
 * @param {string} name
 * @param {{rest?: number, looks?: boolean, works?: boolean}} [visitor] ms until the first
 *   command, whether to look at the page after it, and whether to work for a while at the end
 */
window.measure = async (name, { rest = 0, looks = false, works = false } = {}) => {
  const { script, core } = subjects[name];
  const [loaded, module] = await timed(script);
  const [init, sandbox] = await timed(() => subjects[name].start(module));
  if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
  const [first, said] = await timed(() => sandbox.exec("echo hi"));
  if (said !== "hi\n") throw new Error(`${name}: echo said ${JSON.stringify(said)}`);
  await sandbox.warmUp?.();
  if (looks) await new Promise((resolve) => setTimeout(resolve, LOOKS));
  const [bytes] = await timed(() => bytesOf(core));
  const files = project();
  const [imported] = await timed(() => sandbox.importFiles(files));
  const times = [];
  for (let turn = 0; turn < REPEATS; turn += 1) {
    const [time, found] = await timed(() => sandbox.exec("grep -rn needle ."));
    const lines = found.split("\n").length - 1;
    if (lines !== FILES / 10) throw new Error(`${name}: grep found ${lines} lines`);
    times.push(time);
  }
  for (let turn = 0; works && turn < TURNS; turn += 1) {
    for (const command of WORK) await sandbox.exec(command);
  }
  return { script: loaded, init, first, bytes, imported, grepFirst: times[0], grep: median(times) };
};

/** Plays one answer of the model at `baseUrl` in a worker; the number of its deltas. */
window.stream = async (baseUrl) => {
  const { createSession } = await import("/bundle/worker.js");
  const session = await createSession({ provider: "anthropic", model: "m", apiKey: "key", baseUrl });
  let deltas = 0;
  for await (const event of session.run("go")) deltas += event.kind === "ASSISTANT_TEXT_DELTA" ? 1 : 0;
  await session.close();
  return deltas;
};

document.title = "ready";
