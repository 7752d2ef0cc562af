// What is stored of a project: an index, and archives that hold everything or
// what changed since. It is judged before anything is made of it, and what goes
// wrong with a storage is an error that names the way out.

import { tarEntries } from "../archive/tar.js";
import { CoreError, EnvironmentError, text } from "../shared/errors.js";

/** Of the format. */
export const VERSION = 1;
/** The file that says which archives count. */
export const INDEX = "project.json";
/** Bytes of changes that are kept beside everything, if that is less. */
const SLACK_BYTES = 1 << 20;
/** Pieces that a project is stored in at most. */
const MAX_PARTS = 100;
/** Bytes of an empty tar archive. */
const TAR_END = 1024;
/** Names of pieces, as this package makes them: a number and whose it is, for two owners cannot share one. */
const PART = /^files-\d+(?:-[0-9a-f]+)?\.tar$/;
const EMPTY = { archive: new Uint8Array(), removed: [] };

/**
 * What has to be stored, if anything: what changed, or everything where that is
 * not much more.
 */
export async function changeOf(snapshot, { snapshot: old, parts }) {
  let delta;
  try {
    delta = old && ((await snapshot.deltaSince(old)) ?? EMPTY);
  } catch {
    // A snapshot of a worker that is gone tells nothing.
  }
  if (delta) {
    if (delta.removed.length === 0 && delta.archive.length <= TAR_END) return undefined;
    const [base, ...deltas] = parts;
    const changed = deltas.reduce((sum, { bytes }) => sum + bytes, delta.archive.length);
    if (changed <= Math.max(base.bytes, SLACK_BYTES) && parts.length < MAX_PARTS) return { ...delta, whole: false };
  }
  return { archive: await snapshot.exportTar("/"), removed: [], whole: true };
}

/** What is stored of a project, judged before anything is made of it. */
export async function load(name, storage) {
  const read = async (file) => {
    let bytes;
    try {
      bytes = await storage.read(name, file);
    } catch (error) {
      throw unreadable(name, error);
    }
    if (bytes !== undefined && !(bytes instanceof Uint8Array)) throw damaged(name, `its storage gave no bytes for ${file}`);
    return bytes;
  };
  const bytes = await read(INDEX);
  if (!bytes) {
    if (await hasLaterParts(name, storage)) throw damaged(name, `${INDEX} is missing`);
    return undefined;
  }
  let index;
  try {
    index = JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw damaged(name, error.message);
  }
  if (typeof index !== "object" || index === null) throw damaged(name, `${INDEX} holds no object`);
  if (Number.isSafeInteger(index.version) && index.version !== VERSION) throw ofAnotherVersion(name, index.version);
  if (index.version !== VERSION) throw damaged(name, `${INDEX} does not say which format it has`);
  if (!Array.isArray(index.parts) || index.parts.length === 0 || !Number.isSafeInteger(index.number)) {
    throw damaged(name, `${INDEX} does not say what it is stored in`);
  }
  if (typeof (index.history ?? {}) !== "object") throw damaged(name, `${INDEX} holds a history that is none`);
  const parts = [];
  for (const part of index.parts) {
    if (!isPart(part)) throw damaged(name, `${INDEX} names a part that this package did not store`);
    const archive = await read(part.file);
    if (!archive) throw damaged(name, `${part.file} is missing`);
    if (archive.length !== part.bytes) throw damaged(name, `${part.file} has ${archive.length} bytes instead of ${part.bytes}`);
    parts.push({ ...part, archive });
  }
  return { parts, number: index.number, history: index.history ?? undefined, data: index.data ?? undefined };
}

/**
 * Whether something is stored of a project: of one whose page was closed in the
 * middle of its first save, there is nothing that counts.
 */
export async function isStored(name, storage) {
  const files = await storage.files?.(name);
  return files === undefined || files.some((file) => file === INDEX || isLater(file));
}

