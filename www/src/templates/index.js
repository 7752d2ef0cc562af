// What an empty project can begin with.

const texts = import.meta.glob("./*/**/*", { query: "?raw", import: "default", eager: true });

/** @typedef {{id: string, name: string, about: string, first: string, files: Record<string, string>}} Template `first`: the file that one reads first */

/** @type {Template[]} */
export const TEMPLATES = [
  { id: "page", name: "Web page", about: "HTML, a style and a script, shown in the preview", first: "index.html" },
  { id: "node", name: "Node script with tests", about: "A command-line script and its tests: node --test", first: "words.js" },
  { id: "python", name: "Python script with tests", about: "A script and its tests: python3 -m unittest", first: "words.py" },
].map((each) => ({ ...each, files: filesOf(each.id) }));

function filesOf(id) {
  const start = `./${id}/`;
  return Object.fromEntries(Object.entries(texts).filter(([path]) => path.startsWith(start)).map(([path, text]) => [path.slice(start.length), text]));
}
