// apply_patch against codex: the same patches on the same files, by the tool
// (examples/apply_patch.rs) and by the program that the npm package
// @openai/codex installs.
//
//     cargo build --release --workspace --example apply_patch
//     node --test tests/peers/apply-patch.mjs
//
// HERMITCRAB_APPLY_PATCH   our program; else the one in target/release/examples
// HERMITCRAB_CODEX         codex; else the package is installed below target/peers
// HERMITCRAB_PATCHES       how many patches are generated
// HERMITCRAB_SEED          the first seed; the one of a failure plays it alone
//
// Both must take or refuse a patch alike, and what both take must leave the
// same files and name the same changes. Two things differ on purpose: a patch
// that we refuse changes nothing, and the cases of tests/apply_patch/cases.json
// that have a `codex` sentence, which must then be true.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it, test } from "node:test";
import { fileURLToPath } from "node:url";

/** The release whose behaviour is the measure; others may differ. */
const VERSION = "0.169.0";
const PATCHES = Number(process.env.HERMITCRAB_PATCHES ?? 600);
const SEED = Number(process.env.HERMITCRAB_SEED ?? 1);
/** Patches at a time: both programs mostly wait for the disk. */
const CONCURRENCY = 4;
/** Seconds after which a program hangs. */
const TIME_LIMIT_S = 60;

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const ours = process.env.HERMITCRAB_APPLY_PATCH ?? join(ROOT, "target/release/examples/apply_patch");
const { program: codex, sentence } = findCodex();
const cases = JSON.parse(readFileSync(join(ROOT, "tests/apply_patch/cases.json"), "utf8"));

/** The installed codex, or why there is none. */
function findCodex() {
  if (process.env.HERMITCRAB_CODEX) return { program: process.env.HERMITCRAB_CODEX };
  const home = join(ROOT, `target/peers/codex-${VERSION}`);
  const vendor = join(home, "node_modules/@openai");
  if (!existsSync(vendor)) {
    const flags = ["--no-save", "--no-audit", "--no-fund", "--prefix", home];
    const npm = spawnSync("npm", ["install", ...flags, `@openai/codex@${VERSION}`], { encoding: "utf8" });
    if (npm.status !== 0) return { sentence: `@openai/codex does not install here: ${npm.stderr ?? npm.error}` };
  }
  const isProgram = (path) => /[/\\]vendor[/\\].*[/\\]codex(\.exe)?$/.test(path);
  const path = readdirSync(vendor, { recursive: true }).find(isProgram);
  return path ? { program: join(vendor, path) } : { sentence: "@openai/codex has no program for this machine" };
}

/**
 * @typedef {{ok: boolean, changes: string, said: string, files: Record<string, string>}} Result
 *   `changes`: the lines `A path` of a success; `files`: contents, latin1
 */

/** Runs one program over `files`. @returns {Promise<Result>} */
async function play(files, run) {
  // Room above the working directory, for paths that leave it.
  const room = await mkdtemp(join(tmpdir(), "apply-patch-"));
  const cwd = join(room, "work");
  try {
    await mkdir(cwd);
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(cwd, path)), { recursive: true });
      await writeFile(join(cwd, path), typeof content === "string" ? content : Buffer.from(content.bytes));
    }
    const before = await contents(room);
    const { code, stdout, stderr } = await run(cwd, room);
    assert.ok(code === 0 || code === 1, `exit code ${code}: ${stderr}`);
    const changes = code === 0 ? stdout.trim().split("\n").slice(1).join("\n") : "";
    const after = await contents(room);
    return { ok: code === 0, changes, said: stderr.replaceAll(cwd, "."), files: after, before };
  } finally {
    await rm(room, { recursive: true });
  }
}

async function contents(root) {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  const read = files.sort().map(async (path) => [path.slice(root.length + 1), await readFile(path, "latin1")]);
  return Object.fromEntries(await Promise.all(read));
}

function execute(program, args, { cwd, home, input }) {
  return new Promise((resolve, reject) => {
    const env = { PATH: process.env.PATH, HOME: home, CODEX_HOME: join(home, "codex") };
    const child = spawn(program, args, { cwd, env, timeout: TIME_LIMIT_S * 1000 });
    const output = { stdout: "", stderr: "" };
    for (const pipe of ["stdout", "stderr"]) child[pipe].setEncoding("utf8").on("data", (text) => (output[pipe] += text));
    child.on("error", reject).on("close", (code) => resolve({ code, ...output }));
    child.stdin.on("error", () => {}).end(input);
  });
}

/** The same patch by both. */
async function playBoth({ files, patch }) {
  const theirs = play(files, async (cwd, room) => {
    const result = await execute(codex, ["--codex-run-as-apply-patch", patch], { cwd, home: room, input: "" });
    // What codex keeps for itself is no part of the tree.
    await rm(join(room, "codex"), { recursive: true, force: true });
    return result;
  });
  const own = play(files, (cwd, room) => execute(ours, [cwd], { cwd, home: room, input: patch }));
  return { theirs: await theirs, own: await own };
}

