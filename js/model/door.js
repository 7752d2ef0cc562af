// The door: where a key meets a request. The core names a credential and never
// sees its key. The key goes into the header only if the request goes to the
// origin that the key belongs to, so that a changed URL cannot carry it
// elsewhere. No request follows a redirect: with a key it would carry the key
// along, and without one the core checks where a redirect leads. A key that
// comes back is replaced.

import { violations } from "../platform/content-security-policy.js";
import { text } from "../shared/errors.js";
import { Keys } from "./redact.js";

/**
 * @typedef {object} Credential
 * @property {string | null | (() => string | Promise<string>)} key `null`: no
 *   key here, because what stands at the base URL adds it
 * @property {string} baseUrl where the key belongs; only its origin counts
 */

/** Keys of one credential that are remembered: those of a day, where a function gives another one every hour. */
const REMEMBERED = 24;

/**
 * A function that sends the core's requests.
 * @param {typeof globalThis.fetch} fetch
 * @param {Map<string, Credential>} credentials
 * @param {Keys} [keys] gets them, and finds them in what is said elsewhere
 */
export function createDoor(fetch, credentials, keys = new Keys()) {
  /** By credential, the latest last. @type {Map<string, string[]>} */
  const known = new Map();
  const remember = (name, key) => {
    const earlier = known.get(name) ?? [];
    if (earlier.at(-1) === key) return;
    known.set(name, [...earlier.filter((other) => other !== key), key].slice(-REMEMBERED));
    keys.lookFor(new Set([...known.values()].flat()));
  };
  for (const [name, { key }] of credentials) if (typeof key === "string") remember(name, key.trim());
  return async function send(request, signal) {
    const url = new URL(request.url);
    const headers = new Headers(request.headers);
    if (request.auth) {
      const key = await keyFor(request.auth.credential, url, credentials);
      if (key !== undefined) {
        remember(request.auth.credential, key);
        headers.set(request.auth.header, request.auth.prefix + key);
      }
    }
    // Plain data, which every `fetch` of a caller's takes and shows.
    const init = {
      method: request.method,
      headers: Object.fromEntries(headers),
      body: request.body.length > 0 ? new TextDecoder().decode(request.body) : undefined,
      // Not "error": that looks like any broken connection, and some runtimes
      // do not have it.
      redirect: "manual",
      signal,
    };
    const policy = violations();
    let response;
    try {
      response = await fetch(request.url, init);
    } catch (error) {
      if (!signal?.aborted) await policy.told();
      const { kind, message } = policy.refused(url) ? forbidden(url) : unreachable(url, error);
      throw failure(kind, keys.replace(message));
    } finally {
      policy.end();
    }
    if (!isResponse(response)) {
      throw failure("broken", "fetch returned something that is not a Response with an unread body");
    }
    if (!isStatus(response.status)) {
      throw failure("invalid", `fetch returned a response with status ${response.status}, which HTTP does not have`);
    }
    if (request.auth && redirects(response)) {
      await response.body?.cancel().catch(() => {});
      throw failure(
        "invalid",
        `${url.origin} answered with a redirect, which a request with a key does not follow; ` +
          "set baseUrl to the final address",
      );
    }
    if (!request.auth && hides(response)) {
      await response.body?.cancel().catch(() => {});
      throw failure(
        "invalid",
        `${url.origin} redirects, and fetch does not show where to, so it is not followed; ` +
          "use the final address",
      );
    }
    return keys.replaceInResponse(response);
  };
}

/**
 * Checks what the caller gave, early and by name. Sentences never hold the key.
 * @param {string} name @param {Credential} credential
 */
export function checkCredential(name, { key, baseUrl }) {
  const problem = checkAddress(baseUrl);
  if (problem) return problem;
  if (key === null || typeof key === "function") return undefined;
  return checkKey(name, key);
}

/** What is wrong with a base URL, if anything; the sentence holds no password. @param {string} baseUrl */
export function checkAddress(baseUrl) {
  // Also of what is no URL: one letter may be missing.
  const shown = withoutUser(String(baseUrl));
  if (!isHttp(baseUrl)) return `baseUrl is not an absolute http or https URL: ${shown}`;
  const { username, password, search, hash } = new URL(baseUrl);
  if (search !== "" || hash !== "") return `baseUrl holds a query or a fragment, behind which no path can stand: ${shown.replace(/[?#].*/s, "…")}; leave it out`;
  if (username === "" && password === "") return undefined;
  return `baseUrl holds a user name or a password, which no request carries: ${shown}; leave them out, and give a key as apiKey`;
}

