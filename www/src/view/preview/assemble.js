// Makes one HTML text of a page of the project: styles, scripts, modules,
// images and fonts of the project go inside, since the frame that shows it can
// reach nothing. What is on other sites stays as it is, and what the page asks
// for while it runs is the prelude's (`prelude.js`).

import { decode } from "../../project/project.js";
import prelude from "./prelude.js?raw";

const TYPES = {
  css: "text/css", js: "text/javascript", mjs: "text/javascript", json: "application/json", html: "text/html", txt: "text/plain",
  svg: "image/svg+xml", png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", avif: "image/avif", ico: "image/x-icon",
  woff: "font/woff", woff2: "font/woff2", ttf: "font/ttf", otf: "font/otf", mp3: "audio/mpeg", ogg: "audio/ogg", wav: "audio/wav", mp4: "video/mp4", webm: "video/webm", wasm: "application/wasm", xml: "application/xml", csv: "text/csv", md: "text/markdown",
};

/**
 * Fragments are places in the page; other relative addresses are none. As text,
 * because the policy of the playground forbids bases, also in what it parses.
 */
const BASE = '<base href="about:srcdoc">';

/** What a page may ask for while it runs: files of these types, their bytes, each and all, and their number. */
const ASKED = /\.(json|txt|csv|xml|md|svg|html?|png|jpe?g|gif|webp|avif|ico|mp3|ogg|wav|mp4|webm|wasm|m?js|css)$/i;
const MOST_EACH = 500_000;
const MOST_ALL = 5_000_000;
const MOST_FILES = 200;

/**
 * @param {Map<string, Uint8Array>} files of the project, by path
 * @param {string} page path of the HTML file
 * @param {{network: boolean, fragment?: string}} options whether the page may reach the network; the place in it to begin at
 * @returns {string}
 */
export function assemble(files, page, { network, fragment = "" }) {
  const document = new DOMParser().parseFromString(decode(files.get(page)) ?? "", "text/html");
  const find = (address, from) => locate(files, address, from);
  for (const link of document.querySelectorAll('link[rel~="stylesheet"][href]')) {
    const path = find(link.getAttribute("href"), page);
    if (!path) continue;
    const style = document.createElement("style");
    style.textContent = css(files, path, new Set()).replace(/<\/(?=style)/gi, "<\\/");
    if (link.media) style.media = link.media;
    link.replaceWith(style);
  }
  for (const style of document.querySelectorAll("style")) style.textContent = addresses(style.textContent, page, files);
  const modules = new Modules(files);
  for (const script of document.querySelectorAll("script")) {
    const path = script.hasAttribute("src") ? find(script.getAttribute("src"), page) : undefined;
    if (script.hasAttribute("src") && !path) continue;
    const source = path ? decode(files.get(path)) ?? "" : script.textContent;
    if (script.type === "module" && path) script.textContent = `import ${JSON.stringify(modules.add(path))};`;
    else if (path) script.src = javascript(modules.rewrite(source, path), path);
    else if (/^(module|(text|application)\/javascript|)$/i.test(script.type)) script.textContent = modules.rewrite(source, page);
    if (path) script.removeAttribute("integrity");
    if (path && script.type === "module") script.removeAttribute("src");
  }
  for (const [selector, name] of [["img,audio,video,source,track,input,embed", "src"], ["link[rel~=icon]", "href"], ["video", "poster"], ["image,use", "href"]]) {
    for (const element of document.querySelectorAll(selector)) {
      const path = element.hasAttribute(name) && find(element.getAttribute(name), page);
      if (path) element.setAttribute(name, dataUrl(files, path));
    }
  }
  for (const element of document.querySelectorAll("[srcset]")) element.setAttribute("srcset", candidates(element.getAttribute("srcset"), page, files));
  for (const element of document.querySelectorAll("[style]")) element.setAttribute("style", addresses(element.getAttribute("style"), page, files));
  const own = document.querySelector('script[type="importmap"]:not([src])');
  const map = modules.importMap(own?.textContent, page);
  if (map) {
    const script = own ?? document.createElement("script");
    script.type = "importmap";
    script.textContent = map.replaceAll("<", "\\u003c");
    document.head.prepend(script);
  }
  const pages = [...files.keys()].filter((path) => /\.html?$/i.test(path));
  document.head.prepend(first(document, { files: askedFor(files), pages, page, fragment, network }));
  return `<!doctype html>\n${BASE}${document.documentElement.outerHTML}`;
}

