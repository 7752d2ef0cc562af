// ECMAScript modules as functions: finds the `import` and `export` statements
// of a module and rewrites them, line for line.

import { parse, walk } from "./packages.js";

/**
 * @typedef {{specifier: string, names: {imported: string, local: string}[]}} Import
 *   `imported` is `*` for the whole module
 * @typedef {object} Module
 * @property {string} code body of an async function with the names of all
 *   `imports`, and `__export(name, get)`, `__import(specifier)` and `__meta` in scope
 * @property {Import[]} imports in order, without repeats of a specifier
 * @property {{name: string, specifier: string, imported: string}[]} passedOn
 *   exports of other modules, `name` `*` for all of them
 * @property {string[]} fixed exports whose value does not change
 */

/** @param {string} source @param {"module" | "commonjs"} sourceType */
const read = (source, sourceType) => parse(source, { ecmaVersion: "latest", sourceType, allowHashBang: true });

/** Whether a file without another sign of what it is must be a module: it is no other code. @param {string} source */
export function looksLikeModule(source) {
  if (!/\b(?:import|export|await)\b/.test(source)) return false;
  const reads = (sourceType) => {
    try {
      return read(source, sourceType) !== undefined;
    } catch {
      return false;
    }
  };
  return !reads("commonjs") && reads("module");
}

/** Code that is no module, with `__import` in place of `import()`: the engine's would leave the sandbox. @param {string} source */
export function withoutImport(source) {
  const code = source.replace(/^#!/, "//");
  if (!/\bimport\b/.test(code)) return code;
  try {
    const edits = [];
    rewriteImports(read(code, "commonjs"), edits);
    return edited(code, edits);
  } catch {
    // What is wrong with it, the engine says when it compiles it.
    return code;
  }
}

/** @param {string} source @param {string} path for messages @returns {Module} */
export function transform(source, path) {
  let program;
  try {
    program = read(source, "module");
  } catch (error) {
    const { line, column } = error.loc ?? { line: 1, column: 0 };
    throw new SyntaxError(`${error.message.replace(/ \(\d+:\d+\)$/, "")} (${path}:${line}:${column + 1})`);
  }
  const edits = [];
  /** @type {Import[]} */
  const imports = [];
  const passedOn = [];
  const exported = [];
  const importOf = ({ value: specifier }) => {
    let found = imports.find((known) => known.specifier === specifier);
    if (!found) imports.push((found = { specifier, names: [] }));
    return found;
  };
  const remove = ({ start, end }, text = "") => {
    const lines = source.slice(start, end).split("\n").length - 1;
    edits.push({ start, end, text: text + "\n".repeat(lines) });
  };
  /** A name, which may be written as a string. */
  const nameOf = (node) => node.name ?? node.value;
  const exportDeclaration = (statement) => {
    const { declaration } = statement;
    if (declaration.type === "VariableDeclaration") {
      const names = declaration.declarations.flatMap(({ id }) => declared(id));
      for (const name of names) exported.push({ name, local: name, changes: declaration.kind !== "const" });
    } else exported.push({ name: declaration.id.name, local: declaration.id.name });
    remove({ start: statement.start, end: declaration.start });
  };
  for (const statement of program.body) {
    if (statement.type === "ImportDeclaration") {
      const { names } = importOf(statement.source);
      for (const { type, imported, local } of statement.specifiers) {
        const name = type === "ImportSpecifier" ? nameOf(imported) : type === "ImportDefaultSpecifier" ? "default" : "*";
        names.push({ imported: name, local: local.name });
      }
      remove(statement);
    } else if (statement.type === "ExportAllDeclaration") {
      const { specifier } = importOf(statement.source);
      passedOn.push({ name: statement.exported ? nameOf(statement.exported) : "*", specifier, imported: "*" });
      remove(statement);
    } else if (statement.type === "ExportNamedDeclaration") {
      if (statement.declaration) exportDeclaration(statement);
      else {
        const specifier = statement.source && importOf(statement.source).specifier;
        for (const { local, exported: as } of statement.specifiers) {
          if (specifier !== null && specifier !== undefined) passedOn.push({ name: nameOf(as), specifier, imported: nameOf(local) });
          else exported.push({ name: nameOf(as), local: nameOf(local), changes: true });
        }
        remove(statement, ";");
      }
    } else if (statement.type === "ExportDefaultDeclaration") {
      const { declaration } = statement;
      const name = /^(?:Function|Class)Declaration$/.test(declaration.type) ? declaration.id?.name : undefined;
      exported.push({ name: "default", local: name ?? "__default.value" });
      remove({ start: statement.start, end: declaration.start }, name ? "" : "__default.value = ");
      if (!name) edits.push({ start: declaration.end, end: declaration.end, text: ";" });
    }
  }
  rewriteImports(program, edits);
  const getters = exported.map(({ name, local }) => `__export(${JSON.stringify(name)}, () => ${local});`).join(" ");
  const fixed = exported.filter(({ changes }) => !changes).map(({ name }) => name);
  const code = edited(source.replace(/^#!/, "//"), edits);
  return { code: `const __default = {}; ${getters} ${code}`, imports, passedOn, fixed };
}

/** `import()` and `import.meta` under other names. */
function rewriteImports(program, edits) {
  walk(program, {
    ImportExpression: ({ start }) => void edits.push({ start, end: start + "import".length, text: "__import" }),
    MetaProperty({ start, end, meta }) {
      if (meta.name === "import") edits.push({ start, end, text: "__meta" });
    },
  });
}

/** `source` with each `{start, end, text}` replaced. */
function edited(source, edits) {
  let code = "";
  let at = 0;
  for (const { start, end, text } of edits.sort((a, b) => a.start - b.start)) {
    code += source.slice(at, start) + text;
    at = end;
  }
  return code + source.slice(at);
}

/** The names that a pattern declares. */
function declared(pattern) {
  switch (pattern?.type) {
    case "Identifier":
      return [pattern.name];
    case "ObjectPattern":
      return pattern.properties.flatMap((property) => declared(property.value ?? property.argument));
    case "ArrayPattern":
      return pattern.elements.flatMap(declared);
    case "AssignmentPattern":
      return declared(pattern.left);
    case "RestElement":
      return declared(pattern.argument);
    default:
      return [];
  }
}
