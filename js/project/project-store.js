// What an open project stores: everything, then what changed from time to time,
// and an index that says what counts. A new state counts as a whole or not at all.

import { INDEX, VERSION, changeOf } from "./stored-project.js";

/** Bytes of the name of an owner. */
const OWNER_BYTES = 4;

export class ProjectStore {
  #name;
  #storage;
  #own;
  /**
   * What is stored: a snapshot of the files, what they are stored in, and record
   * and data as text.
   */
  #stored = { snapshot: undefined, parts: [], rest: undefined };
  /** In the names of what is stored from now on: two owners cannot share one. */
  #owner = hex(crypto.getRandomValues(new Uint8Array(OWNER_BYTES)));
  #number = 0;

  /**
   * @param {string} name @param {import("./browser-storage.js").ProjectStorage} storage
   * @param {() => Promise<void>} own rejects if the project is somebody else's
   */
  constructor(name, storage, own) {
    this.#name = name;
    this.#storage = storage;
    this.#own = own;
  }

  /** Goes on with what was loaded: `snapshot` and `rest` are what it holds. */
  async goOn({ parts, number }, snapshot, rest) {
    this.#number = number;
    // A process that was killed may have left the next piece behind.
    const [, owner = ""] = /(-[0-9a-f]+)\.tar$/.exec(parts.at(-1).file) ?? [];
    await this.#remove(`files-${number + 1}${owner}.tar`);
    this.#stored = { snapshot, parts: parts.map(({ archive: _, ...part }) => part), rest };
  }

  /**
   * Stores what has changed, if anything has, and keeps `snapshot` then.
   * @param {any} snapshot @param {string} rest the other fields of the index, as JSON
   * @param {{needed: number}} room gets how many bytes are to be stored
   * @param {() => void} begins is called if there is anything to store
   * @returns {Promise<boolean>} whether there was
   */
  async store(snapshot, rest, room, begins) {
    const stored = this.#stored;
    const change = await changeOf(snapshot, stored);
    if (!change && rest === stored.rest && stored.parts.length > 0) return false;
    begins();
    let { parts } = stored;
    let file;
    let number = this.#number;
    try {
      if (change) {
        number += 1;
        file = `files-${number}-${this.#owner}.tar`;
        const { archive, removed, whole } = change;
        parts = [...(whole ? [] : parts), { file, removed, bytes: archive.length }];
        room.needed = archive.length;
        await this.#storage.write(this.#name, file, archive);
      }
      const index = JSON.stringify({ version: VERSION, number, parts, savedMs: Date.now() });
      const bytes = new TextEncoder().encode(`${index.slice(0, -1)},${rest}}`);
      room.needed += bytes.length;
      await this.#own();
      // The moment at which the new state counts.
      await this.#storage.write(this.#name, INDEX, bytes, this.#own);
    } catch (error) {
      if (file) await this.#remove(file);
      throw error;
    }
    this.#number = number;
    this.#stored = { snapshot, parts, rest };
    free(stored.snapshot);
    // The next owner's state may consist of them.
    await this.#own();
    for (const old of stored.parts) if (!parts.includes(old)) await this.#remove(old.file);
    return true;
  }

  /** Gives the memory of what it remembers back. */
  free() {
    free(this.#stored.snapshot);
  }

  /** What is left behind takes room, and does no harm. */
  async #remove(file) {
    try {
      await this.#storage.remove(this.#name, file);
    } catch {
      // Nothing counts on it.
    }
  }
}

/** Gives a snapshot's memory back, wherever it is. */
export function free(snapshot) {
  if (snapshot) Promise.resolve().then(() => snapshot.free()).catch(() => {});
}

/** Pages without https have no `crypto.randomUUID`. @param {Uint8Array} bytes */
function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
