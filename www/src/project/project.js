// The project: the sandbox's working directory, mirrored in the page, so that
// the tree, the editor, diffs and the preview see each change.

import { ROOT, openStored, tarEntries } from "../agent/agent.js";
import { NAME_BYTES, PATH_BYTES, isTooLong, short } from "./path.js";
import { Ran, USER } from "./ran.js";

/**
 * @typedef {object} Change
 * @property {string} path relative to the project
 * @property {Uint8Array | undefined} before content, of files that there were
 * @property {Uint8Array | undefined} after content, of files that there are
 */

export class Project extends EventTarget {
  /** @type {Map<string, Uint8Array>} files by path, relative to the project */
  files = new Map();
  /** @type {Set<string>} directories */
  directories = new Set();
  /** What the package keeps of it. @type {import("../../../js/project/project.js").Project} @readonly */
  kept;
  /** What may have changed files since the last look. @readonly */
  ran = new Ran();
  #snapshot;
  /** What was saved since the snapshot: if it is gone again, the sandbox tells no change. */
  #written = new Set();
  #queue = Promise.resolve();

  constructor(kept) {
    super();
    this.kept = kept;
  }

  /**
   * A project in a separate sandbox.
   * @param {string} name @param {import("../../../js/project/projects.js").ProjectOptions & {files?: object}} options
   */
  static async open(name, options) {
    const project = new Project(await openStored(name, options));
    try {
      project.#snapshot = await project.sandbox.snapshot();
      for (const [path, content] of await project.#everything()) project.#set(path, content);
    } catch (error) {
      // Nobody else would leave it to other tabs.
      await project.close().catch(() => {});
      throw error;
    }
    return project;
  }

  /** Name for people and of exported files. */
  get name() {
    return this.kept.name;
  }

  get sandbox() {
    return this.kept.env;
  }

  /**
   * Looks what has changed in the sandbox and tells: an event `change` whose
   * `detail` is `{changes, who}`, as `Ran` says it.
   * @returns {Promise<Change[]>}
   */
  sync() {
    return this.#next(() => this.#look());
  }

  /**
   * Writes a file, unless the sandbox holds something else by now than one has
   * seen: a command that runs may have changed it.
   * @param {string} path @param {Uint8Array} content
   * @param {Uint8Array | undefined} seen `undefined`: that there is no such file
   * @returns {Promise<{content: Uint8Array | undefined} | undefined>} what it holds, if nothing is written
   */
  save(path, content, seen) {
    return this.#next(async () => {
      const now = await this.#read(this.absolute(path));
      if (now === null) throw new Error(`the file ${path} is a directory by now; rename or delete that to save the file`);
      if (!equal(now, seen)) return { content: now };
      await this.sandbox.write(this.absolute(path), content);
      const before = this.files.get(path);
      this.#set(path, content);
      this.#written.add(path);
      if (!equal(before, content)) this.#tell([{ path, before, after: content }], USER);
      return undefined;
    });
  }

  /** @param {string} path */
  async makeDirectory(path) {
    await this.#change(() => this.sandbox.makeDir(this.absolute(path)));
  }

  /** @param {string} path a file, or a directory with all it holds */
  async remove(path) {
    await this.#change(() => this.sandbox.remove(this.absolute(path)));
  }

  /** @param {string} from @param {string} to */
  async rename(from, to) {
    checkPath(to);
    if (this.has(to)) throw new Error(`there is a file or folder ${to} already; remove or rename it first`);
    await this.#change(() => this.sandbox.rename(this.absolute(from), this.absolute(to)));
  }

  /** @param {Record<string, string | Uint8Array>} files @returns {Promise<Change[]>} what that changes */
  async add(files) {
    return this.#change(() => this.sandbox.importFiles(files));
  }

  /** A folder of the disk, as `add`. @param {FileSystemDirectoryHandle} handle @param {string[]} exclude names that are left out */
  async addFolder(handle, exclude) {
    return this.#change(() => this.sandbox.importDirectory(handle, { exclude }));
  }

  /** Unpacks a zip or tar archive, as `add`. @param {Blob} archive */
  async unpack(archive) {
    return this.#change(() => this.sandbox.importArchive(archive));
  }

  /**
   * Takes back what was imported; what has changed since stays.
   * @param {Change[]} changes @returns {Promise<number>} how many files stay
   */
  async takeBack(changes) {
    let stay = 0;
    await this.#change(async () => {
      for (const { path, before, after } of changes.filter(({ after }) => after)) {
        const at = this.absolute(path);
        if (!equal((await this.#read(at)) ?? undefined, after)) stay += 1;
        else if (before) await this.sandbox.write(at, before);
        else await this.sandbox.remove(at);
      }
      const directories = changes.filter(({ before, after }) => !before && !after).map(({ path }) => path);
      for (const path of directories.sort().reverse()) await this.#removeEmpty(this.absolute(path));
    });
    return stay;
  }

  /** A directory, if there is one and it holds nothing. @param {string} path */
  async #removeEmpty(path) {
    const entries = await this.sandbox.list(path).catch(() => undefined);
    if (entries?.length === 0) await this.sandbox.remove(path);
  }

  /** @param {string} path */
  has(path) {
    return this.files.has(path) || this.directories.has(path);
  }

  /** The text of a file; `undefined` if there is none or it is binary. @param {string} path */
  text(path) {
    return decode(this.files.get(path));
  }

  /** @param {string} path */
  absolute(path) {
    return `${ROOT}/${path}`;
  }

  /** Saves, leaves the project to others and gives the sandbox back. */
  async close() {
    // What went wrong with saving has been shown.
    await this.kept.close().catch(() => {});
    await this.sandbox.dispose();
  }

  /** @param {import("./ran.js").Who} [by] who it was, if that is known */
  async #look(by) {
    const since = this.#snapshot;
    // One right behind the other, so that a call that begins meanwhile has changed nothing of
    // what is found. The snapshot is first: what changes in between is found again next time.
    const taken = this.sandbox.snapshot();
    const found = this.sandbox.changesSince(since).catch(() => undefined);
    this.#snapshot = await taken;
    const ran = this.ran.take();
    const changes = [];
    for (const [path, after] of await this.#contents(await found)) {
      if (after === null && this.directories.has(path)) continue;
      const before = this.files.get(path);
      this.#set(path, after);
      if (after === null || after === undefined) {
        // Empty directories that came or went change the tree, too.
        changes.push({ path, before, after: undefined });
      } else if (!equal(before, after)) {
        changes.push({ path, before, after });
      }
    }
    // Of a worker that is gone, it is gone.
    since.free().catch(() => {});
    this.#tell(changes, by ?? ran);
    return changes;
  }

  #tell(changes, who) {
    if (changes.length > 0) this.dispatchEvent(new CustomEvent("change", { detail: { changes, who } }));
  }

  /** Does the user's `work` in the sandbox and looks what has come of it. */
  #change(work) {
    return this.#next(async () => {
      // What the agent has changed until now is its own.
      await this.#look();
      await work();
      return this.#look(USER);
    });
  }

  /** One after the other: what one has seen is what the next begins with. */
  #next(work) {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => {});
    return result;
  }

  /** New contents by path, of what changed. @returns {Promise<[string, Uint8Array | null | undefined][]>} */
  async #contents(found) {
    // The worker was restarted, and its snapshots are gone.
    if (!found) return this.#compare();
    const inside = new Map(found.map(({ path, change }) => [relative(path), change]).filter(([path]) => path !== undefined));
    for (const path of this.#written) if (!inside.has(path)) inside.set(path, "saved");
    this.#written.clear();
    return Promise.all([...inside].map(async ([path, change]) => [path, change === "removed" ? undefined : await this.#read(this.absolute(path))]));
  }

  async #compare() {
    const entries = await this.#everything();
    const there = new Set(entries.map(([path]) => path));
    const gone = [...this.files.keys(), ...this.directories].filter((path) => !there.has(path));
    return [...gone.map((path) => [path, undefined]), ...entries];
  }

  /** What the sandbox holds by path; `null`: a directory. @returns {Promise<[string, Uint8Array | null][]>} */
  async #everything() {
    const entries = [];
    const links = [];
    for (const { name, type, data, stored } of tarEntries(await this.sandbox.exportTar())) {
      const path = name.replace(/^\.\//, "").replace(/\/+$/, "");
      if (type === "0") entries.push([path, data.subarray(0, stored)]);
      else if (type === "5" && path !== "" && path !== ".") entries.push([path, null]);
      else if (type === "2") links.push(path);
    }
    // They show what they lead to, if there is something.
    for (const path of links) {
      const content = await this.#read(this.absolute(path));
      if (content !== undefined) entries.push([path, content]);
    }
    return entries;
  }

  /** `null` for a directory, `undefined` for what is gone by now. */
  async #read(path) {
    try {
      return await this.sandbox.readBytes(path);
    } catch (error) {
      if (error.kind === "is_directory") return null;
      if (error.kind === "not_found") return undefined;
      throw error;
    }
  }

  #set(path, content) {
    this.files.delete(path);
    this.directories.delete(path);
    if (content === null) this.directories.add(path);
    else if (content !== undefined) this.files.set(path, content);
    else return;
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
      this.directories.add(path.slice(0, at));
    }
  }
}

/** The text that bytes hold; `undefined` if they are none or no UTF-8 text. @param {Uint8Array} [bytes] */
export function decode(bytes) {
  if (bytes === undefined || bytes.subarray(0, 8000).includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function relative(path) {
  return path.startsWith(`${ROOT}/`) ? path.slice(ROOT.length + 1) : undefined;
}

/** @param {Uint8Array | undefined} a @param {Uint8Array | undefined} b */
export function equal(a, b) {
  if (a === undefined || b === undefined || a.length !== b.length) return a === b;
  return a.every((byte, index) => byte === b[index]);
}

/** Refuses a path that is none in the project. @param {string} path as somebody typed it */
export function checkPath(path) {
  const names = path.split("/");
  if (isTooLong(path)) throw new Error(`the path ${short(path)} is too long: a name may have ${NAME_BYTES} bytes, and a path ${PATH_BYTES}`);
  if (path.startsWith("/")) throw new Error(`the path ${path} starts at the root of the sandbox; give one within the project`);
  if (names.includes("..")) throw new Error(`the path ${path} may lead out of the project; give one without ..`);
  if (names.some((name) => name === "" || name === ".")) throw new Error(`the path ${path} holds an empty name or a dot instead of one; give a name`);
}
