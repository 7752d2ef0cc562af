// What went wrong, in one sentence for the person at this page, with the way
// out. The core's own sentences are for programs and name options of theirs.

import { isAddress, mayAsk, whyNot } from "./address.js";

/** What programs read, and what people do. */
const FOR_PEOPLE = [
  [/\bimportArchive: (?=archive )/, "the "],
  [/; raise maxRatio if it is none$/, "; if it is none, unpack it outside and import the folder"],
  [/\bset baseUrl to a proxy of yours that does$/, "put the address of a proxy of yours that does into the settings"],
  [/\bcheck the network and baseUrl$/, "check the network and the address in the settings"],
  [/^the log became larger than record\.maxBytes .*$/, "the log of this project is larger than 64 MB, which is more than the page keeps; share the run as JSON"],
  [/^resume: .*nothing was cut off; use submit\(\)$/, "nothing was cut off; send a message to go on"],
  [/; close it there, open it with readOnly, or take it over$/, "; close it there, or take it over"],
];

/** The origin that could not be reached, if that is what a message says. @param {string} message */
export function unreachable(message) {
  const origin = message.match(/cannot connect to (https?:\/\/(?:\[[^\]\s]+\]|[^\s:/]+)(?::\d+)?)/)?.[1];
  return origin && isAddress(origin) ? origin : undefined;
}

/** The server is there, and the browser keeps its answer from the page. @param {string} origin */
function closed(origin) {
  return `${origin} is there, but it does not let web pages read its answers (CORS)`;
}

/**
 * @param {{code: string, message: string, status?: number | null}} error an event's
 * @param {boolean} online whether the browser sees a network
 * @param {boolean} [answers] whether a server that could not be reached answers at all, if that is known
 */
export function explain({ code, message, status }, online, answers) {
  const origin = code === "network" ? unreachable(message) : undefined;
  if (origin && !mayAsk(origin)) return whyNot(origin);
  if (code === "network" && !online) return "There is no network; connect and send the message again.";
  if (origin && answers === true) {
    return `${closed(origin)}. Either it never does, and a proxy of yours that passes requests on and allows this page helps: its address goes into the settings. Or it does only for requests that it accepts: then check the key and the address there first.`;
  }
  if (origin && answers === false) {
    return `Nothing answers at ${origin}. Check the address in the settings, that the server runs, and that nothing in between (a firewall, an extension) blocks it; then try again.`;
  }
  if (code === "authentication") {
    const said = message.match(/\((.*)\)/s)?.[1] ?? message;
    if (/ wants a key /.test(message)) return `The server answered, and it wants a key (${status ?? 401}: ${said}). Paste one in the settings.`;
    return `The server answered, and it refused the key (${status ?? 401}: ${said}). Check the key in the settings: that it is whole, and this provider's.`;
  }
  if (origin) {
    return `No connection to ${origin}: if the network is fine, that server does not run, or it does not allow requests from web pages (CORS). Then a proxy of yours, which does and passes them on, helps; its address goes into the settings.`;
  }
  return sentence(message);
}

/**
 * What is tried once more, and when. Where nothing answers, the end says why.
 * @param {{message: string, attempt: number, delay_ms: number}} retry an event's
 * @param {boolean} [answers] as for `explain`
 */
export function again({ message, attempt, delay_ms: wait }, answers) {
  const origin = unreachable(message);
  const what = !origin ? sentence(message) : answers ? `${closed(origin)}.` : `No connection to ${origin} yet.`;
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
