// What the user chose: provider, model, key, proxy, theme. Everything but the
// key is kept in this browser; the key only if the user asks for it.

import { PROVIDERS, SCRIPTED } from "./agent.js";

/**
 * @typedef {object} Choice which model to use
 * @property {string} provider
 * @property {string} model empty: the provider's default
 * @property {string} key
 * @property {string} baseUrl empty: the provider's own address
 * @property {string} effort empty: the model's default
 */

const PLACE = "hermitcrab.settings";

const DEFAULTS = {
  provider: SCRIPTED,
  theme: "auto",
  previewOnline: false,
  rememberKeys: false,
  /** By provider: {model, baseUrl, effort}. */
  providers: {},
  /** By provider; saved only with `rememberKeys`. */
  keys: {},
};

export class Settings extends EventTarget {
  #values = { ...DEFAULTS, ...read() };

  /** @returns {Choice} */
  get choice() {
    const provider = PROVIDERS.some(({ id }) => id === this.#values.provider) ? this.#values.provider : SCRIPTED;
    const { model = "", baseUrl = "", effort = "" } = this.#values.providers[provider] ?? {};
    return { provider, model, baseUrl, effort, key: this.#values.keys[provider] ?? "" };
  }

  /** @param {string} provider @returns {Choice} */
  of(provider) {
    const { model = "", baseUrl = "", effort = "" } = this.#values.providers[provider] ?? {};
    return { provider, model, baseUrl, effort, key: this.#values.keys[provider] ?? "" };
  }

  /** @param {Choice} choice */
  choose({ provider, key, ...rest }) {
    this.#values.provider = provider;
    this.#values.providers = { ...this.#values.providers, [provider]: rest };
    this.#values.keys = { ...this.#values.keys, [provider]: key };
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
    this.dispatchEvent(new Event("change"));
  }
}

function read() {
  try {
    return JSON.parse(localStorage.getItem(PLACE) ?? "{}");
  } catch {
    return {};
  }
}
