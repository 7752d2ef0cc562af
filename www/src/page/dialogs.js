// Dialogs and the browser's Back: while one is open, the history has an entry
// more, and going back closes the dialog instead of leaving the page.

/** Dialogs that were shown, the topmost last. @type {HTMLDialogElement[]} */
let shown = [];
/** Whether the entry that the browser is at is the one that dialogs put there. */
let guarded = Boolean(history.state?.dialog);
/** Whether the page itself is on its way back from that entry. */
let leaving = false;

/** Shows a dialog that Back closes, as Escape does. @param {HTMLDialogElement} dialog */
export function showDialog(dialog) {
  dialog.showModal();
  shown.push(dialog);
  // One that closes often makes room for the next.
  dialog.addEventListener("close", () => setTimeout(settle), { once: true });
  settle();
}

/** Brings the history in step with what is open. */
function settle() {
  shown = shown.filter(({ open }) => open);
  if (leaving) return;
  if (shown.length > 0 && !guarded) {
    history.pushState({ dialog: true }, "");
    guarded = true;
  } else if (shown.length === 0 && guarded) {
    leaving = true;
    history.back();
  }
}

addEventListener("popstate", ({ state }) => {
  guarded = Boolean(state?.dialog);
  if (leaving) leaving = false;
  else if (!guarded) cancel(shown.at(-1));
  settle();
});

/** As Escape does it: some dialogs answer something then. @param {HTMLDialogElement | undefined} dialog */
function cancel(dialog) {
  if (dialog?.dispatchEvent(new Event("cancel", { cancelable: true }))) dialog.close();
}

// After a reload of a page that showed one.
settle();
