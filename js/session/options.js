// What a session is given: settings in the names of the core, keys by credential, and what a fork
// has of the session that it leaves.

import { bytesOf } from "../core/jobs.js";
import { bindings } from "../core/runtime.js";
import { checkAddress, checkCredential } from "../model/door.js";
import { SessionError } from "../shared/errors.js";
import { camelCase, snakeCase } from "../shared/names.js";
import { NotData, plainData } from "../shared/plain-data.js";

/** With the bytes of what was saved. @param {import("./session.js").SessionOptions} options */
export async function withSaved({ saved, ...options }) {
  return saved === undefined ? options : { ...options, saved: await bytesOf(saved) };
}

/**
 * What a fork has of the session that it leaves. Keys and addresses are those of a provider: for
 * another one, or for another address, the fork brings its own.
 * @param {any} given @param {any} config @param {any} options
 */
export function inherited({ apiKey, apiKeys, ...given }, config, options) {
  const { provider = config.provider, baseUrl = config.base_url } = options;
  if (provider !== config.provider || baseUrl !== config.base_url) return given;
  return { ...given, apiKey, apiKeys, ...addressesOf(config) };
}

/** Where the requests of a session with these settings go, which a file does not say. @param {any} config */
function addressesOf({ base_url: baseUrl, credential, endpoints }) {
  const named = Object.entries(endpoints).map(([name, { base_url: baseUrl, ...rest }]) => [name, { baseUrl, ...rest }]);
  return { baseUrl, credential, endpoints: Object.fromEntries(named) };
}

/** Keys by the credentials that the core names. */
export function credentials(config, apiKey, apiKeys = {}) {
  const held = new Map();
  for (const { base_url: address } of [config, ...Object.values(config.endpoints ?? {})]) {
    const problem = address === undefined || address === null ? undefined : checkAddress(address);
    if (problem) throw new SessionError("invalid_input", problem);
  }
  const own = config.provider ?? "anthropic";
  const keys = apiKey === undefined ? apiKeys : { ...apiKeys, [own]: apiKey };
  for (const [provider, key] of Object.entries(keys)) {
    const wire = config.profiles?.[provider]?.wire ?? provider;
    const known = config.endpoints?.[provider];
    const first = provider === own ? config : undefined;
    const name = first?.credential ?? known?.credential ?? provider;
    const baseUrl = first?.base_url ?? known?.base_url ?? bindings().providerUrl(wire);
    if (baseUrl === undefined) {
      // Opening the session says so, by name.
      if (provider === own) continue;
      throw new SessionError("unknown_provider", `createSession: options.apiKeys has a key for ${JSON.stringify(provider)}, which is no provider; check the name, or leave the key out`);
    }
    const problem = checkCredential(name, { key, baseUrl });
    if (problem) throw new SessionError("invalid_input", problem);
    held.set(name, { key, baseUrl });
  }
  return held;
}

/** A copy of what a caller gave. */
export function taken(value, name) {
  try {
    return plainData(value, name);
  } catch (error) {
    if (error instanceof NotData) throw new SessionError("invalid_input", error.message);
    throw error;
  }
}

/**
 * Calls the core; what it refuses of `settings` bears the names of this API.
 * @template T @param {object} settings @param {() => T} call @returns {T}
 */
export function inNamesOf(settings, call) {
  try {
    return call();
  } catch (error) {
    if (error?.kind !== "invalid_config") throw error;
    const names = [settings, settings.retry, settings.approval, ...Object.values(settings.profiles ?? {})].flatMap((given) => Object.keys(given ?? {}));
    const given = new Map(names.map((name) => [Object.keys(snakeCase({ [name]: 0 }))[0], name]));
    // Behind it stand the names of all settings.
    const [said, ...known] = error.message.split(/(?<=, expected one of )/);
    const ours = said.replace(/(?<=[`.])[a-z_0-9]+(?=[`.])/g, (name) => given.get(name) ?? name);
    throw new SessionError(error.kind, ours + known.map(camelCase).join(""), { cause: error });
  }
}

/** Settings in the core's names. Keys inside, such as tool names, stay as they are. */
export function coreNames(settings) {
  const named = snakeCase(settings);
  for (const name of ["retry", "approval"]) {
    if (named[name]) named[name] = snakeCase(named[name]);
  }
  for (const [provider, endpoint] of Object.entries(named.endpoints ?? {})) {
    named.endpoints = { ...named.endpoints, [provider]: snakeCase(endpoint) };
  }
  for (const [id, profile] of Object.entries(named.profiles ?? {})) {
    named.profiles = { ...named.profiles, [id]: snakeCase(profile) };
  }
  for (const [model, given] of Object.entries(named.prices ?? {})) {
    const price = snakeCase(given);
    if (price.long_prompt) price.long_prompt = snakeCase(price.long_prompt);
    named.prices = { ...named.prices, [model]: price };
  }
  return named;
}
