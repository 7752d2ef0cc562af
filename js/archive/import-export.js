// Bulk import into a sandbox and export out of it: tar, zip, lists of `File`s
// and directory handles. An import is all or nothing: entries are handed to the
// core as they are read, and its tree changes once, at the end. Limits are
// checked against what is declared, before it is read.

import { EnvironmentError } from "../shared/errors.js";
import { replaceContent } from "./file-handle.js";
import { BLOCK, beginsTar, packTar, tarEntries } from "./tar.js";
import { batches, endsZip, openZip, pump } from "./zip.js";

/** @import { Blob, File, FileSystemDirectoryHandle } from "../platform.js" */

/**
 * @typedef {object} ImportOptions
 * @property {number} [maxBytes] of all files together; default: what fits the sandbox
 * @property {number} [maxEntries] files, directories and links; default: what fits
 * @property {number} [maxRatio] bytes per byte of an archive, compressed or with
 *   holes, counted from 16 MiB on; default 200
 * @property {number} [stripComponents] leading parts of each path to leave out; default 0
 * @property {string[]} [exclude] names of files and directories to leave out,
 *   wherever they are, such as `.git` or `node_modules`
 */

/** Bytes that no archive is suspected for. */
const HARMLESS = 16 * 1024 * 1024;
/** Bytes of a tar archive that are not contents, beyond one header per entry. */
const TAR_SLACK = 1024 * 1024;

/** How deep directories nest in a sandbox. A handle that a page made up may hold itself. */
const MAX_DEPTH = 256;

/** What an import may still take, and what it is called in refusals. */
class Budget {
  #bytes;
  #entries;
  #fileBytes;
  #ratio;
  #packed = Infinity;

  /** @param {{bytes: number, fileBytes: number, entries: number}} room @param {ImportOptions} options */
  constructor(room, { maxBytes = Infinity, maxEntries = Infinity, maxRatio = 200 } = {}) {
    this.#bytes = Math.min(room.bytes, maxBytes);
    this.#entries = Math.min(room.entries, maxEntries);
    this.#fileBytes = room.fileBytes;
    this.#ratio = maxRatio;
    this.taken = 0;
    this.count = 0;
  }

  /** What follows comes out of a compressed archive of so many bytes. */
  unpacks(bytes) {
    this.#packed = bytes;
  }

  /** Bytes that an archive of this kind can have at most. */
  get archiveBytes() {
    return this.#bytes + this.#entries * 1024 + TAR_SLACK;
  }

  /** How many entries there will be. */
  expect(count) {
    if (count > this.#entries) {
      throw tooLarge(`the archive holds ${number(count)} entries, and the limit is ${number(this.#entries)}`);
    }
  }

  /** One entry more, with the bytes that it declares. */
  take(name, bytes) {
    this.expect((this.count += 1));
    if (bytes > this.#fileBytes) {
      throw tooLarge(`cannot take ${name}: it has ${number(bytes)} bytes, and the limit for one file is ${number(this.#fileBytes)}`);
    }
    this.taken += bytes;
    if (this.taken > this.#bytes) {
      throw tooLarge(`cannot take ${name}: with it the import has ${number(this.taken)} bytes, and the limit is ${number(this.#bytes)}`);
    }
    this.unpacked(this.taken);
  }

  /** What has come out of the archive so far. */
  unpacked(bytes) {
    if (bytes > HARMLESS && bytes > this.#packed * this.#ratio) {
      throw tooLarge(
        `the archive unpacks to more than ${this.#ratio} times its ${number(this.#packed)} bytes, as a zip bomb does; ` +
          "raise maxRatio if it is none",
      );
    }
  }
}

/**
 * Where an import hands what it has read.
 * @typedef {object} Sink
 * @property {Budget} budget
 * @property {(name: string, content: Uint8Array, mode?: number, modifiedMs?: number) => void} file
 * @property {(name: string, mode?: number) => void} directory
 * @property {(name: string, target: string) => void} link
 * @property {(name: string) => string | undefined} place where an entry goes;
 *   `undefined`: it is left out
 */

/**
 * What a sandbox may still take.
 * @param {import("../core/runtime.js").Runtime} runtime @param {number} sandbox @param {ImportOptions} [options]
 */
export function budgetOf(runtime, sandbox, options) {
  return new Budget(runtime.callSandbox((core) => core.room(sandbox)), options);
}

/**
 * Lets `fill` hand over entries, and has the sandbox take them all at the end.
 * @param {import("../core/runtime.js").Runtime} runtime @param {number} sandbox @param {ImportOptions | undefined} options
 * @param {(sink: Sink) => Promise<void>} fill
 */
