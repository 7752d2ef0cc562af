// Runs in the preview before the page's own code: tells the playground what the
// page writes to its console and which page a link leads to, answers what the
// page asks for with files of the project, and stands in for the storage that
// pages of no origin do not have. It is put into the page as text.

/* global parent */

/** Ways to the network that no policy of a page's covers. */
const UNCOVERED = ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "RTCIceTransport"];
/** Lines of the console that are shown. */
const MOST_LINES = 500;

/**
 * @param {object} settings
 * @param {Record<string, string>} settings.files data URLs by path
 * @param {string[]} settings.pages paths @param {string} settings.page the path of this one
 * @param {string} settings.fragment the place in it to begin at
 * @param {boolean} settings.network
 */
function prelude({ files, pages, page, fragment, network }) {
  // Its parent only holds the frame.
  const playground = parent.parent;
  const send = (message, ports) => playground.postMessage(message, "*", ports);
  if (!network) for (const name of UNCOVERED) delete window[name];
  const { port1, port2 } = new MessageChannel();
  send({ kind: "shown" }, [port2]);
  addEventListener("pagehide", () => port1.postMessage("gone"));
  watch((level, text) => send({ kind: "console", level, text }));
  const pathOf = (address) => resolve(address, page);
  const find = (address) => {
    const path = pathOf(address);
    return path !== undefined && Object.hasOwn(files, path) ? files[path] : undefined;
  };
  answerRequests(find, pathOf);
  answerElements(find);
  followLinks(pages, pathOf, (path, fragment) => send({ kind: "go", page: path, fragment }));
  for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(window, name, { value: storage(), configurable: true });
  // In its first frame it has its places.
  if (fragment) addEventListener("load", () => requestAnimationFrame(() => void (location.hash = fragment)));
}

function watch(send) {
  let told = 0;
  const tell = (level, values) => {
    told += 1;
    if (told < MOST_LINES) send(level, values.map(show).join(" "));
    else if (told === MOST_LINES) send("warn", "What follows is not shown here.");
  };
  for (const level of ["log", "info", "warn", "error"]) {
    const own = console[level].bind(console);
    console[level] = (...values) => {
      own(...values);
      tell(level, values);
    };
  }
  addEventListener("error", (event) => event.message && tell("error", [event.message]));
  addEventListener("unhandledrejection", (event) => tell("error", [event.reason]));
  addEventListener("securitypolicyviolation", (event) => {
    tell("warn", [`${event.blockedURI} is blocked: the preview has no network; tick “network” above to let it load from other sites`]);
  });
}

/** Files of the project answer to `fetch` and `XMLHttpRequest`. */
function answerRequests(find, pathOf) {
  const realFetch = window.fetch.bind(window);
  window.fetch = async (input, init) => {
    const address = typeof input === "string" ? input : input?.url;
    const path = pathOf(address);
    if (path === undefined) return realFetch(input, init);
    const found = find(address);
    if (!found) throw new TypeError(`Failed to fetch: the preview has no file ${path} for the page`);
    return realFetch(found, init);
  };
  const { open } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, address, ...rest) {
    return open.call(this, method, find(address) ?? address, ...rest);
  };
}

/** Files of the project are what elements of the page's scripts show and load. */
function answerElements(find) {
  const sources = { IMG: "src", AUDIO: "src", VIDEO: "src", SOURCE: "src", SCRIPT: "src", LINK: "href" };
  const own = [HTMLImageElement, HTMLMediaElement, HTMLSourceElement, HTMLScriptElement].map(({ prototype }) => [prototype, "src"]);
  for (const [prototype, name] of [...own, [HTMLLinkElement.prototype, "href"]]) {
    const { get, set } = Object.getOwnPropertyDescriptor(prototype, name);
    Object.defineProperty(prototype, name, { configurable: true, enumerable: true, get, set(value) { set.call(this, find(value) ?? value); } });
  }
  const { setAttribute } = Element.prototype;
  Element.prototype.setAttribute = function (name, value) {
    return setAttribute.call(this, name, sources[this.tagName] === name ? find(value) ?? value : value);
  };
  for (const name of ["Audio", "Worker"]) {
    window[name] = new Proxy(window[name], { construct: (real, [address, ...rest]) => (address === undefined ? new real() : new real(find(address) ?? address, ...rest)) });
  }
  // What comes as HTML.
  const settle = (element) => {
    const name = sources[element.tagName];
    const found = name && find(element.getAttribute(name));
    if (found) setAttribute.call(element, name, found);
  };
  new MutationObserver((records) => {
    for (const element of records.flatMap(({ addedNodes }) => [...addedNodes]).filter((node) => node instanceof Element)) {
      settle(element);
      element.querySelectorAll(Object.keys(sources).join()).forEach(settle);
    }
  }).observe(document, { childList: true, subtree: true });
}

/** A link to another page of the project shows that one. */
function followLinks(pages, pathOf, go) {
  addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const address = event.target.closest?.("a[href], area[href]")?.getAttribute("href");
    const path = pathOf(address);
    if (path === undefined) return;
    const found = [path, `${path}/index.html`.replace(/^\/|\/(?=\/)/g, "")].find((each) => pages.includes(each));
    if (!found) return;
    event.preventDefault();
    go(found, new URL(address, "http://project/").hash);
  });
}

/** The path in the project that an address means; `undefined`: it is none of the project's. */
function resolve(address, page) {
  const text = String(address ?? "");
  if (/^([a-z][a-z0-9+.-]*:|\/\/|#|$)/i.test(text)) return undefined;
  try {
    return decodeURIComponent(new URL(text, new URL(encodeURI(page), "http://project/")).pathname.slice(1));
  } catch {
    // A stray `%`.
    return text;
  }
}

/** What a page may keep until it is loaded again. */
function storage() {
  const kept = new Map();
  const own = {
    get length() { return kept.size; },
    key: (index) => [...kept.keys()][index] ?? null,
    getItem: (name) => kept.get(String(name)) ?? null,
    setItem: (name, value) => void kept.set(String(name), String(value)),
    removeItem: (name) => void kept.delete(String(name)),
    clear: () => kept.clear(),
  };
  return new Proxy(own, {
    get: (_, name) => (name in own ? own[name] : kept.get(name)),
    set: (_, name, value) => (own.setItem(name, value), true),
    has: (_, name) => name in own || kept.has(name),
    deleteProperty: (_, name) => (own.removeItem(name), true),
    ownKeys: () => [...kept.keys()],
    getOwnPropertyDescriptor: (_, name) => (kept.has(name) ? { value: kept.get(name), configurable: true, enumerable: true, writable: true } : undefined),
  });
}

function show(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return value.stack || String(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
