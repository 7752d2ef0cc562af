// The session cases of tests/cases and their transcripts, for the runners of
// the web face. As a program it plays one and prints its normalised transcript:
//
//     node tests/node/cases.mjs NAME

import { readFile, readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import * as api from "../../js/node.js";
import { play, readCase } from "./play.mjs";
import { serveModel } from "./support.mjs";

const DIRECTORY = new URL("../cases/", import.meta.url);

/** Names of all cases that this face can play; some need more than every host has. */
export async function caseNames(lacks = ["local"]) {
  const names = [];
  for (const file of (await readdir(DIRECTORY)).sort()) {
    if (!file.endsWith(".json")) continue;
    const name = file.slice(0, -".json".length);
    const { needs = [], providers } = await readFileOf(name);
    if (needs.some((need) => lacks.includes(need))) continue;
    if (providers) names.push(...providers.map((provider) => `${name}@${provider}`));
    else names.push(name);
  }
  return names;
}

async function readFileOf(name) {
  return JSON.parse(await readFile(new URL(`${name}.json`, DIRECTORY), "utf8"));
}

/** A case, or one provider's version of it: `NAME@PROVIDER`. */
export async function specOf(name) {
  const [file, provider] = name.split("@");
  return readCase(await readFileOf(file), provider);
}

/** The transcript that a case must produce. */
export async function golden(name) {
  const text = await readFile(new URL(`${name}.transcript.jsonl`, DIRECTORY), "utf8");
  return text.trimEnd().split("\n").map((line) => JSON.parse(line));
}

/** Plays a case in this process; what it starts ends with the test `t`. */
export async function playHere(t, name, face = api) {
  return play({ api: face, serveModel: (script) => serveModel(t, script) }, await specOf(name));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const after = [];
  const transcript = await playHere({ after: (end) => after.push(end) }, process.argv[2]);
  for (const line of transcript) console.log(JSON.stringify(line));
  for (const end of after) await end();
}
