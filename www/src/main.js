// Starts the page: shows the progress of the first load, then the project that
// was open last, or the sample.

import "./style/base.css";
import "./style/layout.css";
import "./style/parts.css";
import { start as startAgent } from "./agent/agent.js";
import { Settings } from "./agent/settings.js";
import { h } from "./page/dom.js";
import { applyTheme } from "./page/theme.js";
import { toast } from "./page/toast.js";
import { RUN_FILES } from "./run/share.js";
import { Workbench } from "./workbench.js";

// From here on this script says what goes wrong.
document.documentElement.dataset.started = "";
document.getElementById("boot-late")?.remove();

const settings = new Settings();
applyTheme(settings);

/** @type {Workbench | undefined} */
let opened;

async function start() {
  const bar = document.getElementById("boot-bar");
  const label = document.getElementById("boot-label");
  const workbench = new Workbench(settings);
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  const progress = (done) => {
    bar.value = Math.min(1, done / CORE_BYTES);
    label.textContent = `Loading the sandbox… ${megabytes(done)} of ${megabytes(CORE_BYTES)} MB`;
  };
  await startAgent(progress, () => workbench.restarted());
  label.textContent = "Starting…";
  await workbench.start();
  document.getElementById("boot").remove();
  document.body.dataset.ready = "yes";
  opened = workbench;
  if (!globalThis.isSecureContext) toast(PLAIN, "error");
}

/** What browsers keep from pages that may have been changed on the way. */
const PLAIN = "This page came over plain http, where browsers offer less: it does not load without a network, and tabs do not notice each other, so open a project in one tab only. Over https, or from this computer, all of it works.";

start().catch((error) => {
  console.error(error);
  const label = document.getElementById("boot-label");
  if (!label) throw error;
  const again = h("button", { type: "button", onClick: () => location.reload() }, "Try again");
  label.after(again);
  label.textContent = navigator.onLine === false
    ? "There is no network, and this page has not been loaded completely before. Connect and reload."
    : `The playground cannot start: ${error.message.replace(/\.?$/, ".")}`;
  label.className = "failed";
});

// A file that misses the tree would otherwise take the place of the page. First here: the editor
// would take the text of a run.
for (const kind of ["dragover", "drop"]) {
  addEventListener(kind, (event) => {
    const { target, dataTransfer: data } = event;
    if (!data?.types.includes("Files") || target.closest?.(".files")) return;
    const files = [...data.files];
    // While files are dragged their names are not known.
    if (target.closest?.(".cm-editor") && !files.some(({ name }) => RUN_FILES.test(name))) return;
    event.preventDefault();
    data.dropEffect = opened ? "copy" : "none";
    if (kind === "dragover") return;
    event.stopPropagation();
    void opened?.dropped(files);
  }, { capture: true });
}

// Not in the dev server, whose files change.
if (import.meta.env.PROD && "serviceWorker" in navigator) {
  navigator.serviceWorker.register("./sw.js").catch(() => {
    // Denied in private windows of some browsers: everything but an offline reload works.
  });
}
