// What a run looks like: turns the entries of a log into items for people.
// Live sessions, restored ones and shared files all come through here.

import { again, explain, sentence } from "../page/explain.js";

/**
 * An entry of a log: an event of the session, files that changed after it, or
 * a note. `answers`: whether the server that could not be reached answers at all. `call` has made the changes, named as `callOf` does it; or
 * one of `calls` has, or a line of the terminal that ran beside them; or else the user.
 * @typedef {{event: object, answers?: boolean} | {changes: FileDiff[], call?: string, calls?: string[], terminal?: boolean} | Note} Entry
 *
 * A note of the page's. `cut`: what was open never ends; `back`: so many inputs of the user's, with
 * all that came after the first of them, are taken out of the conversation.
 * @typedef {{note: string, kind?: string, at: number, resume?: boolean, cut?: boolean, back?: number}} Note
 *
 * @typedef {object} FileDiff
 * @property {string} path
 * @property {string} [before] text, where there was a file @property {string} [after] text, where there is one
 * @property {number} [skipped] characters that both texts begin with and that are left out of them
 * @property {number} [line] lines among those @property {number} [rest] as `skipped`, at the end of both
 * @property {boolean} [binary] it is no text @property {boolean} [large] it is too much of it to be kept
 * @property {boolean} [made] without a text: there was no file before @property {boolean} [gone] there is none after
 *
 * What is shown.
 * @typedef {object} Item
 * @property {"user" | "answer" | "tool" | "notice" | "agent" | "steering"} type
 * @property {number} key
 */

/** @typedef {{input: number, output: number, cached: number, context: number, cost: number, unpriced: boolean}} Totals */

/**
 * The name of an event's call in the whole run: each agent's provider counts for itself.
 * @param {{agent_id?: string | null, data: {call_id: string}}} event
 */
export function callOf({ agent_id: agent, data }) {
  return agent ? `${agent}/${data.call_id}` : data.call_id;
}

/** Pieces of one text within this time are one entry of the log, in ms. */
const JOINED_MS = 100;
export const PIECES = new Set(["ASSISTANT_TEXT_DELTA", "REASONING_DELTA", "TOOL_CALL_OUTPUT_DELTA"]);

/** Adds a piece to the entry before, if it goes on there. @param {any} last @param {any} entry */
export function joined(last, { event }) {
  const before = last?.event;
  if (!event || !PIECES.has(event.kind) || before?.kind !== event.kind) return false;
  if (before.agent_id !== event.agent_id || before.data.call_id !== event.data.call_id) return false;
  if (Date.parse(event.timestamp) - Date.parse(before.timestamp) > JOINED_MS) return false;
  last.event = { ...before, data: { ...before.data, text: before.data.text + event.data.text } };
  return true;
}

export class Run extends EventTarget {
  /** @type {Item[]} */
  items = [];
  /** Steering messages that wait: {id, content}. */
  queued = [];
  /** Messages that are on their way to the agent. @type {string[]} */
  sending = [];
  /** The user's messages that the conversation has. @type {Item[]} */
  inputs = [];
  state = "IDLE";
  /** @type {Totals} */
  totals = { input: 0, output: 0, cached: 0, context: 0, cost: 0, unpriced: false };
  #lanes = new Map();
  #calls = new Map();
  #next = 1;
  #price;

  /** @param {(model: string) => {input_cost: number | null, output_cost: number | null} | undefined} price */
  constructor(price) {
    super();
    this.#price = price;
    this.#lanes.set("", { items: this.items, answer: undefined });
  }

  /**
   * What was open when its page was closed, or when it was saved, never ends.
   * @returns {boolean} whether an answer is cut off
   */
  settle() {
    this.state = "IDLE";
    this.setQueue([]);
    const cut = this.#cut();
    this.#tell("state");
    return cut;
  }

