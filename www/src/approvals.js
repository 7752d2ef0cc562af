// Approvals of one session: which calls the user has allowed for good.

/**
 * @typedef {"once" | "always" | {denied: string}} Answer `denied`: why, for the
 *   model; may be empty
 * @typedef {(call: import("../../js/session.js").ApprovalCall) => Promise<Answer>} Ask
 */

export class Approvals {
  #ask;
  #allowed = new Set();
  /** One question at a time: its answer may settle the next one. */
  #turn = Promise.resolve();

  /** @param {Ask} ask shows a call to the user */
  constructor(ask) {
    this.#ask = ask;
  }

  /** As `approve` of a session. @param {import("../../js/session.js").ApprovalCall} call */
  approve = (call) => {
    const answer = this.#turn.then(() => this.#decide(call));
    this.#turn = answer.catch(() => {});
    return answer;
  };

  async #decide(call) {
    if (this.#allowed.has(subject(call))) return true;
    if (call.signal.aborted) return false;
    const answer = await this.#ask(call);
    if (answer === "always") this.#allowed.add(subject(call));
    if (answer === "once" || answer === "always") return true;
    return answer.denied || false;
  }
}

/** What "always" is about: this very command, or whatever the tool does. */
function subject({ name, arguments: given }) {
  return isCommand(given) ? JSON.stringify([name, given.command]) : JSON.stringify([name]);
}

/** Whether a call runs a command. @param {any} given its arguments */
export function isCommand(given) {
  return typeof given?.command === "string";
}
