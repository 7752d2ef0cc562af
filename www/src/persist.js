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

/** Asks the browser not to delete it when space is short. */
export function keep() {
  return navigator.storage?.persist?.().catch(() => false);
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
