// Shared by the tests of the web face: the scripted model as a server, a
// server that never finishes its answer, and small helpers.

import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { modelAt } from "./model.mjs";

const BINARY =
  process.env.HERMITCRAB_BIN ??
  fileURLToPath(new URL("../../target/release/hermitcrab", import.meta.url));

/**
 * Starts `hermitcrab serve-model` on `script`; it ends with the test `t`.
 * @returns {Promise<ReturnType<typeof modelAt>>}
 */
export async function serveModel(t, script) {
  const dir = await mkdtemp(join(tmpdir(), "hermitcrab-"));
  const file = join(dir, "script.json");
  await writeFile(file, JSON.stringify(script));
  const child = spawn(BINARY, ["serve-model", file, "--port", "0"]);
  t.after(async () => {
    const gone = child.exitCode === null && new Promise((resolve) => child.once("exit", resolve));
    child.kill();
    await gone;
    await rm(dir, { recursive: true });
  });
  return modelAt(await urlOf(child));
}

/** The address that the child prints when it listens. */
function urlOf(child) {
  return new Promise((resolve, reject) => {
    let output = "";
    const read = (data) => {
      output += data;
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output);
      if (url) resolve(url[0]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`serve-model ended with ${code}: ${output}`)));
  });
}

/**
 * A server that begins an answer and never ends it, and says when the client
 * has gone. `text` is the delta that arrives.
 */
export async function serveEndless(t, text = "Thinking about it") {
  let gone;
  const closed = new Promise((resolve) => (gone = resolve));
  const url = await listen(t, (request, response) => {
    response.on("close", gone);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage };
    for (const event of [
      { type: "message_start", message },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
    ]) {
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    }
  });
  return { url, closed };
}

/** Serves `handle` on a free loopback port until the test ends. */
export async function listen(t, handle) {
  const server = createServer(handle);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** Messages of what nobody catches while the test `t` runs, as they come. @returns {string[]} */
export function uncaughtIn(t) {
  const messages = [];
  const listener = (error) => messages.push(error.message);
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", listener);
  t.after(() => {
    process.removeListener("uncaughtException", listener);
    for (const other of others) process.on("uncaughtException", other);
  });
  return messages;
}

/** All that an async iterator gives. */
export async function collect(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}

/** The data of the events of one kind. */
export function dataOf(events, kind) {
  return events.filter((event) => event.kind === kind).map((event) => event.data);
}

/** A step of a script that calls one tool. */
export function callStep(name, args, id) {
  return { tool_calls: [{ name, arguments: args, ...(id && { id }) }] };
}

/** Bytes that cannot be read any more: they were moved elsewhere. */
export function moved() {
  const bytes = new Uint8Array(5);
  structuredClone(bytes, { transfer: [bytes.buffer] });
  return bytes;
}
