// The turns of a conversation from the log of its run: what a model has to know
// to go on where there is no record of the session, as in a shared run. And the
// other way round: what a log shows of turns that came before it.

/** Characters of a tool's output that the model gets; of longer ones the beginning and the end. */
const MOST_CHARS = 30_000;

const NO_USAGE = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };

/**
 * @param {import("./run.js").Entry[]} log
 * @returns {import("../../../js/types.js").Turn[] | undefined} `undefined`: nothing was said yet
 */
export function historyOf(log) {
  let turns = [];
  for (const entry of log) {
    // What subagents did is known to the agent by their results.
    if (entry.event && !entry.event.agent_id) add(turns, entry.event);
    else if (entry.back) turns = turns.slice(0, startOf(turns, entry.back));
  }
  return turns.some(({ turn }) => turn === "user") ? turns : undefined;
}

/**
 * Where the last `count` inputs of the user begin.
 * @param {{turn: string}[]} turns @param {number} count
 * @returns {number} 0: there are not so many
 */
export function startOf(turns, count) {
  const inputs = turns.flatMap(({ turn }, index) => (turn === "user" ? [index] : []));
  return inputs.at(-count) ?? 0;
}

function add(turns, { kind, data, timestamp }) {
  const time = { timestamp_ms: Date.parse(timestamp) || 0 };
  const last = turns.at(-1);
  switch (kind) {
    case "USER_INPUT":
      return void turns.push({ turn: "user", content: data.content, ...time });
    case "STEERING_INJECTED":
      return void turns.push({ turn: "steering", content: data.content, ...time });
    case "ASSISTANT_TEXT_END":
      return void turns.push({ turn: "assistant", content: data.text, tool_calls: [], reasoning: null, usage: NO_USAGE, response_id: null, ...time });
    case "TOOL_CALL_START": {
      const custom = typeof data.arguments === "string";
      const call = { id: data.call_id, name: data.tool_name, arguments: custom ? data.arguments : JSON.stringify(data.arguments ?? {}), custom };
      // Calls of one answer may begin when others of it have ended.
      const answer = turns.findLast(({ turn }) => turn === "assistant");
      return void answer?.tool_calls.push(call);
    }
    case "TOOL_CALL_END": {
      const answer = turns.findLast(({ turn }) => turn === "assistant");
      if (!answer?.tool_calls.some(({ id }) => id === data.call_id)) return;
      const result = { tool_call_id: data.call_id, tool_name: data.tool_name ?? "", content: shortened(data.output ?? data.error ?? ""), is_error: data.is_error };
      if (last.turn === "tool_results") last.results.push(result);
      else turns.push({ turn: "tool_results", results: [result], ...time });
    }
  }
}

/**
 * Events that show turns; what the turns do not tell is left out.
 * @param {import("../../../js/types.js").Turn[]} turns
 */
export function eventsOf(turns) {
  return turns.flatMap(({ turn, timestamp_ms: at, ...told }) => {
    const timestamp = new Date(at).toISOString();
    const event = (kind, data) => ({ kind, data, timestamp });
    switch (turn) {
      case "user":
        return [event("USER_INPUT", { content: textOf(told.content) })];
      case "steering":
        return [event("STEERING_INJECTED", { content: textOf(told.content) })];
      case "assistant":
        return [
          event("ASSISTANT_TEXT_END", { text: told.content, reasoning: told.reasoning }),
          ...told.tool_calls.map((call) => event("TOOL_CALL_START", { call_id: call.id, tool_name: call.name, arguments: argumentsOf(call) })),
        ];
      case "tool_results":
        return told.results.map(({ tool_call_id: id, content, is_error }) => {
          const output = textOf(content);
          return event("TOOL_CALL_END", { call_id: id, output, is_error, duration_ms: 0, output_bytes: output.length, output_complete: true });
        });
      default:
        return [];
    }
  });
}

/** The texts of a content. @param {string | {text?: string}[]} content */
function textOf(content) {
  return typeof content === "string" ? content : content.map(({ text }) => text).filter(Boolean).join("\n");
}

/** What a model wrote as arguments, read if that is possible. */
function argumentsOf({ arguments: text }) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function shortened(text) {
  if (text.length <= MOST_CHARS) return text;
  const half = MOST_CHARS / 2;
  return `${text.slice(0, half)}\n[${text.length - MOST_CHARS} characters are left out here]\n${text.slice(-half)}`;
}
