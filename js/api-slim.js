// What every entry file exports, with or without a sandbox.

import { createSessionIn } from "./session/session.js";
import { SessionError } from "./shared/errors.js";

export { init } from "./core/runtime.js";
export { RunError } from "./session/prompt-result.js";
export { Session } from "./session/session.js";
export { CoreError, EnvironmentError, HermitcrabError, SessionError } from "./shared/errors.js";
export { defineTool } from "./tool/tool.js";

/**
 * Opens a session.
 * @param {import("./session/session.js").SessionOptions} [options]
 * @returns {Promise<import("./session/session.js").Session>}
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
 * @typedef {import("./session/session.js").Tool<P>} Tool
 */

/**
 * @template [Input=unknown] @template [Output=Input]
 * @typedef {import("./session/session.js").StandardSchema<Input, Output>} StandardSchema
 */

/**
 * @typedef {import("./session/session.js").SessionOptions} SessionOptions
 * @typedef {import("./session/session.js").ToolContext} ToolContext
 * @typedef {import("./session/session.js").CustomFormat} CustomFormat
 * @typedef {import("./session/session.js").FetchInit} FetchInit
 * @typedef {import("./model/model-client.js").ModelOptions} ModelOptions
 * @typedef {import("./model/model-client.js").ModelRequest} ModelRequest
 * @typedef {import("./types.js").ModelMessage} ModelMessage
 * @typedef {import("./types.js").ModelPart} ModelPart
 * @typedef {import("./types.js").ModelResponse} ModelResponse
 * @typedef {import("./types.js").ModelEvent} ModelEvent
 * @typedef {import("./session/prompt-result.js").PromptResult} PromptResult
 * @typedef {import("./session/prompt-result.js").RunUsage} RunUsage
 * @typedef {import("./session/session.js").ApprovalCall} ApprovalCall
 * @typedef {import("./events.js").SessionEvent} SessionEvent
 * @typedef {import("./events.js").EventKind} EventKind
 * @typedef {import("./types.js").SessionSettings} SessionSettings
 * @typedef {import("./types.js").ChangeableSettings} ChangeableSettings
 * @typedef {import("./events.js").EventBase} EventBase
 * @typedef {import("./events.js").SessionState} SessionState
 * @typedef {import("./events.js").CloseReason} CloseReason
 * @typedef {import("./events.js").EndReason} EndReason
 * @typedef {import("./events.js").UsagePurpose} UsagePurpose
 * @typedef {import("./events.js").CompactionReason} CompactionReason
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
 * @typedef {import("./tool/content.js").TextPart} TextPart
 * @typedef {import("./tool/content.js").ImagePart} ImagePart
 * @typedef {import("./tool/content.js").DocumentPart} DocumentPart
 * @typedef {import("./tool/content.js").Part} Part
 * @typedef {import("./tool/content.js").Input} Input
 * @typedef {import("./core/tool-environment.js").ToolEnvironment} ToolEnvironment
 * @typedef {import("./core/runtime.js").InitOptions} InitOptions
 * @typedef {import("./core/runtime.js").WasmSource} WasmSource
 * @typedef {import("./environment/custom-environment.js").CustomEnvironment} CustomEnvironment
 * @typedef {import("./environment/custom-environment.js").CustomCalls} CustomCalls
 * @typedef {import("./environment/custom-environment.js").Wrapping} Wrapping
 * @typedef {import("./environment/custom-environment.js").ExecOptions} ExecOptions
 * @typedef {import("./environment/custom-environment.js").ExecResult} ExecResult
 * @typedef {import("./environment/custom-environment.js").Stat} Stat
 * @typedef {import("./environment/custom-environment.js").Entry} Entry
 * @typedef {import("./environment/custom-environment.js").GrepQuery} GrepQuery
 */
