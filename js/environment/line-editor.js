// One line being typed: keys in, what the terminal shows out. The keys are
// those of readline; lines wrap, hold wide characters, and may have line breaks
// when they are pasted or recalled.

/** Has the terminal go on in the next row, and remember that it is the same line. */
const WRAP = " \r";
/** Columns that a tab is shown as. */
const TAB = "    ";

/** What a key does, by what terminals send for it. */
const KEYS = new Map([
  ["\x03", "interrupt"], ["\x0c", "clear"], ["\t", "complete"],
  ["\x7f", "backspace"], ["\b", "backspace"], ["\x1b[3~", "delete"],
  ["\x01", "home"], ["\x1b[H", "home"], ["\x1bOH", "home"], ["\x1b[1~", "home"], ["\x1b[7~", "home"],
  ["\x05", "last"], ["\x1b[F", "last"], ["\x1bOF", "last"], ["\x1b[4~", "last"], ["\x1b[8~", "last"],
  ["\x02", "left"], ["\x1b[D", "left"], ["\x1bOD", "left"],
  ["\x06", "right"], ["\x1b[C", "right"], ["\x1bOC", "right"],
  ["\x10", "up"], ["\x1b[A", "up"], ["\x1bOA", "up"],
  ["\x0e", "down"], ["\x1b[B", "down"], ["\x1bOB", "down"],
  ["\x1bb", "wordLeft"], ["\x1b[1;5D", "wordLeft"], ["\x1b[1;3D", "wordLeft"],
  ["\x1bf", "wordRight"], ["\x1b[1;5C", "wordRight"], ["\x1b[1;3C", "wordRight"],
  ["\x0b", "killRight"], ["\x15", "killLeft"], ["\x17", "killWordLeft"], ["\x1b\x7f", "killWordLeft"],
  ["\x1bd", "killWordRight"], ["\x19", "yank"],
]);

/** Keys that somebody else deals with. */
const EVENTS = new Set(["interrupt", "clear", "complete"]);

const PASTE = "\x1b[200~";
const PASTE_END = "\x1b[201~";

export class Line {
  #show;
  #cols;
  #prompt = "";
  /** The text, one string per character that is seen. @type {string[]} */
  #characters = [];
  #cursor = 0;
  /** The row that the terminal's cursor is in, from the last row of the prompt. */
  #row = 0;
  #history = [];
  /** Where in the history it stands; its length: in what is being typed. */
  #place = 0;
  #draft = "";
  #killed = "";

  /** @param {(text: string) => void} show @param {number} cols */
  constructor(show, cols) {
    this.#show = show;
    this.#cols = Math.max(2, cols);
  }

  /** An empty line behind `prompt`. @param {string} prompt @param {string[]} history */
  start(prompt, history) {
    this.#prompt = prompt;
    this.#characters = [];
    this.#cursor = 0;
    this.#history = history;
    this.#place = history.length;
    this.#draft = "";
    const { row, full } = this.#layout(0);
    this.#row = row;
    this.#show(prompt + (full ? WRAP : ""));
  }

  /** Ends the line and gives its text. @param {string} [mark] shown behind it */
  finish(mark = "") {
    this.leave();
    this.#show(`${mark}\r\n`);
    return this.#characters.join("");
  }

  /** Puts the terminal's cursor behind the text. */
  leave() {
    this.#move(this.#characters.length);
  }

  /** The text up to the cursor. */
  beforeCursor() {
    return this.#characters.slice(0, this.#cursor).join("");
  }

  /** Shows prompt and line again, from where the cursor is. */
  redraw() {
    this.#row = 0;
    this.#draw(this.#prompt);
  }

  resize(cols) {
    this.#cols = Math.max(2, cols);
    // The terminal has wrapped what it shows anew.
    this.#row = this.#layout(this.#cursor).row;
    this.#draw();
  }