/** What is different, or nothing. Codex `ends` a last line that lacks its newline; ours stays open. */
function difference({ theirs, own }, { ends = false } = {}) {
  if (theirs.ok !== own.ok) return own.ok ? "codex refuses it" : "codex takes it";
  if (!own.ok) return undefined;
  const isOpen = Object.values(own.before).some((text) => /[^\r\n]$/.test(text));
  const endings = ends && isOpen ? ["", "\n", "\r\n", "\r"] : [""];
  const isSame = (path) => endings.some((ending) => theirs.files[path] === `${own.files[path]}${ending}`);
  const paths = Object.keys(own.files);
  if (`${Object.keys(theirs.files)}` !== `${paths}` || !paths.every(isSame)) return "the files differ";
  if (theirs.changes !== own.changes) return "the named changes differ";
}

function assertAtomic({ own }) {
  if (!own.ok) assert.deepEqual(own.files, own.before, "a refused patch changed files");
}

const show = (value) => JSON.stringify(value, null, 1);

const options = { concurrency: CONCURRENCY, skip: sentence ?? false };

describe("the cases in both", options, () => {
  for (const [name, { files, patch, raw, fail, codex: differs }] of Object.entries(cases)) {
    const lines = raw ?? ["*** Begin Patch", ...patch, "*** End Patch"];
    // No disk fails on demand, and /work is not where this test works.
    if (fail || lines.some((line) => line.includes(": /work/"))) continue;
    it(name, async () => {
      const both = await playBoth({ files, patch: lines.join("\n") });
      assertAtomic(both);
      const found = difference(both);
      if (differs) assert.ok(found, `codex no longer "${differs}"\n${show(both)}`);
      else assert.equal(found, undefined, show(both));
    });
  }
});

