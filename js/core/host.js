// What the core's driver calls (src/web/host.rs says the shapes): finds the
// JavaScript object behind a session or environment and asks it. Methods are
// `async`, so that whatever the user's code throws arrives as a rejection.

import { macrotask, sleep } from "../platform/clock.js";
import { environmentFailure, text } from "../shared/errors.js";
import { runTool } from "../tool/tool.js";
import { ToolEnvironment } from "./tool-environment.js";

/** @import { Response } from "../platform.js" */

/**
 * Pieces of responses that are read before everybody else gets a turn: a body
 * that has them all at hand would be read to its end in one, before anybody can
 * say that it is too fast.
 */
const READS = 32;
/** How often the core hears that a response waits for a consumer, in ms: it takes silence for the provider's. */
const BEAT_MS = 250;
/** Characters of reasoning that may hold the beginning of a key. */
const LONGEST_KEY = 4_096;

export class Host {
  #runtime;
  #reads = 0;
  /** The end of what a session's model was thinking. @type {Map<string, string>} */
  #reasoning = new Map();
  /** For when the consumers of a session's events have room. @type {Map<string, Promise<void>>} */
  #rooms = new Map();
  /** Whether its core has failed: what that began says nothing to the next one. */
  #ended = false;

  /** @param {import("./runtime.js").Runtime} runtime */
  constructor(runtime) {
    this.#runtime = runtime;
  }

  end() {
    this.#ended = true;
  }

  wake() {
    this.#runtime.wake();
  }

  contain(work) {
    return this.#runtime.contain(work);
  }

  events(session, json) {
    const part = this.#runtime.sessions.get(session);
    if (!part) return;
    const events = JSON.parse(json);
    // Now, before the log of the step is taken.
    if (this.#runtime.isRecorded && this.#holdsKey(session, part.keys, json, events)) this.#runtime.endRecording();
    part.publish(events, json);
  }

  /** Whether events hold a key, also one that came in pieces: of an answer's text and of calls the whole is an event, of reasoning it is not. */
  #holdsKey(session, keys, json, events) {
    if (keys.areInText(json)) return true;
    const pieces = events.filter(({ kind }) => kind === "REASONING_DELTA").map(({ data }) => data.text);
    if (pieces.length === 0) return false;
    const reasoning = (this.#reasoning.get(session) ?? "") + pieces.join("");
    this.#reasoning.set(session, reasoning.slice(-LONGEST_KEY));
    return keys.areInText(reasoning);
  }

  reports(reports) {
    for (const report of reports) this.#runtime.report(report);
  }

  logLine(log, line) {
    this.#runtime.logs.get(log)?.(line);
  }

  sleep(ms, signal) {
    return sleep(ms, signal);
  }

  /**
   * A promise for when the next piece of a response may be read; `undefined`: now.
   * It resolves with `true`, or with `false` if this is to be asked again.
   */
  room(owner) {
    const room = this.#rooms.get(owner) ?? this.#runtime.sessions.get(owner)?.eventStream.room();
    if (room) {
      this.#rooms.set(owner, room);
      return this.#waited(owner, room);
    }
    this.#reads += 1;
    if (this.#reads < READS) return undefined;
    this.#reads = 0;
    return new Promise((resolve) => macrotask(() => resolve(true)));
  }

  #waited(owner, room) {
    return new Promise((resolve) => {
      const beat = setTimeout(() => resolve(false), BEAT_MS);
      room.then(() => {
        clearTimeout(beat);
        this.#rooms.delete(owner);
        resolve(true);
      });
    });
  }

  /** @returns {Promise<Response>} */
  async fetch(owner, request, signal) {
    return this.#session(owner).send(request, signal);
  }

  async callTool(owner, { id, name, arguments: json, ...call }, signal) {
    const { tools, keys } = this.#session(owner);
    const tool = tools.get(name);
    if (!tool) return { content: `the host has no tool \`${name}\``, isError: true };
    const progress = (piece) => this.#tell((core) => core.toolOutput(id, piece));
    const env = new ToolEnvironment(this.#runtime, id);
    const { content, isError } = await runTool(tool, JSON.parse(json), { ...call, env, signal, progress });
    if (!isError) return { content, isError };
    // Errors quote what was asked for with the same key; a result is what the tool made of it.
    const plain = (part) => (part.type === "text" ? { ...part, text: keys.replace(part.text) } : part);
    return { content: typeof content === "string" ? keys.replace(content) : content.map(plain), isError };
  }

  async askApproval(owner, { name, callId, arguments: json, reason }, signal) {
    const { approve, keys } = this.#session(owner);
    if (!approve) return null;
    let answer;
    try {
      answer = await approve({ name, callId, arguments: JSON.parse(json), reason, signal });
    } catch (error) {
      return `nobody could be asked: ${keys.replace(text(error))}`;
    }
    if (answer === true) return undefined;
    return typeof answer === "string" && answer !== "" ? keys.replace(answer) : "the user declined";
  }

  async callEnvironment(number, call, signal) {
    try {
      return await this.#environment(number).call(call, signal);
    } catch (error) {
      throw environmentFailure(error);
    }
  }

  async exec(number, { id, ...request }, signal) {
    const onOutput = (stream, data) => {
      const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
      this.#tell((core) => core.execOutput(id, stream, bytes));
    };
    try {
      return await this.#environment(number).exec(request, signal, onOutput);
    } catch (error) {
      throw environmentFailure(error);
    }
  }

  async runProgram(number, request, signal) {
    try {
      return await this.#environment(number).programs.run(request, signal);
    } catch (error) {
      throw environmentFailure(error);
    }
  }

  /** Output may come after the end, when nobody listens any more. */
  #tell(call) {
    if (!this.#ended) this.#runtime.call(call);
  }

  #session(id) {
    const session = this.#runtime.sessions.get(id);
    if (!session) throw { kind: "invalid", message: `no session ${id}` };
    return session;
  }

  #environment(number) {
    const environment = this.#runtime.environments.get(number);
    if (!environment) throw { kind: "not_found", message: `no environment ${number}` };
    return environment;
  }
}
