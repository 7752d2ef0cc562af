// WASI preview 1 over a file tree: what a program compiled to wasm32-wasip1
// asks of its system, answered inside the worker that runs it. One object per
// run, one table of calls. Numbers and layouts are those of the witx files of WASI
// snapshot_preview1.

import { Device, Directory, File, Link } from "./files.js";

const E = {
  OK: 0,
  BADF: 8,
  BUSY: 10,
  EXIST: 20,
  FBIG: 22,
  ILSEQ: 25,
  INVAL: 28,
  ISDIR: 31,
  LOOP: 32,
  NOENT: 44,
  NOTDIR: 54,
  NOTEMPTY: 55,
  NOTSUP: 58,
  PERM: 63,
  ROFS: 69,
  SPIPE: 70,
};
const TYPE = { CHARACTER: 2, DIRECTORY: 3, FILE: 4, LINK: 7 };
const OPEN = { CREATE: 1, DIRECTORY: 2, EXCLUSIVE: 4, TRUNCATE: 8 };
const APPEND = 1;
/** The last link of a path is followed. */
const FOLLOW = 1;
const ALL_RIGHTS = 0x1fffffffn;
/** The one directory that is open from the start. */
const ROOT_FD = 3;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Thrown to leave the program. */
export class Exit {
  /** @param {number} code */
  constructor(code) {
    this.code = code;
  }
}

/**
 * @typedef {object} WasiOptions
 * @property {import("./files.js").FileTree} tree
 * @property {string[]} args the name of the program first
 * @property {Record<string, string>} env
 * @property {Uint8Array} stdin
 * @property {(stream: "stdout" | "stderr", data: Uint8Array) => void} write
 *   gets bytes that are its own; may throw an `Exit`
 * @property {() => void} beforePause called before the program sleeps
 */

/**
 * The imports `wasi_snapshot_preview1`, and `start`, which takes the memory
 * of the instance.
 * @param {WasiOptions} options
 */
