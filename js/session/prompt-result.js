// What became of an input: the result of `session.prompt`.

import { HermitcrabError } from "../shared/errors.js";

/**
 * Tokens of all model calls of a run, those of subagents included, as the provider counts them.
 * @typedef {object} RunUsage
 * @property {number} input_tokens
 * @property {number} output_tokens reasoning included
 * @property {number} reasoning_tokens
 * @property {number} cache_read_tokens
 * @property {number} cache_write_tokens
 *
 * @typedef {object} PromptResult
 * @property {string} text the model's last answer
 * @property {RunUsage} usage
 * @property {number | null} cost in US dollars; `null` where the price of a model is not known
 * @property {import("../events.js").EndReason} reason why the run ended; `completed` where the model was done
 * @property {unknown} [output] the final answer as a JSON value, where the session has an `outputSchema`
 */

/** A run that failed. Its `kind` is the `code` of the run's last `ERROR`, such as `authentication`. */
export class RunError extends HermitcrabError {
  /** What there was until then. @type {PromptResult} */
  result;
  /** Whether the same request may succeed later. @type {boolean} */
  retryable;

  /** @param {{code: string, message: string, retryable: boolean}} error @param {PromptResult} result */
  constructor({ code, message, retryable }, result) {
    super(code, message);
    this.result = result;
    this.retryable = retryable;
  }

  static {
    this.prototype.name = "RunError";
  }
}

const COUNTS = ["input_tokens", "output_tokens", "reasoning_tokens", "cache_read_tokens", "cache_write_tokens"];

/** @returns {PromptResult} */
function fresh() {
  const usage = /** @type {any} */ (Object.fromEntries(COUNTS.map((name) => [name, 0])));
  return { text: "", usage, cost: 0, reason: undefined };
}

/**
 * @param {AsyncIterable<import("../events.js").SessionEvent>} events of a run; those before it do not count
 * @returns {Promise<PromptResult>}
 */
export async function outcomeOf(events) {
  let result = fresh();
  let failure = { code: "closed", message: "the session was closed before the run was done", retryable: false };
  for await (const { kind, data, agent_id: agent } of events) {
    if (kind === "USAGE") count(result, data);
    if (agent) continue;
    if (kind === "STATE_CHANGED" && data.to === "PROCESSING") result = fresh();
    else if (kind === "ASSISTANT_TEXT_END") result.text = data.text;
    else if (kind === "ERROR") failure = data;
    else if (kind === "PROCESSING_END") {
      result.reason = data.reason;
      if (data.output !== undefined) result.output = data.output;
    }
    // Ended before anything was processed.
    else if (kind === "SESSION_END" && data.reason !== "error") result.reason ??= "aborted";
  }
  result.reason ??= "error";
  if (result.reason === "error") throw new RunError(failure, result);
  return result;
}

function count(result, usage) {
  for (const name of COUNTS) result.usage[name] += usage[name] ?? 0;
  const { cost_usd: cost } = usage;
  result.cost = result.cost === null || typeof cost !== "number" ? null : result.cost + cost;
}
