//! Events: what happened, for people and logs. The public contract of a session.
//!
//! Every event is one JSON object `{"kind", "seq", "timestamp", "session_id",
//! "data"}`, of a subagent also `agent_id` and `parent_id`: subagents speak on
//! the stream of the session that the host opened. `timestamp` is RFC 3339 in
//! UTC with milliseconds. `seq` counts the events of that stream from 1 without
//! gaps. Consumers ignore kinds and fields that they do not know.
//! Source: spec 2.9, and kinds for what hosts must show that the spec lacks
//! (`WARNING`, `USAGE`, `RETRY` and others).

use std::rc::Rc;

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::llm::{Content, Media, Sampled};

/// One event of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// What happened, with its data.
    #[serde(flatten)]
    pub kind: EventKind,
    /// 1, 2, 3, … on the session's stream.
    pub seq: u64,
    /// When, RFC 3339 in UTC.
    pub timestamp: String,
    /// Session that the host opened.
    pub session_id: Rc<str>,
    /// Id of the subagent, for events of a subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Rc<str>>,
    /// Session or subagent that spawned the subagent, for events of a subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<Rc<str>>,
}

impl Event {
    /// The event as JSON bytes, the form in which hosts get it.
    pub fn to_json(&self) -> Bytes {
        let mut json = Vec::new();
        self.write_json(&mut json);
        Bytes::from(json)
    }

    /// Appends what [`Event::to_json`] returns.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        // A struct of strings, numbers and JSON values always serialises.
        let _ = serde_json::to_writer(out, self);
    }
}

