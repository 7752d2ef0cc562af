// Commands and calls in an environment of the core, from the shapes of its jobs
// to those that callers have.

/**
 * Runs a command.
 * @param {(request: object, options: object) => Promise<any>} run starts the job
 * @param {string} command @param {number} limitMs where the options have none @param {object} options
 */
export async function exec(run, command, limitMs, { timeoutMs = limitMs, cwd, env = {}, signal, onOutput }) {
  const output = { stdout: decoder(), stderr: decoder() };
  const request = { command, timeout_ms: timeoutMs, working_dir: cwd ?? null, env };
  const status = await run(request, {
    signal,
    onOutput: (stream, data) => {
      output[stream].push(data);
      return onOutput?.(stream, data);
    },
  });
  return {
    exitCode: status.exit_code,
    stdout: output.stdout.end(),
    stderr: output.stderr.end(),
    timedOut: status.timed_out,
    cancelled: status.cancelled,
    durationMs: status.duration_ms,
  };
}

/** Facts of a path, from the reply to `stat`. */
export function statOf({ value }) {
  return { isDir: value.is_dir, size: value.size, modifiedMs: value.modified_ms ?? undefined };
}

/** Entries of a directory, from the reply to `list`. */
export function entriesOf({ value }) {
  return value.entries.map((entry) => ({
    path: entry.path,
    isDir: entry.is_dir,
    size: entry.size ?? undefined,
    modifiedMs: entry.modified_ms ?? undefined,
  }));
}

/** Whether there is something, by how `stat` ends. @param {Promise<unknown>} stat */
export async function exists(stat) {
  try {
    await stat;
    return true;
  } catch (error) {
    if (error.kind === "not_found" || error.kind === "not_directory") return false;
    throw error;
  }
}

/** Bytes as text; those that are not UTF-8 become U+FFFD. @param {Uint8Array} bytes */
export function textOf(bytes) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

/** @param {string | Uint8Array | ArrayBuffer} content */
export function toBytes(content) {
  if (typeof content === "string") return new TextEncoder().encode(content);
  return content instanceof ArrayBuffer ? new Uint8Array(content) : content;
}

/** @param {Uint8Array | ArrayBuffer | Blob} file @returns {Promise<Uint8Array>} */
export async function bytesOf(file) {
  if (file instanceof Uint8Array) return file;
  return new Uint8Array(file instanceof ArrayBuffer ? file : await file.arrayBuffer());
}

/** Joins pieces of UTF-8 that are cut anywhere. */
function decoder() {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  return {
    push: (data) => void (text += decoder.decode(data, { stream: true })),
    end: () => text + decoder.decode(),
  };
}
