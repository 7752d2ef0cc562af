// `util.inspect` and `util.format`: what `console.log` prints, as in Node.

const WIDTH = 80;
const ITEMS = 100;
/** Nested this deep, objects are not written on one line. */
const LEVELS = 3;

/** @param {unknown} value @param {{depth?: number | null}} [options] @returns {string} */
export function inspect(value, { depth = 2 } = {}) {
  return show(value, { depth: depth ?? Infinity, level: 0, seen: [], progress: { level: 0 } });
}

inspect.custom = Symbol.for("nodejs.util.inspect.custom");

/** `%s %d %i %f %j %o %O %%`, then the rest with spaces. @param {...unknown} args */
export function format(...args) {
  if (typeof args[0] !== "string") return args.map((arg) => (typeof arg === "string" ? arg : inspect(arg))).join(" ");
  const [template, ...rest] = args;
  const text = template.replace(/%[sdifjoOc%]/g, (directive) => {
    if (directive === "%%") return args.length > 1 ? "%" : "%%";
    if (rest.length === 0) return directive;
    const value = rest.shift();
    switch (directive) {
      case "%s":
        return typeof value === "string"
          ? value
          : typeof value === "object" && value !== null
            ? inspect(value, { depth: 0 })
            : show(value, TOP);
      case "%d":
        return typeof value === "object" ? "NaN" : typeof value === "bigint" ? `${value}n` : String(Number(value));
      case "%i":
        return String(Number.parseInt(value, 10));
      case "%f":
        return String(Number.parseFloat(value));
      case "%j":
        return JSON.stringify(value) ?? "undefined";
      case "%c":
        return "";
      default:
        return inspect(value, { depth: 4 });
    }
  });
  return [text, ...rest.map((value) => (typeof value === "string" ? value : inspect(value)))].join(" ");
}

const TOP = { depth: 0, level: 0, seen: [], progress: { level: 0 } };

function show(value, state) {
  switch (typeof value) {
    case "string":
      return quote(value);
    case "bigint":
      return `${value}n`;
    case "symbol":
      return value.toString();
    case "number":
      return Object.is(value, -0) ? "-0" : String(value);
    case "object":
      return value === null ? "null" : showObject(value, state);
    case "function":
      return showObject(value, state);
    default:
      return String(value);
  }
}

