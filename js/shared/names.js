// The core's names are in snake case, those of this API in camel case.

/**
 * `object` with its own keys in snake case; what is `undefined` is left out.
 * Keys in snake case stay as they are.
 * @param {Record<string, unknown>} object
 */
export function snakeCase(object) {
  const named = {};
  for (const [name, value] of Object.entries(object)) {
    if (value === undefined) continue;
    named[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] = value;
  }
  return named;
}

/** Names in snake case within a text as this API has them. @param {string} text */
export function camelCase(text) {
  return text.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}
