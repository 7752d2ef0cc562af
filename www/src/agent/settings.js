// What the user chose: provider, model, keys, proxies, approval, theme.
// Everything but the keys is kept in this browser; keys only if the user asks.
//
// Several tabs share what is kept. Each writes only what was changed in it, and
// takes over from the others what concerns keys: whether they are remembered,
// and those that are.

import { PROVIDERS, SCRIPTED } from "./agent.js";

/**
 * @typedef {object} Choice which model to use
 * @property {string} provider
 * @property {string} model empty: the provider's default
 * @property {string} key
 * @property {string} baseUrl empty: the provider's own address
 * @property {string} effort empty: the model's default
 * @property {Record<string, {key: string, baseUrl: string}>} others the other
 *   providers that can be reached, for subagents
 */

const PLACE = "hermitcrab.settings";

const DEFAULTS = {
  provider: SCRIPTED,
  theme: "auto",
  approval: "never",
  rememberKeys: false,
  /** By provider: {model, baseUrl, effort}. */
  providers: {},
  /** By provider; saved only with `rememberKeys`. */
  keys: {},
};

export class Settings {
  #values = { ...DEFAULTS, ...read() };

  constructor() {
    addEventListener("storage", ({ key, oldValue, newValue }) => {
      // No key: everything was deleted.
      if (key === PLACE || key === null) this.#follow(parse(oldValue), parse(newValue));
    });
  }

  /** @returns {Choice} */
  get choice() {
    const provider = PROVIDERS.some(({ id }) => id === this.#values.provider) ? this.#values.provider : SCRIPTED;
    const all = PROVIDERS.filter(({ id }) => id !== SCRIPTED && id !== provider).map(({ id }) => [id, this.of(id)]);
    const others = all.filter(([, { key, baseUrl }]) => key || baseUrl).map(([id, { key, baseUrl }]) => [id, { key, baseUrl }]);
    return { provider, ...this.of(provider), others: Object.fromEntries(others) };
  }

  /** All keys that the page knows. @returns {string[]} */
  get keys() {
    return PROVIDERS.map(({ id }) => this.of(id).key).filter(Boolean);
  }

  /** What is set for a provider. @param {string} provider @returns {Omit<Choice, "provider" | "others">} */
  of(provider) {
    const { model = "", baseUrl = "", effort = "" } = this.#values.providers[provider] ?? {};
    return { model, baseUrl, effort, key: this.#values.keys[provider] ?? "" };
  }

  /** @param {string} provider the one in use @param {Record<string, Omit<Choice, "provider" | "others">>} all by provider */
  choose(provider, all) {
    const changed = Object.entries(all).filter(([id, values]) => !same(values, this.of(id)));
    const keys = Object.fromEntries(changed.filter(([id, { key }]) => key !== this.of(id).key).map(([id, { key }]) => [id, key]));
    const providers = Object.fromEntries(changed.map(([id, { key: _, ...rest }]) => [id, rest]));
    this.#change({ provider, providers, keys });
  }

  get(name) {
    return this.#values[name];
  }

  /** @param {"theme" | "approval"} name */
  set(name, value) {
    this.#change({ [name]: value });
  }

  /** Whether keys are kept in this browser: for all tabs. @param {boolean} on */
  rememberKeys(on) {
    this.#change({ rememberKeys: on, keys: on ? this.#values.keys : {} });
  }

  /** What is by provider replaces only what it names. */
  #change(changes) {
    this.#values = merged(this.#values, changes);
    try {
      const { keys, ...kept } = merged({ ...DEFAULTS, ...read() }, changes);
      this.#values.rememberKeys = kept.rememberKeys;
      localStorage.setItem(PLACE, JSON.stringify(kept.rememberKeys ? { ...kept, keys } : kept));
    } catch {
      // Storage is denied or full: the choice holds until the page is closed.
    }
  }

  /** Another tab has changed what is kept. A key that is not remembered any more stays in memory. */
  #follow(before, after) {
    const { rememberKeys = false, keys = {} } = after;
    this.#values.rememberKeys = rememberKeys;
    if (!rememberKeys) return;
    for (const id of new Set([...Object.keys(before.keys ?? {}), ...Object.keys(keys)])) {
      if (before.keys?.[id] !== keys[id]) this.#values.keys = { ...this.#values.keys, [id]: keys[id] ?? "" };
    }
  }
}

/** Settings by provider: of these a change names some. */
const BY_PROVIDER = ["providers", "keys"];

function merged(values, changes) {
  const all = { ...values, ...changes };
  for (const name of BY_PROVIDER) all[name] = { ...values[name], ...changes[name] };
  return all;
}

function same(a, b) {
  return Object.keys(a).every((name) => a[name] === b[name]);
}

function read() {
  try {
    return parse(localStorage.getItem(PLACE));
  } catch {
    return {};
  }
}

/** @param {string | null} text */
function parse(text) {
  try {
    return JSON.parse(text ?? "{}") ?? {};
  } catch {
    return {};
  }
}
