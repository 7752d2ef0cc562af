// ECMAScript modules as functions: finds the `import` and `export` statements
// of a module and rewrites them, line for line. A module is read as tokens, not
// parsed: what its own syntax errors are, the engine says when it compiles the
// result. One thing tokens cannot decide: after `)` a slash divides, after `}`
// it starts a regular expression.

/**
 * @typedef {{specifier: string, names: {imported: string, local: string}[]}} Import
 *   `imported` is `*` for the whole module
 * @typedef {object} Module
 * @property {string} code body of an async function with the names of all
 *   `imports`, and `__export(name, get)`, `__star(specifier)`, `__import(specifier)`
 *   and `__meta` in scope
 * @property {Import[]} imports in order, without repeats of a specifier
 * @property {{name: string, specifier: string, imported: string}[]} passed on
 *   exports of other modules, `name` `*` for all of them
 * @property {string[]} fixed exports whose value does not change
 */

const WORD = /[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/uy;
const NUMBER = /\.?\d(?:[eE][+-]|[\w.])*/y;
const BEFORE_REGEX = new Set(
  "return typeof case in of delete void throw new instanceof do else yield await default extends".split(" "),
);

/**
 * Tokens `{type, text, start, end, depth}`; comments and white space left out.
 * @param {string} source
 */
export function tokens(source) {
  const found = [];
  /** What each open bracket is: `{`, `(`, `[`, or `${` of a template. */
  const open = [];
  let at = 0;
  const push = (type, start, end) => {
    found.push({ type, text: source.slice(start, end), start, end, depth: open.length });
    at = end;
  };
  const template = (start) => {
    let end = start;
    while (end < source.length && source[end] !== "`") {
      if (source[end] === "\\") end += 1;
      else if (source.startsWith("${", end)) {
        push("template", start, end + 2);
        open.push("${");
        return;
      }
      end += 1;
    }
    push("template", start, end + 1);
  };
  const regex = (start) => {
    let end = start + 1;
    for (
      let inClass = false;
      end < source.length && (inClass || source[end] !== "/") && source[end] !== "\n";
      end += 1
    ) {
      if (source[end] === "\\") end += 1;
      else if (source[end] === "[") inClass = true;
      else if (source[end] === "]") inClass = false;
    }
    end += 1;
    while (/[a-z]/.test(source[end] ?? "")) end += 1;
    push("regex", start, end);
  };
  if (source.startsWith("#!")) at = source.indexOf("\n") < 0 ? source.length : source.indexOf("\n");
  while (at < source.length) {
    const character = source[at];
    if (/\s/.test(character)) {
      at += 1;
    } else if (source.startsWith("//", at)) {
      const end = source.indexOf("\n", at);
      at = end < 0 ? source.length : end;
    } else if (source.startsWith("/*", at)) {
      const end = source.indexOf("*/", at + 2);
      at = end < 0 ? source.length : end + 2;
    } else if (character === '"' || character === "'") {
      let end = at + 1;
      while (end < source.length && source[end] !== character && source[end] !== "\n")
        end += source[end] === "\\" ? 2 : 1;
      push("string", at, end + 1);
    } else if (character === "`") {
      const start = at;
      at += 1;
      template(start + 1);
      found.at(-1).start = start;
    } else if (character === "/") {
      const last = found.at(-1);
      const divides =
        last &&
        (last.type === "number" ||
          last.type === "string" ||
          last.type === "regex" ||
          (last.type === "template" && last.text.endsWith("`")) ||
          (last.type === "word" && !(BEFORE_REGEX.has(last.text) && found.at(-2)?.text !== ".")) ||
          [")", "]", "++", "--"].includes(last.text));
      if (divides) push("sign", at, at + 1);
      else regex(at);
    } else {
      WORD.lastIndex = at;
      NUMBER.lastIndex = at;
      const word = WORD.exec(source);
      const number = !word && NUMBER.exec(source);
      if (word) push("word", at, at + word[0].length);
      else if (number) push("number", at, at + number[0].length);
      else if ("{([".includes(character)) {
        push("sign", at, at + 1);
        open.push(character);
      } else if ("})]".includes(character)) {
        if (open.pop() === "${") template(at + 1);
        else push("sign", at, at + 1);
      } else {
        const pair = /^(?:\+\+|--|\.\.\.|=>|\?\.)/.exec(source.slice(at, at + 3));
        push("sign", at, at + (pair ? pair[0].length : 1));
      }
    }
  }
  return found;
}

/** Whether a file without another sign of what it is must be a module. @param {string} source */
export function looksLikeModule(source) {
  const all = tokens(source);
  return all.some(({ type, text, depth }, index) => {
    if (type !== "word" || depth > 0 || all[index - 1]?.text === ".") return false;
    const next = all[index + 1]?.text;
    if (text === "import") return next !== "(" && (next !== "." || all[index + 2]?.text === "meta");
    return (
      (text === "export" && next !== "=" && next !== "." && next !== ":") ||
      (text === "await" && next !== undefined && next !== "=")
    );
  });
}

/** @param {string} source @returns {Module} */
export function transform(source) {
  const all = tokens(source);
  /** Replacements `{start, end, text}`, in order. */
  const edits = [];
  /** @type {Import[]} */
  const imports = [];
  const passedOn = [];
  const exported = [];
  const importOf = (literal) => {
    const specifier = unquote(literal);
    let found = imports.find((known) => known.specifier === specifier);
    if (!found) imports.push((found = { specifier, names: [] }));
    return found;
  };
  const replace = (start, end, text = "") => {
    const lost = source.slice(start, end).split("\n").length - text.split("\n").length;
    edits.push({ start, end, text: text + "\n".repeat(Math.max(0, lost)) });
  };
  /** The index after `from "x" with {…};`, given the index of the string. */
  const afterString = (index) => {
    let next = index + 1;
    if ((all[next]?.text === "with" || all[next]?.text === "assert") && all[next + 1]?.text === "{") {
      while (all[next] && all[next].text !== "}") next += 1;
      next += 1;
    }
    return all[next]?.text === ";" ? next + 1 : next;
  };
  const nameOf = ({ type, text }) => (type === "string" ? unquote(text) : text);
  /** `{a, b as c}` from the index of `{`: pairs and the index after `}`. */
  const clause = (start) => {
    const names = [];
    let index = start + 1;
    while (all[index] && all[index].text !== "}") {
      const from = nameOf(all[index]);
      let to = from;
      if (all[index + 1]?.text === "as") {
        to = nameOf(all[index + 2]);
        index += 2;
      }
      names.push({ from, to });
      index += 1;
      if (all[index]?.text === ",") index += 1;
    }
    return { names, next: index + 1 };
  };

  const importStatement = (start) => {
    let index = start + 1;
    const names = [];
    if (all[index].type !== "string") {
      if (all[index].type === "word") {
        names.push({ imported: "default", local: all[index].text });
        index += 1;
        if (all[index]?.text === ",") index += 1;
      }
      if (all[index]?.text === "*") {
        names.push({ imported: "*", local: all[index + 2].text });
        index += 3;
      } else if (all[index]?.text === "{") {
        const { names: pairs, next } = clause(index);
        names.push(...pairs.map(({ from, to }) => ({ imported: from, local: to })));
        index = next;
      }
      index += 1; // from
    }
    if (all[index]?.type !== "string") throw new SyntaxError("an import statement without a module");
    importOf(all[index].text).names.push(...names);
    const next = afterString(index);
    replace(all[start].start, all[next - 1].end);
    return next;
  };

  const exportStatement = (start) => {
    const next = all[start + 1];
    if (next.text === "*") {
      const named = all[start + 2].text === "as";
      const string = start + (named ? 5 : 3);
      const { specifier } = importOf(all[string].text);
      passedOn.push({ name: named ? nameOf(all[start + 3]) : "*", specifier, imported: "*" });
      const end = afterString(string);
      replace(all[start].start, all[end - 1].end);
      return end;
    }
    if (next.text === "{") {
      const { names, next: after } = clause(start + 1);
      if (all[after]?.text === "from") {
        const { specifier } = importOf(all[after + 1].text);
        passedOn.push(...names.map(({ from, to }) => ({ name: to, specifier, imported: from })));
        const end = afterString(after + 1);
        replace(all[start].start, all[end - 1].end);
        return end;
      }
      exported.push(...names.map(({ from, to }) => ({ name: to, local: from, changes: true })));
      const end = all[after]?.text === ";" ? after + 1 : after;
      replace(all[start].start, all[end - 1].end, ";");
      return end;
    }
    if (next.text === "default") {
      let index = start + 2;
      if (all[index].text === "async" && all[index + 1]?.text === "function") index += 1;
      if (all[index].text === "function" || all[index].text === "class") {
        const name = all[index + 1].text === "*" ? all[index + 2] : all[index + 1];
        if (name.type === "word" && !(all[index].text === "class" && name.text === "extends")) {
          exported.push({ name: "default", local: name.text });
          replace(all[start].start, next.end);
          return start + 2;
        }
      }
      exported.push({ name: "default", local: "__default.value" });
      replace(all[start].start, next.end, "__default.value =");
      return start + 2;
    }
    const kind = next.text === "async" ? all[start + 2].text : next.text;
    if (kind === "function" || kind === "class") {
      let index = start + (next.text === "async" ? 3 : 2);
      if (all[index].text === "*") index += 1;
      exported.push({ name: all[index].text, local: all[index].text });
    } else {
      for (const name of declared(all, start + 2)) exported.push({ name, local: name, changes: kind !== "const" });
    }
    replace(all[start].start, next.start);
    return start + 1;
  };

  for (let index = 0; index < all.length; ) {
    const { type, text, depth, start, end } = all[index];
    const previous = all[index - 1]?.text;
    const next = all[index + 1]?.text;
    if (type !== "word" || previous === "." || previous === "?.") {
      index += 1;
    } else if (text === "import" && next === "(") {
      replace(start, end, "__import");
      index += 1;
    } else if (text === "import" && next === ".") {
      replace(start, all[index + 2].end, "__meta");
      index += 3;
    } else if (text === "import" && depth === 0) {
      index = importStatement(index);
    } else if (text === "export" && depth === 0) {
      index = exportStatement(index);
    } else {
      index += 1;
    }
  }
  let code = "";
  let at = 0;
  if (source.startsWith("#!")) code = "//";
  for (const { start, end, text } of edits) {
    code += source.slice(at, start) + text;
    at = end;
  }
  code += source.slice(at);
  const getters = exported.map(({ name, local }) => `__export(${JSON.stringify(name)}, () => ${local});`).join(" ");
  const fixed = exported.filter(({ changes }) => !changes).map(({ name }) => name);
  return { code: `const __default = {}; ${getters} ${code}`, imports, passedOn, fixed };
}

/** The names that `const`, `let` or `var` declares; `index` is that of the first one. */
function declared(all, index) {
  const names = [];
  const { depth } = all[index];
  /** A name or a pattern; returns the index after it. */
  const target = (at) => {
    if (all[at].text !== "{" && all[at].text !== "[") {
      names.push(all[at].text);
      return at + 1;
    }
    const inside = all[at].depth + 1;
    let next = at + 1;
    while (all[next] && !(all[next].depth < inside && /^[}\]]$/.test(all[next].text))) {
      const { type, text } = all[next];
      if (text === "{" || text === "[") next = target(next);
      else if (text === "=") {
        // A default value: up to the comma or the bracket that ends it.
        while (all[next] && !(all[next].depth === inside && all[next].text === ",") && all[next].depth >= inside)
          next += 1;
      } else {
        if (type === "word" && all[next + 1]?.text !== ":") names.push(text);
        next += 1;
      }
    }
    return next + 1;
  };
  let at = target(index);
  for (; all[at]; at += 1) {
    if (all[at].depth !== depth) continue;
    if (all[at].text === ";") break;
    if (all[at].text === ",") at = target(at + 1) - 1;
    else if (
      /^(?:const|let|var|function|class|export|import|if|for|while|return|switch|try|throw)$/.test(all[at].text) &&
      all[at - 1].text !== "." &&
      all[at - 1].text !== "="
    )
      break;
  }
  return names;
}

function unquote(literal) {
  return literal.slice(1, -1).replace(/\\(.)/g, "$1");
}