export async function importInto(runtime, sandbox, options, fill) {
  const budget = budgetOf(runtime, sandbox, options);
  const handed = runtime.callSandbox((core) => core.beginImport(sandbox));
  const hand = (call) => runtime.call(() => call(handed), EnvironmentError);
  let bytes = 0;
  try {
    await fill({
      budget,
      place: placing(options),
      file: (name, content, mode, modifiedMs) => {
        bytes += content.length;
        hand((core) => core.addFile(name, content, mode, modifiedMs));
      },
      directory: (name, mode) => hand((core) => core.addDirectory(name, mode)),
      link: (name, target) => hand((core) => core.addLink(name, target)),
    });
  } catch (error) {
    try {
      handed.free();
    } catch {
      // The core failed while it took something.
    }
    throw error;
  }
  runtime.expect(bytes);
  // Takes the handle, whatever comes of it.
  runtime.callSandbox((core) => core.commitImport(sandbox, handed));
}

/** Where an entry goes, by the options. @param {ImportOptions} options */
function placing({ stripComponents = 0, exclude = [] } = {}) {
  const excluded = new Set(exclude);
  return (name) => {
    const parts = name.split("/").filter((part) => part !== "" && part !== ".");
    if (parts.some((part) => excluded.has(part))) return undefined;
    if (stripComponents === 0) return parts.length > 0 ? name : undefined;
    // Stripping must not turn an absolute path into a harmless one.
    if (name.startsWith("/") || parts.includes("..")) return name;
    return parts.slice(stripComponents).join("/") || undefined;
  };
}

/** @param {Uint8Array | ArrayBuffer | Blob} archive @param {Sink} sink */
export async function importZip(archive, sink) {
  const source = archive instanceof Blob ? archive : bytesOf(archive);
  sink.budget.unpacks(source instanceof Blob ? source.size : source.length);
  const { entries, read } = await openZip(source, (count) => sink.budget.expect(count));
  const wanted = [];
  for (const entry of entries) {
    const name = sink.place(entry.name);
    if (name === undefined) continue;
    sink.budget.take(entry.name, entry.size);
    wanted.push([name, entry]);
  }
  const contentOf = ([, entry]) => (entry.type === "directory" ? undefined : read(entry));
  for (const batch of batches(wanted, ([, { size }]) => size)) {
    const contents = await Promise.all(batch.map(contentOf));
    batch.forEach(([name, { type, mode, modifiedMs }], index) => {
      const content = contents[index];
      if (type === "directory") sink.directory(name, mode);
      else if (type === "link") sink.link(name, new TextDecoder().decode(content));
      else sink.file(name, content, mode, modifiedMs);
    });
  }
}

/**
 * A tar archive for the core to unpack: not compressed, and judged entry by
 * entry. Where the caller limits an import or leaves something out, the core
 * gets an archive of just what was judged here; its own limits it judges itself.
 * @param {Uint8Array | ArrayBuffer | Blob} archive @param {Budget} budget @param {ImportOptions} [options]
 */
export async function tarBytes(archive, budget, options = {}) {
  const size = archive instanceof Blob ? archive.size : archive.byteLength;
  if (size > budget.archiveBytes) {
    throw tooLarge(`the archive has ${number(size)} bytes, more than can fit; the limit is ${number(budget.archiveBytes)}`);
  }
  let bytes = archive instanceof Blob ? new Uint8Array(await archive.arrayBuffer()) : bytesOf(archive);
  budget.unpacks(bytes.length);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) bytes = await gunzipped(bytes, budget);
  const place = placing(options);
  const kept = [];
  for (const entry of tarEntries(bytes)) {
    const name = place(entry.name);
    if (name === undefined) continue;
    budget.take(entry.name, entry.size);
    // How archives from before ustar mark a directory.
    const slash = entry.name.endsWith("/") && !name.endsWith("/") ? "/" : "";
    kept.push({ ...entry, name: name + slash, target: entry.type === "1" ? (place(entry.target) ?? entry.target) : entry.target });
  }
  return Object.values(options).some((option) => option !== undefined) ? packTar(kept) : bytes;
}

async function gunzipped(bytes, budget) {
  try {
    return await pump(bytes, new DecompressionStream("gzip"), (unpacked) => {
      budget.unpacked(unpacked);
      if (unpacked > budget.archiveBytes) throw tooLarge(`the archive unpacks to more than ${number(budget.archiveBytes)} bytes, which is the limit`);
    });
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    throw new EnvironmentError("invalid_input", "the archive is damaged: its gzip data cannot be unpacked");
  }
}

/** @param {Iterable<File>} files with their `webkitRelativePath`, or their name @param {Sink} sink */
export async function importFileList(files, sink) {
  const wanted = [];
  for (const file of files) {
    const path = file?.webkitRelativePath || file?.name;
    if (typeof path !== "string" || typeof file.arrayBuffer !== "function") {
      throw new EnvironmentError("invalid_input", `importFiles: what is number ${wanted.length + 1} of the list is not a File`);
    }
    const name = sink.place(path);
    if (name === undefined) continue;
    sink.budget.take(path, file.size);
    wanted.push([name, file]);
  }
  for (const [name, file] of wanted) await importFile(name, file, sink);
}

