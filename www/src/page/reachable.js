// Whether a server answers at all. To a page, one that does not run and one that
// allows no pages (CORS) look alike; a request whose answer nobody reads tells.

import { mayAsk } from "./address.js";

/** How long an answer is waited for, in ms. */
const WAIT_MS = 3_000;

/**
 * @param {string} origin
 * @returns {Promise<boolean | undefined>} `undefined`: the page may not ask there
 */
export async function answers(origin) {
  if (!mayAsk(origin) || navigator.onLine === false) return undefined;
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), WAIT_MS);
  try {
    await fetch(`${origin}/`, { mode: "no-cors", credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer", signal: control.signal });
    return true;
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
    // Nobody reads the rest.
    control.abort();
  }
}
