// The file tree that a lent program works on, in the worker that runs it: told
// by the sandbox as changes, asked afterwards what the program changed.

/**
 * @typedef {import("../environment/program.js").FileChange} FileChange
 * @typedef {File | Directory | Link | Device} Node
 */

let inodes = 0n;

/** Links followed in one lookup before it fails, as on Linux and in the sandbox. */
const MAX_LINKS = 40;

/** Content that grows in place; what it was given is copied at the first write. */
export class File {
  inode = (inodes += 1n);
  /** Counts writes, so that a change is found without comparing content. */
  version = 0;
  /** Whether it belongs to the program and not to the sandbox. */
  ours = false;
  /** @type {number | undefined} permission bits, where somebody set them: they go where the file goes */
  mode;
  #data;
  #size;
  #owned = false;

  /** @param {Uint8Array} data @param {number} modified ms since 1970 */
  constructor(data, modified) {
    this.#data = data;
    this.#size = data.length;
    this.modified = modified;
  }

  get size() {
    return this.#size;
  }

  /** The content; valid until the next write. */
  get content() {
    return this.#data.subarray(0, this.#size);
  }

  /** Bytes copied into `target` from `offset` on. @param {number} offset @param {Uint8Array} target */
  read(offset, target) {
    const piece = this.#data.subarray(Math.min(offset, this.#size), Math.min(offset + target.length, this.#size));
    target.set(piece);
    return piece.length;
  }

