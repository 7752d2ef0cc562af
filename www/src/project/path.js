// Paths in a project: which ones the sandbox takes, and what they lie in.

/** Bytes of a name and of a path that the sandbox takes; its own folder stands before paths. */
export const NAME_BYTES = 255;
export const PATH_BYTES = 4000;

/** Why a path is none of a project, if so. @param {string} path */
export function problemOfPath(path) {
  const names = path.split("/");
  if (names.some((name) => name === "" || name === "." || name === "..")) return `the path ${short(path)} does not lie in the project`;
  if (path.includes("\0") || isTooLong(path)) return `the path ${short(path)} is too long or holds a zero byte`;
  return undefined;
}

/** Whether the sandbox takes no such path. @param {string} path */
export function isTooLong(path) {
  const bytes = (text) => new TextEncoder().encode(text).length;
  return bytes(path) > PATH_BYTES || path.split("/").some((name) => bytes(name) > NAME_BYTES);
}

/** As much of a path as a sentence may hold, in quotes. @param {string} path */
export const short = (path) => JSON.stringify(path.length > 60 ? `${path.slice(0, 60)}…` : path);

/** The directories that a path lies in. @param {string} path */
export function above(path) {
  const found = [];
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) found.push(path.slice(0, at));
  return found;
}
