// Which servers the page may ask: those that its policy lists (POLICY in
// vite.config.js, which is the source of this).

/** Names of this machine that a policy can hold; it cannot hold `[::1]`. */
const LOOPBACK = ["localhost", "127.0.0.1"];

/** @param {string} text */
export function isAddress(text) {
  try {
    return Boolean(new URL(text));
  } catch {
    return false;
  }
}

/** Whether the page may send requests there. @param {string} address @param {string} [own] the page's origin */
export function mayAsk(address, own = globalThis.location?.origin) {
  const { protocol, hostname, origin } = new URL(address);
  return protocol === "https:" || origin === own || (protocol === "http:" && LOOPBACK.includes(hostname));
}

/** The address with a name that policies can hold, where there is one. @param {string} address */
export function speakable(address) {
  return address.replace(/^http:\/\/\[::1\](?=[:/]|$)/i, "http://localhost");
}

/** Why the page may not ask an address, and the way out. @param {string} address */
export function whyNot(address) {
  const { origin, port, host } = new URL(address);
  const name = host.replace(/:\d+$/, "");
  return `This page may ask https:// addresses and this computer (localhost, 127.0.0.1) only, and not ${origin}: over plain http a key could be read on the way. Give that server an https:// address, forward a port of this computer to it (ssh -N -L ${port || 8080}:localhost:${port || 80} ${name}) and use http://localhost:${port || 8080}, or add it to POLICY in www/vite.config.js of a playground of your own.`;
}
