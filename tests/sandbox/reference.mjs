// The sandbox against the real bash of this machine: one command in both, and
// the table of known differences in docs/sandbox.md.
//
//     node tests/sandbox/reference.mjs NAME...             both results, as JSON
//     node tests/sandbox/reference.mjs document [--check]  writes the table
//
// `commands.json` is an array of {name, command, needs?, expect?}: `needs` names
// a tool without which real bash cannot run the command, and `expect` says how
// the sandbox does beside it:
//   absent or "same"   stdout and exit code equal those of real bash
//   {differs, stdout?, exit_code?}   a known difference and its reason; what is
//       given must equal what the sandbox did, and the sandbox must not have
//       become equal to bash by itself (then the entry is out of date)

import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const BASH = "/bin/bash";
/** Seconds after which real bash has hung: a busy machine starts eight at a time slowly. */
const TIME_LIMIT_S = 90;
/** What a command that is stopped ends with, as of `timeout`. */
const STOPPED = 124;

const PAGE = new URL("../../docs/sandbox.md", import.meta.url);

/** @type {{name: string, command: string, needs?: string, expect?: "same" | object}[]} */
export const commands = load("commands.json");
const tree = load("tree.json");

function load(name) {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));
}

/** Why this machine cannot say what bash does, or nothing. @returns {string | undefined} */
export function unfit() {
  const { error, stdout } = spawnSync(BASH, ["-c", "echo $BASH_VERSION; ls --version"], { encoding: "utf8" });
  if (error) return `there is no ${BASH} to compare with`;
  if (!/^5\./.test(stdout) || !/GNU/.test(stdout)) {
    return `${BASH} is not GNU bash 5 with the GNU tools, to which the sandbox is compared`;
  }
}

/** Whether a tool is installed. @param {string} tool */
export function isInstalled(tool) {
  return spawnSync(BASH, ["-c", `command -v ${tool}`], { env: { PATH } }).status === 0;
}

/**
 * Runs an entry of `commands` in both.
 * @returns {Promise<{bash: Result, sandbox: Result}>}
 * @typedef {{stdout: string, exit_code: number}} Result
 */
export async function runBoth({ command }) {
  const bash = inBash(command);
  const sandbox = await inSandbox(command);
  return { bash: await bash, sandbox };
}

/** What is wrong with the results of an entry, or nothing. @returns {string | undefined} */
export function verdict({ expect = "same" }, { bash, sandbox }) {
  const same = bash.stdout === sandbox.stdout && bash.exit_code === sandbox.exit_code;
  if (expect === "same") return same ? undefined : "differs from bash";
  if (same) return "is equal to bash by now; remove `expect`";
  if ((expect.exit_code ?? sandbox.exit_code) !== sandbox.exit_code) return "has another exit code than noted";
  if ((expect.stdout ?? sandbox.stdout) !== sandbox.stdout) return "has another output than noted";
}

async function inSandbox(command) {
  const { MemoryEnvironment } = await import("../../js/node.js");
  const environment = await MemoryEnvironment.create({ files: tree, utcOffsetMinutes: 0 });
  try {
    const { stdout, exitCode } = await environment.exec(command);
    return { stdout, exit_code: exitCode };
  } finally {
    await environment.dispose();
  }
}

const PATH = "/usr/local/bin:/usr/bin:/bin";

/** In a fresh copy of the tree, with nothing of this process's variables. */
async function inBash(command) {
  const home = await mkdtemp(join(tmpdir(), "hermitcrab-bash-"));
  const cwd = join(home, "workspace");
  try {
    for (const [path, content] of Object.entries(tree)) {
      await mkdir(dirname(join(cwd, path)), { recursive: true });
      await writeFile(join(cwd, path), content);
    }
    const env = { HOME: home, PATH, LC_ALL: "C.UTF-8", TERM: "dumb", TZ: "UTC" };
    for (const who of ["AUTHOR", "COMMITTER"]) {
      env[`GIT_${who}_NAME`] = "user";
      env[`GIT_${who}_EMAIL`] = "user@localhost";
    }
    // Not a timer of ours: the sandbox may keep this process busy. A session of
    // its own, by which `ended` finds all that it has started.
    const child = spawn("timeout", ["-k", "1", `${TIME_LIMIT_S}`, "bash", "-c", command], {
      detached: true,
      cwd,
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    return await ended(child);
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
  }
}

function ended(child) {
  return new Promise((resolve, reject) => {
    const output = [];
    child.stdout.on("data", (data) => output.push(data));
    child.once("error", reject);
    child.once("exit", (status) => {
      // A `timeout` in the command has its own process group and outlives ours.
      if (status === STOPPED) spawn("pkill", ["-KILL", "-s", `${child.pid}`]).once("error", reject);
    });
    // Not "exit": background jobs may still write.
    child.once("close", (status) => {
      resolve({ stdout: Buffer.concat(output).toString("utf8"), exit_code: status ?? STOPPED });
    });
  });
}

/** The page with the table and the numbers that follow from the data. @param {string} old */
function documented(old) {
  const reasons = new Map();
  const known = commands.filter(({ expect }) => expect?.differs);
  for (const { command, expect } of known) {
    reasons.set(expect.differs, [...(reasons.get(expect.differs) ?? []), command]);
  }
  const code = (text) => "`" + text.replaceAll("\n", "; ").replaceAll("|", "\\|").replaceAll("`", "'") + "`";
  const rows = [...reasons].map(([reason, [first, ...more]]) => {
    const shown = first.length > 70 ? `${first.slice(0, 67)}...` : first;
    return `| ${reason} | ${code(shown)}${more.length > 0 ? ` and ${more.length} more` : ""} |`;
  });
  const table = ["| difference | example |", "|---|---|", ...rows].join("\n");
  return old
    .replace(/(<!-- differences -->)[^]*(<!-- \/differences -->)/, (_, start, end) => `${start}\n${table}\n${end}`)
    .replace(/holds \d+ one-liners/, `holds ${commands.length} one-liners`)
    .replace(/write\. \d+ of them/, `write. ${commands.length - known.length} of them`);
}

/** Whether docs/sandbox.md says what the data says. */
export function isDocumented() {
  const page = readFileSync(PAGE, "utf8");
  return documented(page) === page;
}

async function main(names) {
  if (names[0] === "document") {
    if (names[1] !== "--check") writeFileSync(PAGE, documented(readFileSync(PAGE, "utf8")));
    if (isDocumented()) return 0;
    console.error("docs/sandbox.md is out of date: run node tests/sandbox/reference.mjs document");
    return 1;
  }
  const entries = commands.filter(({ name }) => names.includes(name));
  if (entries.length === 0) {
    console.error("usage: node tests/sandbox/reference.mjs NAME... | document [--check]");
    return 2;
  }
  for (const entry of entries) {
    const results = await runBoth(entry);
    console.log(JSON.stringify({ ...entry, ...results, wrong: verdict(entry, results) }, null, 1));
  }
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await main(process.argv.slice(2));
}
