// The terminal: xterm.js over a shell of the sandbox.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { downloads } from "../agent/agent.js";
import { h, icon, perFrame, size } from "../page/dom.js";

/**
 * @param {object} actions
 * @param {(options: object) => Promise<object>} actions.open a shell: `openShell` of the sandbox
 * @param {() => Promise<() => Promise<unknown>>} actions.begin called before a line runs; what
 *   it gives is called when it has
 */
export function terminalView(actions) {
  const screen = h("div", { class: "screen" });
  const element = h("div", { class: "terminal" }, screen);
  // Phones have no Ctrl.
  const stop = h("button", { type: "button", class: "stop", title: "Stop what runs in the terminal (Ctrl+C)", disabled: true, onClick: () => input("\x03") },
    icon("stop"), h("span", null, "Stop"), h("kbd", null, "Ctrl C"));
  const term = new Terminal({
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
    fontSize: 12.5,
    lineHeight: 1.25,
    convertEol: true,
    scrollback: 5000,
    overviewRuler: { width: 9 },
  });
  const download = h("span", { class: "quiet download", role: "status" });
  downloads.addEventListener("progress", ({ detail: { name, loaded, total } }) => {
    download.textContent = `Downloading ${name}: ${size(loaded)}${total ? ` of ${size(total)}` : ""}`;
  });
  downloads.addEventListener("end", () => (download.textContent = ""));
  const fit = new FitAddon();
  term.loadAddon(fit);
  term.open(screen);
  term.textarea?.setAttribute("aria-label", "Terminal; Ctrl+Shift+M leaves it");

  // A paste ends with an escape sequence: what follows one within it would count as typed.
  element.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain");
    if (!text?.includes("\x1b")) return;
    event.preventDefault();
    event.stopPropagation();
    term.paste(text.replaceAll("\x1b", ""));
  }, { capture: true });

  /** The shell, which may be on its way. @type {Promise<object | undefined>} */
  let shell = Promise.resolve(undefined);
  let history = [];
  let queue = Promise.resolve();
  /** Lines that the shell has not dealt with yet. */
  let pending = 0;

  // In the next frame: what has just been shown does not draw before, and would
  // keep the scroll bar of its old size.
  new ResizeObserver(perFrame(() => {
    if (element.clientWidth > 40 && element.clientHeight > 20) fit.fit();
  })).observe(element);
  term.onResize(({ cols, rows }) => void shell.then((own) => own?.resize(cols, rows)).catch(() => {}));
  term.onData(input);

  function input(data) {
    const runs = /[\r\n]/.test(data);
    const own = shell;
    if (runs) change(1);
    // In order, but a command does not hold up what is typed behind it.
    queue = queue.then(async () => {
      void write(own, data, runs ? await actions.begin() : undefined);
    });
  }

  term.attachCustomKeyEventHandler((event) => {
    // The way out for keyboards: Tab belongs to completion.
    if (event.type === "keydown" && event.ctrlKey && event.shiftKey && event.code === "KeyM") {
      document.getElementById("composer")?.focus();
      return false;
    }
    return true;
  });

  async function write(own, data, end) {
    await own.then((shell) => shell?.write(data)).catch((error) => {
      // The errors of a shell that another one has replaced are over.
      if (own === shell) tell(error);
    });
    if (!end) return;
    await end();
    if (own === shell) change(-1);
  }

  function change(by) {
    pending += by;
    const running = pending > 0;
    element.classList.toggle("running", running);
    // A button that cannot be pressed keeps no focus.
    if (!running && stop.matches(":focus-visible")) term.focus();
    stop.disabled = !running;
  }

  function tell(error) {
    term.write(`\r\n\x1b[31m${error.message}\x1b[0m\r\n`);
  }

  /** A shell on the sandbox as it is now, with the lines of the one before. */
  function open() {
    const old = shell;
    change(-pending);
    const own = begin(old, () => {
      // `exit` was typed: another one begins.
      if (own === shell) void open();
    }).catch(tell);
    shell = own;
    return own;
  }

  async function begin(old, ended) {
    const before = await old;
    history = (await before?.history().catch(() => undefined)) ?? history;
    void before?.close().catch(() => {});
    let isOver = false;
    const own = await actions.open({
      onData: (text) => isOver || term.write(text),
      cols: term.cols,
      rows: term.rows,
      history,
    });
    const end = (code) => {
      // Only an exit code means that somebody left the shell.
      if (typeof code !== "number") return;
      isOver = true;
      ended();
    };
    // A worker that is gone rejects it: `open` is called then.
    Promise.resolve(own.closed).then(end, () => {});
    return own;
  }

  return {
    element,
    /** What is being downloaded for a command. */
    download,
    /** Ends what runs. */
    stop,
    open,
    /** Whether a line runs. */
    get running() {
      return pending > 0;
    },
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
        overviewRulerBorder: color("--ground-deep"), scrollbarSliderBackground: color("--line-strong"),
        scrollbarSliderHoverBackground: quiet, scrollbarSliderActiveBackground: quiet,
        black: ink, red: bad, green: good, yellow: warn, blue: link, magenta: accent, cyan: link, white: quiet,
        brightBlack: quiet, brightRed: bad, brightGreen: good, brightYellow: warn, brightBlue: link,
        brightMagenta: accent, brightCyan: link, brightWhite: ink,
      };
    },
  };
}
