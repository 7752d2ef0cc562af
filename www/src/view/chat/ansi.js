// What programs write for terminals, as text with colours: the sequences that
// choose a style (SGR of ECMA-48) become spans, all others are left out. Text
// stays text: no HTML passes.

import { h } from "../../page/dom.js";

/** The start of a control sequence (CSI), of a string (OSC, DCS, …), or of a two-byte escape. */
const ESCAPE = /\x1b(?:\[([0-?]*)([ -/]*)([@-~])|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])/y;
/** How much of a sequence whose end has not come yet is waited for, in characters. */
const MOST_PENDING = 4_000;
/** Styles that are on or off: the number that begins each, and the one that ends it. */
const FLAGS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike" };
const ENDS = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };
/** Shares of a colour in the cube of 256. */
const CUBE = [0, 95, 135, 175, 215, 255];

/** Writes text that comes in pieces into an element. */
export class AnsiText {
  #place;
  #style = {};
  /** The beginning of a sequence. */
  #pending = "";

  /** @param {HTMLElement} place */
  constructor(place) {
    this.#place = place;
  }

  clear() {
    this.#place.replaceChildren();
    this.#style = {};
    this.#pending = "";
  }

  /** @param {string} piece */
  write(piece) {
    const text = this.#pending + piece;
    this.#pending = "";
    let from = 0;
    while (from < text.length) {
      const at = text.indexOf("\x1b", from);
      this.#append(text.slice(from, at < 0 ? undefined : at));
      if (at < 0) return;
      ESCAPE.lastIndex = at;
      const match = ESCAPE.exec(text);
      if (match) {
        const [whole, parameters, , final] = match;
        if (final === "m") this.#select(parameters);
        from = at + whole.length;
      } else if (text.length - at < MOST_PENDING) {
        this.#pending = text.slice(at);
        return;
      } else {
        from = at + 1;
      }
    }
  }

  #append(text) {
    if (text === "") return;
    const { lastChild } = this.#place;
    if (lastChild?.ansiStyle === this.#style) return void lastChild.lastChild.appendData(text);
    const node = element(this.#style, text);
    node.ansiStyle = this.#style;
    this.#place.append(node);
  }

  /** @param {string} parameters of a sequence that ends with `m` */
  #select(parameters) {
    // Colons join what belongs to one colour; a private mode (`>4m`) is no style.
    if (/[<-?]/.test(parameters)) return;
    const codes = parameters.replace("::", ":").split(/[;:]/).map(Number);
    const style = { ...this.#style };
    for (let at = 0; at < codes.length; at++) {
      const code = codes[at];
      if (code === 0) for (const name of Object.keys(style)) delete style[name];
      else if (Object.hasOwn(FLAGS, code)) style[FLAGS[code]] = true;
      else if (Object.hasOwn(ENDS, code)) for (const name of ENDS[code]) delete style[name];
      else if (code === 38 || code === 48) {
        const [color, length] = extended(codes.slice(at + 1));
        style[code === 38 ? "color" : "ground"] = color;
        at += length;
      } else if (code === 39) delete style.color;
      else if (code === 49) delete style.ground;
      else if (inRange(code, 30)) style.color = code - 30;
      else if (inRange(code, 40)) style.ground = code - 40;
      else if (inRange(code, 90)) style.color = code - 90 + 8;
      else if (inRange(code, 100)) style.ground = code - 100 + 8;
    }
    this.#style = style;
  }
}

const inRange = (code, first) => code >= first && code < first + 8;

/** The colour that stands behind 38 or 48, and how many numbers it takes. @param {number[]} codes @returns {[number | string | undefined, number]} */
function extended([kind, ...rest]) {
  const isByte = (value) => Number.isInteger(value) && value >= 0 && value <= 255;
  if (kind === 5) return [isByte(rest[0]) ? indexed(rest[0]) : undefined, 2];
  const shares = rest.slice(0, 3);
  if (kind === 2) return [shares.length === 3 && shares.every(isByte) ? `rgb(${shares.join(" ")})` : undefined, 4];
  return [undefined, 1];
}

/** One of the 256: a name of the theme's, or a colour. @param {number} index */
function indexed(index) {
  if (index < 16) return index;
  if (index >= 232) return `rgb(${Array(3).fill(8 + (index - 232) * 10).join(" ")})`;
  const at = index - 16;
  return `rgb(${[Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map((share) => CUBE[share]).join(" ")})`;
}

function element({ color, ground, ...flags }, text) {
  const classes = Object.keys(flags).map((name) => `ansi-${name}`);
  if (typeof color === "number") classes.push(`ansi-color-${color}`);
  if (typeof ground === "number") classes.push(`ansi-ground-${ground}`);
  const span = h("span", classes.length > 0 ? { class: classes.join(" ") } : null, text);
  if (typeof color === "string") span.style.setProperty("--ansi-color", color);
  if (typeof ground === "string") span.style.setProperty("--ansi-ground", ground);
  if (typeof color === "string") span.classList.add("ansi-color");
  if (typeof ground === "string") span.classList.add("ansi-ground");
  return span;
}
