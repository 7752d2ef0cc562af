// Plays one session case of tests/cases (README.md there says what they are)
// over the JavaScript API: in Node, in a page, with and without a worker. Needs
// nothing but that API, `fetch` and a way to start a scripted model.

import { assert } from "./check.mjs";

/** Where the sandbox works. */
const WORK = "/workspace/case";

/**
 * @typedef {object} Place
 * @property {typeof import("../../js/index.js")} api
 * @property {(script: object) => Promise<{url: string, requests: () => Promise<object[]>,
 *   held: (name: string) => Promise<void>, release: (name: string) => Promise<void>}>} serveModel
 */

/** A case, or one provider's version of it. @param {object} file @param {string} [provider] */
export function readCase({ providers, ...spec }, provider) {
  if (!provider) return expand(spec);
  return expand(version({ ...spec, config: { ...spec.config, provider } }, provider));
}

/** Replaces `$provider` objects by the entry of that name, else by that of `*`. */
function version(value, provider) {
  if (Array.isArray(value)) return value.map((item) => version(item, provider));
  if (value === null || typeof value !== "object") return value;
  if (value.$provider) return version(value.$provider[provider] ?? value.$provider["*"] ?? null, provider);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, version(item, provider)]));
}

/**
 * Plays a case, checks everything but the transcript and returns that.
 * @param {Place} place @param {object} spec what `readCase` gave
 * @returns {Promise<object[]>}
 */
export async function play(place, spec) {
  const run = await Run.start(place, spec);
  await run.act();
  await run.checkFiles();
  await run.checkRequests();
  await run.checkLog();
  return run.transcript();
}

/** A program lent to the sandbox. */
function program({ exit_code: exitCode = 0, stdout = "", writes = {} }) {
  return ({ args, cwd, stdin, changes }) => {
    const files = changes.filter(({ type }) => type === "file").map(({ path }) => path.replace(`${cwd}/`, ""));
    const fill = (text) =>
      text
        .replaceAll("{args}", args.join(" "))
        .replaceAll("{stdin}", new TextDecoder().decode(stdin))
        .replaceAll("{changes}", files.join(" "));
    const change = ([path, content]) => ({ path: `${cwd}/${path}`, type: "file", content: fill(content) });
    return { exitCode, stdout: fill(stdout), changes: Object.entries(writes).map(change) };
  };
}

class Run {
  log = [];
  #callErrors = [];
  #waiting = [];
  #counts = new Map();

  static async start({ api, serveModel }, spec) {
    const run = new Run();
    run.replay = api.replay;
    run.spec = spec;
    run.model = await serveModel(replaceAll(spec.script, { "<dir>": WORK }));
    const files = Object.entries(spec.files ?? {}).map(([path, content]) => [path, bytes(content)]);
    const programs = Object.entries(spec.programs ?? {}).map(([name, spec]) => [name, program(spec)]);
    run.env = await api.MemoryEnvironment.create({
      workingDirectory: WORK,
      record: api.replay !== undefined,
      files: Object.fromEntries(files),
      programs: Object.fromEntries(programs),
    });
    run.session = await api.createSession({
      retry: { jitter: false },
      ...spec.config,
      apiKey: "test-key",
      baseUrl: run.model.url,
      env: run.env,
      tools: (spec.tools ?? []).map((tool) => run.#tool(tool)),
      approve: spec.approver === false ? undefined : (call) => run.#approve(call),
    });
    run.ended = run.#listen();
    return run;
  }

  async #listen() {
    for await (const event of this.session.events()) {
      this.log.push(event);
      for (const { event: matcher, nth = 1, do: actions } of this.spec.when ?? []) {
        if (matches(event, matcher) && this.#count(matcher) === nth) await this.#doAll(actions);
      }
      this.#waiting = this.#waiting.filter(({ holds, resolve }) => !(holds() && (resolve(), true)));
    }
  }

  async act() {
    for (const action of this.spec.actions) await this.#do(action);
    if (this.session.state !== "CLOSED") {
      await this.#call("close", () => this.session.close());
    }
    await this.ended;
  }

  async #doAll(actions) {
    for (const action of actions) await this.#do({ ...action, wait: false });
  }

