// Starts the workers in which `node` runs the project's code. A worker that comes
// from an address has the policy that its host sends, mostly none, and could
// import from anywhere; one that comes from a blob takes over the policy of the
// document that starts it. That document is `node.html`, since the page's own
// policy lets nobody evaluate code.

import source from "../../../js/programs/javascript-worker.js?worker&url";
import { h } from "../page/dom.js";

let opening;
let entry;

/** @returns {Promise<Worker>} */
export async function sealedWorker() {
  opening ??= openFrame().catch((error) => {
    // The next call tries again.
    opening = undefined;
    throw error;
  });
  const { Worker } = await opening;
  entry ??= URL.createObjectURL(new Blob([`import ${JSON.stringify(new URL(source, location.href))};`], { type: "text/javascript" }));
  return new Worker(entry, { type: "module" });
}

/** @returns {Promise<Window & typeof globalThis>} */
async function openFrame() {
  const frame = h("iframe", { src: "node.html", hidden: true });
  const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
  document.body.append(frame);
  await loaded;
  if (frame.contentDocument?.documentElement.hasAttribute("data-sealed")) return frame.contentWindow;
  frame.remove();
  throw new Error("node.html cannot be loaded, from which `node` starts; check the network");
}
