// The terminal: xterm.js over the sandbox's shell, with line editing, history
// and completion of paths.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { h } from "../dom.js";

/**
 * @param {object} actions
 * @param {(line: string, out: (text: string) => void, signal: AbortSignal) => Promise<{exitCode: number}>} actions.run
 * @param {() => string} actions.where the working directory, for the prompt
 * @param {(prefix: string) => string[]} actions.complete paths that start like this
 */
export function terminalView(actions) {
  const screen = h("div", { class: "screen" });
  const element = h("div", { class: "terminal" }, screen);
  const term = new Terminal({
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
    fontSize: 12.5,
    lineHeight: 1.25,
    cursorBlink: false,
    convertEol: true,
    scrollback: 5000,
    screenReaderMode: false,
  });
  const fit = new FitAddon();
  term.loadAddon(fit);
  term.open(screen);
  term.textarea?.setAttribute("aria-label", "Terminal; Ctrl+Shift+M leaves it");

  const past = [];
  let line = "";
  let cursor = 0;
  let at = 0;
  let draft = "";
  let running;
  let ahead = "";

  const refit = () => {
    if (element.clientWidth > 40 && element.clientHeight > 20) fit.fit();
  };
  new ResizeObserver(refit).observe(element);

  const promptText = () => `\x1b[36m${actions.where()}\x1b[0m \x1b[2m$\x1b[0m `;
  const promptWidth = () => actions.where().length + 3;

  function prompt() {
    line = "";
    cursor = 0;
    at = past.length;
    term.write(promptText());
  }

  /** Draws the line anew; it may span several rows. */
  let drawnRow = 0;
  function redraw() {
    const { cols } = term;
    const up = drawnRow > 0 ? `\x1b[${drawnRow}A` : "";
    const end = promptWidth() + line.length;
    const target = promptWidth() + cursor;
    const endRow = Math.floor(end / cols);
    const row = Math.floor(target / cols);
    // A full row leaves the cursor on it; a space moves it on.
    const pad = end % cols === 0 && end > 0 ? " \b" : "";
    const back = endRow - row;
    term.write(`${up}\r\x1b[J${promptText()}${line}${pad}${back > 0 ? `\x1b[${back}A` : ""}\r${target % cols > 0 ? `\x1b[${target % cols}C` : ""}`);
    drawnRow = row;
  }

  function insert(text) {
    line = line.slice(0, cursor) + text + line.slice(cursor);
    cursor += text.length;
    redraw();
  }

  async function enter() {
    const command = line;
    cursor = line.length;
    redraw();
    drawnRow = 0;
    term.write("\r\n");
    if (command.trim() === "") return prompt();
    if (past.at(-1) !== command) past.push(command);
    if (command.trim() === "clear") {
      term.clear();
      return prompt();
    }
    const controller = new AbortController();
    running = controller;
    element.classList.add("running");
    let last = "\n";
    const out = (text) => {
      if (text === "") return;
      last = text.at(-1);
      term.write(text);
    };
    try {
      const { exitCode } = await actions.run(command, out, controller.signal);
      if (last !== "\n") term.write("\r\n");
      if (exitCode !== 0) term.write(`\x1b[2mexit ${exitCode}\x1b[0m\r\n`);
    } catch (error) {
      if (last !== "\n") term.write("\r\n");
      term.write(`\x1b[31m${error.message}\x1b[0m\r\n`);
    }
    running = undefined;
    element.classList.remove("running");
    prompt();
    const typed = ahead;
    ahead = "";
    if (typed) feed(typed);
  }

  function complete() {
    const word = line.slice(0, cursor).match(/\S*$/)[0];
    const found = actions.complete(word);
    if (found.length === 0) return;
    let common = found[0];
    for (const each of found) while (!each.startsWith(common)) common = common.slice(0, -1);
    if (common.length > word.length) {
      insert(common.slice(word.length) + (found.length === 1 && !common.endsWith("/") ? " " : ""));
    } else if (found.length > 1) {
      term.write(`\r\n${found.slice(0, 60).join("  ")}\r\n`);
      drawnRow = 0;
      redraw();
    }
  }

  function recall(step) {
    if (at === past.length) draft = line;
    at = Math.max(0, Math.min(past.length, at + step));
    line = at === past.length ? draft : past[at];
    cursor = line.length;
    redraw();
  }

  const KEYS = {
    "\x7f": () => {
      if (cursor === 0) return;
      line = line.slice(0, cursor - 1) + line.slice(cursor);
      cursor--;
      redraw();
    },
    "\x1b[3~": () => {
      line = line.slice(0, cursor) + line.slice(cursor + 1);
      redraw();
    },
    "\x1b[D": () => { cursor = Math.max(0, cursor - 1); redraw(); },
    "\x1b[C": () => { cursor = Math.min(line.length, cursor + 1); redraw(); },
    "\x1b[A": () => recall(-1),
    "\x1b[B": () => recall(1),
    "\x1b[H": () => { cursor = 0; redraw(); },
    "\x1b[F": () => { cursor = line.length; redraw(); },
    "\x01": () => { cursor = 0; redraw(); },
    "\x05": () => { cursor = line.length; redraw(); },
    "\x15": () => { line = line.slice(cursor); cursor = 0; redraw(); },
    "\x0b": () => { line = line.slice(0, cursor); redraw(); },
    "\x17": () => {
      const start = line.slice(0, cursor).replace(/\S+\s*$/, "").length;
      line = line.slice(0, start) + line.slice(cursor);
      cursor = start;
      redraw();
    },
    "\x0c": () => { term.clear(); drawnRow = 0; redraw(); },
    "\x03": () => { term.write("^C\r\n"); drawnRow = 0; prompt(); },
    "\t": complete,
  };

  function feed(data) {
    if (running) {
      if (data === "\x03") {
        term.write("^C");
        running.abort();
      } else {
        ahead += data;
      }
      return;
    }
    if (KEYS[data]) return KEYS[data]();
    // Pasted text may hold several lines; each is run in its turn.
    const end = data.search(/[\r\n]/);
    const text = (end < 0 ? data : data.slice(0, end)).replace(/\x1b\[20[01]~/g, "");
    if (!/^\x1b/.test(text) && text !== "") insert([...text].filter((c) => c >= " ").join(""));
    if (end < 0) return;
    ahead = data.slice(end).replace(/^\r?\n?/, "");
    void enter();
  }
  term.onData(feed);
  term.attachCustomKeyEventHandler((event) => {
    // The way out for keyboards: Tab belongs to completion.
    if (event.type === "keydown" && event.ctrlKey && event.shiftKey && event.code === "KeyM") {
      document.getElementById("composer")?.focus();
      return false;
    }
    return true;
  });

  return {
    element,
    /** Writes a line of the page's own. @param {string} text */
    say: (text) => term.write(`\x1b[2m${text}\x1b[0m\r\n`),
    start: prompt,
    /** A fresh screen, for another project. */
    reset() {
      running?.abort();
      term.reset();
      drawnRow = 0;
      ahead = "";
      if (!running) prompt();
    },
    focus: () => term.focus(),
    stop: () => running?.abort(),
    /** Runs a line as if it were typed. @param {string} text */
    type(text) {
      feed(text);
    },
    get text() {
      const buffer = term.buffer.active;
      return Array.from({ length: buffer.length }, (_, row) => buffer.getLine(row)?.translateToString(true) ?? "").join("\n");
    },
    theme() {
      const style = getComputedStyle(document.documentElement);
      const color = (name) => style.getPropertyValue(name).trim();
      // xterm parses colours itself and does not know `light-dark()`.
      const resolve = (name) => {
        element.style.setProperty("--probe", `var(${name})`);
        element.style.color = `var(${name})`;
        const value = getComputedStyle(element).color;
        element.style.color = "";
        return value || color(name);
      };
      term.options.theme = {
        background: resolve("--ground-deep"), foreground: resolve("--ink"), cursor: resolve("--accent"),
        selectionBackground: resolve("--select"),
        black: resolve("--ink"), brightBlack: resolve("--ink-quiet"),
        red: resolve("--bad"), brightRed: resolve("--bad"), green: resolve("--good"), brightGreen: resolve("--good"),
        yellow: resolve("--warn"), brightYellow: resolve("--warn"), blue: resolve("--link"), brightBlue: resolve("--link"),
        magenta: resolve("--accent"), brightMagenta: resolve("--accent"), cyan: resolve("--link"), brightCyan: resolve("--link"),
        white: resolve("--ink-quiet"), brightWhite: resolve("--ink"),
      };
    },
  };
}
