// Typed errors. Every one has a `kind`, a stable name, and a message that is
// one sentence naming the thing and the way out.

/** Base class of everything that this package throws. */
export class HermitcrabError extends Error {
  /** @param {string} kind @param {string} message @param {ErrorOptions} [options] */
  constructor(kind, message, options) {
    super(message, options);
    /** @type {string} */
    this.kind = kind;
  }

  // Not `new.target.name`: bundlers shorten the names of classes.
  static {
    this.prototype.name = "HermitcrabError";
  }
}

/**
 * A call that cannot be carried out; nothing has changed. Kinds:
 * `illegal_state`, `closed`, `invalid_config`, `unknown_provider`, `not_found`,
 * `invalid_tool`, `invalid_input`.
 */
export class SessionError extends HermitcrabError {
  static {
    this.prototype.name = "SessionError";
  }
}

/**
 * An environment could not do what was asked. Kinds: `not_found`,
 * `permission_denied`, `is_directory`, `not_directory`, `read_only`,
 * `invalid_input`, `too_large`, `unsupported`, `cancelled`, `io`; of projects
 * also `locked`, `storage_full` and `storage_denied`. Environments of your own
 * throw it, or any error with such a `kind` or a Node `code`.
 */
export class EnvironmentError extends HermitcrabError {
  static {
    this.prototype.name = "EnvironmentError";
  }
}

/**
 * A model gave no answer. Kinds: `invalid_request`, `authentication`,
 * `access_denied`, `not_found`, `request_timeout`, `context_length`,
 * `rate_limit`, `quota_exceeded`, `content_filter`, `server`, `network`,
 * `stream`, `abort`, `unsupported_tool_choice`, `no_object_generated`,
 * `configuration`, `unknown`.
 */
export class ModelError extends HermitcrabError {
  static {
    this.prototype.name = "ModelError";
  }

  /** @param {any} told by the core */
  constructor(told) {
    super(told.kind, told.message);
    /** Whose model it is. @type {string} */
    this.provider = told.provider;
    /** HTTP status, if there was one. @type {number | undefined} */
    this.status = told.status;
    /** The provider's own code. @type {string | undefined} */
    this.code = told.code;
    /** Whether the same request may succeed later. @type {boolean} */
    this.retryable = told.retryable;
    /** How long the provider asks to wait. @type {number | undefined} */
    this.retryAfterMs = told.retry_after_ms;
    /** The error as it came. @type {unknown} */
    this.raw = told.raw;
  }
}

/** A log that is repeated goes another way. Kind: `differs`. */
export class ReplayError extends HermitcrabError {
  static {
    this.prototype.name = "ReplayError";
  }

  /** @param {any} difference as the core tells it */
  constructor({ kind, message, step, round, what, recorded, replayed }) {
    super(kind, message);
    /** Number of the step, from 1. @type {number} */
    this.step = step;
    /** Answers of models before it. @type {number} */
    this.round = round;
    /** What differs: `event 3`, `effect 1`. @type {string} */
    this.what = what;
    /** What the log has; empty: nothing. @type {string} */
    this.recorded = recorded;
    /** What the core did; empty: nothing. @type {string} */
    this.replayed = replayed;
  }
}

/** The core itself failed and can do nothing more. Kind: `core`. */
export class CoreError extends HermitcrabError {
  /** @param {unknown} cause */
  constructor(cause) {
    super("core", `the core failed and its sessions are lost: ${text(cause)}`, { cause });
  }

  static {
    this.prototype.name = "CoreError";
  }

  /** With another sentence. @param {string} message @param {ErrorOptions} [options] */
  static saying(message, options = {}) {
    const error = new CoreError(options.cause);
    error.message = message;
    return error;
  }
}

/**
 * What a call of the core threw, as an error of `Class`. Exports throw plain
 * `{kind, message}`. Anything else was thrown on the way in, by the bindings or
 * by what the caller gave, and nothing has happened, unless the core itself died.
 * @param {unknown} error @param {typeof HermitcrabError} Class
 */
export function typed(error, Class) {
  if (error instanceof HermitcrabError) return error;
  if (isDeath(error)) return new CoreError(error);
  if (error instanceof Error || typeof error?.kind !== "string") {
    return new Class("invalid_input", `an argument is of the wrong type: ${text(error)}`, { cause: error });
  }
  return new Class(error.kind, error.message);
}

/**
 * Whether the core itself failed: a trap, a panic (src/web/mod.rs says it so),
 * or an exhausted stack, which browsers call differently.
 */
function isDeath(error) {
  if (!(error instanceof Error)) return false;
  if (error instanceof WebAssembly.RuntimeError || isStackEnd(error)) return true;
  return error.message.startsWith("the core panicked: ");
}

/** Whether a stack ended: that of JavaScript, or the core's own, which lies at the beginning of its memory. */
export function isStackEnd(error) {
  if (error instanceof WebAssembly.RuntimeError) return /out of bounds/i.test(error.message);
  return error?.name === "InternalError" || (error instanceof RangeError && /stack/i.test(error.message));
}

/** Node's error codes as kinds of environment error. */
const CODES = {
  ENOENT: "not_found",
  EACCES: "permission_denied",
  EPERM: "permission_denied",
  EISDIR: "is_directory",
  ENOTDIR: "not_directory",
  EROFS: "read_only",
  EINVAL: "invalid_input",
  EFBIG: "too_large",
  ENOSYS: "unsupported",
  ENOTSUP: "unsupported",
};

/** @param {unknown} code of Node's @returns {string | undefined} */
export const kindOfCode = (code) => CODES[/** @type {string} */ (code)];

/**
 * What an environment of the user's threw, as `{kind, message}` for the core.
 * @param {unknown} error
 */
export function environmentFailure(error) {
  const kind = kindOfCode(error?.code) ?? (error?.name === "AbortError" ? "cancelled" : error?.kind);
  return { kind: kind ?? "io", message: text(error) };
}

/**
 * What an error says, and what the errors behind it say. It may be anything,
 * also something that cannot be looked at.
 * @param {unknown} error @param {number} [depth] of the cause, which may be a circle
 * @returns {string}
 */
export function text(error, depth = 0) {
  try {
    const said = own(error);
    const { cause } = error ?? {};
    if (cause === undefined || cause === null || depth > 4) return said;
    const behind = text(cause, depth + 1);
    return said.includes(behind) ? said : `${said}: ${behind}`;
  } catch {
    return "something was thrown that cannot be shown";
  }
}

function own(error) {
  if (error instanceof Error) return error.message || error.name;
  if (typeof error === "string") return error;
  if (typeof error?.message === "string") return `threw ${error.message}`;
  try {
    return `threw ${JSON.stringify(error) ?? String(error)}`;
  } catch {
    return `threw ${Object.prototype.toString.call(error)}`;
  }
}