export function wasi({ tree, args, env, stdin, write, beforePause }) {
  /** @type {WebAssembly.Memory} */
  let memory;
  const view = () => new DataView(memory.buffer);
  const bytes = (pointer, length) => new Uint8Array(memory.buffer, pointer, length);
  /** `undefined`: it is not UTF-8, as every name in the sandbox is. */
  const text = (pointer, length) => {
    try {
      return decoder.decode(bytes(pointer, length));
    } catch {
      return undefined;
    }
  };

  /** What is open, by number: `{node, offset, append, names}` or `{stream}`. */
  const open = new Map([
    [0, { stream: "stdin", offset: 0 }],
    [1, { stream: "stdout" }],
    [2, { stream: "stderr" }],
    [ROOT_FD, { node: tree.root, offset: 0, append: false }],
  ]);
  const lowestFree = () => {
    let fd = 0;
    while (open.has(fd)) fd += 1;
    return fd;
  };

  /** Where a path leads, as `lookup` says it; a number is the error. */
  const find = (fd, pointer, length, follow) => {
    const start = open.get(fd)?.node;
    if (!start) return E.BADF;
    const path = text(pointer, length);
    if (path === undefined) return E.ILSEQ;
    if (path === "") return E.NOENT;
    if (path.startsWith("/")) return E.PERM;
    const found = tree.lookup(path, { start, follow });
    return typeof found === "string" ? E[found.slice(1)] : found;
  };

  const typeOf = (node) => {
    if (node instanceof Directory) return TYPE.DIRECTORY;
    if (node instanceof Link) return TYPE.LINK;
    return node instanceof File ? TYPE.FILE : TYPE.CHARACTER;
  };

  const writeStat = (pointer, node) => {
    const data = view();
    bytes(pointer, 64).fill(0);
    data.setBigUint64(pointer, 1n, true);
    data.setBigUint64(pointer + 8, node?.inode ?? 0n, true);
    // Streams are pipes, which WASI has no type for; a character device would be a terminal.
    data.setUint8(pointer + 16, node ? typeOf(node) : 0);
    data.setBigUint64(pointer + 24, 1n, true);
    data.setBigUint64(pointer + 32, BigInt(node?.size ?? 0), true);
    const modified = BigInt(Math.round((node?.modified ?? 0) * 1000)) * 1000n;
    for (const at of [40, 48, 56]) data.setBigUint64(pointer + at, modified, true);
  };

  /** Calls `use` with each buffer until one is not used up; the sum of bytes. */
  const buffers = (pointer, count, use) => {
    const data = view();
    let total = 0;
    for (let i = 0; i < count; i += 1) {
      const at = data.getUint32(pointer + i * 8, true);
      const length = data.getUint32(pointer + i * 8 + 4, true);
      const used = use(bytes(at, length));
      total += used;
      if (used < length) break;
    }
    return total;
  };

  const read = (entry, offset, pointer, count) => {
    let at = offset;
    return buffers(pointer, count, (target) => {
      if (entry.node instanceof Device) return entry.node.read(target);
      if (entry.node) {
        const length = entry.node.read(at, target);
        at += length;
        return length;
      }
      const piece = stdin.subarray(at, at + target.length);
      target.set(piece);
      at += piece.length;
      return piece.length;
    });
  };

  const writeTo = (entry, offset, pointer, count) => {
    let at = offset;
    return buffers(pointer, count, (source) => {
      if (entry.stream) write(entry.stream, source.slice());
      else if (entry.node instanceof File) entry.node.write(at, source);
      at += source.length;
      return source.length;
    });
  };

  /** What `change` does to a file, unless that becomes larger than memory can hold. */
  const grown = (change) => {
    try {
      change();
      return E.OK;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return E.FBIG;
    }
  };

  const setTime = (node, flags, modified) => {
    // Bit 2 sets the given time of modification, bit 3 the present one.
    if (flags & 4) node.modified = Number(modified / 1000n) / 1000;
    if (flags & 8) node.modified = Date.now();
  };

  const list = (strings, pointers, buffer) => {
    const data = view();
    let at = buffer;
    strings.forEach((string, index) => {
      const encoded = encoder.encode(`${string}\0`);
      data.setUint32(pointers + index * 4, at, true);
      bytes(at, encoded.length).set(encoded);
      at += encoded.length;
    });
    return E.OK;
  };
  const listSizes = (strings, count, size) => {
    view().setUint32(count, strings.length, true);
    view().setUint32(
      size,
      strings.reduce((sum, string) => sum + encoder.encode(string).length + 1, 0),
      true,
    );
    return E.OK;
  };
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const now = (clock) => BigInt(Math.round((clock === 0 ? Date.now() : performance.now()) * 1e6));

  /** A function on an open file; `use` gets its entry and the other arguments. */
  const onFile =
    (use) =>
    (fd, ...rest) => {
      const entry = open.get(fd);
      return entry ? use(entry, ...rest) : E.BADF;
    };
  /** A function on a path itself; `use` gets what `find` found and the other arguments. */
  const onPath =
    (use) =>
    (fd, pointer, length, ...rest) => {
      const found = find(fd, pointer, length, false);
      return typeof found === "number" ? found : use(found, ...rest);
    };
  const flushed = onFile(() => E.OK);
  const unsupported = () => E.NOTSUP;

  const imports = {
    args_get: (pointers, buffer) => list(args, pointers, buffer),
    args_sizes_get: (count, size) => listSizes(args, count, size),
    environ_get: (pointers, buffer) => list(variables, pointers, buffer),
    environ_sizes_get: (count, size) => listSizes(variables, count, size),

    clock_res_get: (clock, result) => {
      view().setBigUint64(result, 1000n, true);
      return E.OK;
    },
    clock_time_get: (clock, precision, result) => {
      view().setBigUint64(result, now(clock), true);
      return E.OK;
    },
    random_get: (pointer, length) => {
      // As much as `getRandomValues` gives at once.
      for (let at = 0; at < length; at += 65_536) {
        crypto.getRandomValues(bytes(pointer + at, Math.min(65_536, length - at)));
      }
      return E.OK;
    },
    sched_yield: () => E.OK,
    proc_exit: (code) => {
      throw new Exit(code);
    },
    poll_oneoff: (subscriptions, events, count, result) => {
      const data = view();
      const timers = [];
      let ready = 0;
      const report = (userdata, type) => {
        const at = events + ready * 32;
        bytes(at, 32).fill(0);
        data.setBigUint64(at, userdata, true);
        data.setUint8(at + 10, type);
        ready += 1;
      };
      for (let i = 0; i < count; i += 1) {
        const at = subscriptions + i * 48;
        const userdata = data.getBigUint64(at, true);
        const type = data.getUint8(at + 8);
        if (type !== 0) {
          report(userdata, type);
          continue;
        }
        const clock = data.getUint32(at + 16, true);
        const timeout = data.getBigUint64(at + 24, true);
        const absolute = data.getUint16(at + 40, true) & 1;
        timers.push({ userdata, ms: Number(absolute ? timeout - now(clock) : timeout) / 1e6 });
      }
      if (ready === 0 && timers.length > 0) {
        const ms = Math.min(...timers.map((timer) => timer.ms));
        beforePause();
        pause(ms);
        for (const timer of timers) if (timer.ms <= ms) report(timer.userdata, 0);
      }
      data.setUint32(result, ready, true);
      return E.OK;
    },

    fd_prestat_get: (fd, result) => {
      if (fd !== ROOT_FD) return E.BADF;
      view().setUint32(result, 0, true);
      view().setUint32(result + 4, 1, true);
      return E.OK;
    },
    fd_prestat_dir_name: (fd, pointer) => {
      if (fd !== ROOT_FD) return E.BADF;
      bytes(pointer, 1)[0] = 0x2f;
      return E.OK;
    },
    fd_fdstat_get: onFile((entry, result) => {
      const data = view();
      bytes(result, 24).fill(0);
      data.setUint8(result, entry.node ? typeOf(entry.node) : 0);
      data.setUint16(result + 2, entry.append ? APPEND : 0, true);
      data.setBigUint64(result + 8, ALL_RIGHTS, true);
      data.setBigUint64(result + 16, ALL_RIGHTS, true);
      return E.OK;
    }),
    fd_fdstat_set_flags: onFile((entry, flags) => {
      entry.append = entry.node instanceof File && (flags & APPEND) !== 0;
      return E.OK;
    }),
    fd_filestat_get: onFile((entry, result) => {
      writeStat(result, entry.node);
      return E.OK;
    }),
    fd_filestat_set_size: onFile((entry, size) => {
      if (!(entry.node instanceof File)) return E.INVAL;
      if (entry.node.ours) return E.ROFS;
      return grown(() => entry.node.resize(Number(size)));
    }),
    fd_filestat_set_times: onFile((entry, accessed, modified, flags) => {
      if (entry.node) setTime(entry.node, flags, modified);
      return E.OK;
    }),
    fd_allocate: onFile((entry, offset, length) => {
      if (!(entry.node instanceof File)) return E.INVAL;
      if (entry.node.ours) return E.ROFS;
      const size = Number(offset + length);
      return grown(() => void (size > entry.node.size && entry.node.resize(size)));
    }),
    fd_advise: flushed,
    fd_datasync: flushed,
    fd_sync: flushed,
    fd_close: (fd) => (open.delete(fd) ? E.OK : E.BADF),
    fd_renumber: (from, to) => {
      const entry = open.get(from);
      if (!entry) return E.BADF;
      open.delete(from);
      open.set(to, entry);
      return E.OK;
    },
    fd_read: onFile((entry, pointer, count, result) => {
      if (entry.node instanceof Directory) return E.ISDIR;
      if (entry.stream && entry.stream !== "stdin") return E.BADF;
      const length = read(entry, entry.offset, pointer, count);
      entry.offset += length;
      view().setUint32(result, length, true);
      return E.OK;
    }),
    fd_pread: onFile((entry, pointer, count, offset, result) => {
      if (!(entry.node instanceof File)) return E.SPIPE;
      view().setUint32(result, read(entry, Number(offset), pointer, count), true);
      return E.OK;
    }),
    fd_write: onFile((entry, pointer, count, result) => {
      if (entry.node instanceof Directory || entry.stream === "stdin") return E.BADF;
      if (entry.node instanceof File && entry.node.ours) return E.ROFS;
      if (entry.append) entry.offset = entry.node.size;
      return grown(() => {
        const length = writeTo(entry, entry.offset, pointer, count);
        entry.offset += length;
        view().setUint32(result, length, true);
      });
    }),
    fd_pwrite: onFile((entry, pointer, count, offset, result) => {
      if (!(entry.node instanceof File)) return E.SPIPE;
      if (entry.node.ours) return E.ROFS;
      return grown(() => view().setUint32(result, writeTo(entry, Number(offset), pointer, count), true));
    }),
    fd_seek: onFile((entry, offset, whence, result) => {
      if (!entry.node) return E.SPIPE;
      const from = [0, entry.offset, entry.node.size][whence];
      const target = from + Number(offset);
      if (from === undefined || target < 0) return E.INVAL;
      entry.offset = target;
      view().setBigUint64(result, BigInt(target), true);
      return E.OK;
    }),
    fd_tell: onFile((entry, result) => {
      if (!entry.node) return E.SPIPE;
      view().setBigUint64(result, BigInt(entry.offset), true);
      return E.OK;
    }),
    fd_readdir: onFile((entry, buffer, length, cookie, result) => {
      if (!(entry.node instanceof Directory)) return E.NOTDIR;
      // The names of one pass stay the same, whatever happens in between.
      if (cookie === 0n || !entry.names) {
        entry.names = [[".", entry.node], ["..", entry.node.parent], ...entry.node.entries];
      }
      let used = 0;
      for (let index = Number(cookie); index < entry.names.length && used < length; index += 1) {
        const [name, node] = entry.names[index];
        const encoded = encoder.encode(name);
        const record = new Uint8Array(24 + encoded.length);
        const data = new DataView(record.buffer);
        data.setBigUint64(0, BigInt(index + 1), true);
        data.setBigUint64(8, node.inode, true);
        data.setUint32(16, encoded.length, true);
        data.setUint8(20, typeOf(node));
        record.set(encoded, 24);
        // A record that is cut tells the reader to come back for more.
        const piece = record.subarray(0, length - used);
        bytes(buffer + used, piece.length).set(piece);
        used += piece.length;
      }
      view().setUint32(result, used, true);
      return E.OK;
    }),

    path_open: (fd, followed, pointer, length, flags, rights, inherited, fdFlags, result) => {
      const isNew = flags & OPEN.CREATE && flags & OPEN.EXCLUSIVE;
      // Who wants to make a file makes none where a link leads.
      const found = find(fd, pointer, length, !isNew && (followed & FOLLOW) !== 0);
      if (typeof found === "number") return found;
      let { node } = found;
      if (node === undefined) {
        if (!(flags & OPEN.CREATE)) return E.NOENT;
        if (flags & OPEN.DIRECTORY) return E.INVAL;
        if (found.slash) return E.ISDIR;
        node = new File(new Uint8Array(0), Date.now());
        found.directory.set(found.name, node);
      } else {
        if (isNew) return E.EXIST;
        if (node instanceof Link) return E.LOOP;
        if (flags & OPEN.DIRECTORY && !(node instanceof Directory)) return E.NOTDIR;
        const writes = (rights & (1n << 6n)) !== 0n;
        if (node instanceof Directory && writes && !(flags & OPEN.DIRECTORY)) return E.ISDIR;
        if (node instanceof File && flags & OPEN.TRUNCATE) {
          if (node.ours) return E.ROFS;
          node.resize(0);
        }
      }
      const opened = lowestFree();
      open.set(opened, { node, offset: 0, append: (fdFlags & APPEND) !== 0 });
      view().setUint32(result, opened, true);
      return E.OK;
    },
    path_filestat_get: (fd, followed, pointer, length, result) => {
      const found = find(fd, pointer, length, (followed & FOLLOW) !== 0);
      if (typeof found === "number") return found;
      if (!found.node) return E.NOENT;
      writeStat(result, found.node);
      return E.OK;
    },
    path_filestat_set_times: (fd, followed, pointer, length, accessed, modified, flags) => {
      const found = find(fd, pointer, length, (followed & FOLLOW) !== 0);
      if (typeof found === "number") return found;
      if (!found.node) return E.NOENT;
      setTime(found.node, flags, modified);
      return E.OK;
    },
    path_create_directory: onPath(({ directory, name, node }) => {
      if (node) return E.EXIST;
      directory.set(name, new Directory(Date.now()));
      return E.OK;
    }),
    path_remove_directory: onPath(({ directory, name, node }) => {
      if (!node) return E.NOENT;
      if (!(node instanceof Directory)) return E.NOTDIR;
      if (name === "") return E.INVAL;
      if (node.entries.size > 0) return E.NOTEMPTY;
      directory.delete(name);
      return E.OK;
    }),
    path_unlink_file: onPath(({ directory, name, node }) => {
      if (!node) return E.NOENT;
      if (node instanceof Directory) return E.ISDIR;
      if (node.ours) return E.ROFS;
      directory.delete(name);
      return E.OK;
    }),
    path_rename: (fd, pointer, length, toFd, toPointer, toLength) => {
      const from = find(fd, pointer, length, false);
      const to = find(toFd, toPointer, toLength, false);
      if (typeof from === "number") return from;
      if (typeof to === "number") return to;
      if (!from.node) return E.NOENT;
      if (from.name === "" || to.name === "") return E.BUSY;
      if (to.slash && !(from.node instanceof Directory)) return E.NOTDIR;
      if (from.node === to.node) return E.OK;
      if (from.node.ours || to.node?.ours) return E.ROFS;
      if (from.node instanceof Directory) {
        if (to.node && !(to.node instanceof Directory)) return E.NOTDIR;
        if (to.node?.entries.size > 0) return E.NOTEMPTY;
        for (let at = to.directory; at !== at.parent; at = at.parent) {
          if (at === from.node) return E.INVAL;
        }
      } else if (to.node instanceof Directory) {
        return E.ISDIR;
      }
      from.directory.delete(from.name);
      to.directory.set(to.name, from.node);
      return E.OK;
    },
    path_readlink: onPath(({ node }, buffer, room, result) => {
      if (!node) return E.NOENT;
      if (!(node instanceof Link)) return E.INVAL;
      const piece = encoder.encode(node.target).subarray(0, room);
      bytes(buffer, piece.length).set(piece);
      view().setUint32(result, piece.length, true);
      return E.OK;
    }),
    path_symlink: (targetPointer, targetLength, fd, pointer, length) => {
      const target = text(targetPointer, targetLength);
      if (target === undefined) return E.ILSEQ;
      if (target === "") return E.NOENT;
      const found = find(fd, pointer, length, false);
      if (typeof found === "number") return found;
      if (found.node) return E.EXIST;
      if (found.slash) return E.NOENT;
      found.directory.set(found.name, new Link(target, Date.now()));
      return E.OK;
    },
    // The sandbox has no hard links.
    path_link: unsupported,
  };
  const withDefaults = new Proxy(imports, { get: (known, name) => known[name] ?? unsupported });
  return {
    imports: withDefaults,
    start(instanceMemory) {
      memory = instanceMemory;
    },
  };
}

/** Memory to wait on, where there is any: the page need not be isolated for it. */
const bell = (() => {
  try {
    return new Int32Array(new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }).buffer);
  } catch {
    return undefined;
  }
})();

/** Waits, in a worker, without giving anything else its turn. @param {number} ms */
export function pause(ms) {
  const end = performance.now() + ms;
  for (let left = ms; left > 0; left = end - performance.now()) {
    if (bell) Atomics.wait(bell, 0, 0, left);
  }
}
