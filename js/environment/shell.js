// Shell: a terminal's other end. It takes what is typed and gives what to show,
// as xterm.js and its like have it; between the two are a line editor and one
// shell in the core that keeps its state from line to line.
//
//   const shell = await env.openShell({ onData: (text) => terminal.write(text) });
//   terminal.onData((data) => shell.write(data));
//   terminal.onResize(({ cols, rows }) => shell.resize(cols, rows));
//
// What runs reads no keys: its standard input is empty. What is typed meanwhile
// waits for the next prompt, except Ctrl-C, which ends what runs.

import { macrotask } from "../platform/clock.js";
import { guardShell, ours } from "../shared/arguments.js";
import { quiet } from "../shared/notification.js";
import { complete } from "./completion.js";
import { Line } from "./line-editor.js";

/**
 * @typedef {object} ShellOptions
 * @property {(text: string) => void} onData called with what the terminal shows; what it throws
 *   is its own affair
 * @property {number} [cols] default 80 @property {number} [rows] default 24
 * @property {string[]} [history] lines of an earlier shell, oldest first
 * @property {Record<string, string>} [env] variables to export
 */

/** Lines that the history keeps. */
const HISTORY = 1000;
/** No time limit: people end their commands themselves. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;

/** Time in a row for what is typed or pasted, in ms, before everybody else gets a turn. */
const STRETCH_MS = 50;

const PASTE_ON = "\x1b[?2004h";
const PASTE_OFF = "\x1b[?2004l";

export class Shell {
  #runtime;
  #number;
  #env;
  #onData;
  #cols;
  #rows;
  #variables;
  #line;
  /** The first lines of a command that is not complete. */
  #begun = "";
  /** Ends the command that runs. @type {AbortController | undefined} */
  #running;
  /** What was typed while something ran. */
  #waiting = "";
  #feeding = false;
  #decoder = new TextDecoder();
  #history;
  #closed = false;
  /** Whether the sandbox's core is gone, and the shell with it. */
  #isLost = false;
  #end;

  /** Resolves with the exit code when the shell has ended, by `exit`, Ctrl-D or `close`. @type {Promise<number>} */
  closed;

