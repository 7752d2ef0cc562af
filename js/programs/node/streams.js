// Streams, which are simple here: what is read is there as a whole, and what is
// written is so at once. Standard input, files, and lines of both.

import { decode } from "./buffer.js";
import { EventEmitter } from "./small.js";

/** Bytes that a stream gives at a time. */
const PIECE = 64 * 1024;

/** What a stream gives, all of it. */
const CONTENT = Symbol("content");

/**
 * A stream of what `open` gives, or of the error that it throws.
 * @param {() => Uint8Array} open
 * @param {(task: () => void) => void} later
 * @param {{encoding?: string, highWaterMark?: number}} [options]
 */
function makeReadable(open, later, { encoding, highWaterMark = PIECE } = {}) {
  const stream = new EventEmitter();
  let content = new Uint8Array(0);
  let problem;
  /** Whether it tells what it holds, or has nothing to tell. */
  let flowing = false;
  // An encoding may need more than a piece for a character.
  const shown = () => (encoding ? [decode(content, encoding)] : pieces(content, highWaterMark)).filter(({ length }) => length > 0);
  const flow = () => {
    if (flowing) return stream;
    flowing = true;
    later(() => {
      for (const piece of shown()) {
        if (stream.destroyed) return;
        stream.emit("data", piece);
      }
      stream.emit("end");
      stream.emit("close");
    });
    return stream;
  };
  const fail = (error) => {
    stream.destroyed = flowing = true;
    problem = error;
    later(() => {
      // Who iterates is told there.
      if (problem) stream.emit("error", problem);
      stream.emit("close");
    });
    return stream;
  };
  const on = EventEmitter.prototype.on;
  Object.assign(stream, {
    readable: true,
    destroyed: false,
    [CONTENT]: () => content,
    setEncoding(name = "utf8") {
      encoding = name;
      return stream;
    },
    on(name, listener) {
      on.call(stream, name, listener);
      return name === "data" || name === "end" ? flow() : stream;
    },
    resume: flow,
    pause: () => stream,
    destroy: (error) => (stream.destroyed ? stream : fail(error)),
    pipe(target, { end = true } = {}) {
      stream.on("data", (data) => target.write(data));
      if (end) stream.on("end", () => target.end());
      return target;
    },
    async *[Symbol.asyncIterator]() {
      const told = problem;
      problem = undefined;
      if (told) throw told;
      yield* shown();
    },
  });
  try {
    content = open();
  } catch (error) {
    fail(error);
  }
  return stream;
}

function pieces(content, most) {
  const found = [];
  for (let at = 0; at < content.length; at += most) found.push(globalThis.Buffer.from(content.subarray(at, at + most)));
  return found;
}

/** Standard input, in one piece. @param {Uint8Array} content @param {(task: () => void) => void} later */
export function makeStdin(content, later) {
  const stdin = makeReadable(() => content, later, { highWaterMark: Infinity });
  return Object.assign(stdin, { fd: 0, isTTY: false, ref: () => stdin, unref: () => stdin });
}

/**
 * The streams of `fs`.
 * @param {Record<string, Function>} sync `open`, `write`, `close` and `readFile` @param {(task: () => void) => void} later
 */
export function makeFileStreams(sync, later) {
  const named = (options) => (typeof options === "string" ? { encoding: options } : (options ?? {}));
  return {
    createReadStream(path, options) {
      const { start = 0, end = Infinity, fd, ...rest } = named(options);
      const stream = makeReadable(() => sync.readFile(fd ?? path).subarray(start, end + 1), later, rest);
      return Object.assign(stream, { path });
    },
    createWriteStream(path, options) {
      const { flags = "w", mode, encoding, fd: given } = named(options);
      const stream = new EventEmitter();
      let fd;
      /** Ended, or failed. */
      let over = false;
      const tell = (error, ...names) =>
        later(() => {
          if (error) stream.emit("error", error);
          for (const name of names) stream.emit(name);
        });
      const finish = (error, ...names) => {
        over = stream.destroyed = true;
        stream.writable = false;
        if (fd !== undefined && given === undefined) sync.close(fd);
        tell(error, ...names);
        return stream;
      };
      Object.assign(stream, {
        path,
        writable: true,
        destroyed: false,
        bytesWritten: 0,
        write(data, as = encoding, done = as) {
          if (over) {
            tell(Object.assign(new Error("write after end"), { code: "ERR_STREAM_WRITE_AFTER_END" }));
            return false;
          }
          try {
            const bytes = typeof data === "string" ? globalThis.Buffer.from(data, typeof as === "string" ? as : "utf8") : data;
            stream.bytesWritten += sync.write(fd, bytes);
          } catch (error) {
            finish(error, "close");
            return false;
          }
          if (typeof done === "function") later(() => done());
          return true;
        },
        end(...rest) {
          const done = typeof rest.at(-1) === "function" ? rest.pop() : undefined;
          if (!over && rest[0] !== undefined && rest[0] !== null) stream.write(...rest);
          if (over) return stream;
          if (done) stream.once("finish", done);
          return finish(undefined, "finish", "close");
        },
        destroy: (error) => (over ? stream : finish(error, "close")),
        close: (done) => stream.end(done),
        cork() {},
        uncork() {},
      });
      try {
        fd = given ?? sync.open(path, flags, mode);
      } catch (error) {
        finish(error, "close");
      }
      return stream;
    },
  };
}

/** Lines of standard input, or of the stream that is given. */
export function makeReadline(stdin, later, write) {
  const linesOf = (content) => {
    const lines = decode(content).split(/\r?\n/);
    if (lines.at(-1) === "") lines.pop();
    return lines;
  };
  /** Readers of standard input go on where the last one stopped. */
  const typed = linesOf(stdin);
  const createInterface = (options) => {
    const { input } = options ?? {};
    const lines = input?.[CONTENT] === undefined || input.fd === 0 ? typed : linesOf(input[CONTENT]());
    const reader = new EventEmitter();
    let reading = false;
    const read = () => {
      if (reading) return;
      reading = true;
      later(() => {
        while (lines.length > 0) reader.emit("line", lines.shift());
        reader.emit("close");
      });
    };
    const on = EventEmitter.prototype.on;
    return Object.assign(reader, {
      on(name, listener) {
        on.call(reader, name, listener);
        if (name === "line") read();
        return reader;
      },
      question(prompt, options, answer = options) {
        write("stdout", new TextEncoder().encode(prompt));
        const line = lines.shift();
        if (typeof answer === "function") later(() => line !== undefined && answer(line));
        return Promise.resolve(line ?? "");
      },
      setPrompt() {},
      prompt() {},
      close: () => void reader.emit("close"),
      async *[Symbol.asyncIterator]() {
        while (lines.length > 0) yield lines.shift();
      },
    });
  };
  return { createInterface, promises: { createInterface } };
}
