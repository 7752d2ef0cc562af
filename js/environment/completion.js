// Tab completion: names of commands at the head of a command, else of files.

/** Names shown at most. */
const CHOICES = 200;

/** Characters that bash needs a backslash before. */
const SPECIAL = /[\s"'\\$`!&;|<>()[\]{}*?~#]/g;

/**
 * What Tab adds to a line.
 * @param {string} before the line up to the cursor
 * @param {{list: (path: string) => Promise<{path: string, isDir: boolean}[]>}} env
 * @param {() => string[]} commands names that can stand at the head of a command
 * @param {{working_directory: string, home: string}} state
 * @returns {Promise<{insert: string, choices: string[]}>} what to insert; if
 *   nothing is certain, what it could be
 */
export async function complete(before, env, commands, state) {
  const { word, quote, head } = lastWord(before);
  if (head && !word.includes("/")) {
    const names = commands().filter((name) => name.startsWith(word));
    return chosen(word, names, quote, () => " ");
  }
  const slash = word.lastIndexOf("/") + 1;
  const directory = absolute(word.slice(0, slash), state, quote);
  const base = word.slice(slash);
  let entries;
  try {
    entries = await env.list(directory);
  } catch {
    return { insert: "", choices: [] };
  }
  const fitting = entries.filter(({ path }) => path.startsWith(base) && (base.startsWith(".") || !path.startsWith(".")));
  const directories = new Set(fitting.filter(({ isDir }) => isDir).map(({ path }) => path));
  return chosen(base, fitting.map(({ path }) => path), quote, (name) => (directories.has(name) ? "/" : " "));
}

function chosen(typed, names, quote, ending) {
  if (names.length === 0) return { insert: "", choices: [] };
  if (names.length === 1) {
    const end = ending(names[0]);
    const close = end === " " ? quote : "";
    return { insert: escaped(names[0].slice(typed.length), quote) + close + end, choices: [] };
  }
  let common = names[0];
  for (const name of names) while (!name.startsWith(common)) common = common.slice(0, -1);
  const insert = escaped(common.slice(typed.length), quote);
  const choices = names.map((name) => name + (ending(name) === "/" ? "/" : ""));
  if (choices.length > CHOICES) choices.splice(CHOICES, Infinity, `… ${names.length - CHOICES} more`);
  return { insert, choices: insert === "" ? choices : [] };
}

function escaped(text, quote) {
  if (quote === "'") return text;
  return text.replace(quote === '"' ? /["\\$`]/g : SPECIAL, "\\$&");
}

/**
 * The word that the line ends in, without quotes and backslashes; the quote
 * that is open; and whether it is the head of a command.
 */
function lastWord(before) {
  let word = "";
  let quote = "";
  let head = true;
  let begun = false;
  for (let at = 0; at < before.length; at += 1) {
    const character = before[at];
    if (quote !== "") {
      if (character === quote) quote = "";
      else if (character === "\\" && quote === '"') word += before[(at += 1)] ?? "";
      else word += character;
    } else if (character === "'" || character === '"') {
      quote = character;
      begun = true;
    } else if (character === "\\") {
      word += before[(at += 1)] ?? "";
      begun = true;
    } else if (/[;|&(\n]/.test(character)) {
      [word, head, begun] = ["", true, false];
    } else if (/[<>]/.test(character)) {
      [word, head, begun] = ["", false, false];
    } else if (/\s/.test(character)) {
      // `A=1 command`: an assignment leaves the next word at the head.
      if (begun && !/^[A-Za-z_]\w*=/.test(word)) head = false;
      [word, begun] = ["", false];
    } else {
      word += character;
      begun = true;
    }
  }
  return { word, quote, head };
}

function absolute(directory, { working_directory: cwd, home }, quote) {
  if (directory.startsWith("~/") && quote === "") return home + directory.slice(1);
  if (directory.startsWith("/")) return directory;
  return `${cwd}/${directory}`;
}
