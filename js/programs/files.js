// The file tree that a lent program works on, in the worker that runs it: told
// by the sandbox as changes, asked afterwards what the program changed.

/**
 * @typedef {import("../program.js").FileChange} FileChange
 * @typedef {File | Directory | Device} Node
 */

let inodes = 0n;

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
  /** @type {Map<string, {node: Node, version: number}>} */
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
    for (const { path, type, content, mode } of changes) {
      const slash = path.lastIndexOf("/");
      const [parentPath, name] = [path.slice(0, slash), path.slice(slash + 1)];
      if (type === "removed") {
        // Its directory may have been removed, too, or be a file now.
        this.#find(parentPath)?.entries.delete(name);
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
      } else {
        const file = new File(content, now);
        file.mode = mode;
        lastParent.set(name, file);
      }
    }
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
    walk(this.root, "", (path, node) => void this.#before.set(path, { node, version: node.version }));
  }

  /** What changed since `mark`; contents lie in one buffer. @returns {FileChange[]} */
  changes() {
    const before = this.#before;
    const kept = new Set();
    const files = [];
    const changes = [];
    walk(this.root, "", (path, node) => {
      const old = before.get(path);
      if (node instanceof Directory) {
        if (old?.node instanceof Directory) kept.add(path);
        else if (!node.ours) changes.push({ path, type: "directory" });
      } else if (old?.node === node && old.version === node.version) {
        kept.add(path);
      } else if (node instanceof File && !node.ours) {
        if (old && !(old.node instanceof Directory)) kept.add(path);
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
  #find(path) {
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
  for (const [name, node] of directory.entries) {
    const below = `${path}/${name}`;
    visit(below, node);
    if (node instanceof Directory) walk(node, below, visit);
  }
}
