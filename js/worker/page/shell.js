// Shell, in the page: the worker has the real one.

import { guardShell, ours } from "../../shared/arguments.js";
import { CoreError } from "../../shared/errors.js";
import { connection } from "./connection.js";

/** A terminal's other end. Of a worker that is gone it shows and takes nothing any more. */
export class Shell {
  #remote;
  #closed;

  constructor(remote) {
    ours(this);
    this.#remote = remote;
  }

  get closed() {
    // Asked for when somebody waits for it: until then the worker may rest.
    this.#closed ??= this.#remote.settled("closed");
    return this.#closed;
  }

  async write(data) {
    // Ctrl-C: what runs may be deaf.
    if (typeof data === "string" ? data.includes("\x03") : data.includes(3)) connection.hurry();
    await this.#call("write", [data]);
  }

  async interrupt() {
    connection.hurry();
    await this.#call("interrupt", []);
  }

  async resize(cols, rows) {
    await this.#call("resize", [cols, rows]);
  }

  async close() {
    await this.#call("close", []);
  }

  async history() {
    return (await this.#call("history", [])) ?? [];
  }

  async #call(name, args) {
    try {
      return await this.#remote.call(name, ...args);
    } catch (error) {
      // `closed` tells it.
      if (!(error instanceof CoreError)) throw error;
    }
  }
}

guardShell(Shell);
