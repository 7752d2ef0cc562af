// Runs one subject in the page. `run.mjs` calls these through the window.

import { createSession } from "/js/worker.js";

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

window.measure = async (name) => {
  const [init, sandbox] = await timed(subjects[name]);
  const [first, said] = await timed(() => sandbox.exec("echo hi"));
  if (said !== "hi\n") throw new Error(`${name}: echo said ${JSON.stringify(said)}`);
  const files = project();
  const bytes = Object.values(files).reduce((sum, content) => sum + content.length, 0);
  const [imported] = await timed(() => sandbox.importFiles(files));
  const times = [];
  for (let turn = 0; turn < REPEATS; turn += 1) {
    const [time, found] = await timed(() => sandbox.exec("grep -rn needle ."));
    const lines = found.split("\n").length - 1;
    if (lines !== FILES / 10) throw new Error(`${name}: grep found ${lines} lines`);
    times.push(time);
  }
  return { init, first, imported, bytes, grepFirst: times[0], grep: median(times) };
};

/** Plays one answer of the model at `baseUrl` in a worker; the number of its deltas. */
window.stream = async (baseUrl) => {
  const session = await createSession({ provider: "anthropic", model: "m", apiKey: "key", baseUrl });
  let deltas = 0;
  for await (const event of session.run("go")) deltas += event.kind === "ASSISTANT_TEXT_DELTA" ? 1 : 0;
  await session.close();
  return deltas;
};

document.title = "ready";
