// Runs in the preview's frame: takes the page from the playground, shows it,
// and tells what the page writes to its console.

addEventListener("message", function take(event) {
  if (event.source !== parent || typeof event.data?.html !== "string") return;
  removeEventListener("message", take);
  document.open();
  watch();
  document.write(event.data.html);
  document.close();
});
parent.postMessage({ kind: "ready" }, "*");

function watch() {
  const tell = (level, values) => {
    const text = values.map(show).join(" ");
    parent.postMessage({ kind: "console", level, text }, "*");
  };
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
  // Data files of the project answer to `fetch`.
  const real = window.fetch.bind(window);
  window.fetch = (input, init) => {
    const address = typeof input === "string" ? input : input?.url;
    const path = typeof address === "string" && !/^[a-z][a-z0-9+.-]*:/i.test(address) && resolve(address);
    const found = path && window.__files?.[path];
    return real(found || input, init);
  };
}

function resolve(address) {
  const base = new URL(window.__page ?? "index.html", "http://project/");
  return decodeURIComponent(new URL(address, base).pathname.slice(1));
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
