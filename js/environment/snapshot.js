// Snapshots: remembered states of one sandbox, that only it can use.

import { EnvironmentError } from "../shared/errors.js";

/**
 * @typedef {object} Snapshot a remembered state; of use to its environment only
 * @property {() => void} free gives its memory back
 */

/** What a snapshot can be asked. */
const READS = ["deltaSince", "entries", "exportTar", "isSame", "read"];

/** Those of one sandbox. */
export class Snapshots {
  #runtime;
  #number;
  #taken = new WeakSet();
  /** Who has a snapshot needs its sandbox. */
  #owner;

  /** @param {import("../core/runtime.js").Runtime} runtime @param {number} number of the sandbox @param {object} owner */
  constructor(runtime, number, owner) {
    this.#runtime = runtime;
    this.#number = number;
    this.#owner = owner;
  }

  /** Remembers the state as it is now. */
  take() {
    const snapshot = this.#runtime.callSandbox((core) => core.snapshot(this.#number));
    // Given back once, however often it is asked for.
    const free = snapshot.free.bind(snapshot);
    snapshot.free = () => {
      try {
        if (snapshot.__wbg_ptr !== 0) free();
      } catch {
        // The core failed while it read it.
      }
    };
    this.#taken.add(snapshot);
    for (const name of READS) this.#guard(snapshot, name);
    return snapshot;
  }

  /** Refuses a snapshot of another sandbox, and one that was freed: the core would not survive it. */
  check(snapshot) {
    if (!this.#taken.has(snapshot)) {
      throw new EnvironmentError("invalid_input", "the snapshot is not one of this environment; to take the files of another, use replaceTree(await other.exportTree())");
    }
    if (snapshot.__wbg_ptr === 0) throw new EnvironmentError("invalid_input", "the snapshot was freed; take another with snapshot()");
  }

  /** Has a method of a snapshot look whether that is still there, and throw errors of our types. */
  #guard(snapshot, name) {
    const method = snapshot[name];
    const value = (...args) => {
      for (const used of [snapshot, ...args.filter((given) => typeof given === "object")]) this.check(used);
      return this.#runtime.call(() => method.apply(snapshot, args), EnvironmentError);
    };
    Object.defineProperty(snapshot, name, { value });
  }
}

/**
 * Gives a snapshot's memory back once `use` is done.
 * @template T @param {any} snapshot @param {(snapshot: any) => T | Promise<T>} use
 */
export async function using(snapshot, use) {
  try {
    return await use(snapshot);
  } finally {
    snapshot.free();
  }
}
