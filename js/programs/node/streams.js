// The streams of files and of standard input and output, and lines of any stream.

import { Buffer, EventEmitter, stream } from "./packages.js";

/** Bytes that a stream of a file gives at a time. */
const PIECE = 64 * 1024;

/** Standard input. @param {Uint8Array} content */
export function makeStdin(content) {
  const { Readable } = stream();
  const stdin = new Readable({ read() {} });
  if (content.length > 0) stdin.push(Buffer.from(content));
  stdin.push(null);
  return Object.assign(stdin, { fd: 0, isTTY: false, ref: () => stdin, unref: () => stdin });
}

/** Standard output, or the stream of errors. @param {(data: Uint8Array) => void} write @param {number} fd */
export function makeOutput(write, fd) {
  const { Writable } = stream();
  const output = new Writable({
    decodeStrings: true,
    write(data, _, done) {
      write(Uint8Array.from(data));
      done();
    },
  });
  return Object.assign(output, { fd, isTTY: false, columns: undefined });
}

/**
 * The streams of `fs`.
 * @param {Record<string, Function>} sync `open`, `read`, `write` and `close`
 */
export function makeFileStreams(sync) {
  const named = (options) => (typeof options === "string" ? { encoding: options } : (options ?? {}));
  return {
    createReadStream(path, options) {
      const { start, end = Infinity, fd: given, flags = "r", highWaterMark = PIECE, encoding } = named(options);
      let at = start;
      let left = end - (start ?? 0) + 1;
      let fd = given;
      const readable = new (stream().Readable)({
        highWaterMark,
        encoding,
        construct(done) {
          attempt(done, () => {
            fd ??= sync.open(path, flags);
            readable.fd = fd;
            readable.emit("open", fd);
            readable.emit("ready");
          });
        },
        read(size) {
          attempt(
            (error) => error && readable.destroy(error),
            () => {
              const piece = Buffer.alloc(Math.min(size, left));
              const count = sync.read(fd, piece, 0, piece.length, at);
              if (at !== undefined) at += count;
              left -= count;
              readable.bytesRead += count;
              readable.push(count > 0 ? piece.subarray(0, count) : null);
            },
          );
        },
        destroy(error, done) {
          attempt((problem) => done(error ?? problem), () => given === undefined && fd !== undefined && sync.close(fd));
        },
      });
      return Object.assign(readable, { path, bytesRead: 0, close: (done) => void readable.destroy(undefined, done) });
    },
    createWriteStream(path, options) {
      const { flags = "w", mode, encoding, fd: given, start } = named(options);
      let at = start;
      let fd = given;
      const writable = new (stream().Writable)({
        defaultEncoding: encoding,
        construct(done) {
          attempt(done, () => {
            fd ??= sync.open(path, flags, mode);
            writable.fd = fd;
            writable.emit("open", fd);
            writable.emit("ready");
          });
        },
        write(data, _, done) {
          attempt(done, () => {
            const count = sync.write(fd, data, 0, data.length, at);
            if (at !== undefined) at += count;
            writable.bytesWritten += count;
          });
        },
        destroy(error, done) {
          attempt((problem) => done(error ?? problem), () => given === undefined && fd !== undefined && sync.close(fd));
        },
      });
      return Object.assign(writable, { path, bytesWritten: 0, close: (done) => void writable.end(done) });
    },
  };
}

/** Does it, and says how that went. @param {(error?: Error) => void} done @param {() => void} act */
function attempt(done, act) {
  try {
    act();
  } catch (error) {
    return done(error);
  }
  return done();
}

/** `node:readline`. @param {(stream: "stdout", data: Uint8Array) => void} write */
export function makeReadline(write) {
  /** Lines of each input; who reads one goes on where the last reader stopped. */
  const sources = new WeakMap();
  const linesOf = (input) => {
    if (!sources.has(input)) sources.set(input, read(input));
    return sources.get(input);
  };
  const createInterface = (options) => {
    const lines = linesOf(options.input);
    const reader = new EventEmitter();
    let reading = false;
    let closed = false;
    const close = () => {
      if (closed) return;
      closed = true;
      reader.emit("close");
    };
    const next = async () => {
      const { value, done } = closed ? { done: true } : await lines.next();
      if (done) close();
      return done ? undefined : value;
    };
    const flow = async () => {
      for (let line; (line = await next()) !== undefined; ) reader.emit("line", line);
    };
    const on = (name, listener) => {
      EventEmitter.prototype.on.call(reader, name, listener);
      if (name === "line" && !reading) {
        reading = true;
        process.nextTick(flow);
      }
      return reader;
    };
    return Object.assign(reader, {
      on,
      addListener: on,
      question(prompt, options, answer = options) {
        write("stdout", new TextEncoder().encode(prompt));
        const line = next();
        if (typeof answer === "function") process.nextTick(async () => (await line) !== undefined && answer(await line));
        return line.then((text) => text ?? "");
      },
      setPrompt() {},
      prompt() {},
      pause: () => reader,
      resume: () => reader,
      close,
      async *[Symbol.asyncIterator]() {
        for (let line; (line = await next()) !== undefined; ) yield line;
      },
    });
  };
  return { createInterface, promises: { createInterface } };
}

/** The lines of a stream. */
async function* read(input) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of input) {
    const lines = (rest + (typeof piece === "string" ? piece : decoder.decode(piece, { stream: true }))).split(/\r?\n/);
    rest = lines.pop();
    yield* lines;
  }
  rest += decoder.decode();
  if (rest !== "") yield rest;
}
