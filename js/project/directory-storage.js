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
import { acceptInEnvironment } from "../shared/arguments.js";
import { folderName, projectName } from "./browser-storage.js";

/** Who in this process hears that a lock is lost, by the lock's file. @type {Map<string, () => void>} */
const holders = new Map();

/** What the name of a file begins with until it takes its place. */
const DRAFT = "draft-";

/** Why a file system cannot give one file two names. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

/**
 * Keeps projects below a directory.
 * @param {string} directory created when it is needed
 * @returns {import("./browser-storage.js").ProjectStorage}
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
    async files(project) {
      try {
        return await readdir(place(project));
      } catch (error) {
        if (error.code === "ENOENT") return [];
        throw error;
      }
    },
    async lock(project, takeOver, lost) {
      await mkdir(place(project), { recursive: true });
      const file = resolve(place(project, "lock"));
      const token = crypto.randomUUID();
      const own = [process.pid, token, await birthOf(process.pid)].join(" ").trim();
      const beside = `${file}-${token}`;
      if (takeOver) {
        // At once, so that nobody else finds the place free.
        await writeFile(beside, own);
        await rename(beside, file);
      } else if (!(await created(file, own, beside)) && !(await inherited(file, own, beside))) {
        return undefined;
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
 * Whether a lock could be had whose process is gone. One at a time looks and
 * takes it, in one step, so that nobody finds the place free in between.
 */
async function inherited(file, own, beside) {
  const turn = `${file}-turn`;
  if (!(await created(turn, own, beside)) && !(await freed(turn, own, beside))) return false;
  try {
    const said = await textOf(file);
    if (said === undefined) return await created(file, own, beside);
    if (await isAlive(said)) return false;
    await writeFile(beside, own);
    await rename(beside, file);
    return true;
  } finally {
    await rm(turn, { force: true });
  }
}

/** Whether a turn could be had that a process has left behind. */
async function freed(turn, own, beside) {
  const said = await textOf(turn);
  if (said === undefined || (await isAlive(said))) return false;
  await rm(turn, { force: true });
  return created(turn, own, beside);
}

/** Drafts of whoever had the project before, also of a process that was killed. */
async function removeDrafts(folder) {
  const drafts = (await readdir(folder)).filter((name) => name.startsWith(DRAFT));
  await Promise.all(drafts.map((name) => rm(join(folder, name), { force: true })));
}

/** Whether the process that a lock names is there. @param {string} said */
async function isAlive(said) {
  const [number, , born] = said.split(" ");
  const pid = parseInt(number, 10);
  if (!(pid > 0) || !isRunning(pid)) return false;
  const birth = await birthOf(pid);
  if (birth === undefined) return true;
  // One that names no birth, as older versions wrote it, is not this process's.
  return born === undefined ? pid !== process.pid : born === birth;
}

/** Whether some process has this number. */
function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/**
 * What tells a process from a later one of the same number: in a container
 * they begin at 1 each time. The boot and the time since then, where the
 * system tells (Linux: proc_pid_stat(5), field 22).
 */
async function birthOf(pid) {
  try {
    const [boot, stat] = await Promise.all([readFile("/proc/sys/kernel/random/boot_id", "utf8"), readFile(`/proc/${pid}/stat`, "utf8")]);
    // The second field is a name, which may hold anything.
    const started = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    return `${boot.trim()}:${started}`;
  } catch {
    return undefined;
  }
}

/** What a lock says, if it is there: process, owner and birth of the process. */
async function textOf(file) {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
