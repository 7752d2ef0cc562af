// Keeping the project across reloads: files and the run, in this browser's
// IndexedDB. Browsers may delete it, so the page also exports.

const DATABASE = "hermitcrab-playground";
const STORE = "project";
const KEY = "current";

/**
 * @typedef {object} Saved
 * @property {string} name @property {Uint8Array} tar @property {object[]} log
 * @property {boolean} isDemo
 */

/** @returns {Promise<Saved | undefined>} */
export function load() {
  return request("readonly", (store) => store.get(KEY));
}

/** @param {Saved} saved */
export function save(saved) {
  return request("readwrite", (store) => store.put(saved, KEY));
}

/**
 * Makes this tab the one that saves.
 * @param {() => void} lost another tab has taken over
 * @param {boolean} steal take over from another tab
 * @returns {Promise<boolean>} whether it is now
 */
export function claim(lost, steal) {
  // Without locks there is no telling; the last tab to save wins.
  if (!navigator.locks) return Promise.resolve(true);
  return new Promise((resolve) => {
    let held = false;
    const options = steal ? { steal } : { ifAvailable: true };
    const keep = (lock) => {
      held = Boolean(lock);
      resolve(held);
      return held ? new Promise(() => {}) : undefined;
    };
    navigator.locks.request(DATABASE, options, keep).catch(() => {
      resolve(false);
      if (held) lost();
    });
  });
}

async function request(mode, act) {
  const database = await open();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const result = act(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(result.result);
      transaction.onabort = () => reject(transaction.error);
      transaction.onerror = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}

function open() {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
    opening.onblocked = () => reject(new Error("another tab holds the storage; close it"));
  });
}
