// The seam to the package: everything that the playground asks of Hermitcrab
// goes through this module.

import { MemoryEnvironment, createSession, scriptedFetch } from "hermitcrab";
import wasmUrl from "../../js/wasm/hermitcrab_bg.wasm?url";
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

/**
 * Downloads the core, so that what comes next finds it in the cache.
 * @param {(done: number, total: number | undefined) => void} progress bytes
 */
export async function preload(progress) {
  const response = await fetch(wasmUrl);
  if (!response.ok) throw new Error(`the core cannot be downloaded: HTTP ${response.status}`);
  // With compression the header counts other bytes than the stream.
  const plain = !response.headers.get("content-encoding");
  const total = plain ? Number(response.headers.get("content-length")) || undefined : undefined;
  let done = 0;
  for (const reader = response.body.getReader(); ; ) {
    const piece = await reader.read();
    if (piece.done) return;
    done += piece.value.length;
    progress(done, total);
  }
}

/** A new sandbox. @param {Record<string, string | Uint8Array>} [files] */
export function openSandbox(files) {
  return MemoryEnvironment.create({ workingDirectory: ROOT, files });
}

/**
 * A new session in a sandbox.
 * @param {object} env @param {import("./settings.js").Choice} choice
 */
export async function openSession(env, choice) {
  if (choice.provider === SCRIPTED) {
    const fetch = await scriptedFetch(script);
    return createSession({ env, provider: "anthropic", model: "scripted", apiKey: null, fetch });
  }
  return createSession({
    env,
    provider: choice.provider,
    model: choice.model || undefined,
    apiKey: choice.key || null,
    baseUrl: choice.baseUrl || undefined,
    reasoningEffort: choice.effort || undefined,
  });
}

/**
 * A terminal on a sandbox: lines run one after another and keep the working
 * directory.
 * @param {object} env
 */
export function openTerminal(env) {
  let cwd = ROOT;
  return {
    get cwd() {
      return cwd;
    },
    /**
     * @param {string} line @param {(text: string) => void} out @param {AbortSignal} signal
     * @returns {Promise<{exitCode: number}>}
     */
    async run(line, out, signal) {
      const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
      const onOutput = (stream, data) => out(decoders[stream].decode(data, { stream: true }));
      const command = `${line}\n__code=$?; pwd > /tmp/.terminal; exit $__code`;
      const result = await env.exec(command, { cwd, onOutput, signal, timeoutMs: 600_000 });
      cwd = (await env.readText("/tmp/.terminal").catch(() => cwd)).trim() || ROOT;
      return { exitCode: result.cancelled ? 130 : result.exitCode };
    },
  };
}