/** Without what stands before an `@`; in time that grows with the length only. */
function withoutUser(address) {
  const hidden = (part) => (part.includes("@") ? `…${part.slice(part.lastIndexOf("@"))}` : part);
  return address.split(/([/\s])/).map(hidden).join("");
}

function checkKey(name, key) {
  if (typeof key !== "string") return `the key of \`${name}\` is not a string`;
  if (key.trim() === "") return `the key of \`${name}\` is empty`;
  if (!/^[\x20-\x7e]+$/.test(key.trim())) {
    return `the key of \`${name}\` holds a character that an HTTP header cannot carry; check it for line breaks`;
  }
  return undefined;
}

/** The key that goes to `url`; `undefined`: what stands there adds it. */
async function keyFor(name, url, credentials) {
  const credential = credentials.get(name);
  if (!credential) {
    throw failure(
      "credential",
      `no key is given for credential \`${name}\`; pass apiKey, or apiKey: null if what ` +
        "stands at baseUrl adds the key",
    );
  }
  const { origin } = new URL(credential.baseUrl);
  if (url.origin !== origin) {
    throw failure(
      "credential",
      `credential \`${name}\` belongs to ${origin} and is not sent to ${url.origin}`,
    );
  }
  if (credential.key === null) return undefined;
  let { key } = credential;
  if (typeof key === "function") {
    try {
      key = await key();
    } catch {
      // What it threw may hold secrets.
      throw failure("credential", `the function that gives the key of \`${name}\` failed`);
    }
    const problem = checkKey(name, key);
    if (problem) throw failure("credential", problem);
  }
  return key.trim();
}

/** A `fetch` of the user's may return anything; the driver relies on this much. */
function isResponse(response) {
  const { status, headers, body, bodyUsed } = response ?? {};
  if (typeof status !== "number" || typeof headers?.entries !== "function" || bodyUsed) return false;
  return !body || (typeof body.getReader === "function" && !body.locked);
}

/** 0: what a browser does not show. */
function isStatus(status) {
  return status === 0 || (Number.isInteger(status) && status >= 100 && status <= 999);
}

function redirects(response) {
  // Browsers hide a refused redirect behind status 0; a fetch of the user's may
  // have followed it all the same.
  const { status } = response;
  return (
    response.type === "opaqueredirect" ||
    response.redirected ||
    (status >= 300 && status < 400 && status !== 304)
  );
}

/** Whether the core cannot see where a redirect leads, or led. */
function hides(response) {
  return response.type === "opaqueredirect" || response.redirected;
}

/** Causes, as Node names them, that mean: there never was a connection. */
const NO_CONNECTION = /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOST|ENET|EADDR|ERR_TLS|UND_ERR_CONNECT|CERT_|DEPTH_|SELF_SIGNED|UNABLE_)/;

function forbidden({ origin }) {
  return failure("connect", `cannot connect to ${origin}: the content security policy forbids it; allow it with connect-src ${origin}`);
}

function unreachable(url, error) {
  const code = error?.cause?.code;
  if (typeof code === "string" && !NO_CONNECTION.test(code)) {
    const cause = text(error.cause);
    return failure("broken", `the connection to ${url.origin} broke before a response arrived: ${cause}`);
  }
  // Pages learn nothing: no network, a name that does not exist and a server
  // that does not allow the page's origin (CORS) all look alike.
  const cause = error?.cause ? text(error.cause) : text(error);
  const wayOut = globalThis.location
    ? "check the network; if the server does not allow requests from web pages (CORS), set " +
      "baseUrl to a proxy of yours that does"
    : "check the network and baseUrl";
  return failure("connect", `cannot connect to ${url.origin}: ${cause}; ${wayOut}`);
}

function isHttp(url) {
  try {
    return ["http:", "https:"].includes(new URL(url).protocol);
  } catch {
    return false;
  }
}

function failure(kind, message) {
  return { kind, message };
}
