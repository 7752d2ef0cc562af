// The seam to the package: everything that the playground asks of Hermitcrab
// goes through this module.

import { jsProgram } from "hermitcrab/javascript";
import { pythonProgram } from "hermitcrab/python";
import { MemoryEnvironment, createSession, init } from "hermitcrab/worker";

import catalogue from "../../src/llm/models.json";
import { script } from "./demo/index.js";

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
 * @param {(done: number, total: number | undefined) => void} progress bytes
 * @param {(reason: string) => void} restarted the worker was ended because it did not answer
 */
export async function start(progress, restarted) {
  await init({
    onProgress: ({ loaded, total }) => progress(loaded, total),
    onRestart: restarted,
    stopMs: STOP_MS,
  });
}

/** Programs that the shell borrows from the page; Python is downloaded when it is first called. */
const python = pythonProgram();
const programs = { python3: python, python, node: jsProgram() };

/** A new sandbox. @param {Record<string, string | Uint8Array>} [files] */
export function openSandbox(files) {
  return MemoryEnvironment.create({ workingDirectory: ROOT, files, programs });
}

/**
 * A new session in a sandbox.
 * @param {object} env @param {import("./settings.js").Choice} choice
 * @param {object} [history] the record of a session whose conversation goes on
 */
export async function openSession(env, choice, history) {
  // The script begins at its beginning and would not fit an earlier conversation.
  if (choice.provider === SCRIPTED) return createSession({ env, model: "scripted", script });
  return createSession({
    env,
    history,
    provider: choice.provider,
    model: choice.model || undefined,
    apiKey: choice.key || null,
    baseUrl: choice.baseUrl || undefined,
    reasoningEffort: choice.effort || undefined,
  });
}
