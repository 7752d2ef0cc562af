// What every entry file exports, with or without a sandbox.

import { SessionError } from "./errors.js";
import { createSessionIn } from "./session.js";

export { init } from "./runtime.js";
export { RunError } from "./prompt.js";
export { Session } from "./session.js";
export { CoreError, EnvironmentError, HermitcrabError, SessionError } from "./errors.js";
export { defineTool } from "./tool.js";

/**
 * Opens a session.
 * @param {import("./session.js").SessionOptions} [options]
 * @returns {Promise<import("./session.js").Session>}
 */
export function createSession(options = {}) {
  return createSessionIn(options, () => {
    throw new SessionError("invalid_input", "give env: this entry of the package has no sandbox of its own");
  });
}

/**
 * @template {import("./events.js").EventKind} K
 * @typedef {import("./events.js").EventData<K>} EventData
 */

/**
 * @template [P=any]
 * @typedef {import("./session.js").Tool<P>} Tool
 */

/**
 * @template [Input=unknown] @template [Output=Input]
 * @typedef {import("./session.js").StandardSchema<Input, Output>} StandardSchema
 */

/**
 * @typedef {import("./session.js").SessionOptions} SessionOptions
 * @typedef {import("./session.js").ToolContext} ToolContext
 * @typedef {import("./session.js").CustomFormat} CustomFormat
 * @typedef {import("./session.js").FetchInit} FetchInit
 * @typedef {import("./model.js").ModelOptions} ModelOptions
 * @typedef {import("./model.js").ModelRequest} ModelRequest
 * @typedef {import("./types.js").ModelMessage} ModelMessage
 * @typedef {import("./types.js").ModelPart} ModelPart
 * @typedef {import("./types.js").ModelResponse} ModelResponse
 * @typedef {import("./types.js").ModelEvent} ModelEvent
 * @typedef {import("./prompt.js").PromptResult} PromptResult
 * @typedef {import("./prompt.js").RunUsage} RunUsage
 * @typedef {import("./session.js").ApprovalCall} ApprovalCall
 * @typedef {import("./events.js").SessionEvent} SessionEvent
 * @typedef {import("./events.js").EventKind} EventKind
 * @typedef {import("./types.js").SessionSettings} SessionSettings
 * @typedef {import("./types.js").ChangeableSettings} ChangeableSettings
 * @typedef {import("./events.js").EventBase} EventBase
 * @typedef {import("./events.js").SessionState} SessionState
 * @typedef {import("./events.js").CloseReason} CloseReason
 * @typedef {import("./events.js").EndReason} EndReason
 * @typedef {import("./events.js").Refusal} Refusal
 * @typedef {import("./events.js").LimitKind} LimitKind
 * @typedef {import("./events.js").Totals} Totals
 * @typedef {import("./types.js").Prices} Prices
 * @typedef {import("./events.js").SteeringSource} SteeringSource
 * @typedef {import("./types.js").Provider} Provider
 * @typedef {import("./types.js").ProfileSettings} ProfileSettings
 * @typedef {import("./types.js").Turn} Turn
 * @typedef {import("./types.js").Usage} Usage
 * @typedef {import("./types.js").ToolCall} ToolCall
 * @typedef {import("./types.js").ToolResult} ToolResult
 * @typedef {import("./types.js").Agent} Agent
 * @typedef {import("./types.js").Media} Media
 * @typedef {import("./types.js").Content} Content
 * @typedef {import("./events.js").Attachment} Attachment
 * @typedef {import("./events.js").AttachmentKind} AttachmentKind
 * @typedef {import("./events.js").Sampled} Sampled
 * @typedef {import("./content.js").TextPart} TextPart
 * @typedef {import("./content.js").ImagePart} ImagePart
 * @typedef {import("./content.js").DocumentPart} DocumentPart
 * @typedef {import("./content.js").Part} Part
 * @typedef {import("./content.js").Input} Input
 * @typedef {import("./tool-environment.js").ToolEnvironment} ToolEnvironment
 * @typedef {import("./runtime.js").InitOptions} InitOptions
 * @typedef {import("./runtime.js").WasmSource} WasmSource
 * @typedef {import("./environment.js").CustomEnvironment} CustomEnvironment
 * @typedef {import("./environment.js").CustomCalls} CustomCalls
 * @typedef {import("./environment.js").Wrapping} Wrapping
 * @typedef {import("./environment.js").ExecOptions} ExecOptions
 * @typedef {import("./environment.js").ExecResult} ExecResult
 * @typedef {import("./environment.js").Stat} Stat
 * @typedef {import("./environment.js").Entry} Entry
 * @typedef {import("./environment.js").GrepQuery} GrepQuery
 */
