// Shell, in the page: the worker has the real one. Ctrl-C must be heard soon,
// or the worker is replaced; a shell ends with its worker, and says so.

import { connection, quiet } from "./connection.js";
import { oneWay } from "./link.js";

/**
 * @param {(options: object) => Promise<object>} open opens the worker's shell
 * @param {import("../shell.js").ShellOptions} options
 */
export async function openShell(open, { onData, ...options } = {}) {
  if (typeof onData !== "function") throw new TypeError("openShell needs onData, a function that shows text");
  const show = quiet(onData);
  let exited;
  const ended = new Promise((resolve) => (exited = resolve));
  const onExit = (code) => {
    exited(code);
    options.onExit?.(code);
  };
  const remote = await open({ ...options, onData: oneWay(show), onExit: oneWay(quiet(onExit)) });
  return new Shell(remote, show, { ended, onExit });
}

export class Shell {
  #remote;
  #show;
  #ended;
  #onExit;
  #over = false;

  constructor(remote, show, { ended, onExit }) {
    this.#remote = remote;
    this.#show = show;
    this.#ended = ended;
    this.#onExit = onExit;
    void ended.then(() => (this.#over = true));
  }

  async write(data) {
    const stops = typeof data === "string" ? data.includes("\x03") : data.includes(3);
    if (stops) connection.hurry();
    await this.#call("write", data);
  }

  async interrupt() {
    connection.hurry();
    await this.#call("interrupt");
  }

  async resize(cols, rows) {
    await this.#call("resize", cols, rows);
  }

  async close() {
    connection.hurry();
    await this.#call("close");
  }

  async closed() {
    return this.#ended;
  }

  async history() {
    return this.#remote.history();
  }

  /** What is typed into a shell that is over goes nowhere. */
  async #call(name, ...args) {
    if (this.#over) return;
    try {
      await this.#remote[name](...args);
    } catch (error) {
      if (this.#over) return;
      this.#over = true;
      this.#show(`\r\nhermitcrab: ${error.message}\r\n`);
      this.#onExit(1);
    }
  }
}
