// `node:fs` over the file tree of a call: the synchronous functions, and the
// same with callbacks and promises.

import { Device, Directory, File, Link } from "../files.js";
import { Buffer, path as paths } from "./packages.js";
import { makeFileStreams } from "./streams.js";

const { dirname, join, normalize, resolve } = paths;

const ERRORS = {
  ENOENT: [-2, "no such file or directory"],
  EEXIST: [-17, "file already exists"],
  ENOTDIR: [-20, "not a directory"],
  EISDIR: [-21, "illegal operation on a directory"],
  EINVAL: [-22, "invalid argument"],
  ENOTEMPTY: [-39, "directory not empty"],
  EACCES: [-13, "permission denied"],
  EBUSY: [-16, "resource busy or locked"],
  EBADF: [-9, "bad file descriptor"],
  ELOOP: [-40, "too many symbolic links encountered"],
  EROFS: [-30, "read-only file system"],
  ENOTSUP: [-95, "operation not supported on socket"],
};

function failure(code, syscall, path, dest) {
  const [errno, sentence] = ERRORS[code];
  const where = path === undefined ? "" : ` '${path}'${dest === undefined ? "" : ` -> '${dest}'`}`;
  const error = new Error(`${code}: ${sentence}, ${syscall}${where}`);
  return Object.assign(error, {
    errno,
    code,
    syscall,
    ...(path !== undefined && { path }),
    ...(dest !== undefined && { dest }),
  });
}

/** What may be written, as bytes. @param {string | ArrayBufferView | ArrayBuffer} data @param {string} [name] */
function encode(data, name) {
  if (typeof data === "string") return Buffer.from(data, name);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const message = `The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${data === null ? "null" : typeof data}`;
  throw Object.assign(new TypeError(message), { code: "ERR_INVALID_ARG_TYPE" });
}

const decode = (bytes, name) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(name);

const constants = { F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4, COPYFILE_EXCL: 1 };

/** Bits that a new file does not have. */
const UMASK = 0o022;

/** @param {import("../files.js").Node} node */
function modeOf(node) {
  if (node instanceof Link) return 0o777;
  return node.mode ?? (node instanceof Directory ? 0o755 : node instanceof File ? 0o644 : 0o666);
}

/** The type of a file in its mode. @param {import("../files.js").Node} node */
function typeOf(node) {
  if (node instanceof Directory) return 0o040000;
  if (node instanceof Link) return 0o120000;
  return node instanceof File ? 0o100000 : 0o020000;
}

/** A mode as callers give it, a number or octal digits. @param {number | string} mode */
function bits(mode) {
  const value = typeof mode === "string" && /^[0-7]+$/.test(mode) ? Number.parseInt(mode, 8) : mode;
  if (Number.isInteger(value) && value >= 0 && value <= 0xffffffff) return value;
  const message = `The "mode" argument must be a 32-bit unsigned integer or an octal string. Received ${String(mode)}`;
  throw Object.assign(new TypeError(message), { code: "ERR_INVALID_ARG_VALUE" });
}

class Stats {
  constructor(node) {
    const modified = node.modified;
    Object.assign(this, {
      dev: 1,
      ino: Number(node.inode),
      mode: typeOf(node) | modeOf(node),
      nlink: 1,
      uid: 1000,
      gid: 1000,
      size: node.size,
    });
    for (const name of ["atime", "mtime", "ctime", "birthtime"]) {
      this[`${name}Ms`] = modified;
      this[name] = new Date(modified);
    }
  }

  isFile() {
    return (this.mode & 0o170000) === 0o100000;
  }

  isDirectory() {
    return (this.mode & 0o170000) === 0o40000;
  }

  isSymbolicLink() {
    return (this.mode & 0o170000) === 0o120000;
  }

  isCharacterDevice() {
    return (this.mode & 0o170000) === 0o020000;
  }

  isFIFO() {
    return false;
  }

  isSocket() {
    return false;
  }

  isBlockDevice() {
    return false;
  }
}

class Dirent {
  #node;

  constructor(name, parentPath, node) {
    this.name = name;
    this.parentPath = parentPath;
    this.path = parentPath;
    this.#node = node;
  }