/** What runs before the page's own code. */
function first(document, settings) {
  const script = document.createElement("script");
  // A path may hold anything, also what would end the element.
  script.textContent = `(() => {\n${prelude}\nprelude(${JSON.stringify(settings).replaceAll("<", "\\u003c")});\n})();`;
  return script;
}

/** Small files that a page may ask for while it runs, as data URLs by path. */
function askedFor(files) {
  const asked = Object.create(null);
  let room = MOST_ALL;
  for (const [path, { length }] of [...files].filter(([path, { length }]) => ASKED.test(path) && length <= MOST_EACH).slice(0, MOST_FILES)) {
    if (length > room) continue;
    room -= length;
    asked[path] = dataUrl(files, path);
  }
  return asked;
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

/** The images that an element may choose from. */
function candidates(source, from, files) {
  // An address may hold commas, but does not end in one.
  return source.replace(/(\S*[^\s,])(\s+[^,]*)?/g, (all, address, size = "") => {
    const path = locate(files, address, from);
    return path ? `${dataUrl(files, path)}${size}` : all;
  });
}

/** JavaScript as an address; what goes wrong in it names its file. */
function javascript(source, path) {
  return `data:text/javascript;charset=utf-8,${encodeURIComponent(`${source}\n//# sourceURL=${encodeURI(path)}`)}`;
}

function dataUrl(files, path) {
  const bytes = files.get(path);
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  const type = TYPES[path.slice(path.lastIndexOf(".") + 1).toLowerCase()] ?? "application/octet-stream";
  return `data:${type};base64,${btoa(binary)}`;
}

const IMPORT = /(\bfrom\s*|\bimport\s*\(\s*|\bimport\s*)(["'])(\.{0,2}\/[^"']+)\2(?=(\s*(?:with|,)\s*\{)?)/g;

/** Modules of the project, each a data URL behind a name in an import map. */
class Modules {
  #files;
  /** Their contents as addresses, by name. @type {Map<string, string>} */
  #names = new Map();

  constructor(files) {
    this.#files = files;
  }

  /** `source` with the imports of project files by their names. */
  rewrite(source, from) {
    return source.replace(IMPORT, (all, before, quote, address, attributes) => {
      const path = ["", ".js", ".mjs", "/index.js"].map((end) => locate(this.#files, address + end, from)).find(Boolean);
      return path ? `${before}${quote}${this.add(path, Boolean(attributes))}${quote}` : all;
    });
  }

  /** The name of a module. @param {string} path @param {boolean} [asIs] whether it is of the type of its file, as its import says */
  add(path, asIs = false) {
    const name = `${asIs ? "file" : "module"}-of-project:${encodeURIComponent(path)}`;
    if (this.#names.has(name)) return name;
    // First the place, then the content: modules may import each other.
    this.#names.set(name, "");
    this.#names.set(name, asIs ? dataUrl(this.#files, path) : this.#code(path));
    return name;
  }

  #code(path) {
    const source = decode(this.#files.get(path)) ?? "";
    const isData = /\.json$/i.test(path);
    return javascript(isData ? `export default ${source}` : this.rewrite(source, path), path);
  }

  /**
   * What names mean, with what a page's own map says.
   * @param {string | undefined} own its text @param {string} page the page's path
   */
  importMap(own, page) {
    let map;
    try {
      map = JSON.parse(own ?? "{}");
    } catch {
      // The browser says what is wrong with it.
      return own;
    }
    const imports = {};
    for (const [name, address] of Object.entries(map?.imports ?? {})) {
      const path = typeof address === "string" ? locate(this.#files, address, page) : undefined;
      imports[name] = path ? this.#names.get(this.add(path)) : address;
    }
    if (own === undefined && this.#names.size === 0) return undefined;
    return JSON.stringify({ ...map, imports: { ...imports, ...Object.fromEntries(this.#names) } });
  }
}
