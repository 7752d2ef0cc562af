// What every entry file exports, with or without a sandbox.

export { init } from "./runtime.js";
export { Session, createSession } from "./session.js";
export { CoreError, EnvironmentError, HermitcrabError, SessionError } from "./errors.js";