  isFile() {
    return this.#node instanceof File;
  }

  isDirectory() {
    return this.#node instanceof Directory;
  }

  isSymbolicLink() {
    return this.#node instanceof Link;
  }

  isCharacterDevice() {
    return this.#node instanceof Device;
  }

  isFIFO() {
    return false;
  }

  isSocket() {
    return false;
  }

  isBlockDevice() {
    return false;
  }
}

/**
 * @param {import("../files.js").FileTree} tree
 * @param {{cwd: () => string, stdin: Uint8Array, write: (stream: "stdout" | "stderr", data: Uint8Array) => void,
 *   later: (task: () => void) => void}} process `later` runs a task as a separate event
 */
export function makeFs(tree, { cwd, stdin, write, later }) {
  const open = new Map([
    [0, { node: new File(stdin, 0), offset: 0, readable: true, writes: false }],
    [1, { stream: "stdout", readable: false, writes: true }],
    [2, { stream: "stderr", readable: false, writes: true }],
  ]);

  const textOf = (path) => {
    if (path instanceof URL) path = decodeURIComponent(path.pathname);
    if (path instanceof Uint8Array) path = decode(path);
    if (typeof path !== "string") {
      const message = `The "path" argument must be of type string or an instance of Buffer or URL. Received ${path === null ? "null" : typeof path}`;
      throw Object.assign(new TypeError(message), { code: "ERR_INVALID_ARG_TYPE" });
    }
    return path;
  };
  /** From the root, with its `..`, which lead up from where links have led. */
  const located = (path) => {
    const text = textOf(path);
    return text.startsWith("/") ? text : `${cwd()}/${text}`;
  };
  const absolute = (path) => normalize(located(path));
  /** Where a path leads; an error only where something on the way is no directory. */
  const find = (path, syscall, follow = true) => {
    const found = tree.lookup(located(path), { follow });
    if (typeof found === "string") throw failure(found, syscall, path);
    return found;
  };
  const existing = (path, syscall, follow = true) => {
    const found = find(path, syscall, follow);
    if (!found.node) throw failure("ENOENT", syscall, path);
    return found;
  };
  const optionsOf = (options) => (typeof options === "string" ? { encoding: options } : (options ?? {}));
  /** @param {number | string} [mode] of a file that is made */
  const writable = (path, syscall, mode) => {
    const { directory, name, node, slash } = find(path, syscall);
    if (node instanceof Directory || name === "" || slash) throw failure("EISDIR", syscall, path);
    if (node instanceof File && node.ours) throw failure("EROFS", syscall, path);
    if (node) return node;
    const file = new File(new Uint8Array(0), Date.now());
    if (mode !== undefined && mode !== null) file.mode = bits(mode) & 0o777 & ~UMASK;
    directory.set(name, file);
    return file;
  };
  /** @param {number} fd @param {string} syscall @param {"readable" | "writes"} [mode] that it must have been opened for */
  const opened = (fd, syscall, mode) => {
    const entry = open.get(fd);
    if (!entry || (mode && !entry[mode])) throw failure("EBADF", syscall);
    return entry;
  };
  const remove = (directory, name) => directory.delete(name);

  /** Makes `path` a file with the content and the permission bits of `file`. */
  const copyTo = (path, file) => {
    sync.writeFile(path, file.content);
    sync.chmod(path, modeOf(file));
  };

  /** Whether `path`, which need not be there, lies in `directory` or is it. */
  const isWithin = (path, directory) => {
    let place = absolute(path);
    while (!tree.lookup(place).node) place = dirname(place);
    const { node, directory: parent } = tree.lookup(place);
    for (let at = node instanceof Directory ? node : parent; at !== directory; at = at.parent) if (at === at.parent) return false;
    return true;
  };

  const statOf = (path, syscall, follow, { throwIfNoEntry = true } = {}) => {
    try {
      return new Stats(existing(path, syscall, follow).node);
    } catch (error) {
      if (throwIfNoEntry || error.code !== "ENOENT") throw error;
      return undefined;
    }
  };

  const sync = {
    readFile(path, options) {
      const { encoding } = optionsOf(options);
      let content;
      if (typeof path === "number" || path === "/dev/stdin") {
        const entry = opened(path === "/dev/stdin" ? 0 : path, "read", "readable");
        content = entry.node.content.slice(entry.offset);
        entry.offset = entry.node.size;
      } else {
        const { node } = existing(path, "open");
        if (node instanceof Directory) throw Object.assign(failure("EISDIR", "read"), {});
        content = node instanceof Device ? new Uint8Array(0) : node.content.slice();
      }
      return encoding && encoding !== "buffer" ? decode(content, encoding) : Buffer.from(content.buffer);
    },
    writeFile(path, data, options) {
      const { encoding, flag = "w", mode } = optionsOf(options);
      const bytes = encode(data, encoding);
      if (typeof path === "number") return void sync.write(path, bytes);
      if (flag.includes("x") && find(path, "open", false).node) throw failure("EEXIST", "open", path);
      const node = writable(path, "open", mode);
      if (!(node instanceof File)) return;
      if (!flag.startsWith("a")) node.resize(0);
      node.write(node.size, bytes);
    },
    appendFile(path, data, options) {
      sync.writeFile(path, data, { ...optionsOf(options), flag: "a" });
    },
    exists(path) {
      try {
        return find(path, "access").node !== undefined;
      } catch {
        return false;
      }
    },
    access(path, mode = constants.F_OK) {
      const { node } = existing(path, "access");
      const isRefused = mode & constants.X_OK && node instanceof File && !(modeOf(node) & 0o111);
      if (isRefused) throw failure("EACCES", "access", path);
    },
    stat(path, options) {
      return statOf(path, "stat", true, options);
    },
    lstat(path, options) {
      return statOf(path, "lstat", false, options);
    },
    readdir(path, options) {
      const { withFileTypes, recursive } = optionsOf(options);
      const { node } = existing(path, "scandir");
      if (!(node instanceof Directory)) throw failure("ENOTDIR", "scandir", path);
      const found = [];
      const list = (directory, below) => {
        for (const [name, child] of [...directory.entries].sort(([a], [b]) => (a < b ? -1 : 1))) {
          const parent = below === "" ? String(path) : join(String(path), below);
          found.push(withFileTypes ? new Dirent(name, parent, child) : below === "" ? name : `${below}/${name}`);
          if (recursive && child instanceof Directory) list(child, below === "" ? name : `${below}/${name}`);
        }
      };
      list(node, "");
      return found;
    },
    mkdir(path, options) {
      const { recursive, mode } = typeof options === "object" ? (options ?? {}) : { mode: options };
      const make = ({ directory, name }) => {
        const made = new Directory(Date.now());
        if (mode !== undefined && mode !== null) made.mode = bits(mode) & 0o777 & ~UMASK;
        directory.set(name, made);
      };
      if (!recursive) {
        const found = find(path, "mkdir", false);
        if (found.node) throw failure("EEXIST", "mkdir", path);
        make(found);
        return undefined;
      }
      let first;
      const names = textOf(path).replace(/\/+$/, "").split("/");
      for (const [index, name] of names.entries()) {
        if (name === "") continue;
        const made = names.slice(0, index + 1).join("/");
        const found = find(made, "mkdir");
        if (found.node && !(found.node instanceof Directory))
          throw failure(index === names.length - 1 ? "EEXIST" : "ENOTDIR", "mkdir", path);
        if (!found.node) {
          first ??= made;
          make(found);
        }
      }
      return first;
    },
    mkdtemp(prefix) {
      const path = prefix + Math.random().toString(36).slice(2, 8).padEnd(6, "x");
      sync.mkdir(path);
      return path;
    },
    rm(path, { recursive = false, force = false } = {}) {
      if (force && !sync.lstat(path, { throwIfNoEntry: false })) return;
      const { directory, name, node } = existing(path, "rm", false);
      if (name === "") throw failure("EINVAL", "rm", path);
      if (node instanceof Directory && !recursive) {
        const message = `Path is a directory: rm returned EISDIR (is a directory) ${path}`;
        throw Object.assign(new Error(message), { code: "ERR_FS_EISDIR", name: "SystemError" });
      }
      remove(directory, name);
    },
    rmdir(path, options) {
      const { directory, name, node } = existing(path, "rmdir", false);
      if (!(node instanceof Directory)) throw failure("ENOTDIR", "rmdir", path);
      if (name === "") throw failure("EINVAL", "rmdir", path);
      if (node.entries.size > 0 && !options?.recursive) throw failure("ENOTEMPTY", "rmdir", path);
      remove(directory, name);
    },
    unlink(path) {
      const { directory, name, node } = existing(path, "unlink", false);
      if (node instanceof Directory) throw failure("EISDIR", "unlink", path);
      remove(directory, name);
    },
    rename(from, to) {
      const { directory, name, node } = find(from, "rename", false);
      if (!node) throw failure("ENOENT", "rename", from, to);
      const target = find(to, "rename", false);
      if (name === "" || target.name === "") throw failure("EBUSY", "rename", from, to);
      if (target.slash && !(node instanceof Directory)) throw failure("ENOTDIR", "rename", from, to);
      if (node === target.node) return;
      if (target.node instanceof Directory) {
        if (!(node instanceof Directory)) throw failure("EISDIR", "rename", from, to);
        if (target.node.entries.size > 0) throw failure("ENOTEMPTY", "rename", from, to);
      } else if (target.node && node instanceof Directory) throw failure("ENOTDIR", "rename", from, to);
      for (let at = target.directory; at !== at.parent; at = at.parent) {
        if (at === node) throw failure("EINVAL", "rename", from, to);
      }
      remove(directory, name);
      target.directory.set(target.name, node);
    },
    copyFile(from, to) {
      const { node } = existing(from, "copyfile");
      if (node instanceof Directory) throw failure("EISDIR", "copyfile", from, to);
      copyTo(to, node);
    },
    cp(from, to, options = {}) {
      const { recursive = false, force = true, dereference = false, verbatimSymlinks = false } = options;
      const { node } = existing(from, "cp", dereference);
      if (node instanceof Link) {
        if (!force && sync.lstat(to, { throwIfNoEntry: false })) return undefined;
        sync.rm(to, { force: true });
        const target = verbatimSymlinks ? node.target : resolve(dirname(absolute(from)), node.target);
        return sync.symlink(target, to);
      }
      if (!(node instanceof Directory)) {
        if (force || !sync.exists(to)) sync.copyFile(from, to);
        return undefined;
      }
      if (!recursive) {
        const message = `Recursive option not enabled, cannot copy a directory: cp returned EISDIR (${from} is a directory (not copied)) ${absolute(from)}`;
        throw Object.assign(new Error(message), { code: "ERR_FS_EISDIR", name: "SystemError" });
      }
      if (isWithin(to, node)) {
        const message = `Cannot copy ${from} to a subdirectory of self ${to}`;
        throw Object.assign(new Error(message), { code: "ERR_FS_CP_EINVAL", name: "SystemError" });
      }
      sync.mkdir(to, { recursive: true });
      for (const name of node.entries.keys()) sync.cp(join(String(from), name), join(String(to), name), options);
      return undefined;
    },
    truncate(path, length = 0) {
      existing(path, "open");
      writable(path, "open").resize(length);
    },
    utimes(path, accessed, modified) {
      existing(path, "utime").node.modified = modified instanceof Date ? modified.getTime() : Number(modified) * 1000;
    },
    chmod(path, mode) {
      const { node } = existing(path, "chmod");
      if (node.ours) throw failure("EROFS", "chmod", path);
      if (!(node instanceof Device)) node.setMode(bits(mode));
    },
    realpath(path) {
      // As Node does it: `..` leads up before links are followed.
      return `/${existing(absolute(path).replace(/(.)\/$/, "$1"), "lstat").names.join("/")}`;
    },
    readlink(path) {
      const { node } = existing(path, "readlink", false);
      if (!(node instanceof Link)) throw failure("EINVAL", "readlink", path);
      return node.target;
    },
    symlink(target, path) {
      const { directory, name, node, slash } = find(path, "symlink", false);
      if (node) throw failure("EEXIST", "symlink", target, path);
      if (slash) throw failure("ENOENT", "symlink", target, path);
      directory.set(name, new Link(target instanceof URL ? located(target) : String(target), Date.now()));
    },
    open(path, flags = "r", mode = undefined) {
      const reads = flags === "r" || flags === "r+";
      if (reads) existing(path, "open");
      if (flags.includes("x") && find(path, "open", false).node) throw failure("EEXIST", "open", path);
      const node = flags === "r" ? find(path, "open").node : writable(path, "open", mode);
      if (flags.startsWith("w") && node instanceof File) node.resize(0);
      let fd = 3;
      while (open.has(fd)) fd += 1;
      const [readable, writes] = [/^r|\+/.test(flags), flags !== "r"];
      open.set(fd, { node, offset: 0, append: flags.startsWith("a"), readable, writes });
      return fd;
    },
    close(fd) {
      opened(fd, "close");
      open.delete(fd);
    },
    fstat(fd) {
      return new Stats(opened(fd, "fstat").node ?? new Device(() => 0));
    },
    read(fd, target, offset, length, position) {
      const entry = opened(fd, "read", "readable");
      if (typeof offset === "object" && offset !== null) ({ offset, length, position } = offset);
      const start = offset ?? 0;
      const piece = encode(target).subarray(start, start + (length ?? target.byteLength - start));
      const count = entry.node.read(...(entry.node instanceof File ? [position ?? entry.offset, piece] : [piece]));
      if (position === undefined || position === null) entry.offset += count;
      return count;
    },
    write(fd, data, offset, length, position) {
      const entry = opened(fd, "write", "writes");
      let bytes = encode(data, typeof data === "string" ? length : undefined);
      if (typeof data === "string") position = offset;
      else if (typeof offset === "number") bytes = bytes.subarray(offset, offset + (length ?? bytes.length - offset));
      if (entry.stream) write(entry.stream, bytes.slice());
      else if (entry.node instanceof File) {
        const at = entry.append ? entry.node.size : (position ?? entry.offset);
        entry.node.write(at, bytes);
        if (position === undefined || position === null) entry.offset = at + bytes.length;
      }
      return bytes.length;
    },
    fchmod(fd, mode) {
      const { node } = opened(fd, "fchmod");
      if (node instanceof File) node.setMode(bits(mode));
    },
    fsync(fd) {
      opened(fd, "fsync");
    },
    ftruncate(fd, length = 0) {
      opened(fd, "ftruncate", "writes").node.resize(length);
    },
  };

  const fs = { constants, Stats, Dirent };
  const promises = { constants };
  for (const [name, call] of Object.entries(sync)) {
    fs[`${name}Sync`] = call;
    fs[name] = (...args) => {
      const callback = args.pop();
      if (typeof callback !== "function") {
        const message = `The "cb" argument must be of type function. Received ${typeof callback}`;
        throw Object.assign(new TypeError(message), { code: "ERR_INVALID_ARG_TYPE" });
      }
      let outcome;
      try {
        const result = call(...args);
        outcome = name === "exists" ? [result] : [null, result];
      } catch (error) {
        outcome = name === "exists" ? [false] : [error];
      }
      later(() => callback(...outcome));
    };
    if (name !== "exists") promises[name] = async (...args) => call(...args);
  }
  promises.open = async (path, flags) => {
    const fd = sync.open(path, flags);
    return {
      fd,
      readFile: async (options) => sync.readFile(fd, options),
      writeFile: async (data, options) => sync.writeFile(fd, data, options),
      read: async (target, ...rest) => ({ bytesRead: sync.read(fd, target, ...rest), buffer: target }),
      write: async (data, ...rest) => ({ bytesWritten: sync.write(fd, data, ...rest), buffer: data }),
      stat: async () => sync.fstat(fd),
      truncate: async (length) => sync.ftruncate(fd, length),
      close: async () => sync.close(fd),
    };
  };
  fs.promises = promises;
  return Object.assign(fs, makeFileStreams(sync));
}