  /** @param {number} offset @param {Uint8Array} bytes */
  write(offset, bytes) {
    const end = offset + bytes.length;
    this.#reserve(end);
    if (offset > this.#size) this.#data.fill(0, this.#size, offset);
    this.#data.set(bytes, offset);
    this.#size = Math.max(this.#size, end);
    this.touch();
  }

  /** @param {number} size */
  resize(size) {
    this.#reserve(size);
    if (size > this.#size) this.#data.fill(0, this.#size, size);
    this.#size = size;
    this.touch();
  }

  /** @param {number} mode permission bits */
  setMode(mode) {
    this.mode = mode & 0o7777;
    this.version += 1;
  }

  touch() {
    this.version += 1;
    this.modified = Date.now();
  }

  #reserve(size) {
    if (this.#owned && size <= this.#data.length) return;
    const room = this.#owned ? Math.max(size, this.#data.length * 2, 64) : Math.max(size, this.#size);
    const data = new Uint8Array(room);
    data.set(this.#data.subarray(0, this.#size));
    this.#data = data;
    this.#owned = true;
  }
}

export class Directory {
  inode = (inodes += 1n);
  ours = false;
  /** @type {Map<string, Node>} */
  entries = new Map();
  /** @type {Directory} its own parent at the top */
  parent = this;
  /** @type {number | undefined} permission bits, where somebody set them */
  mode;

  /** @param {number} modified ms since 1970 */
  constructor(modified) {
    this.modified = modified;
  }

  get size() {
    return 0;
  }

  /** @param {string} name @param {Node} node */
  set(name, node) {
    this.entries.set(name, node);
    if (node instanceof Directory) node.parent = this;
    this.modified = Date.now();
  }

  /** @param {string} name */
  delete(name) {
    this.entries.delete(name);
    this.modified = Date.now();
  }

  /** @param {number} mode permission bits */
  setMode(mode) {
    this.mode = mode & 0o7777;
  }
}

/** A symbolic link. */
export class Link {
  inode = (inodes += 1n);
  ours = false;

  /** @param {string} target a path that starts with `/` or where the link is @param {number} modified ms since 1970 */
  constructor(target, modified) {
    this.target = target;
    this.modified = modified;
  }

  get size() {
    return new TextEncoder().encode(this.target).length;
  }
}

/** Reads give what `read` fills in; writes go nowhere. */
export class Device {
  inode = (inodes += 1n);
  ours = true;
  size = 0;
  modified = 0;

  /** @param {(target: Uint8Array) => number} read */
  constructor(read) {
    this.read = read;
  }
}

export class FileTree {
  root = new Directory(0);
  /** @type {Map<string, {node: Node, version: number, mode?: number}>} */
  #before = new Map();

  /** Forgets everything. */
  clear() {
    this.root = new Directory(0);
    this.#before.clear();
  }

  /** Applies what the sandbox tells, in order. @param {FileChange[]} changes @param {number} now */
  apply(changes, now) {
    let lastPath;
    let lastParent;
    for (const { path, type, content, target, mode } of changes) {
      const slash = path.lastIndexOf("/");
      const [parentPath, name] = [path.slice(0, slash), path.slice(slash + 1)];
      if (type === "removed") {
        // Its directory may have been removed, too, or be a file now.
        this.#existing(parentPath)?.entries.delete(name);
        lastParent = undefined;
        continue;
      }
      // They come sorted, so most lie in the directory of the one before.
      if (parentPath !== lastPath || !lastParent) {
        lastParent = this.#directory(parentPath, now);
        lastPath = parentPath;
      }
      if (type === "directory") {
        if (!(lastParent.entries.get(name) instanceof Directory)) lastParent.set(name, new Directory(now));
        lastParent.entries.get(name).mode = mode;
      } else if (type === "link") {
        lastParent.set(name, new Link(target, now));
      } else {
        const file = new File(content, now);
        file.mode = mode;
        lastParent.set(name, file);
      }
    }
  }

  /**
   * Where a path leads from `start`, or from the root if it begins with `/`: the directory, the last name, which is
   * empty where the path does not end in one, the node, if any, the names from the root or from `start` to it, and
   * whether the path ends with a slash, so that only a directory can be there. A text says why it leads nowhere. It never leaves the tree: above the root is the root.
   * @param {string} path @param {{follow?: boolean, start?: Node}} [options] `follow`: a link in the last component, too
   */
  lookup(path, { follow = true, start = this.root } = {}) {
    if (path.startsWith("/")) start = this.root;
    if (!(start instanceof Directory)) return "ENOTDIR";
    const slash = path.endsWith("/");
    const left = path.split("/").reverse();
    const names = [];
    let [node, directory, name] = [/** @type {Node | undefined} */ (start), start.parent, ""];
    for (let links = 0; left.length > 0; ) {
      const part = left.pop();
      if (part === "") continue;
      if (node === undefined) return "ENOENT";
      if (!(node instanceof Directory)) return "ENOTDIR";
      if (part === "." || part === "..") {
        if (part === "..") {
          names.pop();
          node = node.parent;
        }
        [directory, name] = [node.parent, ""];
        continue;
      }
      const entry = node.entries.get(part);
      if (entry instanceof Link && (follow || slash || left.some((part) => part !== ""))) {
        links += 1;
        if (links > MAX_LINKS) return "ELOOP";
        if (entry.target.startsWith("/")) {
          names.length = 0;
          node = this.root;
        }
        [directory, name] = [node.parent, ""];
        left.push(...entry.target.split("/").reverse());
        continue;
      }
      names.push(part);
      [directory, name, node] = [node, part, entry];
    }
    if (slash && node && !(node instanceof Directory)) return "ENOTDIR";
    return { directory, name, node, names, slash };
  }

  /** Puts `node` at `path`, unseen by the sandbox. @param {string} path @param {Node} node */
  mount(path, node) {
    node.ours = true;
    const slash = path.lastIndexOf("/");
    this.#directory(path.slice(0, slash), 0, true).entries.set(path.slice(slash + 1), node);
  }

  /** What is here now is what `changes` compares with. */
  mark() {
    this.#before.clear();
    walk(this.root, "", (path, node) => void this.#before.set(path, { node, version: node.version, mode: node.mode }));
  }

  /** What changed since `mark`; contents lie in one buffer. @returns {FileChange[]} */
  changes() {
    const before = this.#before;
    const kept = new Set();
    const files = [];
    const changes = [];
    walk(this.root, "", (path, node) => {
      const old = before.get(path);
      // What takes the place of another kind comes after the removal of that.
      if (old && old.node.constructor === node.constructor) kept.add(path);
      if (node.ours) return;
      if (node instanceof Directory) {
        const isSame = kept.has(path) && (node.mode === undefined || node.mode === old?.mode);
        if (!isSame) changes.push({ path, type: "directory", mode: node.mode });
      } else if (node instanceof Link) {
        if (old?.node !== node) changes.push({ path, type: "link", target: node.target });
      } else if (node instanceof File && (old?.node !== node || old.version !== node.version)) {
        const change = { path, type: "file", content: node.content, mode: node.mode };
        files.push(change);
        changes.push(change);
      }
    });
    const removed = [];
    for (const [path, { node }] of before) {
      if (kept.has(path) || node.ours) continue;
      const parent = path.slice(0, path.lastIndexOf("/"));
      // What lies in a removed directory goes with it.
      if (parent === "" || kept.has(parent)) removed.push({ path, type: "removed" });
    }
    pack(files);
    return [...removed, ...changes];
  }

  /** @returns {Directory | undefined} */
  #existing(path) {
    let node = this.root;
    for (const name of path.split("/")) {
      if (name === "") continue;
      node = node.entries.get(name);
      if (!(node instanceof Directory)) return undefined;
    }
    return node;
  }

  #directory(path, now, ours = false) {
    let directory = this.root;
    for (const name of path.split("/")) {
      if (name === "") continue;
      let next = directory.entries.get(name);
      if (!(next instanceof Directory)) {
        next = new Directory(now);
        next.ours = ours;
        directory.set(name, next);
      }
      directory = next;
    }
    return directory;
  }
}

/** Copies the contents into one buffer, which a message then takes along whole. */
function pack(files) {
  const buffer = new Uint8Array(files.reduce((total, { content }) => total + content.length, 0));
  let end = 0;
  for (const file of files) {
    const start = end;
    end += file.content.length;
    buffer.set(file.content, start);
    file.content = buffer.subarray(start, end);
  }
}

/** Parents before what they hold. @param {Directory} directory @param {string} path */
function walk(directory, path, visit) {
  const left = [[directory, path]];
  while (left.length > 0) {
    const [directory, path] = left.pop();
    for (const [name, node] of directory.entries) {
      const below = `${path}/${name}`;
      visit(below, node);
      if (node instanceof Directory) left.push([node, below]);
    }
  }
}
