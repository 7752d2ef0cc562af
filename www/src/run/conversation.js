// A conversation with the agent about a project: opens sessions, keeps the log
// of what happened, and says what went wrong in words for people.

import { SCRIPTED, model, openSession, policy } from "../agent/agent.js";
import { sentence, unreachable } from "../page/explain.js";
import { answers } from "../page/reachable.js";
import { Approvals, Waiting, isCommand } from "./approvals.js";
import { entriesOf, isAgents, mayChange } from "./attribution.js";
import { Room } from "./excerpt.js";
import { historyOf, startOf } from "./history.js";
import { PIECES, Run, callOf, joined } from "./run.js";
import { toBase64 } from "./share.js";

/** How long a message is on its way before it is shown so, in ms. */
const SENDING_MS = 300;

export class Conversation extends EventTarget {
  /** @type {import("./run.js").Entry[]} */
  log = [];
  /** Files that changed since the first entry, as they were: base64; `null`: there was none. @type {Map<string, string | null>} */
  #originals;
  run = new Run(model);
  /** Whether its session is in the log of the sandbox. */
  isRecorded = false;
  #project;
  #settings;
  #ask;
  #session;
  /** What the session was opened with, as text. */
  #opened;
  #approval;
  /** The session as it was after its last input, tool call or answer. @type {object | undefined} */
  #record;
  #over = false;
  /** Whether the next session begins without a history because that was asked for. */
  #anew = false;
  /** What was asked of it before: one thing at a time, so that one session is opened. */
  #turn = Promise.resolve(true);
  /** When the stopped run has ended. @type {Promise<void> | undefined} */
  #stopping;
  /** The session that another one goes on with. */
  #continued;
  #room = new Room();
  /** How often the user has stopped the agent. */
  #stops = 0;
  #approvals = new Waiting();
  /** Messages that are on their way. @type {{text: string, shown: boolean}[]} */
  #sending = [];
  /** Until when pieces of a text wait to be kept. */
  #waiting;

