// The declarations know what the package exports, and those that are written by
// hand what the core knows.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { createSession } from "../../js/node.js";

const text = await readFile(new URL("../../js/types.d.ts", import.meta.url), "utf8");

/** Names of the properties that an interface declares itself, sorted. */
function namesOf(name) {
  const body = new RegExp(`export interface ${name}\\b[^{]*\\{\\n([^]*?)\\n\\}`).exec(text)[1];
  return [...body.matchAll(/^ {2}(\w+)\?:/gm)].map(([, property]) => property).sort();
}

const camelCase = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

test("the settings of a session are declared, all and no others", async () => {
  // Without a model, the configuration says nothing of one.
  const session = await createSession({ apiKey: "test-key", model: "test-model" });
  const config = await session.config();
  const changeable = [];
  const fixed = [];
  for (const [name, value] of Object.entries(config)) {
    // Tools are an option of their own.
    if (name === "tools") continue;
    const refusal = await session.configure({ [name]: value }).then(
      () => undefined,
      (error) => error.message,
    );
    if (refusal?.includes("is fixed once")) fixed.push(camelCase(name));
    else changeable.push(camelCase(name));
  }
  assert.deepEqual(namesOf("ChangeableSettings"), changeable.sort());
  assert.deepEqual(namesOf("SessionSettings"), fixed.sort());
  await session.close();
});

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What a condition leads to: `[declarations, module]` of each branch that has both. */
function* branches(entry) {
  if (typeof entry !== "object") return;
  for (const [condition, target] of Object.entries(entry)) {
    if (typeof target === "object") yield* branches(target);
    else if (condition !== "types" && entry.types) yield [entry.types, target];
  }
}

/** Modules whose types a program meets, and of their types those that it does not. */
const PUBLIC = [
  ...["session/session", "session/prompt-result", "project/project", "project/projects", "project/browser-storage", "archive/import-export"],
  ...["memory-environment", "custom-environment", "node-environment", "program", "snapshot", "shell"].map((name) => `environment/${name}`),
  ...["core/runtime", "types", "events", "tool/content", "model/model-client"],
];
const INTERNAL = ["SessionPart", "OwnOptions", "EnvironmentAnswers", "Place", "Sink", "Release", "Core", "Platform", "EnvironmentPart", "Programs", "CorePart", "Again"];

/** Names of the types that a program needs. An event is told apart by `kind`: the union has them all. */
async function publicTypes(types) {
  const found = new Set();
  for (const module of PUBLIC) {
    const text = await readFile(join(types, `${module}.d.ts`), "utf8");
    for (const [, name] of text.matchAll(/^export (?:type|interface) (\w+)/gm)) found.add(name);
  }
  return [...found].filter((name) => !INTERNAL.includes(name) && !/.Event$/.test(name.replace("SessionEvent", "")));
}

test("each entry exports what its declarations say, and no more", { timeout: 120_000 }, async (t) => {
  const { exports } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  // What a module of WebAssembly exports is up to who imports it.
  const pairs = Object.values(exports).flatMap((entry) => [...branches(entry)]).filter(([, module]) => !module.endsWith(".wasm"));
  assert.ok(pairs.length >= 8, `${pairs.length} entries with declarations`);
  // Beside the package, so that nothing else is found from there.
  const types = await mkdtemp(join(ROOT, "target/types-"));
  t.after(() => rm(types, { recursive: true }));
  const tsc = (...args) =>
    promisify(execFile)("node", [join(ROOT, "node_modules/typescript/bin/tsc"), ...args], { cwd: ROOT }).catch((error) => error);
  const { stdout: made } = await tsc("--project", "js/tsconfig.json", "--outDir", types);
  assert.equal(made, "");
  for (const name of ["events.d.ts", "types.d.ts", "platform.d.ts", "worker.d.ts", "worker-node.d.ts"]) await copyFile(join(ROOT, "js", name), join(types, name));
  const lines = [
    "type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : { lacks: Exclude<B, A> }) : { hasToo: Exclude<A, B> };",
  ];
  for (const [index, [declared, module]] of pairs.entries()) {
    const names = Object.keys(await import(join(ROOT, module)));
    const file = relative("types", declared).replace(/\.d\.ts$/, ".js");
    lines.push(
      `import * as entry${index} from "./${file}";`,
      `export const check${index}: Same<keyof typeof entry${index}, ${names.map((name) => JSON.stringify(name)).join(" | ")}> = true; // ${module}`,
    );
  }
  for (const entry of ["node", "worker-node"]) {
    const names = await publicTypes(types);
    assert.ok(names.length > 45, String(names));
    lines.push(`export type { ${names.map((name) => `${name} as ${name}${entry.replace("-", "")}`).join(", ")} } from "./${entry}.js";`);
  }
  await writeFile(join(types, "check.ts"), lines.join("\n"));
  const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--types", ""];
  const { stdout } = await tsc(...options, "--lib", "es2023,dom,dom.iterable,dom.asynciterable", join(types, "check.ts"));
  assert.equal(stdout, "");
});
