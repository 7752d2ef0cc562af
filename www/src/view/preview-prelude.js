// Runs in the preview before the page's own code: tells the playground what the
// page writes to its console, and answers `fetch` with files of the project. It
// is put into the page as text.

/* global parent */

/** Ways to the network that no policy of a page's covers. */
const UNCOVERED = ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "RTCIceTransport"];

/** @param {{files: Record<string, string>, page: string, network: boolean}} settings `files`: data URLs by path */
function prelude({ files, page, network }) {
  // Its parent only holds the frame.
  const playground = parent.parent;
  const send = (message, ports) => playground.postMessage(message, "*", ports);
  if (!network) for (const name of UNCOVERED) delete window[name];
  const { port1, port2 } = new MessageChannel();
  send({ kind: "shown" }, [port2]);
  addEventListener("pagehide", () => port1.postMessage("gone"));
  watch((level, values) => send({ kind: "console", level, text: values.map(show).join(" ") }));
  answerFetch(files, page);
}

function watch(tell) {
  for (const level of ["log", "info", "warn", "error"]) {
    const own = console[level].bind(console);
    console[level] = (...values) => {
      own(...values);
      tell(level, values);
    };
  }
  addEventListener("error", (event) => tell("error", [event.message]));
  addEventListener("unhandledrejection", (event) => tell("error", [event.reason]));
  addEventListener("securitypolicyviolation", (event) => {
    tell("warn", [`${event.blockedURI} is blocked: the preview has no network; tick “network” above to let it load from other sites`]);
  });
}

/** Data files of the project answer to `fetch`. */
function answerFetch(files, page) {
  const real = window.fetch.bind(window);
  window.fetch = async (input, init) => {
    const address = typeof input === "string" ? input : input?.url;
    if (typeof address !== "string" || /^[a-z][a-z0-9+.-]*:/i.test(address)) return real(input, init);
    const path = resolve(address, page);
    if (!Object.hasOwn(files, path)) throw new TypeError(`Failed to fetch: the project has no data file ${path}`);
    return real(files[path], init);
  };
}

function resolve(address, page) {
  return decodeURIComponent(new URL(address, new URL(page, "http://project/")).pathname.slice(1));
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
