// Fetches and opens what a lent program consists of: one tar archive, gzipped,
// so that it is small whether or not its server compresses.

import { tarEntries } from "../archive/tar.js";
import { machine } from "../platform/machine.js";
import { EnvironmentError } from "../shared/errors.js";
import { quiet } from "../shared/notification.js";

/** Nothing can be read at the address. */
export class NotThere extends EnvironmentError {
  /** @param {string} message @param {ErrorOptions} [options] */
  constructor(message, options) {
    // Not "not_found": the shell would say that there is no such command.
    super("io", message, options);
  }
}

/**
 * The files of the archive at `url`, by name; contents share one buffer.
 * @param {string | URL} url relative to the page, as for `fetch`
 * @param {(progress: {loaded: number, total?: number}) => void} [onProgress]
 * @returns {Promise<Map<string, Uint8Array>>}
 */
export async function unpack(url, onProgress) {
  const { bytes, total } = await read(url);
  const tell = onProgress && quiet(onProgress);
  let loaded = 0;
  const counted = bytes.pipeThrough(
    new TransformStream({
      transform(chunk, controller) {
        loaded += chunk.length;
        tell?.({ loaded, total });
        controller.enqueue(chunk);
      },
    }),
  );
  try {
    return untar(await collect(await decompressed(counted)));
  } catch (error) {
    throw new EnvironmentError(error.kind ?? "io", `cannot read ${url}: ${error.message}`, { cause: error });
  }
}

async function read(url) {
  const { readFile } = machine();
  if (readFile && /^file:/.test(String(url))) {
    const content = await readFile(new URL(url)).catch((error) => {
      throw new NotThere(`cannot read ${url}: ${error.message}`, { cause: error });
    });
    return { bytes: new Blob([content]).stream(), total: content.length };
  }
  let response;
  try {
    response = await fetch(url);
  } catch (error) {
    throw new EnvironmentError("io", `cannot download ${url}: ${error.cause?.message ?? error.message}; check the network and try again`, { cause: error });
  }
  if (!response.ok || !response.body) throw new NotThere(`cannot download ${url}: status ${response.status}`);
  // Of a response that its server compressed, the length is another one.
  const length = response.headers.has("content-encoding") ? null : response.headers.get("content-length");
  return { bytes: response.body, total: length === null ? undefined : Number(length) };
}

/** Some servers and browsers have decompressed a `.gz` file already: the first bytes tell. */
async function decompressed(stream) {
  const reader = stream.getReader();
  const first = await reader.read();
  const whole = new ReadableStream({
    start: (controller) => (first.done ? controller.close() : controller.enqueue(first.value)),
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const gzipped = first.value?.[0] === 0x1f && first.value?.[1] === 0x8b;
  return gzipped ? whole.pipeThrough(new DecompressionStream("gzip")) : whole;
}

async function collect(stream) {
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @param {Uint8Array} archive */
function untar(archive) {
  const files = new Map();
  for (const { name, data, stored } of tarEntries(archive)) files.set(name, data.subarray(0, stored));
  if (files.size === 0) throw new EnvironmentError("invalid_input", "it is not a tar archive");
  return files;
}