  /** @private use `MemoryEnvironment.openShell` */
  constructor(runtime, environment, files, { onData, cols = 80, rows = 24, history = [], env = {} } = {}) {
    ours(this);
    this.#runtime = runtime;
    this.#env = files;
    this.#onData = quiet(onData);
    this.#cols = cols;
    this.#rows = rows;
    this.#variables = env;
    this.#history = history.slice(-HISTORY);
    this.closed = new Promise((resolve) => (this.#end = resolve));
    this.#number = runtime.callSandbox((core) => core.openTerminal(environment));
    this.#line = new Line((text) => this.#show(text), cols);
    runtime.endings.add(this.#lost);
    this.#prompt();
  }

  /**
   * Takes what was typed or pasted, as a terminal sends it. Resolves when it is
   * dealt with, commands included. What cannot be dealt with is dropped, and the
   * next text is taken as ever.
   * @param {string | Uint8Array} data
   */
  async write(data) {
    if (this.#closed) return;
    let text = typeof data === "string" ? data : this.#decoder.decode(data, { stream: true });
    if (this.#running && text.includes("\x03")) {
      // What was typed before it was for what runs; it goes with it.
      this.#waiting = "";
      text = text.slice(text.lastIndexOf("\x03") + 1);
      this.interrupt();
    }
    this.#waiting += text;
    if (this.#feeding) return;
    this.#feeding = true;
    try {
      await this.#feed();
    } catch (error) {
      // It would fail again, whatever is typed behind it.
      this.#waiting = "";
      throw error;
    } finally {
      this.#feeding = false;
    }
  }

  /** As Ctrl-C: ends what runs, else drops the line. */
  async interrupt() {
    if (this.#closed) return;
    if (this.#running) {
      this.#show("^C");
      this.#running.abort();
    } else {
      this.#drop();
    }
  }

  /** The widget has another size now. @param {number} cols @param {number} rows */
  async resize(cols, rows) {
    this.#cols = cols;
    this.#rows = rows;
    this.#line.resize(cols);
  }

  /** Ends what runs, and the shell. */
  async close() {
    if (this.#closed) return;
    this.#running?.abort();
    this.#finish(0);
  }

  /** The lines so far, oldest first, for the `history` of another shell. @returns {Promise<string[]>} */
  async history() {
    return [...this.#history];
  }

  /** Deals with what waits, key by key, until something is incomplete. */
  async #feed() {
    let since = performance.now();
    while (this.#waiting !== "" && !this.#closed) {
      if (performance.now() - since > STRETCH_MS) {
        await new Promise(macrotask);
        since = performance.now();
        continue;
      }
      const { event, rest } = this.#line.key(this.#waiting);
      if (event === "partial") return;
      this.#waiting = rest;
      if (event === "enter") await this.#enter();
      else if (event === "interrupt") this.#drop();
      else if (event === "end") this.#endOfInput();
      else if (event === "clear") this.#clear();
      else if (event === "complete") await this.#complete();
    }
  }

  async #enter() {
    const typed = this.#line.finish();
    const command = this.#begun + typed;
    if (this.#core((core) => core.terminalIncomplete(this.#number, command))) {
      this.#begun = `${command}\n`;
      this.#prompt();
      return;
    }
    this.#begun = "";
    if (command.trim() !== "") {
      this.#remember(command);
      await this.#run(command);
    }
    if (!this.#closed) this.#prompt();
  }

  async #run(command) {
    this.#show(PASTE_OFF);
    this.#running = new AbortController();
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const request = {
      command,
      timeout_ms: NEVER_MS,
      working_dir: null,
      env: { ...this.#variables, COLUMNS: String(this.#cols), LINES: String(this.#rows) },
    };
    this.#variables = {};
    let last = "\n";
    try {
      const status = await this.#runtime.job((core) => core.startExec(this.#number, request), {
        signal: this.#running.signal,
        onOutput: (stream, data) => {
          const text = decoders[stream].decode(data, { stream: true });
          if (text !== "") last = text.at(-1);
          this.#show(text.replaceAll("\n", "\r\n"));
        },
      });
      // The prompt starts on a new line, even after Ctrl-C.
      if (last !== "\n" || status.cancelled) this.#show("\r\n");
    } catch (error) {
      this.#show(`hermitcrab: ${error.message}\r\n`);
      if (this.#isLost) return this.#finish(1);
    } finally {
      this.#running = undefined;
    }
    if (this.#closed) return;
    const state = this.#state();
    if (state.exited) this.#finish(state.exit_code);
  }

  /** Ctrl-D: ends an empty line's shell. */
  #endOfInput() {
    if (this.#begun !== "") return this.#drop();
    this.#show("exit\r\n");
    this.#finish(this.#state().exit_code);
  }

  /** Ctrl-C at the prompt. */
  #drop() {
    this.#line.finish("^C");
    this.#begun = "";
    this.#prompt();
  }

  #clear() {
    this.#show("\x1b[H\x1b[2J");
    this.#line.redraw();
  }

  async #complete() {
    const state = this.#state();
    const commands = () => this.#core((core) => core.terminalCommands(this.#number));
    const found = await complete(this.#line.beforeCursor(), this.#env, commands, state);
    if (this.#closed) return;
    if (found.insert !== "") this.#line.insert(found.insert);
    else if (found.choices.length > 0) {
      this.#line.leave();
      this.#show(`\r\n${columns(found.choices, this.#cols)}`);
      this.#line.redraw();
    } else this.#show("\x07");
  }

  #prompt() {
    const state = this.#state();
    const text = this.#begun === "" ? prompt(state.ps1 ?? DEFAULT_PS1, state) : prompt(state.ps2 ?? "> ", state);
    this.#show(PASTE_ON);
    this.#line.start(text, this.#history);
  }

  #remember(command) {
    if (this.#history.at(-1) === command) return;
    this.#history.push(command);
    if (this.#history.length > HISTORY) this.#history.shift();
  }

  /** The sandbox is gone; what runs in it ends the shell itself. */
  #lost = () => {
    this.#isLost = true;
    if (!this.#running) this.#finish(1);
  };

  #finish(code) {
    this.#closed = true;
    this.#runtime.endings.delete(this.#lost);
    this.#show(PASTE_OFF);
    if (!this.#isLost) this.#core((core) => core.closeTerminal(this.#number));
    this.#end(code);
  }

  #state() {
    return this.#core((core) => core.terminalState(this.#number));
  }

  #core(call) {
    return this.#runtime.callSandbox(call);
  }

  #show(text) {
    if (text !== "") this.#onData(text);
  }
}

guardShell(Shell);

const DEFAULT_PS1 = "\\[\\e[1;34m\\]\\w\\[\\e[0m\\] \\$ ";

/** What a prompt variable means (bash, "Controlling the Prompt"). */
function prompt(variable, { working_directory: cwd, home }) {
  const below = home !== "" && (cwd === home || cwd.startsWith(`${home}/`));
  const short = below ? `~${cwd.slice(home.length)}` : cwd;
  const meanings = {
    u: "user",
    h: "sandbox",
    H: "sandbox",
    s: "bash",
    w: short,
    W: short === "/" ? "/" : short.slice(short.lastIndexOf("/") + 1),
    $: "$",
    n: "\r\n",
    r: "\r",
    a: "\x07",
    e: "\x1b",
    "[": "",
    "]": "",
    "\\": "\\",
  };
  return variable.replace(/\\(0[0-7]{2}|.)/g, (whole, name) =>
    /^0/.test(name) ? String.fromCharCode(parseInt(name, 8)) : (meanings[name] ?? whole),
  );
}

/** Names in columns, as `ls` sets them. */
function columns(names, cols) {
  const width = names.reduce((most, { length }) => Math.max(most, length), 0) + 2;
  const across = Math.max(1, Math.floor(cols / width));
  const down = Math.ceil(names.length / across);
  let text = "";
  for (let row = 0; row < down; row += 1) {
    const cells = names.filter((_, index) => index % down === row);
    text += `${cells.map((name) => name.padEnd(width)).join("").trimEnd()}\r\n`;
  }
  return text;
}