  /**
   * Deals with the first key of `text`.
   * @param {string} text
   * @returns {{event?: "partial" | "enter" | "interrupt" | "end" | "clear" | "complete", rest: string}}
   *   `partial`: the rest of the key has not come yet
   */
  key(text) {
    const printable = /^[^\x00-\x1f\x7f]+/.exec(text)?.[0];
    if (printable) {
      if (printable === text && /[\ud800-\udbff]$/.test(text)) {
        if (text.length === 1) return { event: "partial", rest: text };
        this.insert(text.slice(0, -1));
        return { rest: text.slice(-1) };
      }
      this.insert(printable);
      return { rest: text.slice(printable.length) };
    }
    if (text.startsWith(PASTE)) return this.#paste(text);
    const key = /^(\r\n?|\x1b\[[0-9;?]*[@-~]|\x1bO.|\x1b[^[O]|[^\x1b])/s.exec(text)?.[0];
    if (key === undefined) return { event: "partial", rest: text };
    const rest = text.slice(key.length);
    if (/^[\r\n]/.test(key)) return { event: "enter", rest };
    if (key === "\x04" && this.#characters.length === 0) return { event: "end", rest };
    const action = key === "\x04" ? "delete" : KEYS.get(key);
    if (EVENTS.has(action)) return { event: action, rest };
    this.#act(action);
    return { rest };
  }

  /** Inserts at the cursor. @param {string} text */
  insert(text) {
    const added = characters(text);
    const left = this.#characters.slice(0, this.#cursor);
    const right = this.#characters.slice(this.#cursor);
    // A mark or the second half of a flag makes one character of two.
    const joins = left.length > 0 && added.length > 0 && characters(left.at(-1) + added[0]).length === 1;
    // A paste may have more characters than a call takes arguments.
    this.#characters = left.concat(added, right);
    this.#cursor += added.length;
    if (joins || right.length > 0) {
      const end = left.join("").length + text.length;
      this.#characters = characters(this.#characters.join(""));
      this.#cursor = 0;
      for (let at = 0; at < end; this.#cursor += 1) at += this.#characters[this.#cursor].length;
      return this.#draw();
    }
    const { row, full } = this.#layout(this.#cursor);
    this.#row = row;
    this.#show(added.map(shown).join("") + (full ? WRAP : ""));
  }

  #paste(text) {
    const end = text.indexOf(PASTE_END);
    if (end < 0) return { event: "partial", rest: text };
    const pasted = text.slice(PASTE.length, end).replace(/\r\n?/g, "\n");
    // Other control characters would act on the terminal when shown.
    this.insert(pasted.replace(/[\x00-\x08\x0b-\x1f\x7f]/g, ""));
    return { rest: text.slice(end + PASTE_END.length) };
  }

  #act(action) {
    const end = this.#characters.length;
    const at = this.#cursor;
    switch (action) {
      case "backspace":
        return this.#remove(Math.max(0, at - 1), at);
      case "delete":
        return this.#remove(at, Math.min(end, at + 1));
      case "home":
        return this.#move(0);
      case "last":
        return this.#move(end);
      case "left":
        return this.#move(Math.max(0, at - 1));
      case "right":
        return this.#move(Math.min(end, at + 1));
      case "wordLeft":
        return this.#move(this.#wordStart(/[\p{L}\p{N}_]/u));
      case "wordRight":
        return this.#move(this.#wordEnd());
      case "killLeft":
        return this.#kill(0, at);
      case "killRight":
        return this.#kill(at, end);
      case "killWordLeft":
        return this.#kill(this.#wordStart(/\S/), at);
      case "killWordRight":
        return this.#kill(at, this.#wordEnd());
      case "yank":
        return this.#killed === "" ? undefined : this.insert(this.#killed);
      case "up":
        return this.#recall(this.#place - 1);
      case "down":
        return this.#recall(this.#place + 1);
    }
  }

  #wordStart(inside) {
    let at = this.#cursor;
    while (at > 0 && !inside.test(this.#characters[at - 1])) at -= 1;
    while (at > 0 && inside.test(this.#characters[at - 1])) at -= 1;
    return at;
  }

  #wordEnd() {
    const inside = /[\p{L}\p{N}_]/u;
    let at = this.#cursor;
    while (at < this.#characters.length && !inside.test(this.#characters[at])) at += 1;
    while (at < this.#characters.length && inside.test(this.#characters[at])) at += 1;
    return at;
  }

  #kill(from, to) {
    if (from === to) return;
    this.#killed = this.#characters.slice(from, to).join("");
    this.#remove(from, to);
  }

  #remove(from, to) {
    if (from === to) return;
    this.#characters.splice(from, to - from);
    this.#cursor = from;
    this.#draw();
  }

  #recall(place) {
    if (place < 0 || place > this.#history.length) return;
    if (this.#place === this.#history.length) this.#draft = this.#characters.join("");
    this.#place = place;
    this.#characters = characters(this.#history[place] ?? this.#draft);
    this.#cursor = this.#characters.length;
    this.#draw();
  }

  #move(to) {
    const { row, col } = this.#layout(to);
    const from = this.#layout(this.#cursor);
    if (row !== from.row || col !== from.col) this.#show(`${vertical(row - this.#row)}\r${right(col)}`);
    this.#row = row;
    this.#cursor = to;
  }

  /** Shows all of it again, from the last row of the prompt. */
  #draw(prompt = lastRow(this.#prompt)) {
    const end = this.#layout(this.#characters.length);
    const { row, col } = this.#layout(this.#cursor);
    this.#show(
      `${vertical(-this.#row)}\r\x1b[J${prompt}${this.#characters.map(shown).join("")}${end.full ? WRAP : ""}` +
        `${vertical(row - end.row)}\r${right(col)}`,
    );
    this.#row = row;
  }

  /**
   * Where the terminal's cursor is before character `index`, the last row of
   * the prompt being row 0. `full`: it stands there only after `WRAP`,
   * because the row above is full to its last column.
   */
  #layout(index) {
    const all = characters(lastRow(this.#prompt).replace(ESCAPES, "")).concat(this.#characters.slice(0, index));
    let row = 0;
    let col = 0;
    let full = false;
    for (const character of all) {
      full = false;
      if (character === "\n") {
        row += 1;
        col = 0;
        continue;
      }
      const columns = width(character);
      if (col + columns > this.#cols) {
        row += 1;
        col = 0;
      }
      col += columns;
      if (col >= this.#cols) {
        row += 1;
        col = 0;
        full = true;
      }
    }
    return { row, col, full };
  }
}

/** Sequences that take no room. */
const ESCAPES = /\x1b\[[0-9;?]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|[\x00-\x09\x0b-\x1f\x7f]/g;

function lastRow(prompt) {
  return prompt.slice(prompt.lastIndexOf("\n") + 1);
}

/** Made when a text needs it: it takes 20 ms. @type {Intl.Segmenter | undefined} */
let segmenter;

/** Code units that are looked at in one go: each step of a segmenter costs as much as its text is long. */
const PIECE = 256;

/** A text as the characters that are seen. */
function characters(text) {
  if (/^[\t\n\x20-\x7e]*$/.test(text) || typeof Intl.Segmenter !== "function") return [...text];
  segmenter ??= new Intl.Segmenter();
  const all = [];
  let size = PIECE;
  for (let at = 0; at < text.length; ) {
    // Not between the halves of a surrogate pair.
    const end = at + size + (/[\ud800-\udbff]/.test(text[at + size - 1]) ? 1 : 0);
    const found = Array.from(segmenter.segment(text.slice(at, end)), ({ segment }) => segment);
    // The last one may go on behind the piece.
    if (end < text.length) found.pop();
    for (const one of found) at += one.length;
    all.push(...found);
    // A character that is longer than its piece.
    size = found.length === 0 ? 2 * size : PIECE;
  }
  return all;
}

function shown(character) {
  if (character === "\n") return "\r\n";
  return character === "\t" ? TAB : character;
}

/** Columns of a character: East Asian wide ones and emoji have two. */
function width(character) {
  if (character === "\t") return TAB.length;
  if (character <= "\u02ff") return 1;
  if (/^\p{M}/u.test(character)) return 0;
  return /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u.test(character) ? 2 : 1;
}

function vertical(rows) {
  if (rows === 0) return "";
  return rows < 0 ? `\x1b[${-rows}A` : `\x1b[${rows}B`;
}

function right(cols) {
  return cols === 0 ? "" : `\x1b[${cols}C`;
}
