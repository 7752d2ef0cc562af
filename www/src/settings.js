// What the user chose: provider, model, keys, proxies, approval, theme.
// Everything but the keys is kept in this browser; keys only if the user asks.

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

  /** @returns {Choice} */
  get choice() {
    const provider = PROVIDERS.some(({ id }) => id === this.#values.provider) ? this.#values.provider : SCRIPTED;
    const all = PROVIDERS.filter(({ id }) => id !== SCRIPTED && id !== provider).map(({ id }) => [id, this.of(id)]);
    const others = all.filter(([, { key, baseUrl }]) => key || baseUrl).map(([id, { key, baseUrl }]) => [id, { key, baseUrl }]);
    return { provider, ...this.of(provider), others: Object.fromEntries(others) };
  }

  /** What is set for a provider. @param {string} provider @returns {Omit<Choice, "provider" | "others">} */
  of(provider) {
    const { model = "", baseUrl = "", effort = "" } = this.#values.providers[provider] ?? {};
    return { model, baseUrl, effort, key: this.#values.keys[provider] ?? "" };
  }

  /** @param {string} provider the one in use @param {Record<string, Omit<Choice, "provider" | "others">>} all by provider */
  choose(provider, all) {
    const entries = Object.entries(all);
    this.#values.provider = provider;
    this.#values.providers = Object.fromEntries(entries.map(([id, { key: _, ...rest }]) => [id, rest]));
    this.#values.keys = Object.fromEntries(entries.map(([id, { key }]) => [id, key]));
    this.#save();
  }

  get(name) {
    return this.#values[name];
  }

  set(name, value) {
    this.#values[name] = value;
    this.#save();
  }

  #save() {
    const { keys, ...kept } = this.#values;
    try {
      localStorage.setItem(PLACE, JSON.stringify(kept.rememberKeys ? { ...kept, keys } : kept));
    } catch {
      // Storage is denied or full: the choice holds until the page is closed.
    }
  }
}

function read() {
  try {
    return JSON.parse(localStorage.getItem(PLACE) ?? "{}");
  } catch {
    return {};
  }
}
