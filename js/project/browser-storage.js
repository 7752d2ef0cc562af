// Where a browser keeps projects: its private file system (OPFS), else
// IndexedDB. Both do one thing, which a storage of your own may do, too.

import { replaceContent } from "../archive/file-handle.js";
import { EnvironmentError, text } from "../shared/errors.js";

/**
 * @typedef {object} ProjectStorage
 * @property {(project: string, file: string) => Promise<Uint8Array | undefined>} read
 * @property {(project: string, file: string, data: Uint8Array, confirm?: () => Promise<void>) => Promise<void>} write
 *   replaces the file as a whole or not at all; calls `confirm` as late as it can
 *   before the new file counts, and keeps the old one if that rejects
 * @property {(project: string, file: string) => Promise<void>} remove a file; none is fine
 * @property {(project: string) => Promise<void>} delete a project with all its files
 * @property {() => Promise<string[]>} list names of the projects, sorted
 * @property {(project: string) => Promise<string[]>} [files] names of a project's files, to
 *   tell one that has lost some from a new one
 * @property {(project: string, takeOver: boolean, lost: () => void) => Promise<Release | undefined>} [lock]
 *   resolves with what gives the project free, or with `undefined` if somebody
 *   else has it; `lost` is called when somebody takes it over, as far as that
 *   is noticed. Without it, Web Locks keep tabs apart where there are any.
 *
 * What gives a project free, and says whether it is still held: that is asked
 * before each change of what is stored, for a loss that nobody told, and once
 * more by `confirm`.
 * @typedef {(() => unknown) & {held?: () => Promise<boolean>}} Release
 */

const FOLDER = "hermitcrab";
const STORE = "files";

/**
 * The best storage that this browser grants.
 * @returns {Promise<ProjectStorage>}
 */
export async function browserStorage() {
  const failures = [];
  for (const open of [privateFiles, database]) {
    try {
      return await open();
    } catch (error) {
      failures.push(error?.message ?? String(error));
    }
  }
  throw new EnvironmentError(
    "storage_denied",
    `nothing can be stored here (${failures.join("; ")}): the browser blocks it in private windows, sandboxed frames and ` +
      "where site data is off; the work goes on in memory, so export it to keep it",
  );
}

/** Bytes that the name of a folder may have on most disks. */
const FOLDER_NAME_BYTES = 255;

/** A folder for each name, also for `..`. @param {string} project */
export function folderName(project) {
  const name = encodeURIComponent(project).replaceAll(".", "%2E");
  if (name.length <= FOLDER_NAME_BYTES) return name;
  throw new EnvironmentError(
    "invalid_input",
    `the name ${project} takes ${name.length} bytes as that of a folder, and ${FOLDER_NAME_BYTES} are the most; give a shorter one: characters other than letters from A to Z, digits, - and _ take 3 to 12`,
  );
}

/** What `folderName` made a folder of; `undefined`: the folder is none of ours. @param {string} folder */
export function projectName(folder) {
  try {
    const name = decodeURIComponent(folder);
    return folderName(name) === folder ? name : undefined;
  } catch {
    return undefined;
  }
}

/** The private file system. @returns {Promise<ProjectStorage>} */
export async function privateFiles() {
  const writes = typeof globalThis.FileSystemFileHandle?.prototype.createWritable === "function";
  if (!writes || !navigator.storage?.getDirectory) {
    throw new Error("there is no private file system");
  }
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle(FOLDER, { create: true });
  const inProject = (project, create) => folder.getDirectoryHandle(folderName(project), { create });
  return {
    async read(project, file) {
      try {
        const handle = await (await inProject(project, false)).getFileHandle(file);
        return new Uint8Array(await (await handle.getFile()).arrayBuffer());
      } catch (error) {
        if (error?.name === "NotFoundError") return undefined;
        throw error;
      }
    },
    async write(project, file, data, confirm) {
      const handle = await (await inProject(project, true)).getFileHandle(file, { create: true });
      // First the room alone, which Chromium grants or refuses with the right error. Contents go
      // through a pipe, and where they have no room, the broken pipe may be reported instead.
      const contents = [{ type: "truncate", size: data.length }, new Blob([data])];
      await roomFor(replaceContent(handle, contents, confirm));
    },
    async remove(project, file) {
      await ignoreMissing(inProject(project, false).then((directory) => directory.removeEntry(file)));
    },
    async delete(project) {
      await ignoreMissing(folder.removeEntry(folderName(project), { recursive: true }));
    },
    async list() {
      const names = [];
      for await (const name of folder.keys()) names.push(projectName(name));
      return names.filter((name) => name !== undefined).sort();
    },
    async files(project) {
      const names = [];
      await ignoreMissing(
        inProject(project, false).then(async (directory) => {
          for await (const name of directory.keys()) names.push(name);
        }),
      );
      return names;
    },
  };
}

