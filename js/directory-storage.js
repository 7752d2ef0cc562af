// Projects on disk, for Node, Deno and Bun: a folder per project.

import { mkdir, open, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { acceptInEnvironment } from "./arguments.js";
import { folderName } from "./storage.js";

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
    async lock(project, takeOver) {
      await mkdir(place(project), { recursive: true });
      const file = place(project, "lock");
      if (takeOver || !(await isAlive(file))) await rm(file, { force: true });
      try {
        const lock = await open(file, "wx");
        await lock.write(String(process.pid));
        await lock.close();
      } catch (error) {
        if (error.code === "EEXIST") return undefined;
        throw error;
      }
      return () => rm(file, { force: true });
    },
  };
}

/** Whether the process that holds a lock is there. */
async function isAlive(file) {
  let pid;
  try {
    pid = Number(await readFile(file, "utf8"));
  } catch {
    return false;
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}
