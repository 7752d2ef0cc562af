// Sandbox: what the page keeps of a sandbox of the worker, to make it again in another worker.

import { CoreError, EnvironmentError } from "../../shared/errors.js";
import { quiet } from "../../shared/notification.js";
import { Scope } from "../outgoing.js";
import { pack } from "../packed-files.js";
import { ROOT, oneWay } from "../rpc.js";
import { connection } from "./connection.js";

/** One sandbox: what it takes to make it again in another worker. */
export class Sandbox {
  #number = connection.nextNumber();
  #scope = new Scope();
  #options;
  #log;
  #deltas = [];
  #made;
  #here;
  #disposing;
  /** Calls that have no answer yet. */
  #calls = 0;
  /** Whether nobody has its environment any more. */
  #isLeft = false;
  /** Whether no worker could take it, as without a network. */
  #stranded = false;
  watchers = new Set();
  /** Whether a worker has had it. */
  wasMade = false;

  /** What another one like it has, too. */
  get wrapping() {
    const { programs, readOnly } = this.#options;
    return { ...(programs && { programs }), ...(readOnly !== undefined && { readOnly }), ...(this.#log && { log: this.#log }) };
  }

  constructor({ files, log, record, ...options }) {
    this.#log = log;
    const recorded = typeof record === "function" ? oneWay(quiet(record)) : record;
    this.#options = { ...options, log: log && oneWay(quiet(log)), record: recorded };
    // First: it reads what the caller gave, which may throw.
    const packed = pack(files);
    connection.addSandbox(this.#number, this);
    this.#made = this.#make(connection.rpc(), packed);
    this.#made.catch(() => connection.removeSandbox(this.#number));
  }

  /** The worker's environment and the way to it; asks for another worker if the last try failed. */
  ready() {
    if (this.#stranded) this.restore(connection.rpc());
    return this.#made;
  }

  /** Another worker is lent it, too. */
  async lend(name, program) {
    await this.call("program", [name, program]);
    this.#options.programs = { ...this.#options.programs, [name]: program };
  }

  keep({ archive, removed, afresh }) {
    if (afresh) this.#deltas = [];
    this.#deltas.push({ archive, removed });
    for (const watcher of this.watchers) watcher();
  }

  /** @param {Promise<import("../rpc.js").Rpc>} starting another worker */
  restore(starting) {
    this.#here = undefined;
    this.#stranded = false;
    const made = this.#make(starting, undefined, this.#deltas);
    this.#made = made;
    made.catch(() => {
      if (made === this.#made) this.#stranded = true;
    });
  }

  /** No worker has it; the next call asks for one. */
  strand(error) {
    this.lose(error);
    this.#stranded = true;
  }

  /** It is gone for good. */
  lose(error) {
    this.#here = undefined;
    this.#stranded = false;
    this.#made = Promise.reject(error);
    this.#made.catch(() => {});
  }

  call(name, args, options) {
    return this.#call((remote) => [remote.id, name, args], name, { scope: this.#scope, ...options });
  }

  /** Calls the worker's root about it: for what the page cannot send as it is. */
  callRoot(name, ...args) {
    return this.#call((remote) => [ROOT, name, [remote, ...args]], name, {});
  }

  async #call(asked, name, options) {
    this.#calls += 1;
    try {
      return await this.#asked(asked, name, options);
    } finally {
      this.#calls -= 1;
      if (this.#isLeft) this.leave();
    }
  }

  async #asked(asked, name, options) {
    // Called at once where that is possible: what follows may be an abort.
    const { rpc, remote } = this.#here ?? (await this.ready());
    try {
      return await connection.call(rpc, ...asked(remote), options);
    } catch (error) {
      if (!rpc.ended || !(error instanceof CoreError)) throw error;
      const sentence = `${name} was given up with its worker; files are as before it: ${error.message}`;
      throw new EnvironmentError("cancelled", sentence, { cause: error });
    }
  }

  dispose() {
    this.#disposing ??= this.#dispose();
    return this.#disposing;
  }

  /** Nobody has its environment any more: it goes, once no call is under way. */
  leave() {
    this.#isLeft = true;
    if (this.#calls === 0 && !this.#disposing) void this.dispose().catch(() => {});
  }

  async #dispose() {
    // First: no other worker needs it any more, whatever becomes of this one.
    connection.removeSandbox(this.#number);
    try {
      const { rpc, remote } = await this.#made;
      await this.call("dispose", []);
      rpc.forget(this.#scope);
      await connection.call(rpc, ROOT, "forget", [this.#number]);
      rpc.release([remote.id]);
    } catch (error) {
      // A worker that is gone took it along.
      if (!(error instanceof CoreError || error.cause instanceof CoreError)) throw error;
    }
    this.#deltas = [];
    this.lose(new EnvironmentError("cancelled", "the environment was closed"));
  }

  async #make(starting, files, deltas) {
    const rpc = await starting;
    const args = [this.#number, { ...this.#options, files }, deltas];
    const remote = await connection.call(rpc, ROOT, "createSandbox", args, { scope: this.#scope });
    this.#here = { rpc, remote };
    this.wasMade = true;
    return this.#here;
  }
}
