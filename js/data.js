// Plain data: copies of what a caller gave, before anything is done with them.
// A copy runs no code of the caller's, so nothing can go wrong half-way through
// a call of the core, and it is what JSON would make of the original.

import { text } from "./errors.js";

/** Levels that data may have; the core reads no deeper. */
const MAX_DEPTH = 200;

/** What cannot be copied, in a sentence that names the place. */
export class NotData extends Error {}

/**
 * @param {unknown} value @param {string} name of the argument
 * @returns {any} as JSON has it; fields that are `undefined` are left out
 * @throws {NotData}
 */
export function plainData(value, name) {
  return copied(value, name, []);
}

/** What is wrong with a value that should be data, if anything. @type {import("./arguments.js").Check} */
export function data(value, name) {
  try {
    plainData(value, name);
    return undefined;
  } catch (error) {
    if (error instanceof NotData) return error.message;
    throw error;
  }
}

function copied(given, name, above) {
  const value = readable(name, () => (typeof given?.toJSON === "function" ? given.toJSON() : given));
  if (typeof value === "number" && !Number.isFinite(value)) throw new NotData(`${name} must be a finite number, not the number ${value}`);
  if (typeof value === "function" || typeof value === "symbol" || typeof value === "bigint") {
    throw new NotData(`${name} must be data that JSON holds, not a ${typeof value}`);
  }
  if (typeof value !== "object" || value === null) return value;
  if (above.includes(value)) throw new NotData(`${name} refers back to what it is in; give data that JSON holds`);
  if (above.length >= MAX_DEPTH) throw new NotData(`${name} is nested more than ${MAX_DEPTH} levels deep`);
  const within = [...above, value];
  const items = readable(name, () => (Array.isArray(value) ? [...value] : Object.entries(value)));
  if (Array.isArray(value)) return items.map((item, index) => copied(item, `${name}[${index}]`, within) ?? null);
  const copy = {};
  for (const [key, item] of items) {
    const field = copied(item, /^[A-Za-z_]\w*$/.test(key) ? `${name}.${key}` : `${name}[${JSON.stringify(key)}]`, within);
    // `__proto__` would set the prototype instead of a field.
    if (field !== undefined) Object.defineProperty(copy, key, { value: field, enumerable: true, configurable: true, writable: true });
  }
  return copy;
}

function readable(name, read) {
  try {
    return read();
  } catch (error) {
    throw new NotData(`${name} cannot be read: ${text(error)}`);
  }
}
