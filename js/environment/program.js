// Programs that the page or process lends to a sandbox's shell: what they are
// told, what they answer, and what their files are called.

import { acceptProgramResult } from "../shared/arguments.js";

/** @import { AbortSignal } from "../platform.js" */

/**
 * @typedef {(call: ProgramCall) => Promise<ProgramResult>} Program what it
 *   throws is exit code 126 and a sentence on standard error; so is a result
 *   that is none
 *
 * @typedef {object} ProgramCall
 * @property {string} name as it was lent
 * @property {string[]} args after the name
 * @property {Record<string, string>} env exported variables
 * @property {string} cwd absolute
 * @property {Uint8Array} stdin all of it
 * @property {FileChange[]} changes of the files since the state `since`, sorted
 *   by path; all files when there is no `since`. The contents lie in one buffer.
 * @property {string} [since] the state that an earlier call of this program named
 * @property {string} state what the files are called after `changes`
 * @property {AbortSignal} signal fires at the time limit of the command and when
 *   it is cancelled; what the program answers then still counts
 *
 * @typedef {object} ProgramResult
 * @property {number} [exitCode] 0 to 255; only `missing` comes without
 * @property {Uint8Array | string} [stdout]
 * @property {Uint8Array | string} [stderr]
 * @property {FileChange[]} [changes] that the program made, applied in order
 * @property {"kept" | "lost" | "missing"} [files] what it still knows of the
 *   files: `kept`, the default, what it was sent and its own changes; `lost`,
 *   nothing, so that the next call tells everything; `missing`, it lacks the
 *   state `since`, has not run, and is to be called again with all files. A
 *   program that keeps no files answers every `since` with `missing`; it must
 *   run where there is no `since`, because then it was sent all of them.
 *
 * @typedef {{path: string, type: "file" | "directory" | "link" | "removed", content?: Uint8Array | string, target?: string,
 *   mode?: number}} FileChange `content` is that of a file, `target` where a symbolic link leads.
 *   `mode` are the permission bits of a file or a directory. A program gets them of each; where it says none, they
 *   are those of what is there, or of a new one
 */

/** Sandboxes of this realm, so that the states of their files have different names. */
let lineages = 0;
/** A worker that replaces another must not name them like that one. Edge isolates draw nothing at their start. */
let realm;

/** Those of one sandbox, by name. */
export class Programs {
  #programs;
  #lineage;

  /** @param {Record<string, Program>} programs */
  constructor(programs) {
    this.#programs = new Map(Object.entries(programs));
    lineages += 1;
    realm ??= globalThis.crypto.getRandomValues(new Uint32Array(2)).join("-");
    this.#lineage = `${realm}-${lineages}`;
  }

  /** @param {string} name @param {Program} program */
  lend(name, program) {
    this.#programs.set(name, program);
  }

  names() {
    return [...this.#programs.keys()];
  }

  /** @returns {Record<string, Program>} */
  all() {
    return Object.fromEntries(this.#programs);
  }

  /** Runs one for the core, whose names of states are its own. @param {any} request @param {AbortSignal} signal */
  async run({ since, state, ...request }, signal) {
    const program = this.#programs.get(request.name);
    if (!program) throw { kind: "not_found", message: "no such program is lent" };
    // The core counts states in each environment; programs may serve many.
    const named = (state) => state && `${this.#lineage}/${request.name}/${state}`;
    const result = await program({ ...request, since: named(since), state: named(state), signal });
    acceptProgramResult(result, since !== undefined);
    return result;
  }
}