  /**
   * @param {import("../project/project.js").Project} project
   * @param {import("../agent/settings.js").Settings} settings
   * @param {import("./approvals.js").Ask} ask shows a call that needs approval
   * @param {{log: import("./run.js").Entry[], originals: [string, string | null][]}} [saved] what `saved` gave
   */
  constructor(project, settings, ask, saved) {
    super();
    this.#project = project;
    this.#settings = settings;
    this.#ask = ask;
    this.#originals = new Map(saved?.originals);
    for (const entry of saved?.log ?? []) {
      this.log.push(entry);
      for (const change of entry.changes ?? []) this.#room.note(change);
      this.run.apply(entry);
    }
    // Of a run that somebody has shared there is no record.
    this.#record = saved && (project.kept.history ?? historyOf(this.log));
    const waiting = this.run.queued.map(({ content }) => content);
    this.#settleRestored();
    this.#record &&= withSteering(this.#record, (content) => waiting.includes(content));
    this.run.setQueue(steeringIn(this.#record));
    project.addEventListener("change", this.#follow);
  }

  get working() {
    return this.run.working;
  }

  /** What is kept of it across reloads, beside the session's record. */
  get saved() {
    return { log: this.log, originals: [...this.#originals] };
  }

  /** The project's files as they were before the first entry: base64 by path. */
  get before() {
    const now = [...this.#project.files].filter(([path]) => !this.#originals.has(path));
    const then = [...this.#originals].filter(([, content]) => content !== null);
    return Object.fromEntries([...now.map(([path, bytes]) => [path, toBase64(bytes)]), ...then]);
  }

  /**
   * A task, an answer, or steering while the agent works.
   * @param {string} text @param {() => Promise<void>} prepare what it refers to is in the sandbox then
   * @returns {Promise<boolean>} whether it has arrived
   */
  async send(text, prepare) {
    const steersBefore = this.working && !this.#stopping ? this.#stops : undefined;
    const arrived = this.#sends(text);
    return this.#next(async () => {
      try {
        // What ends would keep a steering message for behind the next task.
        await this.#stopping;
        // A command that leaves the sandbox no time to answer is waited for, or ended with its worker.
        await prepare().catch(prepare);
        if (this.#session?.state !== "PROCESSING") await this.#ready();
      } finally {
        arrived();
      }
      if (this.#session.state === "PROCESSING") return this.#session.steer(text);
      // What was meant for work that the user has stopped since begins none.
      if (steersBefore === undefined || steersBefore === this.#stops) return this.#session.submit(text);
      await this.#session.steer(text);
      return this.#remember(this.#session);
    });
  }

  /** Shows a message as one that waits, if its way takes long; returns what ends that. */
  #sends(text) {
    const own = { text, shown: false };
    this.#sending.push(own);
    const show = () => this.run.setSending(this.#sending.filter(({ shown }) => shown).map(({ text }) => text));
    const timer = setTimeout(() => {
      own.shown = true;
      show();
    }, SENDING_MS);
    return () => {
      clearTimeout(timer);
      this.#sending.splice(this.#sending.indexOf(own), 1);
      if (own.shown) show();
    };
  }

  /**
   * Takes a message of the user's out of the conversation, with all that came
   * after it, and sends another one instead. Files stay as they are.
   * @param {import("./run.js").Item} item @param {string} text @param {() => Promise<void>} prepare as for `send`
   */
  async instead(item, text, prepare) {
    await this.stop();
    const taken = await this.#next(async () => {
      await this.#stopping;
      const at = this.run.inputs.indexOf(item);
      if (at < 0) throw new Error("that message is not in the conversation any more");
      const back = this.run.inputs.length - at;
      if (this.#session) await this.#remember(this.#session);
      else this.#dropAll();
      this.#record = takenBack(this.#record, back, item.text);
      this.#anew = this.#record === undefined || this.#settings.choice.provider === SCRIPTED;
      await this.#end();
      this.#keep({ note: "Taken out of the conversation; what it did to files stays.", kind: "info", at: Date.now(), back });
    });
    return taken && this.send(text, prepare);
  }

  /** Goes on with a run that its page's end cut off, or that an error ended. */
  async resume() {
    await this.#next(async () => {
      if (this.#settings.choice.provider === SCRIPTED) throw new Error("the scripted model cannot go on with what was cut off; choose a model in the settings and send it a message");
      await this.#ready();
      await this.#session.proceed();
    });
  }

  /** Does `work` when what was asked for before is done, and says whether that went well; what it throws is a note. */
  #next(work) {
    const done = this.#turn.then(work).then(
      () => true,
      (error) => {
        if (!this.#over) this.#note(sentence(error.message), "error");
        return false;
      },
    );
    this.#turn = done;
    return done;
  }

  /** Ends what the agent does now; the conversation goes on. */
  async stop() {
    if (!this.working || !this.#session) return;
    this.#stops += 1;
    this.#stopping ??= this.#ended().then(() => void (this.#stopping = undefined));
    await this.#session.interrupt().catch(() => {});
  }

  /** Resolves when the agent does not work any more. */
  #ended() {
    return new Promise((resolve) => {
      const look = () => {
        if (this.working) return;
        this.run.removeEventListener("state", look);
        resolve();
      };
      this.run.addEventListener("state", look);
    });
  }

  /** Takes over what was chosen about approval, also while the agent works. */
  async configure() {
    const wanted = this.#settings.get("approval");
    if (!this.#session || this.#approval === wanted) return;
    this.#approval = wanted;
    await this.#session.configure({ approval: policy(wanted) }).catch(() => {});
  }

  /** Ends the conversation. */
  async close() {
    this.#over = true;
    clearTimeout(this.#waiting);
    this.#project.removeEventListener("change", this.#follow);
    await this.#end();
  }

  async #end() {
    const session = this.#session;
    this.#session = undefined;
    await session?.abort().catch(() => {});
    this.#project.ran.endAll();
  }

  async #ready() {
    const choice = this.#settings.choice;
    const wanted = JSON.stringify(choice);
    const over = this.#session === undefined || this.#session.state === "CLOSED";
    if (!over && this.#opened === wanted) return;
    const hadInput = this.log.some(({ event }) => event?.kind === "USER_INPUT");
    if (this.#session) await this.#remember(this.#session);
    const goesOn = this.#record && choice.provider !== SCRIPTED;
    const isAsked = this.#anew;
    this.#anew = false;
    // What waits in the one waits in the other then.
    if (goesOn) this.#continued = this.#session;
    else if (!this.#session) this.#dropAll();
    await this.#end();
    this.#approval = this.#settings.get("approval");
    const session = await openSession(this.#project.sandbox, choice, {
      history: goesOn ? this.#record : undefined,
      approval: policy(this.#approval),
      approve: this.#approves(new Approvals(this.#ask)),
      // What a model's calls have changed is seen before the next calls come.
      before: () => this.#project.sync().catch(() => {}),
    });
    if (this.#over) {
      await session.abort();
      throw new Error("the conversation is over");
    }
    this.#session = session;
    this.#opened = wanted;
    this.isRecorded = true;
    this.#project.kept.keep(session);
    if (hadInput && !goesOn && !isAsked) this.#note("A new session begins; it knows the files, not the conversation above.");
    void this.#listen(session);
  }

  async #listen(session) {
    for await (const event of session.events()) {
      if (this.#over) return;
      // Of one that is no longer in use, only how it ends.
      if (session !== this.#session && !["SESSION_END", "STEERING_DROPPED"].includes(event.kind)) continue;
      if (event.kind === "STEERING_DROPPED" && session === this.#continued) continue;
      const origin = MAY_BE_CORS.has(event.kind) && unreachable(event.data.message);
      const reached = origin ? await answers(origin) : undefined;
      if (this.#over) return;
      this.#keep(reached === undefined ? { event } : { event, answers: reached });
      this.#watch(event);
      // Another core has begun another log.
      if (event.kind === "ERROR" && event.data.code === "core") this.isRecorded = false;
      if (!event.agent_id && REMEMBERED.has(event.kind)) void this.#remember(session);
      if (event.kind === "PROCESSING_END" && !event.agent_id) {
        void this.#project.sync().catch(() => {});
      }
    }
  }

  /** Tells the project which calls may be changing its files. */
  #watch(event) {
    const { kind, agent_id: agent, data } = event;
    const { ran } = this.#project;
    const call = callOf(event);
    if (kind === "TOOL_CALL_START" && mayChange(data.arguments)) ran.begin(call, data.arguments);
    // It begins when it is allowed.
    if (kind === "APPROVAL_REQUESTED" && this.#approvals.asked(call, data.call_id, data.arguments)) ran.drop(call);
    if (kind === "TOOL_CALL_END") {
      this.#approvals.over(call);
      // Tools that name what they write write it, or fail and have written nothing.
      if (data.refusal || (data.is_error && !isCommand(ran.running.get(call)))) ran.drop(call);
      else ran.end(call);
      void this.#project.sync().catch(() => {});
    }
    if (kind === "SESSION_END" && !agent) ran.endAll();
  }

  /** As `approve` of a session. @param {Approvals} approvals */
  #approves(approvals) {
    return async (call) => {
      const answer = await approvals.approve(call);
      const allowed = answer === true && this.#approvals.allowed(call.callId, call.arguments);
      if (allowed && mayChange(call.arguments)) this.#project.ran.begin(allowed, call.arguments);
      return answer;
    };
  }

  /** What waited when the page was closed has no session to go to. */
  #dropAll() {
    for (const { content } of this.run.queued) {
      this.#keep({ event: { kind: "STEERING_DROPPED", timestamp: new Date().toISOString(), data: { id: 0, content } } });
    }
    this.run.setQueue([]);
  }

  async #remember(session) {
    const record = await session.record().catch(() => undefined);
    if (record && session === this.#session) this.#record = record;
    this.#changed();
  }

  #follow = ({ detail: { changes, who } }) => {
    const files = changes.filter(({ before, after }) => before || after);
    // What happens before the first task is where the run begins.
    if (files.length === 0 || this.log.length === 0) return;
    for (const { path, before } of files) {
      if (!this.#originals.has(path)) this.#originals.set(path, before ? toBase64(before) : null);
    }
    const given = new Map(who.calls);
    for (const entry of entriesOf(files, who, this.#room)) {
      this.#keep(entry);
      if (!isAgents(entry)) continue;
      const { call } = entry;
      const paths = new Set(entry.changes.map(({ path }) => path));
      // What a call says that it writes is what the agent edits; commands may write anything.
      const edited = call !== undefined && !isCommand(given.get(call)) ? files.filter(({ path }) => paths.has(path)) : [];
      this.dispatchEvent(new CustomEvent("credit", { detail: { paths: [...paths], edited } }));
    }
  };

  #keep(entry) {
    if (!joined(this.log.at(-1), entry)) this.log.push(entry);
    this.run.apply(entry);
    // Pieces wait: the log is long.
    if (PIECES.has(entry.event?.kind)) this.#waiting ??= setTimeout(this.#changed, PIECES_MS);
    else this.#changed();
  }

  #changed = () => {
    clearTimeout(this.#waiting);
    this.#waiting = undefined;
    this.dispatchEvent(new Event("change"));
  };

  #note(note, kind = "info") {
    this.#keep({ note, kind, at: Date.now() });
  }

  /** A page that was closed in the middle of a run leaves it open. */
  #settleRestored() {
    if (!this.run.working) return;
    const cut = this.run.settle();
    const text = "The page was closed, or lost the project, while the agent worked; what it had done by then is here.";
    const isScripted = this.#settings.choice.provider === SCRIPTED;
    const resume = !isScripted && Boolean(this.#record);
    let way = "";
    if (isScripted) way = " The scripted model cannot go on with it; “New conversation” in the project's menu begins anew.";
    else if (resume && cut) way = " The answer that was cut off is asked for again when you go on.";
    this.#keep({ note: text + way, kind: "warning", at: Date.now(), resume, cut: true });
  }
}

/** Events that tell of a server that cannot be reached, or does not let pages read its answers. */
const MAY_BE_CORS = new Set(["RETRY", "ERROR"]);

/**
 * A session's record without the last `back` inputs of the user and what came of them.
 * @param {any} record @param {number} back @param {string} text the first of those inputs
 * @returns {any} `undefined`: nothing is left
 */
function takenBack(record, back, text) {
  if (!record) return undefined;
  const turns = Array.isArray(record) ? record : record.turns;
  const at = startOf(turns, back);
  // An earlier session's messages are not in it.
  if (at === 0 || (typeof turns[at].content === "string" && turns[at].content !== text)) return undefined;
  if (Array.isArray(record)) return turns.slice(0, at);
  return { ...record, turns: turns.slice(0, at), requests: record.requests?.filter((number) => number <= at) ?? [], awaiting_input: false, injected: [], follow_ups: [] };
}

/** The steering that waits in a session's record. @param {any} record */
function steeringIn(record) {
  return (record?.injected ?? []).filter(({ kind }) => kind === "steering");
}

/** A session's record with the steering that `stays` says. @param {any} record @param {(content: string) => boolean} stays */
function withSteering(record, stays) {
  if (Array.isArray(record)) return record;
  return { ...record, injected: (record.injected ?? []).filter(({ kind, content }) => kind !== "steering" || stays(content)) };
}

/** After these the session is remembered; later a command may leave nobody to ask. */
const REMEMBERED = new Set(["USER_INPUT", "STEERING_INJECTED", "TOOL_CALL_END", "PROCESSING_END"]);

/** What has come of a text is kept at least so often, in ms. */
const PIECES_MS = 1_000;
