// What went wrong, in one sentence for the person at this page, with the way
// out. The core's own sentences are for programs and name options of theirs.

import { isAddress, mayAsk, whyNot } from "./address.js";

/** What programs read, and what people do. */
const FOR_PEOPLE = [
  [/\bimportArchive: (?=archive )/, "the "],
  [/; raise maxRatio if it is none$/, "; if it is none, unpack it outside and import the folder"],
  [/\bset baseUrl to a proxy of yours that does$/, "put the address of a proxy of yours that does into the settings"],
  [/\bcheck the network and baseUrl$/, "check the network and the address in the settings"],
  [/^resume: .*nothing was cut off; use submit\(\)$/, "nothing was cut off; send a message to go on"],
  [/; close it there, open it with readOnly, or take it over$/, "; close it there, or take it over"],
];

/** Where nothing answered. @param {string} message */
function unreachable(message) {
  const origin = message.match(/cannot connect to (https?:\/\/(?:\[[^\]\s]+\]|[^\s:/]+)(?::\d+)?)/)?.[1];
  return origin && isAddress(origin) ? origin : undefined;
}

/**
 * @param {{code: string, message: string}} error an event's
 * @param {boolean} online whether the browser sees a network
 */
export function explain({ code, message }, online) {
  const origin = code === "network" ? unreachable(message) : undefined;
  if (origin && !mayAsk(origin)) return whyNot(origin);
  if (code === "network" && !online) return "There is no network; connect and send the message again.";
  if (origin) {
    return `No connection to ${origin}: if the network is fine, that server does not run, or it does not allow requests from web pages (CORS). Then a proxy of yours, which does and passes them on, helps; its address goes into the settings.`;
  }
  return sentence(message);
}

/**
 * What is tried once more, and when. Where nothing answers, the end says why.
 * @param {{message: string, attempt: number, delay_ms: number}} retry an event's
 */
export function again({ message, attempt, delay_ms: wait }) {
  const origin = unreachable(message);
  const what = origin ? `No connection to ${origin} yet.` : sentence(message);
  return `${what} Attempt ${attempt} follows${wait >= 1000 ? ` in ${seconds(wait)}` : ""}.`;
}

/** @param {number} ms */
function seconds(ms) {
  const all = Math.round(ms / 1000);
  if (all < 120) return `${all} s`;
  return `${Math.round(all / 60)} min`;
}

/** The core's messages start in lower case and have no full stop. @param {string} message */
export function sentence(message) {
  const meant = FOR_PEOPLE.reduce((text, [pattern, words]) => text.replace(pattern, words), message);
  const text = meant.charAt(0).toUpperCase() + meant.slice(1);
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
