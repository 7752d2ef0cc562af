// The seam to the package: everything that the playground asks of Hermitcrab
// goes through this module.

import { jsProgram } from "hermitcrab/javascript";
import { pythonProgram } from "hermitcrab/python";
import { createSession, init, openProject } from "hermitcrab/worker";

import catalogue from "../../../src/llm/models.json";
import { script } from "../demo/index.js";
import { sealedWorker } from "./sealed-worker.js";

export { folderName } from "../../../js/project/browser-storage.js";
export { tarEntries } from "../../../js/archive/tar.js";
export { deleteProject, listProjects, replay } from "hermitcrab/worker";

/** Where projects live in the sandbox. */
export const ROOT = "/workspace";

/** The provider of this page that needs no key. */
export const SCRIPTED = "scripted";

/** @type {{id: string, name: string, keyHint?: string, note?: string}[]} */
export const PROVIDERS = [
  { id: SCRIPTED, name: "Scripted demo", note: "plays a recorded repair, needs no key" },
  { id: "anthropic", name: "Anthropic", keyHint: "sk-ant-…" },
  { id: "openai", name: "OpenAI", keyHint: "sk-…" },
  { id: "gemini", name: "Google Gemini", keyHint: "AIza…" },
  { id: "chat", name: "Chat Completions server", keyHint: "if the server wants one", note: "Ollama, vLLM, llama.cpp, OpenRouter, LM Studio" },
];

/** Models of a provider, newest first. @param {string} provider */
export function models(provider) {
  return catalogue.filter((model) => model.provider === provider);
}

/** What is known about a model. @param {string} id */
export function model(id) {
  return catalogue.find((model) => model.id === id || model.aliases.includes(id));
}

/** How long a command may ignore that it was stopped before its worker is ended, in ms. */
const STOP_MS = 1_500;

/**
 * Starts the worker and loads the core.
 * @param {(done: number) => void} progress bytes of the core that have arrived
 * @param {(reason: string) => void} restarted the worker was ended because it did not answer
 */
export async function start(progress, restarted) {
  await init({
    onProgress: ({ loaded }) => progress(loaded),
    onRestart: restarted,
    stopMs: STOP_MS,
  });
}

/**
 * Tells how far the download of a program is: events `progress` with `{name, loaded, total}`,
 * where `total` may be unknown, and `end` when it is there or will not come.
 */
export const downloads = new EventTarget();
/** Whether somebody waits for the end of Python's download. */
let isLoading = false;

/** Programs that the shell borrows from the page; Python is downloaded when it is first called. */
const python = pythonProgram({
  onProgress: ({ loaded, total }) => {
    downloads.dispatchEvent(new CustomEvent("progress", { detail: { name: "Python", loaded, total } }));
    if (isLoading) return;
    isLoading = true;
    // The command that asked for it says what went wrong.
    void python.load().catch(() => {}).then(() => {
      isLoading = false;
      downloads.dispatchEvent(new Event("end"));
    });
  },
});
const programs = { python3: python, python, node: jsProgram({ worker: sealedWorker }) };

/** Bytes of a log that the worker keeps: one that holds more files takes seconds to write. */
const MOST_LOG_BYTES = 64_000_000;

/**
 * A project of this browser's, or a new one with `files`. Its log is kept until it is closed.
 * @param {string} name @param {import("../../../js/project/projects.js").ProjectOptions & {files?: object}} options
 */
export function openStored(name, options) {
  return openProject(name, { workingDirectory: ROOT, programs, record: { maxBytes: MOST_LOG_BYTES }, ...options });
}

/** When the agent asks before it acts: docs/approval.md, "Three policies". */
export const APPROVALS = [
  { id: "never", name: "Never ask", policy: {} },
  { id: "ask", name: "Ask before commands that do more than read files", policy: { writePaths: ["**"], commands: ["@safe"] } },
  { id: "always", name: "Ask before every tool call", policy: { tools: { "*": "ask" } } },
];

/** @param {string} id */
export function policy(id) {
  return (APPROVALS.find((each) => each.id === id) ?? APPROVALS[0]).policy;
}

/**
 * A new session in a sandbox.
 * @param {object} env @param {import("./settings.js").Choice} choice
 * @param {object} more
 * @param {object} [more.history] the record of a session whose conversation goes on
 * @param {object} more.approval the policy
 * @param {(call: object) => Promise<boolean | string>} more.approve
 * @param {() => Promise<unknown>} more.before the model is asked when it is done, if that takes a key
 */
export async function openSession(env, choice, { history, approval, approve, before }) {
  const common = { env, approval, approve };
  // The script begins at its beginning and would not fit an earlier conversation.
  if (choice.provider === SCRIPTED) return createSession({ ...common, model: "scripted", script });
  const others = Object.entries(choice.others);
  // Asked for with each request.
  const keyOf = (key) => (key ? async () => {
    await before();
    return key;
  } : null);
  return createSession({
    ...common,
    history,
    provider: choice.provider,
    model: choice.model || undefined,
    apiKey: keyOf(choice.key),
    baseUrl: choice.baseUrl || undefined,
    reasoningEffort: choice.effort || undefined,
    // For subagents whose model is another provider's.
    apiKeys: Object.fromEntries(others.map(([id, { key }]) => [id, keyOf(key)])),
    endpoints: Object.fromEntries(others.filter(([, { baseUrl }]) => baseUrl).map(([id, { baseUrl }]) => [id, { baseUrl }])),
  });
}
