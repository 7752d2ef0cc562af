// Approvals of one session: which calls the user has allowed for good.

/**
 * @typedef {"once" | "always" | {denied: string}} Answer `denied`: why, for the
 *   model; may be empty
 * @typedef {(call: import("../../../js/session/session.js").ApprovalCall) => Promise<Answer>} Ask
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

  /** As `approve` of a session. @param {import("../../../js/session/session.js").ApprovalCall} call */
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

/**
 * Which calls wait for an answer. The question and the event that tells of it
 * come in any order, and only the event names the agent.
 */
export class Waiting {
  /** What each one asks. @type {Map<string, string>} */
  #asked = new Map();
  /** What was allowed before its event came. @type {string[]} */
  #early = [];

  /** An event tells that `call` waits; says whether it does still. @param {string} call @param {string} id @param {any} given its arguments */
  asked(call, id, given) {
    const early = this.#early.indexOf(JSON.stringify([id, given]));
    if (early >= 0) this.#early.splice(early, 1);
    else this.#asked.set(call, JSON.stringify([id, given]));
    return early < 0;
  }

  /** It was allowed: its name, if its event has come. @param {string} id @param {any} given its arguments @returns {string | undefined} */
  allowed(id, given) {
    const what = JSON.stringify([id, given]);
    const [call] = [...this.#asked].find(([, asked]) => asked === what) ?? [];
    if (call === undefined) this.#early.push(what);
    else this.#asked.delete(call);
    return call;
  }

  /** It has ended, whatever the answer was. @param {string} call */
  over(call) {
    this.#asked.delete(call);
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