function quote(text) {
  const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes("`") ? "`" : "'";
  const escapes = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\\": "\\\\" };
  const escaped = text.replace(/[\n\r\t\b\f\v\\]/g, (character) => escapes[character]);
  const safe = escaped.replace(
    /[\0-\x1f\x7f]/g,
    (c) => `\\x${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
  return `${mark}${mark === "'" ? safe.replaceAll("'", "\\'") : safe}${mark}`;
}

function showObject(value, state) {
  if (state.seen.includes(value)) return "[Circular *1]";
  const custom = value[inspect.custom];
  if (typeof custom === "function") {
    const shown = custom.call(value, state.depth - state.level, {}, inspect);
    return typeof shown === "string" ? shown : show(shown, state);
  }
  const inner = { ...state, level: state.level + 1, seen: [...state.seen, value] };
  const { prefix, open, close, items, plain } = parts(value, inner);
  const hidden = Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
  const keys = Object.keys(value).filter((key) => !hidden || !/^\d+$/.test(key));
  const symbols = Object.getOwnPropertySymbols(value).filter((key) =>
    Object.prototype.propertyIsEnumerable.call(value, key),
  );
  const skipped = value instanceof Error ? ["stack", "message"] : [];
  const names = [...keys, ...symbols].filter((key) => !skipped.includes(key));
  if (plain !== undefined && names.length === 0) return plain;
  if (state.level > state.depth) return Array.isArray(value) ? "[Array]" : `[${nameOf(value) || "Object"}]`;
  // The level of the object that was shown last, as a measure of depth.
  state.progress.level = state.level;
  const all = [...items()];
  const members = names.map((key) => member(value, key, inner));
  all.push(...members);
  const start = plain !== undefined ? `${plain} ` : prefix;
  if (all.length === 0) return `${start}${open}${close}`;
  const shown = layout(all, start, open, close, state, hidden && members.length === 0);
  // The outermost object that something inside refers to.
  return state.level === 0 && shown.includes("[Circular *1]") ? `<ref *1> ${shown}` : shown;
}

function member(value, key, inner) {
  const descriptor = Object.getOwnPropertyDescriptor(value, key);
  const name = typeof key === "symbol" ? `[${key.toString()}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? key : quote(key);
  if (descriptor.get) return `${name}: ${descriptor.set ? "[Getter/Setter]" : "[Getter]"}`;
  if (descriptor.set) return `${name}: [Setter]`;
  return `${name}: ${show(descriptor.value, inner)}`;
}

function nameOf(value) {
  for (let proto = Object.getPrototypeOf(value); proto; proto = Object.getPrototypeOf(proto)) {
    const name = Object.getOwnPropertyDescriptor(proto, "constructor")?.value?.name;
    if (name) return name;
  }
  return "";
}

/** How a kind of object is written: what stands in front, its brackets, its items. */
function parts(value, inner) {
  const name = nameOf(value);
  const prefix = name === "" ? "[Object: null prototype] " : name === "Object" ? "" : `${name} `;
  const object = { prefix, open: "{", close: "}", items: () => [] };
  const more = (items, total) =>
    total > ITEMS ? [...items, `... ${total - ITEMS} more item${total - ITEMS > 1 ? "s" : ""}`] : items;
  if (Array.isArray(value)) {
    const items = () => {
      const shown = [];
      let empty = 0;
      const holes = () => {
        if (empty > 0) shown.push(`<${empty} empty item${empty > 1 ? "s" : ""}>`);
        empty = 0;
      };
      for (let index = 0; index < Math.min(value.length, ITEMS); index += 1) {
        if (index in value) {
          holes();
          shown.push(show(value[index], inner));
        } else empty += 1;
      }
      holes();
      return more(shown, value.length);
    };
    return { prefix: name === "Array" ? "" : `${name}(${value.length}) `, open: "[", close: "]", items };
  }
  if (value instanceof Map) {
    const items = () =>
      more(
        [...value].slice(0, ITEMS).map(([key, item]) => `${show(key, inner)} => ${show(item, inner)}`),
        value.size,
      );
    return { ...object, prefix: `${name}(${value.size}) `, items };
  }
  if (value instanceof Set) {
    return {
      ...object,
      prefix: `${name}(${value.size}) `,
      items: () =>
        more(
          [...value].slice(0, ITEMS).map((item) => show(item, inner)),
          value.size,
        ),
    };
  }
  if (name === "Buffer") {
    const bytes = Array.from(value.subarray(0, 50), (byte) => byte.toString(16).padStart(2, "0"));
    return {
      ...object,
      plain: `<Buffer${bytes.map((byte) => ` ${byte}`).join("")}${value.length > 50 ? ` ... ${value.length - 50} more bytes` : ""}>`,
    };
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    const items = () =>
      more(
        Array.from(value.subarray(0, ITEMS), (item) => show(item, inner)),
        value.length,
      );
    return { prefix: `${name}(${value.length}) `, open: "[", close: "]", items };
  }
  if (typeof value === "function") {
    const kind = /^class\b/.test(Function.prototype.toString.call(value)) ? "class" : name || "Function";
    return {
      ...object,
      plain: `[${kind}${kind === "class" ? ` ${value.name || "(anonymous)"}` : value.name ? `: ${value.name}` : " (anonymous)"}]`,
    };
  }
  if (value instanceof Error)
    return { ...object, plain: inner.level > 1 && !value.stack ? `[${value}]` : errorText(value, inner) };
  if (value instanceof Date)
    return { ...object, plain: Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString() };
  if (value instanceof RegExp) return { ...object, plain: String(value) };
  if (value instanceof Promise) return { ...object, prefix: "Promise ", items: () => ["<pending>"] };
  if (value instanceof WeakMap || value instanceof WeakSet) return { ...object, items: () => ["<items unknown>"] };
  if (value instanceof Number || value instanceof Boolean) return { ...object, plain: `[${name}: ${value.valueOf()}]` };
  if (value instanceof String) return { ...object, plain: `[String: ${quote(value.valueOf())}]` };
  const tag = value[Symbol.toStringTag];
  if (typeof tag === "string" && tag !== name) return { ...object, prefix: `${name || "Object"} [${tag}] ` };
  return object;
}

function errorText(error, inner) {
  const own = typeof error.stack === "string" && error.stack !== "" ? error.stack : `[${String(error)}]`;
  if (error.cause === undefined || !Object.hasOwn(error, "cause")) return own;
  return `${own} {\n  [cause]: ${show(error.cause, inner).replaceAll("\n", "\n  ")}\n}`;
}

/** On one line where it fits and is not too deep, items of long arrays in columns. */
function layout(all, start, open, close, state, isArray) {
  const indent = "  ".repeat(state.level);
  const lines = isArray && all.length > 6 ? columns(all, indent.length) : all;
  if (lines === all && state.progress.level - state.level < LEVELS) {
    const room = all.length + indent.length + open.length + start.length + 10;
    const length = all.reduce((sum, item) => sum + item.length, all.length + room);
    if (length <= WIDTH && !all.some((item) => item.includes("\n")))
      return `${start}${open} ${all.join(", ")} ${close}`;
  }
  return `${start}${open}\n${lines.map((line) => `${indent}  ${line}`).join(",\n")}\n${indent}${close}`;
}

/** The items of an array as rows, about as high as they are wide; the same items where that does not fit. */
function columns(items, indentation) {
  const rest = /^\.\.\. \d+ more item/.test(items.at(-1)) ? [items.at(-1)] : [];
  const cells = rest.length > 0 ? items.slice(0, -1) : items;
  const longest = Math.max(...cells.map((item) => item.length)) + 2;
  const total = cells.reduce((sum, item) => sum + item.length + 2, 0);
  if (longest * 3 + indentation >= WIDTH || !(total / longest > 5 || longest <= 8)) return items;
  const bias = Math.max(longest - 3 - Math.sqrt(longest - total / items.length), 1);
  const count = Math.min(
    Math.round(Math.sqrt(2.5 * bias * cells.length) / bias),
    Math.floor((WIDTH - indentation) / longest),
    LEVELS * 4,
    15,
  );
  if (count <= 1) return items;
  const widths = Array.from({ length: count }, (_, column) =>
    Math.max(...cells.filter((__, index) => index % count === column).map((item) => item.length + 2)),
  );
  const numbers = cells.every((item) => /^-?(?:[\d.]+(?:e[+-]?\d+)?n?|Infinity|NaN)$/.test(item));
  const rows = [];
  for (let at = 0; at < cells.length; at += count) {
    const row = cells.slice(at, at + count).map((item, column, { length }) => {
      const last = column === length - 1;
      const cell = last ? item : `${item}, `;
      if (numbers) return cell.padStart(widths[column] - (last ? 2 : 0));
      return last ? cell : cell.padEnd(widths[column]);
    });
    rows.push(row.join(""));
  }
  return [...rows, ...rest];
}
