// Files from outside: chosen, dropped, whole folders.

/** What one import may hold, in bytes; a tab has no more to spare. */
export const MOST_BYTES = 100_000_000;

/** Folders that are large and made by tools; they are left out. */
export const SKIPPED = ["node_modules", ".git", "target", "dist", "__pycache__", ".venv"];

/** @typedef {{files: Record<string, Uint8Array>, skipped: string[]}} Upload `skipped`: names of folders that were left out */

/** @param {File[]} list @returns {Promise<Upload>} */
export async function filesFrom(list) {
  return read(list.map((file) => ({ file, path: withoutTop(file.webkitRelativePath) || file.name })));
}

/**
 * What was dropped; folders with all they hold.
 * @param {DataTransferItemList} items @returns {Promise<Upload>}
 */
export async function dropped(items) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const found = [];
  for (const entry of entries) await walk(entry, "", found);
  return read(found);
}

async function walk(entry, parent, found) {
  const path = parent + entry.name;
  if (entry.isFile) {
    found.push({ path, file: await new Promise((resolve, reject) => entry.file(resolve, reject)) });
    return;
  }
  if (SKIPPED.includes(entry.name)) {
    // Nothing in it is looked at.
    found.push({ path: `${path}/` });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const each of some) await walk(each, `${path}/`, found);
  }
}

async function read(named) {
  const skippedIn = (path) => path.split("/").slice(0, -1).find((part) => SKIPPED.includes(part));
  const skipped = [...new Set(named.map(({ path }) => skippedIn(path)).filter(Boolean))];
  const wanted = named.filter(({ path }) => !skippedIn(path));
  const total = wanted.reduce((sum, { file }) => sum + file.size, 0);
  if (total > MOST_BYTES) {
    throw new Error(`${(total / 1e6).toFixed(0)} MB are too much for the sandbox, which takes ${MOST_BYTES / 1e6} MB at once; leave large files out`);
  }
  const contents = await Promise.all(wanted.map(async ({ path, file }) => [path, new Uint8Array(await file.arrayBuffer())]));
  return { files: Object.fromEntries(contents), skipped };
}

/** A chosen folder's own name is not part of the project. */
function withoutTop(path) {
  return path ? path.slice(path.indexOf("/") + 1) : "";
}
