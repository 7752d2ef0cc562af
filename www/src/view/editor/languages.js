// Syntax by file name; each language is downloaded when it is first needed.

import { LanguageSupport, StreamLanguage } from "@codemirror/language";

const legacy = (load) => load().then((mode) => new LanguageSupport(StreamLanguage.define(mode)));

const javascript = (options) => () => import("@codemirror/lang-javascript").then((m) => m.javascript(options));
const shell = () => legacy(() => import("@codemirror/legacy-modes/mode/shell").then((m) => m.shell));

/** @type {Record<string, () => Promise<LanguageSupport>>} */
const BY_EXTENSION = {
  js: javascript(), mjs: javascript(), cjs: javascript(), jsx: javascript({ jsx: true }),
  ts: javascript({ typescript: true }), tsx: javascript({ typescript: true, jsx: true }),
  html: () => import("@codemirror/lang-html").then((m) => m.html()),
  svg: () => import("@codemirror/lang-html").then((m) => m.html()),
  css: () => import("@codemirror/lang-css").then((m) => m.css()),
  json: () => import("@codemirror/lang-json").then((m) => m.json()),
  md: () => import("@codemirror/lang-markdown").then((m) => m.markdown()),
  py: () => import("@codemirror/lang-python").then((m) => m.python()),
  sh: shell, bash: shell,
  rs: () => legacy(() => import("@codemirror/legacy-modes/mode/rust").then((m) => m.rust)),
  go: () => legacy(() => import("@codemirror/legacy-modes/mode/go").then((m) => m.go)),
  rb: () => legacy(() => import("@codemirror/legacy-modes/mode/ruby").then((m) => m.ruby)),
  toml: () => legacy(() => import("@codemirror/legacy-modes/mode/toml").then((m) => m.toml)),
  yml: () => legacy(() => import("@codemirror/legacy-modes/mode/yaml").then((m) => m.yaml)),
  yaml: () => legacy(() => import("@codemirror/legacy-modes/mode/yaml").then((m) => m.yaml)),
};

/** @param {string} path @returns {Promise<LanguageSupport | undefined>} */
export async function languageOf(path) {
  const extension = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  return BY_EXTENSION[extension]?.();
}
