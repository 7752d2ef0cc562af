// Projects on disk, for Node, Deno and Bun: a folder per project.

import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { acceptInEnvironment } from "./arguments.js";
import { folderName } from "./storage.js";

/** Who in this process hears that a lock is lost, by the lock's file. @type {Map<string, () => void>} */
const holders = new Map();

/**
 * Keeps projects below a directory.
 * @param {string} directory created when it is needed
 * @returns {import("./storage.js").ProjectStorage}
 */
export function directoryStorage(directory) {
  acceptInEnvironment("directoryStorage", directory);
  const place = (project, ...file) => join(directory, folderName(project), ...file);
  return {
    async read(project, file) {
      try {
        return new Uint8Array(await readFile(place(project, file)));
      } catch (error) {
        if (error.code === "ENOENT") return undefined;
        throw error;
      }
    },
    async write(project, file, data) {
      await mkdir(place(project), { recursive: true });
      const draft = place(project, `${file}.new`);
      try {
        await writeFile(draft, data);
        await rename(draft, place(project, file));
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
    remove: (project, file) => rm(place(project, file), { force: true }),
    delete: (project) => rm(place(project), { recursive: true, force: true }),
    async list() {
      try {
        return (await readdir(directory)).map(decodeURIComponent).sort();
      } catch (error) {
        if (error.code === "ENOENT") return [];
        throw error;
      }
    },
    async lock(project, takeOver, lost) {
      await mkdir(place(project), { recursive: true });
      const file = resolve(place(project, "lock"));
      const own = `${process.pid} ${crypto.randomUUID()}`;
      if (takeOver) {
        // At once, so that nobody else finds the place free.
        const draft = `${file}.${own.split(" ")[1]}`;
        await writeFile(draft, own);
        await rename(draft, file);
      } else if (!(await createdAt(file, own))) {
        if (await isAlive(file)) return undefined;
        await rm(file, { force: true });
        if (!(await createdAt(file, own))) return undefined;
      }
      const loser = holders.get(file);
      holders.set(file, lost);
      loser?.();
      const held = async () => (await textOf(file)) === own;
      const release = async () => {
        if (holders.get(file) === lost) holders.delete(file);
        if (await held()) await rm(file, { force: true });
      };
      return Object.assign(release, { held });
    },
  };
}

/** Whether a file could be made that was not there. */
async function createdAt(file, content) {
  try {
    await writeFile(file, content, { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/** Whether the process that holds a lock is there. */
async function isAlive(file) {
  const pid = parseInt((await textOf(file)) ?? "", 10);
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** What a lock says, if it is there: process and owner. */
async function textOf(file) {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
