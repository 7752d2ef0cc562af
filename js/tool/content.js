// What users and tools say: texts, images and documents, from the forms that
// callers have them in to parts with bytes, as the core takes them. The core
// judges what the bytes are, and whether a model can have them.

import { SessionError, text } from "../shared/errors.js";

/** @import { Blob } from "../platform.js" */

/**
 * @typedef {object} TextPart
 * @property {"text"} type
 * @property {string} text
 *
 * @typedef {object} ImagePart PNG, JPEG, GIF or WebP, at most 5 MiB
 * @property {"image"} type
 * @property {Uint8Array | ArrayBuffer | Blob | string} data the file; a string is base64 or a `data:` URL
 * @property {string} [name] of the file
 * @property {"low" | "high" | "auto"} [detail] where the provider has it
 *
 * @typedef {object} DocumentPart PDF, at most 16 MiB, or UTF-8 text, at most 1 MiB
 * @property {"document"} type
 * @property {Uint8Array | ArrayBuffer | Blob | string} data the file; a string is base64 or a `data:` URL
 * @property {string} [name] of the file
 *
 * @typedef {TextPart | ImagePart | DocumentPart} Part
 * @typedef {string | Part[]} Input what a user says: a text, or parts in order
 *
 * What the core takes.
 * @typedef {{type: "text", text: string} | {type: "image" | "document" | "file", data: Uint8Array, name?: string, detail?: string}} CorePart
 */

/**
 * `input` as the core takes it; a promise where something must be read, or cannot be.
 * @param {Input} input @returns {string | CorePart[] | Promise<CorePart[]>}
 */
export function contentOf(input) {
  if (typeof input === "string") return input;
  try {
    const parts = input.map(partOf);
    return parts.some((part) => part instanceof Promise) ? Promise.all(parts) : parts;
  } catch (error) {
    return Promise.reject(error);
  }
}

/** @param {Part} part @returns {CorePart | Promise<CorePart>} */
function partOf(part) {
  const { type, text, data, detail } = part;
  if (type === "text") return { type, text };
  const name = part.name ?? data.name;
  if (data instanceof Blob) return data.arrayBuffer().then((bytes) => ({ type, name, detail, data: new Uint8Array(bytes) }));
  return { type, name, detail, data: bytesOf(data) };
}

/** Bytes of a file. @param {Uint8Array | ArrayBuffer | string} data */
function bytesOf(data) {
  if (typeof data === "string") return fromBase64(data);
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
}

function fromBase64(data) {
  const base64 = data.startsWith("data:") ? data.slice(data.indexOf(",") + 1) : data;
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch (error) {
    throw new SessionError("invalid_input", `the data of an image or document is a string that is not base64: ${text(error)}`, { cause: error });
  }
}

/** Types of items in the content of a tool's result, those of MCP among them, and `file`, which comes from a page to its worker. */
const ITEMS = new Set(["text", "image", "document", "file", "audio", "resource", "resource_link"]);

/** Whether a tool has returned content: a list of such items. */
export function isContent(value) {
  return Array.isArray(value) && value.length > 0 && value.every((item) => ITEMS.has(item?.type));
}

/**
 * The content of a tool's result, such as an MCP server gives it. What no model
 * reads becomes a text that says what it is.
 * @param {any[]} items @returns {Promise<CorePart[]>}
 */
export function toolContent(items) {
  return Promise.all(items.map(async (item) => {
    try {
      return await itemOf(item);
    } catch (error) {
      return leftOut(`${item.type}: ${text(error)}`);
    }
  }));
}

function itemOf(item) {
  switch (item.type) {
    case "audio":
      return leftOut(`audio: ${item.mimeType ?? ""}`);
    case "resource_link":
      return { type: "text", text: `${item.name}: ${item.uri}` };
    case "resource":
      return resource(item.resource);
    case "text":
      return { type: "text", text: String(item.text) };
    default:
      return partOf(item);
  }
}

/** A file that is embedded; the core looks at what it is. */
function resource({ uri, text, blob }) {
  if (typeof text === "string") return { type: "text", text: `${uri}:\n${text}` };
  if (typeof blob !== "string") return leftOut(`${uri}: it has neither \`text\` nor a \`blob\` of base64`);
  return { type: "file", name: String(uri).split("/").at(-1), data: fromBase64(blob) };
}

const leftOut = (what) => ({ type: "text", text: `[left out: ${what}]` });
