// Snapshots, in the page: the worker has the real ones.

/** @typedef {import("./connection.js").Remote} Remote */

/** @type {WeakMap<object, Remote>} */
const remotes = new WeakMap();

/**
 * What the worker knows a snapshot by. Anything else goes to the worker as it is, which refuses it.
 * @param {any} snapshot
 */
export function remoteOf(snapshot) {
  return remotes.get(snapshot) ?? snapshot;
}

/** A snapshot of ../../environment/snapshot.js. Its methods work behind the proxies of reactive state, too. */
export class Snapshot {
  #remote;

  /** @param {Remote} remote */
  constructor(remote) {
    this.#remote = remote;
    remotes.set(this, remote);
  }

  /** Gives its memory back. @returns {Promise<void>} */
  free = () => this.#remote.call("free");

  /** The bytes of a file. @param {string} path absolute @returns {Promise<Uint8Array>} */
  read = (path) => this.#remote.call("read", path);

  /** What is below a directory. @param {string} directory absolute @returns {Promise<object[]>} */
  entries = (directory) => this.#remote.call("entries", directory);

  /** A directory as a tar archive. @param {string} directory absolute @returns {Promise<Uint8Array>} */
  exportTar = (directory) => this.#remote.call("exportTar", directory);

  /** Whether the files are those of another snapshot. @param {Snapshot} other @returns {Promise<boolean>} */
  isSame = (other) => this.#remote.call("isSame", remoteOf(other));

  /**
   * What has changed since an older snapshot, if anything has.
   * @param {Snapshot} old
   * @returns {Promise<{archive: Uint8Array, removed: string[]} | undefined>}
   */
  deltaSince = (old) => this.#remote.call("deltaSince", remoteOf(old));
}
