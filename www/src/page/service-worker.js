// The service worker: keeps the built files, so that the page loads without a
// network. Large ones, which not everybody uses, are kept when they come for the
// first time. The build fills in the names.

const VERSION = __VERSION__;
const FILES = __FILES__;
const LARGE = __LARGE__;
const CACHE = `hermitcrab-${VERSION}`;
/**
 * Servers that send `Vary: Origin` or `Accept-Encoding` say nothing about these files:
 * whoever asks for a name gets the same bytes.
 */
const SAME = { ignoreVary: true };
/** Outlives the versions: the name of a large file changes with its content. */
const LARGE_CACHE = "hermitcrab-large";

self.addEventListener("install", (event) => {
  const fill = async () => {
    const cache = await caches.open(CACHE);
    // It takes over when the last tab of the version before is closed: until then
    // that one may ask for its old files, which no host has any more.
    await cache.addAll(["./", ...FILES].map(asked));
  };
  event.waitUntil(fill());
});

/** The name of a file in `assets/` changes with its content; of others the browser may have that of the version before. */
function asked(name) {
  return new Request(name, { cache: name.startsWith("assets/") ? "default" : "no-cache" });
}

self.addEventListener("activate", (event) => {
  const clean = async () => {
    const names = await caches.keys();
    const old = names.filter((name) => name.startsWith("hermitcrab-") && name !== CACHE && name !== LARGE_CACHE);
    await Promise.all(old.map((name) => caches.delete(name)));
    const large = await caches.open(LARGE_CACHE);
    for (const request of await large.keys()) if (!isLarge(request)) await large.delete(request);
    await self.clients.claim();
  };
  event.waitUntil(clean());
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== self.location.origin) return;
  event.respondWith(isLarge(request) ? large(event) : answer(request));
});

function isLarge({ url }) {
  return LARGE.some((name) => url === new URL(name, self.registration.scope).href);
}

/** A file that is kept when it has come once. */
async function large(event) {
  const cache = await caches.open(LARGE_CACHE);
  const kept = await cache.match(event.request, SAME);
  if (kept) return kept;
  const response = await fetch(event.request);
  // Where there is no room, it comes over the network again.
  if (response.status === 200) event.waitUntil(cache.put(event.request, response.clone()).catch(() => {}));
  return response;
}

/** Built files never change under one name; the page itself is asked for anew. */
async function answer(request) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request, { ...SAME, ignoreSearch: true });
  if (kept && request.mode !== "navigate") return kept;
  try {
    return await fetch(request);
  } catch (error) {
    if (kept) return kept;
    throw error;
  }
}