/** IndexedDB. @returns {Promise<ProjectStorage>} */
export async function database() {
  if (!globalThis.indexedDB) throw new Error("there is no IndexedDB");
  const opening = indexedDB.open(FOLDER, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  const db = await settled(opening);
  // Another version of this code may want to change the database.
  db.onversionchange = () => db.close();
  const whole = (project) => IDBKeyRange.bound([project], [project, []]);
  const change = (act) =>
    new Promise((resolve, reject) => {
      const transaction = db.transaction(STORE, "readwrite");
      transaction.oncomplete = () => resolve();
      // A quota is checked at the end, when no request is left to fail.
      transaction.onabort = () => reject(transaction.error ?? new Error("the transaction was aborted"));
      act(transaction.objectStore(STORE));
    });
  const ask = (act) => settled(act(db.transaction(STORE).objectStore(STORE)));
  return {
    read: (project, file) => ask((store) => store.get([project, file])),
    async write(project, file, data, confirm) {
      // A transaction that waits for anything else is over.
      await confirm?.();
      await roomFor(change((store) => store.put(data, [project, file])));
    },
    remove: (project, file) => change((store) => store.delete([project, file])),
    delete: (project) => change((store) => store.delete(whole(project))),
    async list() {
      const keys = await ask((store) => store.getAllKeys());
      return [...new Set(keys.map(([project]) => project))].sort();
    },
    files: async (project) => (await ask((store) => store.getAllKeys(whole(project)))).map(([, file]) => file),
  };
}

/**
 * What Chromium tells, beside `QuotaExceededError`, when a disk is full: that the blob cannot
 * be read, which was to be written (private file system), or that it cannot be written
 * (IndexedDB). What is written here is in memory, so that nothing else can be meant.
 */
const NO_ROOM = ["NotReadableError", "DataError"];

/** Tells a full disk, whatever the browser calls it. @template T @param {Promise<T>} writing */
async function roomFor(writing) {
  try {
    return await writing;
  } catch (error) {
    if (!NO_ROOM.includes(error?.name)) throw error;
    throw new EnvironmentError("storage_full", `there is no room for it: ${text(error)}`, { cause: error });
  }
}

/** Web Locks: a project belongs to one tab at a time. As `ProjectStorage.lock`. */
export function lockTab(project, takeOver, lost) {
  const locks = globalThis.navigator?.locks;
  if (!locks) return Promise.resolve(() => {});
  const name = `${FOLDER}:${project}`;
  let stolen = false;
  const owner = async () => (await locks.query()).held.find((lock) => lock.name === name)?.clientId;
  return new Promise((resolve, reject) => {
    const granted = async (lock) => {
      if (!lock) return resolve(undefined);
      const own = await owner();
      // The loss is reported some time after it; whoever asks learns it at once.
      const held = async () => (await owner()) === own && !stolen;
      await new Promise((release) => resolve(Object.assign(release, { held })));
    };
    const options = takeOver ? { steal: true } : { ifAvailable: true };
    locks.request(name, options, granted).catch((error) => {
      // Of the request that had the lock, when another steals it.
      if (error?.name === "AbortError") {
        stolen = true;
        lost();
      }
      reject(error);
    });
  });
}

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("another tab holds an older database"));
  });
}

async function ignoreMissing(promise) {
  try {
    await promise;
  } catch (error) {
    if (error?.name !== "NotFoundError") throw error;
  }
}