/** @param {string[]} paths @param {Uint8Array[]} contents of each @param {Sink} sink */
export function importContents(paths, contents, sink) {
  const places = paths.map((path, index) => {
    const name = sink.place(path);
    if (name !== undefined) sink.budget.take(path, contents[index].length);
    return name;
  });
  places.forEach((name, index) => {
    if (name !== undefined) sink.file(name, contents[index]);
  });
}

/** @param {FileSystemDirectoryHandle} handle @param {Sink} sink */
export async function importHandle(handle, sink) {
  const descend = async (directory, prefix, depth) => {
    if (depth > MAX_DEPTH) throw tooLarge(`cannot take ${prefix.slice(0, 60)}…: directories nest at most ${MAX_DEPTH} deep, and these may be a circle`);
    for await (const entry of entriesOf(directory, prefix || handle.name || "the directory")) {
      const [name, child] = entry;
      const path = prefix + name;
      const place = sink.place(path);
      if (child.kind === "directory") {
        if (place !== undefined) sink.budget.take(path, 0), sink.directory(place);
        // Nothing below an excluded name is looked at.
        if (place !== undefined || sink.place(`${path}/x`) !== undefined) await descend(child, `${path}/`, depth + 1);
      } else if (place !== undefined) {
        const file = await fileOf(child, path);
        sink.budget.take(path, file.size);
        await importFile(place, file, sink);
      }
    }
  };
  await descend(handle, "", 0);
}

/** The entries of a directory, which may vanish or be forbidden meanwhile. */
async function* entriesOf(directory, path) {
  try {
    for await (const entry of directory.entries()) {
      if (!Array.isArray(entry) || typeof entry[0] !== "string") throw new Error("its entries are no [name, handle]");
      yield entry;
    }
  } catch (error) {
    throw unreadable(path, error);
  }
}

async function fileOf(handle, path) {
  try {
    return await handle.getFile();
  } catch (error) {
    throw unreadable(path, error);
  }
}

async function importFile(name, file, sink) {
  const content = await file.arrayBuffer().catch((error) => {
    throw unreadable(name, error);
  });
  sink.file(name, new Uint8Array(content), undefined, file.lastModified);
}

/**
 * Writes entries into a directory that the user has opened. Links are left out,
 * because handles cannot make them.
 * @returns {Promise<{files: number, skipped: string[]}>} `skipped`: paths of links
 */
export async function exportHandle(entries, read, handle) {
  const directories = new Map([["", handle]]);
  const skipped = [];
  let files = 0;
  const parent = (path) => directories.get(path.slice(0, Math.max(0, path.lastIndexOf("/"))));
  for (const { path, type } of entries) {
    const name = path.slice(path.lastIndexOf("/") + 1);
    try {
      if (type === "directory") {
        directories.set(path, await parent(path).getDirectoryHandle(name, { create: true }));
      } else if (type === "link") {
        skipped.push(path);
      } else {
        await replaceContent(await parent(path).getFileHandle(name, { create: true }), [read(path)]);
        files += 1;
      }
    } catch (error) {
      throw unwritable(path, error);
    }
  }
  return { files, skipped };
}

/**
 * What an archive is; `undefined`: nothing that can be unpacked.
 * @param {Uint8Array | ArrayBuffer | Blob} archive @returns {Promise<"zip" | "tar" | undefined>}
 */
export async function kindOf(archive) {
  const head = archive instanceof Blob ? new Uint8Array(await archive.slice(0, BLOCK).arrayBuffer()) : bytesOf(archive).subarray(0, BLOCK);
  if (head[0] === 0x50 && head[1] === 0x4b) return "zip";
  const isGzip = head[0] === 0x1f && head[1] === 0x8b;
  if (isGzip || beginsTar(head)) return "tar";
  // One that extracts itself begins with a program.
  return (await endsZip(archive instanceof Blob ? archive : bytesOf(archive))) ? "zip" : undefined;
}

function bytesOf(archive) {
  return archive instanceof Uint8Array ? archive : new Uint8Array(archive);
}

function unreadable(path, error) {
  if (error instanceof EnvironmentError) return error;
  return new EnvironmentError("io", `cannot read ${path}: ${error?.message ?? error}`, { cause: error });
}

function unwritable(path, error) {
  const kind = { NotAllowedError: "permission_denied", QuotaExceededError: "storage_full" }[error?.name] ?? "io";
  return new EnvironmentError(kind, `cannot write ${path} into the directory: ${error?.message ?? error}`, { cause: error });
}

function tooLarge(message) {
  return new EnvironmentError("too_large", message);
}

function number(value) {
  return Number.isFinite(value) ? value.toLocaleString("en-US") : "unlimited";
}
