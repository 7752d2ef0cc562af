// `parameters` of a tool that is a schema of a library: what the model reads
// of it, and what it makes of a call's arguments. The interface is Standard
// Schema, which zod, valibot and arktype share; none of them is loaded here.

import { text } from "../shared/errors.js";
import { NotData } from "../shared/plain-data.js";

/**
 * A schema of zod, valibot, arktype or another library with this interface.
 * @template [Input=unknown] @template [Output=Input]
 * @typedef {{readonly "~standard": {
 *   readonly version: 1,
 *   readonly vendor: string,
 *   readonly validate: (value: unknown, ...rest: any[]) => any,
 *   readonly types?: {readonly input: Input, readonly output: Output} | undefined,
 * }}} StandardSchema
 */

/**
 * What `execute` gets for `parameters` of type P: what the schema makes of the
 * arguments, transforms and defaults included.
 * @template P
 * @typedef {P extends {readonly "~standard": {readonly types?: {readonly output: infer Made} | undefined}} ? Made : any} ArgumentsOf
 */

/** Violations in one message to the model; the core names as many. */
const MAX_ISSUES = 5;

/** The schema's own part, if `value` is one. */
function standardOf(value) {
  const standard = (typeof value === "object" || typeof value === "function") && value !== null ? value["~standard"] : undefined;
  return typeof standard?.validate === "function" ? standard : undefined;
}

/** @param {unknown} parameters */
export function isSchema(parameters) {
  return standardOf(parameters) !== undefined;
}

/**
 * The JSON Schema of what a schema takes.
 * @param {any} schema @param {string} name of the tool, for errors
 */
export function jsonSchema(schema, name) {
  const standard = standardOf(schema);
  let made;
  try {
    made = standard.jsonSchema?.input({ target: "draft-2020-12" }) ?? schema.toJsonSchema?.();
  } catch (error) {
    throw new NotData(`parameters of ${name} cannot be written as JSON Schema: ${text(error)}; use a form that JSON has, such as a string for a date`);
  }
  if (typeof made !== "object" || made === null) {
    const remedy =
      standard.vendor === "valibot"
        ? "give toStandardJsonSchema(schema) of @valibot/to-json-schema"
        : "take a version of the library that has `~standard`.jsonSchema (zod 4.2 or newer), or give JSON Schema";
    throw new NotData(`parameters of ${name} is a schema of ${standard.vendor} that cannot say itself as JSON Schema; ${remedy}`);
  }
  // Says nothing to a model.
  const { $schema, ...json } = made;
  return json;
}

/**
 * What the schema makes of `args`.
 * @param {any} schema @param {unknown} args
 * @returns {Promise<{value: any} | {problem: string}>}
 */
export async function validated(schema, args) {
  const result = await standardOf(schema).validate(args);
  if (!result.issues) return { value: result.value };
  const issues = result.issues.slice(0, MAX_ISSUES).map(({ message, path = [] }) => `arguments${path.map(step).join("")}: ${message}`);
  return { problem: `invalid arguments: ${issues.join("; ")}` };
}

/** A step of an issue's path, as the core writes it. */
function step(part) {
  const key = typeof part === "object" && part !== null ? part.key : part;
  return typeof key === "number" ? `[${key}]` : `.${String(key)}`;
}
