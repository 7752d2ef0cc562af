// `node:path`, the POSIX half.

export const sep = "/";
export const delimiter = ":";

/** @param {string} path */
export function normalize(path) {
  check(path);
  const absolute = path.startsWith("/");
  const names = [];
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    if (name === ".." && names.length > 0 && names.at(-1) !== "..") names.pop();
    else if (name !== ".." || !absolute) names.push(name);
  }
  const joined = names.join("/") + (names.length > 0 && path.endsWith("/") ? "/" : "");
  return absolute ? `/${joined}` : joined || (path.endsWith("/") ? "./" : ".");
}

/** @param {...string} parts */
export function join(...parts) {
  parts.forEach(check);
  const joined = parts.filter((part) => part !== "").join("/");
  return joined === "" ? "." : normalize(joined);
}

/** @param {...string} parts */
export function resolve(...parts) {
  let path = "";
  for (const part of parts.reverse()) {
    check(part);
    if (part === "") continue;
    path = path === "" ? part : `${part}/${path}`;
    if (part.startsWith("/")) break;
  }
  if (!path.startsWith("/")) path = `${globalThis.process?.cwd() ?? "/"}/${path}`;
  return normalize(path).replace(/(.)\/$/, "$1");
}

/** @param {string} path */
export function isAbsolute(path) {
  check(path);
  return path.startsWith("/");
}

/** @param {string} path */
export function dirname(path) {
  check(path);
  const trimmed = path.replace(/\/+$/, "");
  const slash = trimmed.lastIndexOf("/");
  if (slash < 0) return path.startsWith("/") ? "/" : ".";
  return trimmed.slice(0, slash).replace(/\/+$/, "") || "/";
}

/** @param {string} path @param {string} [suffix] */
export function basename(path, suffix) {
  check(path);
  const name = path.replace(/\/+$/, "").split("/").at(-1);
  return suffix && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
}

/** @param {string} path */
export function extname(path) {
  const name = basename(path);
  const dot = name.lastIndexOf(".");
  return dot <= 0 || name === ".." ? "" : name.slice(dot);
}

/** @param {string} from @param {string} to */
export function relative(from, to) {
  const [start, end] = [resolve(from), resolve(to)].map((path) => path.split("/").filter(Boolean));
  let same = 0;
  while (same < start.length && start[same] === end[same]) same += 1;
  return [...start.slice(same).map(() => ".."), ...end.slice(same)].join("/");
}

/** @param {string} path */
export function parse(path) {
  const base = basename(path);
  const ext = extname(path);
  const root = path.startsWith("/") ? "/" : "";
  const dir = path.includes("/") ? dirname(path) : "";
  return { root, dir, base, ext, name: ext ? base.slice(0, -ext.length) : base };
}

/** @param {{dir?: string, root?: string, base?: string, name?: string, ext?: string}} parts */
export function format({ dir, root = "", base, name = "", ext = "" }) {
  const last = base ?? `${name}${ext && !ext.startsWith(".") ? "." : ""}${ext}`;
  const first = dir ?? root;
  if (!first) return last;
  return first === root ? `${first}${last}` : `${first}/${last}`;
}

export const toNamespacedPath = (path) => path;

function check(path) {
  if (typeof path === "string") return;
  const error = new TypeError(
    `The "path" argument must be of type string. Received ${path === null ? "null" : typeof path}`,
  );
  throw Object.assign(error, { code: "ERR_INVALID_ARG_TYPE" });
}

const path = {
  sep,
  delimiter,
  normalize,
  join,
  resolve,
  isAbsolute,
  dirname,
  basename,
  extname,
  relative,
  parse,
  format,
  toNamespacedPath,
};
path.posix = path;
export default path;
