// The user's tools: their declarations for the core, and what becomes of
// what they give back. Where the agent is in a worker, both happen in the page:
// only there a result is still the object that the tool made.

import { sleep } from "../platform/clock.js";
import { SessionError, text } from "../shared/errors.js";
import { NotData, plainData } from "../shared/plain-data.js";
import { isContent, toolContent } from "./content.js";
import { isSchema, jsonSchema, validated } from "./schema.js";
import { drained, isStreamed } from "./streamed-result.js";

/** @template [P=any] @typedef {import("../session/session.js").Tool<P>} Tool */

/** Time for a tool that names none, in ms: that of the longest command. */
const TIMEOUT_MS = 600_000;

/** Fields of a tool that the core gets. */
const TOLD = ["name", "description", "parameters", "custom", "strict", "unchecked"];

/**
 * The tool as it is: with it, TypeScript knows the arguments of `execute` from
 * `parameters`, where that is a schema of zod, valibot or arktype.
 * @template P @param {Tool<P>} tool @returns {Tool<P>}
 */
export function defineTool(tool) {
  return tool;
}

/** What the core gets of a tool, as plain data. @param {Tool} tool */
export function definition(tool) {
  try {
    const { execute, timeoutMs = 1, ...told } = tool;
    const name = `tool \`${told.name}\``;
    const other = Object.keys(told).find((field) => !TOLD.includes(field) && told[field] !== undefined);
    if (other) throw new NotData(`${name} has a field ${other} that is not known; there are ${[...TOLD, "timeoutMs", "execute"].join(", ")}`);
    if (typeof execute !== "function") throw new NotData(`${name} has no execute function`);
    if (!(timeoutMs >= 0)) throw new NotData(`timeoutMs of ${name} is not a number of ms`);
    if (typeof told.description !== "string") throw new NotData(`${name} has no description; say for the model what it does`);
    // The schema itself checks the arguments, when the tool is called.
    if (isSchema(told.parameters)) return plainData({ ...told, parameters: jsonSchema(told.parameters, name), unchecked: true }, name);
    if (typeof told.parameters !== "object" || told.parameters === null) {
      throw new NotData(`${name} has no parameters; give a JSON Schema such as { type: "object", properties: {} }, or a schema of zod, valibot or arktype`);
    }
    return plainData(told, name);
  } catch (error) {
    throw new SessionError("invalid_tool", error instanceof NotData ? error.message : `a tool cannot be read: ${text(error)}`, { cause: error });
  }
}

/**
 * Runs a tool; what it throws is a result that the model reads.
 * @param {Tool} tool @param {any} args @param {import("../session/session.js").ToolContext} context
 * @returns {Promise<{content: string | import("./content.js").CorePart[], isError: boolean}>} rejects once the signal has fired
 */
export async function runTool(tool, args, { signal, progress, ...context }) {
  const show = (piece) => progress(String(piece));
  const execute = async (signal) => {
    const given = isSchema(tool.parameters) ? await validated(tool.parameters, args) : { value: args };
    if ("problem" in given) return { content: given.problem, isError: true };
    return whole(await tool.execute(given.value, { ...context, signal, progress: show }), signal, show);
  };
  try {
    return await toolResult(tool, await withLimit(tool, signal, execute));
  } catch (error) {
    if (signal.aborted) throw error;
    return { content: text(error), isError: true };
  }
}

/** A tool that never returns must not hold the session up for ever. */
async function withLimit({ name, timeoutMs = TIMEOUT_MS }, signal, execute) {
  if (timeoutMs === 0) return execute(signal);
  const over = new AbortController();
  const done = new AbortController();
  const stop = () => {
    over.abort(signal.reason);
    done.abort();
  };
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  const late = sleep(timeoutMs, done.signal).then(() => {
    if (done.signal.aborted) return undefined;
    const error = new Error(`the tool ${name} gave no result within ${timeoutMs} ms and was given up`);
    over.abort(error);
    throw error;
  });
  try {
    return await Promise.race([execute(over.signal), late.then(() => new Promise(() => {}))]);
  } finally {
    done.abort();
    signal.removeEventListener("abort", stop);
  }
}

/** A result that comes in pieces, once it is there. */
async function whole(result, signal, show) {
  if (isStreamed(result)) return drained(result, signal, show);
  return isStreamed(result?.content) ? { ...result, content: await drained(result.content, signal, show) } : result;
}

async function toolResult({ name }, result) {
  const whole = contentOf(result);
  if (whole !== undefined) return { content: await whole, isError: false };
  const content = contentOf(result?.content);
  if (content !== undefined) return { content: await content, isError: Boolean(result.isError) };
  try {
    return { content: JSON.stringify(result) ?? "", isError: false };
  } catch (error) {
    throw new Error(`the tool ${name} ran, but its result cannot be written as JSON: ${text(error)}`);
  }
}

/** A text, bytes as one, or a list of parts; other values are none. */
function contentOf(value) {
  if (isContent(value)) return toolContent(value);
  if (typeof value === "string") return value;
  return value instanceof ArrayBuffer || ArrayBuffer.isView(value) ? new TextDecoder().decode(value) : undefined;
}