  async #do({ wait = true, nth = 1, ...action }) {
    const [[verb, value]] = Object.entries(action);
    const { session } = this;
    switch (verb) {
      case "submit":
      case "answer": {
        const said = parts(value);
        const from = this.log.length;
        const accepted = await this.#call(verb, () => session[verb](said));
        const left = (event) =>
          !event.agent_id &&
          (event.kind === "SESSION_END" ||
            (event.kind === "STATE_CHANGED" && event.data.from === "PROCESSING"));
        if (accepted && wait) await this.#until(() => this.log.slice(from).some(left));
        return;
      }
      case "steer":
        return void (await this.#call("steer", () => session.steer(parts(value))));
      case "follow_up":
        return void (await this.#call("follow_up", () => session.followUp(parts(value))));
      case "system":
        return void (await this.#call("system", () => session.addSystemTurn(value)));
      case "interrupt":
        return void (await this.#call("interrupt", () => session.interrupt()));
      case "compact":
        return void (await this.#call("compact", () => session.compact()));
      // The session's end is awaited at the end of the case.
      case "abort":
        return void session.abort();
      case "close":
        return void (await this.#call("close", () => this.session.close()));
      case "configure":
        return void (await this.#call("configure", () => session.configure(value)));
      case "register":
        return void (await this.#call("register", () => session.registerTool(this.#tool(value))));
      case "unregister":
        return void (await this.#call("unregister", () => session.unregisterTool(value)));
      case "agents":
        return void (await this.#ask("agents", async () => (await session.agents()).map(shownAgent)));
      case "agent_history":
        return void (await this.#ask("agent_history", async () => (await session.agentHistory(value)).map(shownTurn)));
      case "steer_agent":
        return void (await this.#call("steer_agent", () => session.steerAgent(value[0], parts(value[1]))));
      case "interrupt_agent":
        return void (await this.#call("interrupt_agent", () => session.interruptAgent(value)));
      case "close_agent":
        return void (await this.#call("close_agent", () => session.closeAgent(value)));
      case "release":
        return this.model.release(value);
      case "held":
        return this.model.held(value);
      case "until":
        return this.#until(() => this.#count(value) >= nth);
      default:
        throw new Error(`unknown action ${verb}`);
    }
  }

  /** A call whose answer is in the transcript. */
  async #ask(name, call) {
    await this.#call(name, async () => void this.#callErrors.push({ [name]: await call() }));
  }

  async #call(name, call) {
    try {
      await call();
      return true;
    } catch (error) {
      this.#callErrors.push({ call_error: { call: name, kind: error.kind ?? String(error) } });
      return false;
    }
  }

  #count(matcher) {
    return this.log.filter((event) => matches(event, matcher)).length;
  }

  #until(holds) {
    if (holds()) return undefined;
    return new Promise((resolve) => this.#waiting.push({ holds, resolve }));
  }

  #nth(name, list) {
    const count = this.#counts.get(name) ?? 0;
    this.#counts.set(name, count + 1);
    return list[Math.min(count, list.length - 1)];
  }

  #tool({ behaviour, ...definition }) {
    const behaviours = Array.isArray(behaviour) ? behaviour : [behaviour];
    const execute = async (args, context) => {
      const { progress } = context;
      const chosen = this.#nth(`tool ${definition.name}`, behaviours);
      for (const piece of chosen.progress ?? []) progress(piece);
      await this.#doAll(chosen.do ?? []);
      if (chosen.wait_for) await this.#until(() => this.#count(chosen.wait_for) >= 1);
      if (chosen.uses) {
        const lines = [];
        // Environments say in words of their own that something is not there.
        const failed = ({ kind, message }) => (kind === "not_found" ? "not found" : message);
        for (const use of chosen.uses) lines.push(await used(use, context).catch(failed));
        return lines.join("\n");
      }
      if (chosen.echo) return JSON.stringify(args);
      return chosen.fails === undefined
        ? chosen.returns
        : { content: chosen.fails, isError: true };
    };
    return { ...definition, execute };
  }

  async #approve({ name, signal }) {
    const answers = this.spec.approvals?.[name];
    const answer = answers ? this.#nth(`approval ${name}`, answers) : "allow";
    if (answer === "allow") return true;
    if (answer === "wait") {
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }
    return answer.deny;
  }

  async checkFiles() {
    const wanted = { ...this.spec.files, ...this.spec.expect?.files };
    const entries = await this.env.list(".", { depth: 1000 });
    const paths = entries.filter(({ isDir }) => !isDir).map(({ path }) => path);
    assert.deepEqual(
      paths,
      Object.keys(wanted).filter((path) => wanted[path] !== null).sort(),
      "the files there are",
    );
    for (const path of paths) {
      assert.deepEqual([...(await this.env.readBytes(path))], [...bytes(wanted[path])], path);
    }
  }

  /** Its log says the same again, where the face reads logs. */
  async checkLog() {
    if (!this.replay) return;
    const kinds = [];
    await this.replay(await this.env.recording(), { onEvent: ({ kind }) => void kinds.push(kind) });
    assert.deepEqual(kinds, this.log.map(({ kind }) => kind), "the events of the replay");
  }

  async checkRequests() {
    const { expect = {} } = this.spec;
    const requests = await this.model.requests();
    if (expect.request_count !== undefined) assert.equal(requests.length, expect.request_count, "requests");
    for (const check of expect.requests ?? []) {
      const request = requests.at(check.n > 0 ? check.n - 1 : check.n);
      assert.ok(request, `request ${check.n} of ${requests.length}`);
      checkValue(at(this.#named(request.body), check.pointer ?? ""), check);
    }
  }

  /** Rule 5. */
  #named(value) {
    const placed = replaceAll(value, { [WORK]: "<dir>", [this.model.url]: "<model>" });
    return mapStrings(placed, (text) => text.replace(/, duration: [\d.]+(?= s\])/g, ", duration: 0.0"));
  }

  transcript() {
    checkEnvelopes(this.log, this.session.id);
    let events = joinOutput(this.log.map(({ kind, data, agent_id }) => ({ kind, data: { ...data }, ...(agent_id && { agent_id }) })));
    const races = events.some((event) => event.agent_id);
    for (const { kind, data } of events) {
      neutralise(kind, data);
      if (races && "response_id" in data) data.response_id = "<response>";
    }
    events = this.#named(events);
    if (this.spec.breaks) for (const event of events) hideTransport(event);
    return shorten([...events, ...this.#callErrors]);
  }
}

/** What must hold of the events as they came. */
function checkEnvelopes(log, id) {
  const open = new Set();
  const agents = new Set();
  let last = "";
  log.forEach((event, index) => {
    assert.equal(event.seq, index + 1, "seq");
    assert.equal(event.session_id, id);
    const { agent_id: agent, parent_id: parent } = event;
    assert.equal(agent === undefined, parent === undefined);
    if (agent) {
      assert.ok(parent === id || agents.has(parent), "the parent is known");
      assert.equal(event.kind === "SESSION_START", !agents.has(agent));
      agents.add(agent);
    }
    assert.match(event.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.ok(event.timestamp >= last, "timestamps never decrease");
    last = event.timestamp;
    const { call_id: call } = event.data;
    if (event.kind === "TOOL_CALL_START") open.add(call);
    if (event.kind === "TOOL_CALL_OUTPUT_DELTA") assert.ok(open.has(call), "output of a running call");
    if (event.kind === "TOOL_CALL_END") assert.ok(open.delete(call), "the end of a running call");
  });
  assert.equal(log[0].kind, "SESSION_START");
  assert.equal(log.at(-1).kind, "SESSION_END");
}

/** Rule 2. */
function joinOutput(events) {
  const streams = ["stdout", "stderr", undefined];
  const output = new Map();
  return events.flatMap((event) => {
    const { call_id: call, stream, text } = event.data;
    if (event.kind === "TOOL_CALL_OUTPUT_DELTA") {
      const joined = output.get(call) ?? new Map();
      output.set(call, joined.set(stream, (joined.get(stream) ?? "") + text));
      return [];
    }
    if (event.kind !== "TOOL_CALL_END" || !output.has(call)) return [event];
    const joined = output.get(call);
    output.delete(call);
    const pieces = streams
      .filter((name) => joined.has(name))
      .map((name) => ({
        kind: "TOOL_CALL_OUTPUT_DELTA",
        data: { call_id: call, ...(name && { stream: name }), text: joined.get(name) },
        ...(event.agent_id && { agent_id: event.agent_id }),
      }));
    return [...pieces, event];
  });
}

/** Rules 3 and 4. */
function neutralise(kind, data) {
  for (const name of ["duration_ms", "model_ms", "after_tokens"]) if (name in data) data[name] = 0;
  if (kind === "SESSION_START") data.platform = "<platform>";
  if (kind === "TOOL_CALL_END") {
    const times = (data.output ?? data.error).split(WORK).length - 1;
    data.output_bytes -= times * (WORK.length - "<dir>".length);
  }
}

/** Rule 6. */
function hideTransport({ kind, data }) {
  if (kind !== "ERROR" && kind !== "RETRY") return;
  for (const [start, end] of [["broke off: ", "; try again"], ["cannot be reached: ", "; check"]]) {
    const from = data.message.indexOf(start);
    const to = data.message.lastIndexOf(end);
    if (from < 0 || to < from) continue;
    data.message = `${data.message.slice(0, from + start.length)}<transport>${data.message.slice(to)}`;
  }
}

/** Rule 7. */
function shorten(value) {
  return mapStrings(value, (text) => {
    const characters = [...text];
    if (characters.length <= 2000) return text;
    let hash = 0x811c9dc5;
    for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
    const first = characters.slice(0, 40).join("");
    const last = characters.slice(-40).join("");
    const hex = hash.toString(16).padStart(8, "0");
    return `<${characters.length} characters, fnv1a ${hex}: ${first} … ${last}>`;
  });
}

function checkValue(value, check) {
  const where = `request ${check.n} ${check.pointer ?? ""}`;
  const texts = [];
  mapStrings(value ?? null, (text) => (texts.push(text), text));
  const list = (item) => (item === undefined ? [] : [item].flat());
  if ("absent" in check) assert.equal(value, undefined, where);
  if ("equals" in check) assert.deepEqual(shorten(value), check.equals, where);
  for (const text of list(check.contains)) {
    assert.ok(texts.some((found) => found.includes(text)), `${where} contains ${JSON.stringify(text)}: ${texts}`);
  }
  for (const text of list(check.not_contains)) {
    assert.ok(!texts.some((found) => found.includes(text)), `${where} does not contain ${JSON.stringify(text)}`);
  }
  if ("starts_with" in check) assert.ok(value.startsWith(check.starts_with), `${where}: ${value}`);
  if ("ends_with" in check) assert.ok(value.endsWith(check.ends_with), `${where}: ${value}`);
  if ("length" in check) assert.equal([...value].length, check.length, where);
}

/** JSON pointer; a negative number counts an array from its end. */
function at(value, pointer) {
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    value = Array.isArray(value) ? value.at(Number(name)) : value?.[name];
  }
  return value;
}

function matches(event, { kind, agent_id: agent, ...fields }) {
  return (
    event.kind === kind &&
    event.agent_id === agent &&
    Object.entries(fields).every(([name, value]) => {
      try {
        assert.deepEqual(event.data[name], value);
        return true;
      } catch {
        return false;
      }
    })
  );
}

/** `$repeat`, `$lines` and `$concat`. */
export function expand(value) {
  if (Array.isArray(value)) return value.map(expand);
  if (value === null || typeof value !== "object") return value;
  const keys = Object.keys(value);
  if (keys.length === 1) {
    const inner = () => value[keys[0]].map(expand);
    if (keys[0] === "$repeat") {
      const [text, count] = inner();
      return text.repeat(count);
    }
    if (keys[0] === "$lines") {
      const [prefix, count] = inner();
      return Array.from({ length: count }, (_, index) => `${prefix}${index + 1}\n`).join("");
    }
    if (keys[0] === "$concat") return inner().join("");
  }
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, expand(inner)]));
}

function replaceAll(value, replacements) {
  return mapStrings(value, (text) => {
    for (const [from, to] of Object.entries(replacements)) text = text.replaceAll(from, to);
    return text;
  });
}

function mapStrings(value, change) {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mapStrings(item, change)]));
}

/** What came of using the environment of a tool, in a line. */
async function used({ exec, read, write, list, place }, { env, agentId = "none", workingDirectory }) {
  if (place) return `${agentId} in ${workingDirectory}`;
  if (exec !== undefined) return env.exec(exec).then(({ exitCode, stdout }) => `exit ${exitCode}: ${stdout}`);
  if (read !== undefined) return env.readText(read);
  if (list !== undefined) return (await env.list(list)).map(({ path }) => path).join(" ");
  return env.write(...write).then(() => "written");
}

/** An agent as cases see it. */
function shownAgent({ id, parentId, task, state, status, depth, turns }) {
  return { id, of_agent: parentId.startsWith("agent-"), task, state, status, depth, turns };
}

/** What cases see of a turn: who speaks, and the text of those who are not tools. */
function shownTurn({ turn, content }) {
  if (turn === "tool_results") return [turn];
  if (typeof content === "string") return [turn, content];
  return [turn, content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")];
}

/** What the user says, with files as a page has them: one a `Blob`, the next bytes. */
function parts(said) {
  if (typeof said === "string") return said;
  return said.map(({ data, ...part }, index) => {
    if (data === undefined) return part;
    const content = bytes({ base64: data });
    return { ...part, data: index % 2 ? new Blob([content]) : content };
  });
}

export function bytes(content) {
  if (typeof content === "string") return new TextEncoder().encode(content);
  return Uint8Array.from(atob(content.base64), (character) => character.charCodeAt(0));
}