  /** Ends all that is open; says whether an answer is among it. */
  #cut() {
    let isAnswer = false;
    for (const lane of this.#lanes.values()) {
      if (lane.answer) {
        lane.answer.cut = true;
        isAnswer = true;
      }
      this.#settle(lane);
      if (lane.item && !lane.item.done) {
        lane.item.done = true;
        this.#changed(lane.item);
      }
    }
    for (const call of this.#calls.values()) {
      if (call.done) continue;
      Object.assign(call, { done: true, failed: true, cut: true, waits: false });
      this.#changed(call);
    }
    return isAnswer;
  }

  /** @param {{id?: number, content: string}[]} messages that wait */
  setQueue(messages) {
    this.queued = messages;
    this.#tell("queue");
  }

  /** @param {string[]} messages that are on their way */
  setSending(messages) {
    this.sending = messages;
    this.#tell("queue");
  }

  get working() {
    return this.state === "PROCESSING";
  }

  /** @param {Entry} entry */
  apply(entry) {
    if (entry.event) this.#event(entry.event, entry.answers);
    else if (entry.changes) this.#changes(entry);
    else if (entry.note) this.#note(entry);
  }

  /** @param {Note} note */
  #note({ note, kind = "info", resume, cut, back }) {
    if (cut && this.working) this.settle();
    const from = back ? this.inputs.at(-Math.min(back, this.inputs.length)) : undefined;
    const takes = from ? this.items.slice(this.items.indexOf(from)).filter(({ taken }) => !taken) : [];
    if (from) this.inputs.length = this.inputs.indexOf(from);
    for (const item of takes) item.taken = true;
    this.#add(this.#lane({}), { type: "notice", kind, text: note, resume, takes });
  }

  #event(event, answers) {
    const { kind, data } = event;
    const lane = this.#lane(event);
    switch (kind) {
      case "SESSION_START":
        // Subagents may have models of other providers.
        Object.assign(lane, { provider: data.provider, model: data.model });
        if (event.agent_id) return;
        // One of before that was cut off ends nothing any more.
        this.#cut();
        this.model = data.model;
        this.state = "IDLE";
        // What a session of before has left to this one, this one queues anew.
        this.setQueue([]);
        return this.#tell("state");
      case "STATE_CHANGED":
        if (event.agent_id) return;
        this.state = data.to;
        return this.#tell("state");
      case "SESSION_END":
        if (event.agent_id) return;
        this.state = "CLOSED";
        return this.#tell("state");
      case "USER_INPUT":
        this.#add(lane, { type: "user", text: data.content });
        if (!event.agent_id) this.inputs.push(lane.items.at(-1));
        return undefined;
      case "ASSISTANT_TEXT_START":
        return void this.#answer(lane, event);
      case "ASSISTANT_TEXT_DELTA":
        return this.#grow(this.#answer(lane, event), "text", data.text);
      case "REASONING_DELTA":
        return this.#grow(this.#answer(lane, event), "thinking", data.text);
      case "ASSISTANT_TEXT_END":
        return this.#endAnswer(lane, event);
      case "USAGE":
        return this.#usage(data, lane, event.agent_id);
      case "TOOL_CALL_START":
        return this.#startTool(lane, event);
      case "APPROVAL_REQUESTED":
        return this.#waits(event);
      case "TOOL_CALL_OUTPUT_DELTA":
        return this.#grow(this.#calls.get(callOf(event)), "output", data.text);
      case "TOOL_CALL_END":
        return this.#endTool(event);
      case "STEERING_QUEUED":
        // What one agent sends to another waits in its card.
        if (event.agent_id) return;
        return this.setQueue([...this.queued, { id: data.id, content: data.content }]);
      case "STEERING_INJECTED":
      case "STEERING_DROPPED":
        // Each agent counts its own.
        if (!event.agent_id) this.setQueue(this.queued.filter(({ id }) => id !== data.id));
        // LOOP_DETECTION says it to people.
        if (data.source === "repetition") return;
        if (data.source === "call_cut_off") return this.#add(lane, { type: "notice", kind: "warning", text: "A tool call was cut off at the token limit; the model makes it again." });
        return this.#add(lane, { type: "steering", text: data.content, delivered: kind === "STEERING_INJECTED" });
      case "RETRY":
        if (data.discard_partial) this.#breakOff(lane);
        return this.#retry(lane, again(data, answers));
      case "WARNING":
        return this.#add(lane, { type: "notice", kind: "warning", text: sentence(data.message) });
      case "COMPACTION_END":
        if (data.error) return this.#add(lane, { type: "notice", kind: "warning", text: sentence(`The conversation was not compacted: ${data.error}`) });
        return this.#add(lane, { type: "notice", kind: "info", text: "The older part of the conversation was replaced by a summary." });
      case "LOOP_DETECTION":
        return this.#add(lane, { type: "notice", kind: "warning", text: "The last tool calls repeat; the model got a warning." });
      case "TURN_LIMIT":
        return this.#add(lane, { type: "notice", kind: "warning", text: `A limit ended the work: ${Object.hasOwn(LIMITS, data.limit) ? LIMITS[data.limit] : data.limit} (${data.value}).` });
      case "ERROR":
        this.#endBroken(lane);
        return this.#add(lane, { type: "notice", kind: "error", code: data.code, text: explain(data, globalThis.navigator?.onLine !== false, answers) });
      case "PROCESSING_END":
        this.#settle(lane);
        if (data.reason === "interrupted") this.#add(lane, { type: "notice", kind: "info", text: "Stopped." });
        if (event.agent_id) this.#endAgent(event.agent_id, data);
        else this.#tell("end");
    }
  }

  /** Where an event belongs: the conversation, or the card of a subagent. */
  #lane({ agent_id: id, parent_id: parent }) {
    const key = id ?? "";
    const known = this.#lanes.get(key);
    if (known) return known;
    const above = this.#lanes.get(parent ?? "") ?? this.#lanes.get("");
    const item = { type: "agent", items: [], done: false, task: "" };
    const lane = { items: item.items, item, answer: undefined };
    this.#lanes.set(key, lane);
    this.#add(above, item);
    return lane;
  }

  #endAgent(id, { reason }) {
    const { item } = this.#lanes.get(id);
    Object.assign(item, { done: true, reason });
    this.#changed(item);
  }

  #add(lane, item) {
    item.key = this.#next++;
    item.parent = lane.item;
    lane.items.push(item);
    if (lane.item && item.type === "user" && !lane.item.task) lane.item.task = item.text;
    this.dispatchEvent(new CustomEvent("add", { detail: item }));
    if (lane.item) this.#changed(lane.item);
    return undefined;
  }

  /** One notice, however often it is tried. */
  #retry(lane, text) {
    const last = lane.items.at(-1);
    if (!last?.retry) return this.#add(lane, { type: "notice", kind: "warning", retry: true, text });
    last.text = text;
    return this.#changed(last);
  }

  /** The answer that is being written. */
  #answer(lane, event) {
    if (!lane.answer) {
      lane.answer = { type: "answer", text: "", thinking: "", done: false, started: Date.parse(event.timestamp) };
      this.#add(lane, lane.answer);
    }
    return lane.answer;
  }

  #endAnswer(lane, event) {
    const answer = this.#answer(lane, event);
    answer.broken = undefined;
    answer.text = event.data.text;
    answer.thinking = event.data.reasoning ?? answer.thinking;
    this.#settle(lane);
  }

  /** What has come of an answer is void; it stays to be read until more has come. */
  #breakOff({ answer }) {
    if (!answer) return;
    const { broken } = answer;
    Object.assign(answer, { broken: broken?.text.length > answer.text.length ? broken : { text: answer.text, thinking: answer.thinking }, text: "", thinking: "" });
    this.#changed(answer);
  }

  /** No whole answer will come: the most that did stays. */
  #endBroken(lane) {
    const { answer } = lane;
    if (answer) {
      this.#breakOff(lane);
      Object.assign(answer, answer.broken, { broken: undefined, cut: true });
    }
    this.#settle(lane);
  }

  #settle(lane) {
    const { answer } = lane;
    if (!answer) return;
    lane.answer = undefined;
    answer.done = true;
    this.#changed(answer);
  }

  #startTool(lane, event) {
    const { data, timestamp } = event;
    const item = {
      type: "tool",
      name: data.tool_name,
      arguments: data.arguments,
      output: "",
      started: Date.parse(timestamp),
      done: false,
      diffs: [],
    };
    this.#calls.set(callOf(event), item);
    this.#add(lane, item);
  }

  #waits(event) {
    const item = this.#calls.get(callOf(event));
    if (!item) return;
    item.waits = true;
    this.#changed(item);
  }

  #endTool(event) {
    const { data } = event;
    const item = this.#calls.get(callOf(event));
    if (!item) return;
    Object.assign(item, {
      done: true,
      waits: false,
      refused: Boolean(data.refusal),
      output: data.output ?? data.error ?? item.output,
      failed: data.is_error || Boolean(data.exit_code),
      exitCode: data.exit_code,
      timedOut: data.timed_out,
      ms: data.duration_ms,
      outputBytes: data.output_bytes,
      complete: data.output_complete,
    });
    this.#changed(item);
  }

  #changes({ changes, call, calls, terminal }) {
    const items = (calls ?? [call]).map((each) => this.#calls.get(each)).filter(Boolean);
    if (items.length === 0) return;
    const last = items.reduce((one, other) => (other.key > one.key ? other : one));
    const among = calls ? { items, terminal } : undefined;
    for (const change of changes) last.diffs.push({ ...change, among });
    for (const item of items) {
      if (item !== last) item.elsewhere = last;
      this.#changed(item);
    }
  }

  #usage(data, lane, agent) {
    const read = data.cache_read_tokens ?? 0;
    const write = data.cache_write_tokens ?? 0;
    // Anthropic counts cached tokens apart from the input, the others within it.
    const input = data.input_tokens + (lane.provider === "anthropic" ? read + write : 0);
    const { totals } = this;
    totals.input += input;
    totals.cached += read;
    totals.output += data.output_tokens;
    if (!agent) totals.context = input + data.output_tokens;
    const price = this.#price(lane.model);
    if (price?.input_cost == null || price?.output_cost == null) totals.unpriced = true;
    else totals.cost += (input * price.input_cost + data.output_tokens * price.output_cost) / 1e6;
    this.#tell("usage");
  }

  #grow(item, field, text) {
    if (!item) return;
    item[field] += text;
    this.#changed(item);
  }

  #changed(item) {
    this.dispatchEvent(new CustomEvent("change", { detail: item }));
  }

  #tell(what) {
    this.dispatchEvent(new Event(what));
  }
}

const LIMITS = { tool_rounds: "tool rounds of one task", turns: "answers of the session", wall_time: "time", cost: "cost in millionths of a US dollar" };
