// Before the page goes: what is not kept yet is stored, and asked about while
// that takes.

/**
 * @param {object} actions
 * @param {() => boolean} actions.isOpen whether something would be lost
 * @param {() => Promise<unknown>} actions.store begins to keep it
 */
export function watchLeaving({ isOpen, store }) {
  const begin = () => void store().catch(() => {});
  addEventListener("beforeunload", (event) => {
    if (!isOpen()) return;
    event.preventDefault();
    // Who stays finds it kept.
    begin();
  });
  // Phones close pages without asking.
  addEventListener("pagehide", begin);
  document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && begin());
}
