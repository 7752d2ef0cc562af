// What tests do with the bytes of logs.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync, gzipSync } from "node:zlib";

const run = promisify(execFile);

/** The text of a log, of one that was not closed, too. */
export const textOf = (log) => gunzipSync(log, { finishFlush: 2 }).toString();

/** What `hermitcrab replay` says of a log. */
export async function binary(t, log, ...args) {
  assert.ok(process.env.HERMITCRAB_BIN, "HERMITCRAB_BIN names no binary");
  const directory = await mkdtemp(join(tmpdir(), "hermitcrab-log-"));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, "log.gz");
  await writeFile(file, log);
  return run(process.env.HERMITCRAB_BIN, ["replay", file, ...args]).then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout, stderr }) => ({ code, stdout: stdout + stderr }),
  );
}

/** Writes a log again, with other lines. */
export function resummed(text) {
  let state = 0xffffffff;
  const table = Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k += 1) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n >>> 0;
  });
  const written = text.trimEnd().split("\n").map((line) => {
    const own = line.replace(/,"sum":"[0-9a-f]{8}"\}$/, "");
    for (const byte of Buffer.from(own)) state = table[(state ^ byte) & 255] ^ (state >>> 8);
    const sum = ((state ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
    return `${own},"sum":"${sum}"}\n`;
  });
  const log = gzipSync(written.join(""));
  log.fill(0, 4, 8);
  log[8] = 4;
  return log;
}
