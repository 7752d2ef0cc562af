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
  return copied(value, { name });
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

/**
 * Where a value is: a way that is named only when something is wrong there.
 * @typedef {{name: string} | {key: string | number, within: object, up: Place, depth: number}} Place
 */

/** @param {unknown} given @param {Place} place */
function copied(given, place) {
  const value = readable(place, () => (typeof given?.toJSON === "function" ? given.toJSON() : given));
  if (typeof value === "number" && !Number.isFinite(value)) throw new NotData(`${named(place)} must be a finite number, not the number ${value}`);
  if (typeof value === "function" || typeof value === "symbol" || typeof value === "bigint") {
    throw new NotData(`${named(place)} must be data that JSON holds, not a ${typeof value}`);
  }
  if (typeof value !== "object" || value === null) return value;
  for (let above = place; "up" in above; above = above.up) {
    if (above.within === value) throw new NotData(`${named(place)} refers back to what it is in; give data that JSON holds`);
  }
  const depth = (place.depth ?? 0) + 1;
  if (depth > MAX_DEPTH) throw new NotData(`${named(place)} is nested more than ${MAX_DEPTH} levels deep`);
  const below = (key) => ({ key, within: value, up: place, depth });
  if (Array.isArray(value)) return readable(place, () => [...value]).map((item, index) => copied(item, below(index)) ?? null);
  // A map or a set has no fields, and JSON would make nothing of it.
  const tag = Object.prototype.toString.call(value).slice("[object ".length, -1);
  if (tag !== "Object") throw new NotData(`${named(place)} must be data that JSON holds, not ${/^[AEIO]/.test(tag) ? "an" : "a"} ${tag}`);
  const copy = {};
  for (const [key, item] of readable(place, () => Object.entries(value))) {
    const field = copied(item, below(key));
    if (field === undefined) continue;
    // `__proto__` would set the prototype instead of a field.
    if (key === "__proto__") Object.defineProperty(copy, key, { value: field, enumerable: true, configurable: true, writable: true });
    else copy[key] = field;
  }
  return copy;
}

/** @param {Place} place @returns {string} */
function named(place) {
  if ("name" in place) return place.name;
  const { key, up } = place;
  return named(up) + (/^[A-Za-z_]\w*$/.test(String(key)) ? `.${key}` : `[${JSON.stringify(key)}]`);
}

function readable(place, read) {
  try {
    return read();
  } catch (error) {
    throw new NotData(`${named(place)} cannot be read: ${text(error)}`);
  }
}
