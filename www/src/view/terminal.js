// The terminal: xterm.js over a shell of the sandbox.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { restart } from "../agent.js";
import { h } from "../dom.js";

/** How long a command may go on after Ctrl-C before the sandbox is restarted, in ms. */
const STOP_MS = 1500;

/**
 * @param {object} actions
 * @param {(options: object) => Promise<object>} actions.open a shell: `openShell` of the sandbox
 * @param {() => Promise<void>} actions.before called before a line runs
 * @param {() => void} actions.after called when it has
 */
export function terminalView(actions) {
  const screen = h("div", { class: "screen" });
  const element = h("div", { class: "terminal" }, screen);
  const term = new Terminal({
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
    fontSize: 12.5,
    lineHeight: 1.25,
    convertEol: true,
    scrollback: 5000,
  });
  const fit = new FitAddon();
  term.loadAddon(fit);
  term.open(screen);
  term.textarea?.setAttribute("aria-label", "Terminal; Ctrl+Shift+M leaves it");

  let shell;
  let history = [];
  let queue = Promise.resolve();
  /** Inputs that the shell has not dealt with yet: a command runs. */
  let pending = 0;
  let stopping;

  new ResizeObserver(() => {
    if (element.clientWidth > 40 && element.clientHeight > 20) fit.fit();
  }).observe(element);
  term.onResize(({ cols, rows }) => void shell?.resize(cols, rows).catch(() => {}));
  term.onData((data) => {
    const runs = /[\r\n]/.test(data);
    // In order, but a command does not hold up what is typed behind it.
    queue = queue.then(async () => {
      if (runs) await actions.before().catch(() => {});
      void write(data);
    });
    if (data.includes("\x03")) stop();
  });
  term.attachCustomKeyEventHandler((event) => {
    // The way out for keyboards: Tab belongs to completion.
    if (event.type === "keydown" && event.ctrlKey && event.shiftKey && event.code === "KeyM") {
      document.getElementById("composer")?.focus();
      return false;
    }
    return true;
  });

  async function write(data) {
    const own = shell;
    if (!own) return;
    change(1);
    try {
      await own.write(data);
    } catch {
      // The worker was restarted; `reopen` goes on.
    } finally {
      if (own === shell) change(-1);
      actions.after();
    }
  }

  function change(by) {
    pending += by;
    element.classList.toggle("running", pending > 0);
    if (pending === 0) clearTimeout(stopping);
  }

  /** What hears no Ctrl-C goes with its worker. */
  function stop() {
    if (pending === 0) return;
    clearTimeout(stopping);
    stopping = setTimeout(() => void restart(), STOP_MS);
  }

  /** A shell on the sandbox as it is now, with the lines of the one before. */
  async function open() {
    const old = shell;
    shell = undefined;
    change(-pending);
    history = (await old?.history().catch(() => undefined)) ?? history;
    void old?.close().catch(() => {});
    let isOver = false;
    const own = await actions.open({
      onData: (text) => isOver || term.write(text),
      cols: term.cols,
      rows: term.rows,
      history,
    });
    shell = own;
    const again = () => {
      isOver = true;
      if (own === shell) void open();
    };
    // `exit` was typed: another one begins.
    own.closed().then(again, () => (isOver = true));
  }

  return {
    element,
    open,
    /** A fresh screen and shell, for another project. */
    async reset() {
      history = [];
      term.reset();
      await open();
    },
    focus: () => term.focus(),
    /** Takes the colours of the page. */
    theme() {
      // xterm parses colours itself and does not know `light-dark()`.
      const color = (name) => {
        element.style.color = `var(${name})`;
        const value = getComputedStyle(element).color;
        element.style.color = "";
        return value;
      };
      const [ink, quiet, accent, good, bad, warn, link] =
        ["--ink", "--ink-quiet", "--accent", "--good", "--bad", "--warn", "--link"].map(color);
      term.options.theme = {
        background: color("--ground-deep"), foreground: ink, cursor: accent, selectionBackground: color("--select"),
        black: ink, red: bad, green: good, yellow: warn, blue: link, magenta: accent, cyan: link, white: quiet,
        brightBlack: quiet, brightRed: bad, brightGreen: good, brightYellow: warn, brightBlue: link,
        brightMagenta: accent, brightCyan: link, brightWhite: ink,
      };
    },
  };
}
