// Content security policies: what one refuses fails like a network that is down,
// and only an event tells them apart.

/** How long browsers take at most to tell, once it has failed, in ms. */
const TELLING_MS = 100;

/** What a content security policy refuses from now on. */
export function violations() {
  const directives = new Set();
  const addresses = new Set();
  const listener = ({ effectiveDirective, blockedURI }) => {
    directives.add(effectiveDirective);
    if (effectiveDirective === "connect-src") addresses.add(blockedURI);
  };
  globalThis.addEventListener?.("securitypolicyviolation", listener);
  return {
    forbids: (...names) => names.find((name) => directives.has(name)),
    /** Whether a connection to `url` was refused. @param {URL} url */
    refused: ({ origin }) => [...addresses].some((address) => address === origin || address.startsWith(`${origin}/`)),
    /** Waits for what is still to come of a failure. */
    async told() {
      if (directives.size > 0 || !globalThis.SecurityPolicyViolationEvent) return;
      await new Promise((resolve) => {
        globalThis.addEventListener("securitypolicyviolation", resolve, { once: true });
        setTimeout(resolve, TELLING_MS);
      });
    },
    end: () => globalThis.removeEventListener?.("securitypolicyviolation", listener),
  };
}
