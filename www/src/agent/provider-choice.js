// What is wrong with the choice of a provider, or missing in it, in a sentence.

import { mayAsk, whyNot } from "../page/address.js";
import { PROVIDERS, SCRIPTED } from "./agent.js";

const REAL = PROVIDERS.filter(({ id }) => id !== SCRIPTED);

/**
 * What has to be settled before a message is sent; `undefined`: nothing.
 * @param {import("./settings.js").Choice} choice
 */
export function missing({ provider, key, baseUrl }) {
  if (provider === SCRIPTED) return undefined;
  const { name } = REAL.find(({ id }) => id === provider);
  if (provider === "chat" && !baseUrl) return "The address of the Chat Completions server is missing: say in the settings where it is.";
  if (key || baseUrl) return undefined;
  return `The key for ${name} is missing. A key that is not remembered goes with the page that it was given to: paste it in the settings, or give the address of a proxy that adds one.`;
}

/** What is missing; `undefined` if nothing. @param {string} provider @param {Record<string, object>} draft */
export function wrong(provider, draft) {
  const bad = REAL.find(({ id }) => draft[id].baseUrl && !isAddress(draft[id].baseUrl));
  if (bad) return `The address for ${bad.name} must start with https:// or http://.`;
  const closed = REAL.find(({ id }) => draft[id].baseUrl && !mayAsk(draft[id].baseUrl));
  if (closed) return whyNot(draft[closed.id].baseUrl);
  const named = REAL.find(({ id }) => draft[id].baseUrl && hasUser(draft[id].baseUrl));
  if (named) return `The address for ${named.name} holds a user name or a password, which requests cannot carry; leave them out.`;
  if (provider === SCRIPTED) return undefined;
  const { key, baseUrl, model: name } = draft[provider];
  if (provider === "chat" && !baseUrl) return "Say where the server is, for example http://localhost:11434/v1.";
  if (!name) return "Say which model the server should use.";
  if (!key && !baseUrl) return "Paste a key, or give the address of a proxy that adds one.";
  return undefined;
}

function isAddress(text) {
  return /^https?:\/\/[^/\s]/.test(text) && URL.canParse(text);
}

/** Whether an address holds a user name or a password. @param {string} text */
function hasUser(text) {
  const { username, password } = new URL(text);
  return username !== "" || password !== "";
}