test("generated patches in both", { skip: sentence ?? false }, async (t) => {
  const counts = { taken: 0, refused: 0 };
  let seed = SEED;
  const end = SEED + (process.env.HERMITCRAB_SEED ? 1 : PATCHES);
  const worker = async () => {
    while (seed < end) {
      const own = seed++;
      const generated = generate(own);
      const both = await playBoth(generated);
      assertAtomic(both);
      // Case no_final_newline.
      const found = difference(both, { ends: true });
      assert.equal(found, undefined, `HERMITCRAB_SEED=${own}\n${generated.patch}\n${show({ ...generated, ...both })}`);
      counts[both.own.ok ? "taken" : "refused"]++;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  t.diagnostic(`codex ${VERSION}: ${counts.taken} patches taken, ${counts.refused} refused, by both alike`);
  // The generator must not go blind.
  if (!process.env.HERMITCRAB_SEED) assert.ok(counts.taken > PATCHES / 4 && counts.refused > PATCHES / 20, show(counts));
});

/** Files and a patch for them, mostly a fitting one. */
function generate(seed) {
  const random = numbers(seed);
  const below = (end) => Math.floor(random() * end);
  const of = (choices) => choices[below(choices.length)];
  const chance = (percent) => random() * 100 < percent;

  let serial = 0;
  const unique = chance(50);
  const newLine = () => {
    if (unique || chance(30)) return `${of(["", "  ", "\t"])}line ${++serial}${of(["", "", " ", ";"])}`;
    return of(["", "", "a", " a", "a ", "\ta", "b", "a-b", "a\u2014b", '"q"', "\u201cq\u201d", "a\u00a0b", "x y", "-", "+", "@@"]);
  };
  const lines = (most) => Array.from({ length: below(most + 1) }, newLine);

  const files = {};
  /** Lines that the generator believes a path to hold. */
  const known = {};
  for (const path of ["a", "b", "d/c"]) {
    if (!chance(80)) continue;
    known[path] = lines(of([3, 8, 20]));
    const first = of(["\n", "\n", "\n", "\r\n", "\r\n", "\r"]);
    const mixed = chance(10);
    const text = known[path].map((line) => line + (mixed ? of(["\n", "\r\n", "\r"]) : first)).join("");
    files[path] = chance(20) ? text.replace(/(\r\n|\n|\r)$/, "") : text;
  }

  /** A line as a model recalls it. */
  const recalled = (line) => {
    if (!chance(12)) return line;
    return of([
      () => line.trimEnd(),
      () => `${line} `,
      () => `${line}\t`,
      () => line.trim(),
      () => `  ${line}`,
      () => line.replaceAll("-", "\u2013"),
      () => line.replaceAll("\u2014", "-"),
      () => line.replaceAll('"', "\u201d"),
      () => line.replaceAll("\u00a0", " "),
      () => (chance(30) ? `${line}!` : line),
    ])();
  };

  const update = (path) => {
    const old = known[path] ?? lines(4);
    const patch = [];
    const result = [];
    let at = 0;
    const hunks = 1 + below(3);
    for (let hunk = 0; hunk < hunks; hunk++) {
      const start = Math.min(old.length, at + below(Math.max(1, Math.ceil((old.length - at) / hunks))));
      result.push(...old.slice(at, start));
      at = start;
      const anchor = start > 0 && chance(25) ? ` ${recalled(old[below(start)])}` : "";
      if (hunk > 0 || anchor || chance(80)) patch.push(`@@${anchor}`);
      const body = [];
      const count = 1 + below(5);
      for (let index = 0; index < count; index++) {
        const kind = of(["context", "context", "context", "remove", "remove", "add", "add"]);
        if (kind === "add" || at >= old.length) {
          const line = newLine();
          body.push(`+${line}`);
          result.push(line);
        } else if (kind === "remove") {
          body.push(`-${recalled(old[at++])}`);
        } else {
          const line = recalled(old[at]);
          body.push(line === "" && chance(50) ? "" : ` ${line}`);
          result.push(old[at++]);
        }
      }
      if (chance(8)) body.push(of(["", "", " ", "-", "+"]));
      if (chance(3)) body.splice(below(body.length + 1), 0, of(["bad", "\tbad", "*** Frob", "@@bad", "*** Add File:", "***"]));
      patch.push(...body);
      // Of empty old lines codex forgets the end of the file (case end_of_file_surplus).
      const pins = body.some((line) => !["", " ", "-"].includes(line) && !line.startsWith("+"));
      if (pins && chance(at >= old.length ? 30 : 3)) patch.push("*** End of File");
    }
    if (chance(3)) patch.push(...(patch.at(-1)?.startsWith("@@") ? [] : ["@@"]));
    if (chance(5) && patch.length > 6) patch.reverse();
    result.push(...old.slice(at));
    return { patch, result };
  };

  const paths = ["a", "b", "d/c", "n", "e/f/n", "./a", "d/../b"];
  const normal = (path) => ({ "./a": "a", "d/../b": "b" })[path] ?? path;
  const patch = [];
  const sections = of([1, 1, 1, 2, 3]);
  for (let section = 0; section < sections; section++) {
    const existing = paths.filter((path) => known[normal(path)]);
    const path = existing.length && chance(93) ? of(existing) : of(paths);
    const own = normal(path);
    switch (of(["update", "update", "update", "update", "update", "add", "delete", "move"])) {
      case "add": {
        const target = chance(70) ? of(["n", "e/f/n", "m"]) : path;
        known[target] = lines(4);
        patch.push(`*** Add File: ${target}`, ...known[target].map((line) => `+${line}`));
        if (chance(5)) patch.push(of(["", "bad", " "]));
        break;
      }
      case "delete":
        patch.push(`*** Delete File: ${path}`);
        delete known[own];
        break;
      case "move": {
        // Not to itself: codex loses the file.
        const target = of(["a", "b", "n", "g/h", "e/f/n"].filter((target) => target !== own));
        const { patch: hunks, result } = update(own);
        patch.push(`*** Update File: ${path}`, `*** Move to: ${target}`, ...hunks);
        delete known[own];
        known[target] = result;
        break;
      }
      default: {
        const { patch: hunks, result } = update(own);
        patch.push(`*** Update File: ${path}${chance(5) ? " " : ""}`, ...hunks);
        known[own] = result;
      }
    }
  }
  const framed = ["*** Begin Patch", ...patch, "*** End Patch"];
  if (chance(5)) framed.splice(0, 1, ` ${framed[0]}\t`);
  if (chance(5)) {
    framed.unshift(of(["<<'EOF'", "<<EOF", '<<"EOF"']));
    framed.push(chance(90) ? "EOF" : "EOT");
  }
  if (chance(2)) {
    // Not an old line, or one surplus line might be all that *** End of File has.
    const lost = below(framed.length);
    if (!/^[ -]/.test(framed[lost])) framed.splice(lost, 1);
  }
  // Several @@ lines nest, which codex refuses (case anchor_nests).
  const anchors = (line) => line !== undefined && /^@@(\s|$)/.test(line);
  const lone = framed.filter((line, index) => !anchors(line) || !anchors(framed[index - 1]));
  const alike = lone.map((line, index) => (anchors(line) && isHintOfOurs(line, lone.slice(index + 1)) ? "@@" : line));
  return { files, patch: alike.join(chance(8) ? "\r\n" : "\n") };
}

/**
 * Whether a hunk under this `@@` line goes elsewhere in codex: one of only added
 * lines (case insert_behind_anchor), and one that shows the line again
 * (case anchor_is_shown).
 */
function isHintOfOurs(anchor, following) {
  const plain = (line) => line.replace(/[\u2010-\u2015]/g, "-").replace(/[\u201c\u201d]/g, '"').replace(/\u00a0/g, " ").trim();
  const old = following.find((line) => !line.startsWith("+")) ?? "";
  const isOld = old === "" || /^[ -]/.test(old);
  return !isOld || plain(old.slice(1)) === plain(anchor.slice(2));
}

/** Numbers from 0 to 1, the same for a seed in every run (mulberry32). */
function numbers(seed) {
  let state = Math.imul(seed, 0x9e3779b1);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
