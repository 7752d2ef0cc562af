// Workers that run the calls of one lent program. A worker keeps the files it
// got between calls; a call goes to one that has the state which the
// call's changes lead from, or asks the sandbox for all files. A call that is
// aborted ends its worker: nothing else stops a program that loops.

/**
 * @typedef {import("../environment/program.js").ProgramCall} ProgramCall
 * @typedef {import("../environment/program.js").ProgramResult} ProgramResult
 *
 * @typedef {object} PoolOptions
 * @property {() => Promise<import("../platform/machine.js").WorkerHandle>} start a new
 *   worker that has what it needs to run calls
 * @property {number} workers how many may live at a time
 * @property {number} [idleMs] how long one lives that has nothing to do
 * @property {boolean} [once] whether each call has a new worker
 */

/** 128 + SIGTERM, as of a process that was ended. */
const TERMINATED = 143;
/** 128 + SIGABRT, as of a process that broke. */
const BROKEN = 134;

export class Pool {
  #options;
  /** @type {Set<Place>} */
  #places = new Set();
  /** Calls that wait for a worker. */
  #waiting = [];

  /** @param {PoolOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /** @param {ProgramCall} call @returns {Promise<ProgramResult>} */
  async run(call) {
    if (call.signal.aborted) return { exitCode: TERMINATED, files: "lost" };
    const known = call.since !== undefined;
    const place = known ? this.#idle(({ state }) => state === call.since) : await this.#room(call);
    if (!place && known) return { files: "missing" };
    if (!place) return { exitCode: TERMINATED, files: "lost" };
    try {
      return await this.#use(place, call);
    } finally {
      this.#release(place);
    }
  }

  /** Ends all workers; calls that run end as if aborted. */
  close() {
    for (const place of this.#places) this.#end(place);
  }

  #idle(suits) {
    const place = [...this.#places].find((place) => !place.busy && suits(place));
    if (place) place.busy = true;
    return place;
  }

  /** A place for a call that brings all files; undefined when it was aborted first. */
  async #room({ state, signal }) {
    // What this program got in this environment before is out of date.
    const outdated = (place) => lineage(place.state) === lineage(state);
    for (let called = false; ; called = await this.#turn(signal)) {
      if (signal.aborted) {
        if (called) this.#waiting.shift()?.();
        return undefined;
      }
      const idle = this.#idle(outdated);
      if (idle) return idle;
      if (this.#places.size < this.#options.workers) {
        const place = { busy: true, state: undefined, worker: undefined, stop: undefined, timer: undefined };
        this.#places.add(place);
        return place;
      }
      const other = this.#idle(() => true);
      if (other) return other;
    }
  }

  /** Resolves when a place may be free, with `true`; with `false` when the call is aborted. */
  #turn(signal) {
    return new Promise((resolve) => {
      const stop = () => {
        this.#waiting = this.#waiting.filter((other) => other !== next);
        resolve(false);
      };
      const next = () => {
        signal.removeEventListener("abort", stop);
        resolve(true);
      };
      this.#waiting.push(next);
      signal.addEventListener("abort", stop, { once: true });
    });
  }

  /** Runs the call in the place, whose worker starts if need be. */
  async #use(place, { signal, ...call }) {
    clearTimeout(place.timer);
    const output = { stdout: [], stderr: [] };
    const result = await new Promise((resolve, reject) => {
      const stop = () => {
        this.#end(place);
        resolve({ exitCode: TERMINATED, files: "lost" });
      };
      place.stop = stop;
      signal.addEventListener("abort", stop, { once: true });
      const settle = (value) => {
        signal.removeEventListener("abort", stop);
        resolve(value);
      };
      const start = async () => {
        place.worker ??= await this.#options.start();
        if (!this.#places.has(place)) return place.worker.terminate();
        place.worker.listen(
          ({ kind, stream, data, ...result }) => {
            if (kind === "output") output[stream].push(data);
            else settle(result);
          },
          (message) => {
            output.stderr.push(`${call.name}: ended by an error of its worker: ${message}\n`);
            settle({ exitCode: BROKEN, files: "lost" });
            this.#end(place);
          },
        );
        const buffers = new Set(call.changes.map(({ content }) => content?.buffer));
        buffers.delete(undefined);
        place.worker.post({ kind: "run", call }, [...buffers]);
      };
      start().catch((error) => {
        place.stop = undefined;
        this.#end(place);
        signal.removeEventListener("abort", stop);
        reject(error);
      });
    });
    place.state = call.state;
    return { ...result, stdout: joined(output.stdout), stderr: joined([...output.stderr, result.stderr ?? ""]) };
  }

  #release(place) {
    place.busy = false;
    place.stop = undefined;
    place.worker?.rest();
    if (this.#options.once) {
      this.#end(place);
    } else if (this.#places.has(place)) {
      place.timer = setTimeout(() => this.#end(place), this.#options.idleMs);
      // Node, Bun and Deno: a worker without work does not keep the process.
      place.timer.unref?.();
    }
    this.#waiting.shift()?.();
  }

  #end(place) {
    if (!this.#places.delete(place)) return;
    clearTimeout(place.timer);
    place.worker?.terminate();
    place.stop?.();
    this.#waiting.shift()?.();
  }
}

/** The part of a state's name that all states of one program in one environment share. */
function lineage(state) {
  return state?.slice(0, state.lastIndexOf("/"));
}

/** @param {(Uint8Array | string)[]} pieces */
function joined(pieces) {
  const encoder = new TextEncoder();
  const encoded = pieces.map((piece) => (typeof piece === "string" ? encoder.encode(piece) : piece));
  const bytes = new Uint8Array(encoded.reduce((total, piece) => total + piece.length, 0));
  let end = 0;
  for (const piece of encoded) {
    bytes.set(piece, end);
    end += piece.length;
  }
  return bytes;
}
