//! Effects and outcomes: everything the core wants from the outside, as data.
//!
//! The core imports nothing. What it wants it returns from `step` as an
//! [`Effect`]; the host performs it and hands back [`Outcome`]s: any number of
//! streamed ones, then exactly one final one, also after [`EffectKind::Cancel`].
//! ARCHITECTURE.md, *One step*, describes the exchange.

mod environment;
mod executor;
mod loan;
mod port;
mod random;

pub use executor::Executor;
pub(crate) use executor::Spawner;
pub use port::EffectPort;
pub(crate) use port::Pending;
pub(crate) use random::Random;

use std::rc::Rc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentReply, ExecRequest, ExecStatus, OutputStream,
};
use crate::llm::{Content, HttpRequest, TransportError};

/// Something that the core wants done.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Unique within the instance; outcomes name it.
    pub id: u64,
    /// Session or job on whose behalf it is done.
    pub owner: Rc<str>,
    /// What to do.
    pub kind: EffectKind,
}

/// The kinds of effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// One HTTP exchange. Outcomes: `HttpHead`, `HttpChunk`…, then `HttpEnd`,
    /// `HttpFailed` or `Cancelled`.
    Http(HttpRequest),
    /// One command. Outcomes: `ExecOutput`…, then `ExecEnd` (also when
    /// cancelled, with `ExecStatus::cancelled`) or `ExecFailed`.
    Exec {
        /// Number of the environment, as given at open.
        environment: u32,
        /// The command.
        request: ExecRequest,
    },
    /// One call to an environment. Outcome: `Environment` or `Cancelled`.
    Environment {
        /// Number of the environment, as given at open.
        environment: u32,
        /// The call.
        call: EnvironmentCall,
    },
    /// A tool that the host registered. Outcomes: `ToolOutput`…, then
    /// `ToolEnd` or `Cancelled`. Until then the tool may use the environment of
    /// its session, see [`crate::session::Instance::act`].
    CallTool {
        /// Name it was registered under.
        name: String,
        /// Id of the model's call.
        call_id: String,
        /// Id of the subagent whose model calls, if it is one's.
        agent_id: Option<String>,
        /// Directory that relative paths of the call start at.
        working_directory: String,
        /// Validated arguments, a JSON object.
        arguments: String,
    },
    /// A program lent to the in-memory shell. Outcome: `ProgramEnd` or `Cancelled`.
    RunProgram(crate::environment::ProgramRequest),
    /// A decision that only the host can make. Outcome: `Approval` or `Cancelled`.
    AskApproval {
        /// Tool about to run.
        tool_name: String,
        /// Id of the model's call.
        call_id: String,
        /// Validated arguments under the names of the specification, a JSON object.
        arguments: String,
        /// Why the policy asks.
        reason: String,
    },
    /// Outcome `Slept` after `ms` milliseconds, or `Cancelled`.
    Sleep {
        /// Duration in ms.
        ms: u64,
    },
    /// Stop effect `target` now. Has no outcome; `target` still gets
    /// its final outcome within 2.5 s, with what had arrived.
    Cancel {
        /// Id of the effect to stop.
        target: u64,
    },
}

impl EffectKind {
    /// Whether performing it may change something outside of the core, or costs money.
    /// A log holds such an effect before it is performed.
    pub fn acts(&self) -> bool {
        match self {
            Self::Http(_) | Self::Exec { .. } | Self::CallTool { .. } | Self::RunProgram(_) => true,
            Self::Environment { call, .. } => call.writes(),
            Self::AskApproval { .. } | Self::Sleep { .. } | Self::Cancel { .. } => false,
        }
    }
}

/// What became of an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Id of the effect. Outcomes for unknown or finished ids are ignored.
    pub id: u64,
    /// What happened.
    pub kind: OutcomeKind,
}

/// The kinds of outcome; see [`EffectKind`] for which belongs to which.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// Streamed: status line and headers arrived.
    HttpHead {
        /// Status code.
        status: u16,
        /// Header names in lower case, with values.
        headers: Vec<(String, String)>,
    },
    /// Streamed: a piece of the body.
    HttpChunk(#[serde(with = "crate::text::blob")] Bytes),
    /// Final: the body is complete.
    HttpEnd,
    /// Final: no response, or the body broke off.
    HttpFailed(TransportError),
    /// Streamed: output of a command.
    ExecOutput {
        /// Which pipe.
        stream: OutputStream,
        /// The bytes, cut anywhere.
        #[serde(with = "crate::text::blob")]
        data: Bytes,
    },
    /// Final: the command ended, by itself, by timeout or by cancel.
    ExecEnd(ExecStatus),
    /// Final: the command could not be started.
    ExecFailed(EnvironmentError),
    /// Final: answer to an environment call.
    Environment(Result<EnvironmentReply, EnvironmentError>),
    /// Streamed: progress text of a host tool.
    ToolOutput(String),
    /// Final: result of a host tool.
    ToolEnd(HostToolResult),
    /// Final: the lent program ended.
    ProgramEnd(crate::environment::ProgramResult),
    /// Final: the host decided.
    Approval(Approval),
    /// Final: the time is over.
    Slept,
    /// Final: stopped by `Cancel`, after what had arrived.
    Cancelled,
}

impl OutcomeKind {
    /// Whether no other outcome follows.
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            Self::HttpHead { .. }
                | Self::HttpChunk(_)
                | Self::ExecOutput { .. }
                | Self::ToolOutput(_)
        )
    }
}

/// What a host tool returns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostToolResult {
    /// What the model gets: text, images and documents. Of a part that it cannot
    /// have it reads why.
    pub content: Content,
    /// The model sees it as a failure that it can react to.
    pub is_error: bool,
}

impl HostToolResult {
    /// What the tool found or did.
    pub fn ok(content: impl Into<Content>) -> Self {
        Self {
            content: content.into(),
            is_error: false,
        }
    }

    /// Why the tool failed, for the model to react to.
    pub fn error(message: impl Into<Content>) -> Self {
        Self {
            content: message.into(),
            is_error: true,
        }
    }
}

/// Answer to [`EffectKind::AskApproval`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Run the tool.
    Allow,
    /// Do not; the model reads the reason.
    Deny {
        /// One sentence.
        reason: String,
    },
    /// Do not: nobody is there who could decide.
    NoApprover,
}
