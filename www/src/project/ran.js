// What may have changed files since the page looked last: calls of the agent
// and lines of the terminal. The worker's answers come behind its events, so
// when a snapshot arrives, the page knows what had run until it was taken.

/**
 * Who may have changed what a look finds.
 * @typedef {object} Who
 * @property {[call: string, given: any][]} calls of the agent, with their arguments: those that
 *   have ended, in that order, then those that run
 * @property {boolean} terminal whether a line of the terminal ran, too
 */

/** The user, in the tree or the editor. @type {Who} */
export const USER = { calls: [], terminal: false };

export class Ran {
  /** Calls that run, with their arguments. @type {Map<string, any>} @readonly */
  running = new Map();
  /** Calls that have ended since the last look. @type {Map<string, any>} */
  #ended = new Map();
  #lines = 0;
  #hadLine = false;

  /** A call of the agent's begins. @param {string} call @param {any} given its arguments */
  begin(call, given) {
    this.running.set(call, given);
  }

  /** It has ended. @param {string} call */
  end(call) {
    if (this.running.has(call)) this.#ended.set(call, this.running.get(call));
    this.running.delete(call);
  }

  /** It has changed nothing: it waits, was refused, or failed as a whole. @param {string} call */
  drop(call) {
    this.running.delete(call);
  }

  /** The session whose calls they are is over. */
  endAll() {
    for (const call of [...this.running.keys()]) this.end(call);
  }

  /** Whether a line of the terminal runs. */
  get hasLine() {
    return this.#lines > 0;
  }

  /** A line of the terminal begins; returns what ends it. @returns {() => void} */
  line() {
    this.#lines += 1;
    this.#hadLine = true;
    return () => void (this.#lines -= 1);
  }

  /** What ran since this was asked last. @returns {Who} */
  take() {
    const who = { calls: [...this.#ended, ...this.running], terminal: this.#hadLine };
    this.#ended.clear();
    this.#hadLine = this.#lines > 0;
    return who;
  }
}