/**
 * Whether there are pieces that an index has named. The first is written before
 * any index: alone, it is of a page that was closed in the middle of that.
 */
async function hasLaterParts(name, storage) {
  let files;
  try {
    files = (await storage.files?.(name)) ?? [];
  } catch (error) {
    throw unreadable(name, error);
  }
  return files.some(isLater);
}

/** Whether a file is a piece, and not the first. */
function isLater(file) {
  return PART.test(file) && parseInt(file.slice("files-".length), 10) > 1;
}

function isPart(part) {
  if (typeof part?.file !== "string" || !PART.test(part.file) || !Number.isSafeInteger(part.bytes)) return false;
  return Array.isArray(part.removed) && part.removed.every((path) => typeof path === "string");
}

/** Puts what was stored into an environment. */
export async function restore(name, [{ archive, file }, ...deltas], env) {
  let at = file;
  const judge = (archive) => {
    // A file of zeros reads as an archive of nothing.
    if ([...tarEntries(archive)].length === 0 && archive.length > TAR_END) throw new EnvironmentError("invalid_input", "it holds no files");
  };
  try {
    judge(archive);
    await env.replaceTree(archive);
    for (const delta of deltas) {
      at = delta.file;
      judge(delta.archive);
      await env.applyDelta(delta);
    }
  } catch (error) {
    // A sandbox that is too small for it is not the project's fault.
    if (error?.kind !== "invalid_input") throw error;
    throw damaged(name, `${at}: ${error.message}`);
  }
}

function damaged(name, why) {
  return new EnvironmentError("io", `the saved project ${name} cannot be read: ${why}; put its stored files back from a copy, or delete it to begin anew`);
}

function ofAnotherVersion(name, version) {
  return new EnvironmentError("unsupported", `the saved project ${name} has format ${version}, this version reads format ${VERSION}; open it with the version that saved it`);
}

export function unreadable(name, error) {
  return storageTrouble(`the saved project ${name} cannot be read`, error, ", or open another");
}

export function storageTrouble(what, error, otherwise = "") {
  if (error instanceof EnvironmentError) return error;
  const message = `${what}: its storage failed: ${text(error)}; try again${otherwise}`;
  return new EnvironmentError(isDenial(error) ? "storage_denied" : "io", message, { cause: error });
}

function isDenial(error) {
  return ["EACCES", "EPERM", "EROFS"].includes(error?.code) || ["NotAllowedError", "SecurityError"].includes(error?.name);
}

/** Node's codes are of disks and of quotas. */
function isFull(error) {
  return error?.kind === "storage_full" || error?.name === "QuotaExceededError" || ["ENOSPC", "EDQUOT"].includes(error?.code);
}

/** Why storing failed, and how much is needed. */
export async function storageFailure(name, needed, error) {
  if (error instanceof CoreError) {
    const message = `project ${name} cannot be saved: ${error.message}; what was last saved is kept: open the project again in a new page or process`;
    return new EnvironmentError("io", message, { cause: error });
  }
  const denied = isDenial(error) || error?.name === "InvalidStateError";
  const { quota, usage } = (await globalThis.navigator?.storage?.estimate?.().catch(() => undefined)) ?? {};
  // Browsers have more than one name for a full disk, and count more than the bytes.
  const full = isFull(error) || (!denied && quota - usage < needed * 1.1);
  if (full) {
    // Some browsers tell pages more than there is.
    const free = quota - usage < needed ? `, and ${megabytes(Math.max(0, quota - usage))} are free` : "";
    return new EnvironmentError(
      "storage_full",
      `saving project ${name} needs ${megabytes(needed)}${free}; free some space or export the project; the work goes on in memory`,
      { cause: error },
    );
  }
  return new EnvironmentError(
    denied ? "storage_denied" : "io",
    `project ${name} cannot be saved: ${error?.message ?? error}; the work goes on in memory, so export it to keep it`,
    { cause: error },
  );
}

function megabytes(bytes) {
  return bytes < 1e5 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
