// The little Markdown that models write, as elements: paragraphs, headings,
// lists, code, bold, italics and links. Text stays text: no HTML passes.

import { h } from "../../page/dom.js";

/**
 * Keeps the elements in `place` in step with `text`, which mostly grows: only
 * blocks that changed are made anew, so that nothing jumps.
 * @param {HTMLElement} place @param {string} text
 */
export function renderMarkdown(place, text) {
  const wanted = blocks(text);
  const old = place.renderedBlocks ?? [];
  wanted.forEach((source, index) => {
    if (old[index] === source) return;
    const element = block(source);
    if (index < place.children.length) place.children[index].replaceWith(element);
    else place.append(element);
  });
  while (place.children.length > wanted.length) place.lastElementChild.remove();
  place.renderedBlocks = wanted;
}

/** Sources of the blocks: fenced code whole, everything else between blank lines. */
function blocks(text) {
  const found = [];
  let current = [];
  let fence;
  const flush = () => {
    if (current.length > 0) found.push(current.join("\n"));
    current = [];
  };
  for (const line of text.split("\n")) {
    const mark = line.match(/^\s*(```+|~~~+)/)?.[1];
    if (fence) {
      current.push(line);
      if (mark?.startsWith(fence)) {
        fence = undefined;
        flush();
      }
    } else if (mark) {
      flush();
      fence = mark;
      current.push(line);
    } else if (line.trim() === "") {
      flush();
    } else if (/^#{1,6} /.test(line)) {
      flush();
      found.push(line);
    } else {
      const isItem = LIST.test(line);
      const inList = current.length > 0 && LIST.test(current[0]);
      if (isItem && current.length > 0 && !inList) flush();
      current.push(line);
    }
  }
  flush();
  return found;
}

const LIST = /^\s*([-*+]|\d+[.)]) /;

function block(source) {
  const fenced = source.match(/^\s*(?:```+|~~~+)\s*([\w+-]*)[^\n]*\n?([\s\S]*?)(?:\n\s*(?:```+|~~~+)\s*)?$/);
  if (fenced && /^\s*(```|~~~)/.test(source)) return h("pre", null, h("code", { dataset: { language: fenced[1] } }, fenced[2]));
  const heading = source.match(/^(#{1,6}) (.*)$/);
  if (heading) return h("p", { class: "heading" }, inline(heading[2]));
  if (LIST.test(source)) return list(source);
  const lines = source.split("\n");
  if (lines.every((line) => line.startsWith(">"))) {
    return h("blockquote", null, inline(lines.map((line) => line.replace(/^> ?/, "")).join("\n")));
  }
  if (lines.length > 1 && lines[0].includes("|") && /^\s*\|?[\s:|-]+$/.test(lines[1])) return table(lines);
  return h("p", null, inline(source));
}

function list(source) {
  const items = [];
  for (const line of source.split("\n")) {
    if (LIST.test(line)) items.push(line.replace(LIST, ""));
    else items[items.length - 1] += `\n${line.trim()}`;
  }
  const ordered = /^\s*\d/.test(source);
  return h(ordered ? "ol" : "ul", null, items.map((item) => h("li", null, inline(item))));
}

function table(lines) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  const row = (tag) => (line) => h("tr", null, cells(line).map((cell) => h(tag, null, inline(cell))));
  return h("div", { class: "table" }, h("table", null, h("thead", null, row("th")(lines[0])), h("tbody", null, lines.slice(2).map(row("td")))));
}

/** Where nothing closes what is opened, each alternative gives up after one look: models repeat themselves. */
const INLINE = /(?<!`)(`+)(?!`)([\s\S]*?[^`])\1(?!`)|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^[\]]+)\]\((https?:\/\/[^\s)]+)\)/g;

function inline(text) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    parts.push(text.slice(at, match.index));
    const [whole, , code, bold, italic, label, url] = match;
    if (code !== undefined) parts.push(h("code", null, code));
    else if (bold !== undefined) parts.push(h("strong", null, inline(bold)));
    else if (italic !== undefined) parts.push(h("em", null, inline(italic)));
    else parts.push(h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, label));
    at = match.index + whole.length;
  }
  parts.push(text.slice(at));
  return parts.filter((part) => part !== "");
}
