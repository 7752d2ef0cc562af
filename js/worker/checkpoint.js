// Checkpoint: what a sandbox of the worker holds, kept where it survives the
// worker. After each command the page gets what that command changed; a worker
// that a busy command made deaf is ended, and the next one starts from there.

import { attach } from "../environment/custom-environment.js";

/** Bytes of changes that are sent before everything is sent afresh. */
const SLACK_BYTES = 4 << 20;

export class Checkpoint {
  #runtime;
  #number;
  #send;
  #birth;
  #last;
  #base = 0;
  #since = 0;

  /**
   * @param {object} environment a `MemoryEnvironment` as it was created
   * @param {(delta: {archive: Uint8Array, removed: string[], afresh: boolean}) => void} send
   */
  static async of(environment, send) {
    return new Checkpoint(await attach(environment), send);
  }

  constructor({ runtime, number }, send) {
    this.#runtime = runtime;
    this.#number = number;
    this.#send = send;
    this.#birth = this.#last = this.#core((core) => core.snapshot(number));
  }

  get runtime() {
    return this.#runtime;
  }

  /** Brings the sandbox to where another worker left it. @param {{archive: Uint8Array, removed: string[]}[]} deltas */
  restore(deltas) {
    for (const { archive, removed } of deltas) {
      this.#runtime.expect(archive.length);
      this.#core((core) => core.applyDelta(this.#number, archive, removed));
      this.#count(archive.length);
    }
    this.#last = this.#core((core) => core.snapshot(this.#number));
  }

  /** Gives the memory of what it remembers back; the sandbox itself is closed by then. */
  free() {
    this.#last.free();
    if (this.#last !== this.#birth) this.#birth.free();
  }

  /** Tells what has changed since the last time. */
  save() {
    if (this.#runtime.failed) return;
    const delta = this.#core((core) => core.deltaSince(this.#number, this.#last));
    if (!delta) return;
    const isAll = this.#last === this.#birth;
    if (!isAll) this.#last.free();
    this.#last = this.#core((core) => core.snapshot(this.#number));
    const afresh = this.#since + delta.archive.length > this.#base + SLACK_BYTES;
    const all = afresh && !isAll ? this.#core((core) => core.deltaSince(this.#number, this.#birth)) : delta;
    if (afresh) this.#base = this.#since = 0;
    const { archive, removed } = all ?? { archive: new Uint8Array(), removed: [] };
    this.#count(archive.length);
    this.#send({ archive, removed, afresh });
  }

  #count(bytes) {
    if (this.#base === 0) this.#base = bytes;
    else this.#since += bytes;
  }

  #core(call) {
    return this.#runtime.call(call);
  }
}
