// Making elements.

/**
 * An element. `props` are properties, `on…` listeners, `class`, `dataset`,
 * `aria-…` and `role` attributes; what is `undefined` or `false` is left out.
 * @param {string} tag @param {object | null} [props] @param {...any} children
 * @returns {any}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name === "class") element.className = value;
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "style") element.style.cssText = value;
    else if (name.includes("-") || name === "role" || name === "for" || name === "list") {
      element.setAttribute(name, String(value));
    } else element[name] = value;
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

const SHAPES = {
  file: "M4 1.5h5l3.5 3.5v9.5h-8.5zM9 1.5v3.5h3.5",
  folder: "M1.5 12.5v-9h4.5l1.5 2h7v7z",
  newFile: "M9 1.5h-5v13h8.5v-9.5zM8.200 7v5M5.700 9.5h5",
  newFolder: "M1.5 12.5v-9h4.5l1.5 2h7v7zM8 7v4M6 9h4",
  trash: "M2.5 4h11M6 4v-1.5h4v1.5M4 4l.6 10h6.800l.6-10M6.700 6.5v5M9.300 6.5v5",
  edit: "M2.5 13.5l.700-3 7.800-8 2.5 2.5-7.800 8zM9.5 4l2.5 2.5",
  send: "M8 13.5v-11M3.5 7l4.5-4.5 4.5 4.5",
  stop: "M4 4h8v8h-8z",
  close: "M4 4l8 8M12 4l-8 8",
  hand: "M5 8v-4.5a1 1 0 0 1 2 0v-1a1 1 0 0 1 2 0v1a1 1 0 0 1 2 0v6c0 3-1.5 5-4 5-2.200 0-3-1.200-4.5-4.500a1 1 0 0 1 1.700-1zM7 3.500v4M9 3.500v4",
  down: "M4 6l4 4 4-4",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  gear: "M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 1 0 0-5M8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.400 3.400l1.400 1.400M11.200 11.200l1.400 1.400M3.400 12.6l1.400-1.400M11.200 4.800l1.400-1.400",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 1 0 0-6M8 1v1.5M8 13.5v1.5M1 8h1.5M13.5 8h1.5M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
  moon: "M13 9.800a5.5 5.5 0 0 1-6.800-6.800 5.5 5.5 0 1 0 6.800 6.800z",
  auto: "M8 2a6 6 0 1 0 0 12 6 6 0 1 0 0-12M8 2v12M10 3v10M12 4.800v6.400",
  play: "M5 3l7.5 5-7.5 5z",
  pause: "M5.5 3v10M10.5 3v10",
  check: "M3 8.5l3.5 3.5 6.5-8",
  cross: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  chevron: "M6 4l4 4-4 4",
  terminal: "M2.5 4l3.5 4-3.5 4M8 12.5h5.5",
  eye: "M1.5 8c3-5 10-5 13 0-3 5-10 5-13 0zM8 6.200a1.800 1.800 0 1 0 0 3.6 1.800 1.800 0 1 0 0-3.6",
  chat: "M2 3h12v8h-7l-3 2.5v-2.5h-2z",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  reload: "M13 5a5.5 5.5 0 1 0 .5 4.5M13.5 2v3.5h-3.5",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 1 0 0-9M10.5 10.5l3.5 3.5",
  bot: "M3 6h10v7h-10zM8 6v-3M6 9v1.200M10 9v1.200",
  warn: "M8 2l6.5 11.5h-13zM8 6.5v3.5M8 11.800v.2",
};

/** A line drawing of 16 × 16, hidden from screen readers. @param {keyof typeof SHAPES} name */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", SHAPES[name]);
  svg.append(path);
  return svg;
}

/**
 * A button that shows only an icon.
 * @param {keyof typeof SHAPES} name @param {string} label @param {(event: Event) => void} onClick
 */
export function iconButton(name, label, onClick, props = {}) {
  return h("button", { type: "button", class: "icon-button", title: label, "aria-label": label, onClick, ...props }, icon(name));
}

/** Says something to screen readers. @param {string} text */
export function announce(text) {
  const live = document.getElementById("live");
  if (live) live.textContent = text;
}

/** Milliseconds for people. @param {number} ms */
export function duration(ms) {
  if (ms < 0.5) return "< 1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** Bytes for people. @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** A count for people: 950, 12.3k, 1.2M. @param {number} count */
export function count(count) {
  if (count < 1000) return String(count);
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** Does `work` at most once per animation frame. @param {() => void} work */
export function perFrame(work) {
  let planned = false;
  return () => {
    if (planned) return;
    planned = true;
    const run = () => {
      planned = false;
      work();
    };
    // Hidden pages get no frames.
    if (document.hidden) setTimeout(run, 50);
    else requestAnimationFrame(run);
  };
}

/** Hands a file to the user. @param {string} name @param {BlobPart} content @param {string} type */
export function download(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Puts a text into the clipboard; says whether that went well. @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain http pages have no clipboard of this kind.
    const field = h("textarea", { value: text, class: "unseen", "aria-hidden": "true" });
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

/** Asks for files. @param {object} props of the input @returns {Promise<File[]>} */
export function pickFiles(props) {
  return new Promise((resolve) => {
    const input = h("input", { type: "file", ...props, hidden: true });
    const done = (files) => {
      input.remove();
      resolve(files);
    };
    input.addEventListener("change", () => done([...input.files]));
    input.addEventListener("cancel", () => done([]));
    document.body.append(input);
    input.click();
  });
}