/// `ms` since 1970-01-01 UTC as RFC 3339 with milliseconds.
pub fn rfc3339(ms: u64) -> String {
    i64::try_from(ms)
        .ok()
        .and_then(DateTime::<Utc>::from_timestamp_millis)
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "kind",
    content = "data",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "snake_case"
)]
pub enum EventKind {
    /// The session exists and accepts input. First event of a session.
    SessionStart {
        /// Provider in use, such as `anthropic`.
        provider: String,
        /// Model in use.
        model: String,
        /// Directory that relative paths start at.
        working_directory: String,
        /// Platform of the environment.
        platform: String,
    },
    /// The session is closed. Last event of a session.
    SessionEnd {
        /// Always `CLOSED`.
        state: SessionState,
        /// Why.
        reason: CloseReason,
        /// What the session has used; absent where the core failed, which
        /// alone knew it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        totals: Option<Totals>,
        /// The final answer of the last input, as its `PROCESSING_END` had it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
    },
    /// The session moved to another state (spec 2.3).
    StateChanged {
        /// State before.
        from: SessionState,
        /// State now.
        to: SessionState,
    },
    /// An input is about to be processed; also for follow-ups and answers.
    UserInput {
        /// The text of the input.
        content: String,
        /// Images and documents that came with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// An input is done. The session is ready for the next one unless
    /// `SESSION_END` follows.
    ProcessingEnd {
        /// Why the loop stopped.
        reason: EndReason,
        /// Tool rounds used by this input.
        rounds: u32,
        /// Assistant turns of the session so far.
        turns: u32,
        /// What the session has used so far.
        totals: Totals,
        /// The final answer, where the session has an `output_schema` that it follows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
    },
    /// The model began to answer.
    AssistantTextStart {},
    /// A piece of the answer.
    AssistantTextDelta {
        /// The piece.
        text: String,
    },
    /// A piece of the model's reasoning.
    ReasoningDelta {
        /// The piece.
        text: String,
    },
    /// The answer is complete. Emitted once per model response, also when it
    /// holds no text but only tool calls.
    AssistantTextEnd {
        /// All text of the answer.
        text: String,
        /// All reasoning text, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        /// The provider's id of the response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_id: Option<String>,
        /// Why the model stopped: `stop`, `length`, `tool_calls`, `content_filter`, `error`, `other`.
        finish_reason: String,
    },
    /// Tokens, price and time of one model response. An attempt that broke off
    /// has none.
    Usage {
        /// What the response was for; absent: an answer of the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        purpose: Option<UsagePurpose>,
        /// Model that was asked.
        model: String,
        /// Every token that the model read, cached ones included.
        prompt_tokens: u64,
        /// Input tokens as the provider counts them: Anthropic leaves cached
        /// tokens out, the others include them.
        input_tokens: u64,
        /// Output tokens, reasoning included.
        output_tokens: u64,
        /// Part of the output that was reasoning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning_tokens: Option<u64>,
        /// Input tokens read from the provider's cache.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache_read_tokens: Option<u64>,
        /// Input tokens written to the provider's cache.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache_write_tokens: Option<u64>,
        /// Price in US dollars; absent where the model's price is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Time from sending the request to the end of the stream, in ms.
        model_ms: u64,
        /// 1 for the first attempt, 2 for the first retry, and so on.
        attempt: u32,
        /// Token ids and log probabilities, where `provider_options` ask for them and the
        /// provider gives them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sampled: Option<Box<Sampled>>,
    },
    /// A tool is about to run.
    ToolCallStart {
        /// Tool.
        tool_name: String,
        /// Id of the call.
        call_id: String,
        /// Arguments: the parsed object, or the raw text if it is not JSON.
        arguments: Value,
    },
    /// Output of a running tool, as it arrives; together all of it.
    ToolCallOutputDelta {
        /// Id of the call.
        call_id: String,
        /// `stdout`, `stderr`, or absent for progress of a host tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stream: Option<String>,
        /// The piece; invalid UTF-8 becomes U+FFFD.
        text: String,
    },
    /// A tool has finished.
    ToolCallEnd {
        /// Tool.
        tool_name: String,
        /// Id of the call.
        call_id: String,
        /// Full, untruncated output (bounded by `max_captured_bytes`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// Why it failed, when it could not produce output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Images and documents that the model got beside the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Whether the model gets it as an error.
        is_error: bool,
        /// Why it was not allowed to run, if it was not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<Refusal>,
        /// Bytes of output that there were.
        output_bytes: u64,
        /// Whether `output` holds all of them.
        output_complete: bool,
        /// Exit code, of commands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Whether the time limit ended it, of commands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timed_out: Option<bool>,
        /// Time it took in ms.
        duration_ms: u64,
    },
    /// The host is asked whether a tool may run.
    ApprovalRequested {
        /// Tool.
        tool_name: String,
        /// Id of the call.
        call_id: String,
        /// Validated arguments, under the names of the specification.
        arguments: Value,
        /// Why the policy asks.
        reason: String,
    },
    /// A steering message waits for the end of the tool round.
    SteeringQueued {
        /// Number of the message within the session, from 1.
        id: u64,
        /// The text of the message.
        content: String,
        /// Images and documents that came with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A steering turn was added to the history.
    SteeringInjected {
        /// Number of the message within the session; absent where the session
        /// wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        /// Who wrote it.
        source: SteeringSource,
        /// The text of the message.
        content: String,
        /// Images and documents that came with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A steering message will never be delivered: the session closed.
    SteeringDropped {
        /// Number of the message within the session.
        id: u64,
        /// The text of the message.
        content: String,
        /// Images and documents that came with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A follow-up will never be processed: the session closed.
    FollowUpDropped {
        /// The text of the follow-up.
        content: String,
        /// Images and documents that came with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A limit ended the input.
    TurnLimit {
        /// Which limit.
        limit: LimitKind,
        /// Its value.
        value: u64,
        /// Tool rounds used by this input.
        round: u32,
        /// Assistant turns of the session so far.
        total_turns: u32,
    },
    /// The model is about to summarise the older part of the conversation.
    CompactionStart {
        /// Why.
        reason: CompactionReason,
        /// Tokens of the conversation, an estimate where the provider has not counted.
        before_tokens: u64,
        /// Tokens that fit the model; 0: not known.
        context_window: u64,
    },
    /// From here on the model reads a summary in place of the older part of the
    /// conversation; with `error`, everything is as it was. What went stays in the
    /// history.
    CompactionEnd {
        /// Tokens before.
        before_tokens: u64,
        /// Tokens now, an estimate.
        after_tokens: u64,
        /// How many of the last turns stay as they are.
        kept_turns: u64,
        /// The summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Why there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The last tool calls repeat a pattern; the model gets a warning.
    LoopDetection {
        /// The warning.
        message: String,
        /// Length of the pattern: 1, 2 or 3.
        pattern_length: u32,
    },
    /// Something that a person should know and that stops nothing.
    Warning {
        /// Stable name, such as `context_usage`.
        code: String,
        /// One sentence.
        message: String,
    },
    /// A model call failed and will be made again.
    Retry {
        /// Number of the coming attempt, from 2.
        attempt: u32,
        /// Wait before it, in ms.
        delay_ms: u64,
        /// Why the last attempt failed.
        message: String,
        /// The answer shown so far is void; clear it.
        discard_partial: bool,
    },
    /// A model call failed for good, or the session cannot go on.
    Error {
        /// Stable name, such as `authentication`.
        code: String,
        /// One sentence that names the thing and the way out.
        message: String,
        /// HTTP status, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Whether the same request may succeed later.
        retryable: bool,
    },
}

/// What a session, or a subagent, has used since it was opened, its own
/// subagents included: the sum of its `USAGE` events and theirs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Totals {
    /// Model responses.
    pub responses: u64,
    /// Every token that models read, cached ones included.
    pub prompt_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Part of the output that was reasoning, as far as providers tell.
    pub reasoning_tokens: u64,
    /// Part of the prompts that came from the providers' caches.
    pub cache_read_tokens: u64,
    /// Part of the prompts that was written to the providers' caches.
    pub cache_write_tokens: u64,
    /// Price in US dollars; absent where that of any response is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// What a model's response was for, where it is no answer of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UsagePurpose {
    /// A summary of the conversation.
    Compaction,
}

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CompactionReason {
    /// The `threshold` of the setting `compaction`.
    Threshold,
    /// `compact()`.
    Call,
    /// The provider found a request too long.
    ContextLength,
}

/// An image or a document that came with a text. Its bytes are in the history,
/// not in the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attachment {
    /// What it is.
    pub kind: AttachmentKind,
    /// Media type, such as `image/png`, `application/pdf` or `text/plain`.
    pub media_type: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Name of the file, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Kinds of [`Attachment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AttachmentKind {
    /// An image.
    Image,
    /// A document.
    Document,
}

impl Attachment {
    /// The attachments of `content`, in order.
    pub(crate) fn all(content: &Content) -> Vec<Self> {
        content.media().map(Self::from).collect()
    }
}

impl From<&Media> for Attachment {
    fn from(media: &Media) -> Self {
        Self {
            kind: match media.media_type.starts_with("image/") {
                true => AttachmentKind::Image,
                false => AttachmentKind::Document,
            },
            media_type: media.media_type.clone(),
            bytes: media.len() as u64,
            name: media.file_name.clone(),
        }
    }
}

/// State of a session (spec 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SessionState {
    /// Waiting for input.
    Idle,
    /// Running the loop.
    Processing,
    /// The model asked the user something; the next `submit` is the answer.
    AwaitingInput,
    /// Ended; nothing is accepted any more.
    Closed,
}

/// Why a tool call was not allowed to run (`docs/approval.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The policy denies it; nobody was asked.
    DeniedByPolicy,
    /// The policy asks, and the answer was no.
    NotApproved,
    /// The policy asks, and nobody was there to answer.
    NoApprover,
}

/// Why an input ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The model answered without tool calls.
    Completed,
    /// The model asked the user something.
    AwaitingInput,
    /// `max_tool_rounds_per_input`.
    RoundLimit,
    /// `max_turns`.
    TurnLimit,
    /// `max_wall_ms`.
    TimeLimit,
    /// `max_cost_usd`.
    CostLimit,
    /// `interrupt()`.
    Interrupted,
    /// `abort()` or `close()`.
    Aborted,
    /// An error that retries did not cure.
    Error,
}

/// Why a session closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// `close()`.
    Closed,
    /// `abort()`.
    Aborted,
    /// An error that no later input could cure.
    Error,
}

/// Who wrote a steering turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SteeringSource {
    /// `steer()`.
    Host,
    /// The session, because tool calls repeat a pattern.
    Repetition,
    /// The session, because the token limit cut off a tool call.
    CallCutOff,
    /// The session, because the final answer does not follow `output_schema`.
    OutputSchema,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Tool rounds of one input.
    ToolRounds,
    /// Assistant turns of the session.
    Turns,
    /// Wall time of one input, in ms.
    WallTime,
    /// Price of the session with its subagents, in millionths of a US dollar.
    Cost,
}
