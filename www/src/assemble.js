// Makes one HTML text of a page of the project: styles, scripts, modules,
// images and fonts of the project go inside, since the frame that shows it can
// reach nothing. What is on other sites stays as it is.

import { decode } from "./project.js";
import prelude from "./view/preview-prelude.js?raw";

const TYPES = {
  css: "text/css", js: "text/javascript", mjs: "text/javascript", json: "application/json", html: "text/html", txt: "text/plain",
  svg: "image/svg+xml", png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", avif: "image/avif", ico: "image/x-icon",
  woff: "font/woff", woff2: "font/woff2", ttf: "font/ttf", otf: "font/otf", mp3: "audio/mpeg", mp4: "video/mp4", webm: "video/webm", wasm: "application/wasm", xml: "application/xml", csv: "text/csv", md: "text/markdown",
};

/**
 * Fragments are places in the page; other relative addresses are none. As text,
 * because the policy of the playground forbids bases, also in what it parses.
 */
const BASE = '<base href="about:srcdoc">';

/**
 * @param {Map<string, Uint8Array>} files of the project, by path
 * @param {string} page path of the HTML file
 * @param {boolean} network whether the page may reach it
 * @returns {string}
 */
export function assemble(files, page, network) {
  const document = new DOMParser().parseFromString(decode(files.get(page)) ?? "", "text/html");
  const find = (address, from) => locate(files, address, from);
  for (const link of document.querySelectorAll('link[rel~="stylesheet"][href]')) {
    const path = find(link.getAttribute("href"), page);
    if (!path) continue;
    const style = document.createElement("style");
    style.textContent = css(files, path, new Set());
    if (link.media) style.media = link.media;
    link.replaceWith(style);
  }
  for (const style of document.querySelectorAll("style")) style.textContent = addresses(style.textContent, page, files);
  const modules = new Modules(files);
  for (const script of document.querySelectorAll("script")) {
    const path = script.hasAttribute("src") ? find(script.getAttribute("src"), page) : undefined;
    if (script.hasAttribute("src") && !path) continue;
    const source = path ? decode(files.get(path)) ?? "" : script.textContent;
    if (script.type === "module") script.textContent = inScript(modules.rewrite(source, path ?? page));
    else if (path) script.textContent = inScript(source);
    if (path) {
      // Scripts with `defer` run in order after the page; so do modules.
      if (script.defer && script.type !== "module") (document.body ?? document.documentElement).append(script);
      for (const name of ["src", "integrity", "defer", "async"]) script.removeAttribute(name);
    }
  }
  for (const [selector, name] of [["img,audio,video,source,track,input,embed", "src"], ["link[rel~=icon]", "href"], ["video", "poster"], ["image,use", "href"]]) {
    for (const element of document.querySelectorAll(selector)) {
      const path = element.hasAttribute(name) && find(element.getAttribute(name), page);
      if (path) element.setAttribute(name, dataUrl(files, path));
    }
  }
  for (const element of document.querySelectorAll("[style]")) element.setAttribute("style", addresses(element.getAttribute("style"), page, files));
  const map = modules.importMap();
  if (map) {
    const script = document.createElement("script");
    script.type = "importmap";
    script.textContent = inScript(map);
    document.head.prepend(script);
  }
  document.head.prepend(first(document, { files: dataFiles(files), page, network }));
  return `<!doctype html>\n${BASE}${document.documentElement.outerHTML}`;
}

/** What runs before the page's own code. */
function first(document, settings) {
  const script = document.createElement("script");
  script.textContent = inScript(`(() => {\n${prelude}\nprelude(${JSON.stringify(settings)});\n})();`);
  return script;
}

/** Small files that a page may ask for, as data URLs by path. */
function dataFiles(files) {
  const small = [...files].filter(([path, bytes]) => /\.(json|txt|csv|xml|md|svg|html)$/i.test(path) && bytes.length < 500_000);
  return Object.fromEntries(small.slice(0, 200).map(([path]) => [path, dataUrl(files, path)]));
}

/** The path in the project that an address means, if there is such a file. */
export function locate(files, address, from) {
  if (!address || /^([a-z][a-z0-9+.-]*:|\/\/|#)/i.test(address)) return undefined;
  let clean = address.replace(/[?#].*$/, "");
  try {
    clean = decodeURIComponent(clean);
  } catch {
    // A stray `%` is part of the name.
  }
  const parts = clean.startsWith("/") ? [] : from.split("/").slice(0, -1);
  for (const part of clean.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  const path = parts.join("/");
  return files.has(path) ? path : undefined;
}

function css(files, path, seen) {
  if (seen.has(path)) return "";
  seen.add(path);
  const source = decode(files.get(path)) ?? "";
  const whole = source.replace(/@import\s+(?:url\()?\s*["']?([^"')\s;]+)["']?\s*\)?\s*([^;]*);/g, (all, address, media) => {
    const found = locate(files, address, path);
    if (!found) return all;
    const inner = css(files, found, seen);
    return media.trim() ? `@media ${media} {\n${inner}\n}` : inner;
  });
  return addresses(whole, path, files);
}

function addresses(source, from, files) {
  return source.replace(/url\(\s*(["']?)([^"')]+)\1\s*\)/g, (all, _quote, address) => {
    const path = locate(files, address.trim(), from);
    return path ? `url("${dataUrl(files, path)}")` : all;
  });
}

function dataUrl(files, path) {
  const bytes = files.get(path);
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  const type = TYPES[path.slice(path.lastIndexOf(".") + 1).toLowerCase()] ?? "application/octet-stream";
  return `data:${type};base64,${btoa(binary)}`;
}

/** Inside a script element only this would end it early. */
function inScript(source) {
  return source.replace(/<(?=\/script|!--|script)/gi, "\\x3c");
}

const IMPORT = /(\bfrom\s*|\bimport\s*\(\s*|\bimport\s*)(["'])(\.{0,2}\/[^"']+)\2/g;

/** Modules of the project, each a data URL behind a name in an import map. */
class Modules {
  #files;
  #names = new Map();

  constructor(files) {
    this.#files = files;
  }

  /** `source` with the imports of project files by their names. */
  rewrite(source, from) {
    return source.replace(IMPORT, (all, before, quote, address) => {
      const path = ["", ".js", ".mjs", "/index.js"].map((end) => locate(this.#files, address + end, from)).find(Boolean);
      if (!path) return all;
      this.#add(path);
      return `${before}${quote}${name(path)}${quote}`;
    });
  }

  #add(path) {
    if (this.#names.has(path)) return;
    // First the place, then the content: modules may import each other.
    this.#names.set(path, "");
    const source = decode(this.#files.get(path)) ?? "";
    const isData = /\.json$/i.test(path);
    const code = isData ? `export default ${source}` : this.rewrite(source, path);
    this.#names.set(path, `data:text/javascript;charset=utf-8,${encodeURIComponent(code)}`);
  }

  importMap() {
    if (this.#names.size === 0) return undefined;
    return JSON.stringify({ imports: Object.fromEntries([...this.#names].map(([path, url]) => [name(path), url])) });
  }
}

function name(path) {
  return `project:${path}`;
}
