// Projects on disk, for Node, Deno and Bun: a folder per project.
//
// A project has one owner, whom the file `lock` names, and what an owner stores
// that is not one any more never counts, whatever the processes do meanwhile: a
// file is drafted first, then its writer looks whether it owns the project, then
// the draft takes the file's place. Who takes a project over writes its name
// into `lock` first and then removes all drafts, and reads after that. So a
// draft from before is gone or had its place already, and the writer of a later
// one finds that it owns nothing.

import { link, mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { acceptInEnvironment } from "./arguments.js";
import { folderName, projectName } from "./storage.js";

/** Who in this process hears that a lock is lost, by the lock's file. @type {Map<string, () => void>} */
const holders = new Map();

/** What the name of a file begins with until it takes its place. */
const DRAFT = "draft-";

/** Why a file system cannot give one file two names. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

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
    async write(project, file, data, confirm) {
      await mkdir(place(project), { recursive: true });
      const draft = place(project, DRAFT + crypto.randomUUID());
      try {
        await writeFile(draft, data);
        await confirm?.();
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
        const entries = await readdir(directory, { withFileTypes: true });
        const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => projectName(name));
        return names.filter((name) => name !== undefined).sort();
      } catch (error) {
        if (error.code === "ENOENT") return [];
        throw error;
      }
    },
    async lock(project, takeOver, lost) {
      await mkdir(place(project), { recursive: true });
      const file = resolve(place(project, "lock"));
      const token = crypto.randomUUID();
      const own = `${process.pid} ${token}`;
      const beside = `${file}-${token}`;
      if (takeOver) {
        // At once, so that nobody else finds the place free.
        await writeFile(beside, own);
        await rename(beside, file);
      } else if (!(await created(file, own, beside))) {
        const said = await textOf(file);
        if (said !== undefined && (isAlive(said) || !(await removed(file, said, beside)))) return undefined;
        if (!(await created(file, own, beside))) return undefined;
      }
      await removeDrafts(place(project));
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

/** Whether a file could be made that was not there, with all its content at once. */
async function created(file, content, beside) {
  await writeFile(beside, content);
  try {
    await link(beside, file);
  } catch (error) {
    if (error.code === "EEXIST") return false;
    if (!NO_LINKS.includes(error.code)) throw error;
    return createdEmpty(file, content);
  } finally {
    await rm(beside, { force: true });
  }
  return true;
}

/** As `created`; for a moment the file says nothing, which looks like a lock that is free. */
async function createdEmpty(file, content) {
  try {
    await writeFile(file, content, { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/**
 * Whether a lock that says `said` could be removed. Another process may have
 * done so since, and put its own in the place: that one stays.
 */
async function removed(file, said, beside) {
  try {
    await rename(file, beside);
  } catch (error) {
    if (error.code === "ENOENT") return true;
    throw error;
  }
  const isStale = (await textOf(beside)) === said;
  if (!isStale) await link(beside, file).catch(() => {});
  await rm(beside, { force: true });
  return isStale;
}

/** Drafts of whoever had the project before, also of a process that was killed. */
async function removeDrafts(folder) {
  const drafts = (await readdir(folder)).filter((name) => name.startsWith(DRAFT));
  await Promise.all(drafts.map((name) => rm(join(folder, name), { force: true })));
}

/** Whether the process that a lock names is there. @param {string} said */
function isAlive(said) {
  const pid = parseInt(said, 10);
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
