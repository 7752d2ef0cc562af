//! `Core`: one core instance, whichever way it runs.
//!
//! Two implementations: [`ComponentCore`](crate::ComponentCore), the sealed
//! component under wasmtime, and [`NativeCore`](crate::NativeCore), the same
//! code as a Rust library. The driver knows only this trait. All types are
//! plain data that can cross threads.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use hermitcrab::effect::{EffectKind, Outcome};
use hermitcrab::environment::EnvironmentError;
use hermitcrab::memory::EndReason;
use hermitcrab::session::{
    CallError, InstanceCall, InstanceReply, JobReportKind, LogLine, SessionCall, SessionError,
    SessionReply,
};

/// One core instance. Calls queue what they bring and return at once; a later
/// [`step`](Core::step) does the work. The contract of each call is that of
/// `wit/hermitcrab.wit`.
///
/// After a [`CoreError::Failed`] the instance is dead: every later call answers
/// the same.
pub trait Core: Send {
    /// Delivers outcomes, does what can be done without waiting, and returns
    /// what came of it. `now_ms` is ms since 1970-01-01 UTC.
    fn step(&mut self, now_ms: u64, outcomes: Vec<Outcome>) -> CallResult<CoreStep>;

    /// Makes a call; what answers it stands at [`InstanceCall`].
    ///
    /// The methods below make a call that answers one kind of thing. Their errors are
    /// those of the call; a core that answers something else is of another version.
    fn call(&mut self, call: InstanceCall) -> CallResult<InstanceReply>;

    /// Makes a call that answers nothing.
    fn tell(&mut self, call: InstanceCall) -> CallResult<()> {
        self.call(call).map(drop)
    }

    /// Makes a call that answers a number.
    fn number(&mut self, call: InstanceCall) -> CallResult<u64> {
        match self.call(call)? {
            InstanceReply::Number(number) => Ok(number),
            other => Err(out_of_place("a number", &other)),
        }
    }

    /// Makes a call that answers the number of an environment or of a log.
    fn small_number(&mut self, call: InstanceCall) -> CallResult<u32> {
        let number = self.number(call)?;
        u32::try_from(number)
            .map_err(|_| out_of_place("a smaller number", &InstanceReply::Number(number)))
    }

    /// Makes a call that answers an id.
    fn id(&mut self, call: InstanceCall) -> CallResult<Arc<str>> {
        match self.call(call)? {
            InstanceReply::Id(id) => Ok(id.into()),
            other => Err(out_of_place("an id", &other)),
        }
    }

    /// A sandbox's working directory as a tar archive.
    fn export_tar(&mut self, environment: u32) -> CallResult<Bytes> {
        self.archive(InstanceCall::ExportTar { environment })
    }

    /// Makes a call that answers an archive.
    fn archive(&mut self, call: InstanceCall) -> CallResult<Bytes> {
        match self.call(call)? {
            InstanceReply::Archive(archive) => Ok(archive),
            other => Err(out_of_place("an archive", &other)),
        }
    }

    /// Makes a call on a session.
    fn ask(&mut self, session: &str, ask: SessionCall) -> CallResult<SessionReply> {
        let session = session.to_owned();
        match self.call(InstanceCall::Session { session, ask })? {
            InstanceReply::Session(reply) => Ok(reply),
            other => Err(out_of_place("what a session answers", &other)),
        }
    }
}

/// A core that answered something else than the call promises.
pub(crate) fn out_of_place(promised: &str, reply: &impl fmt::Debug) -> CoreError {
    CoreError::Failed(CoreFailure {
        code: "core_trapped",
        message: format!("the core answered {reply:.60?} where {promised} was due"),
        ends: EndReason::Failed,
    })
}

/// Result of a call on a core.
pub type CallResult<T> = Result<T, CoreError>;

/// Whether commands run in a read-only environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandPolicy {
    /// No commands: a command could write anything.
    Deny,
    /// Commands run: then read-only is a guard, not a boundary.
    Allow,
}

/// What one step produced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoreStep {
    /// What happened in sessions, in order.
    pub events: Vec<CoreEvent>,
    /// News of jobs, in order.
    pub reports: Vec<CoreReport>,
    /// What the core wants done, in order.
    pub effects: Vec<CoreEffect>,
    /// What logs of environments say, in order.
    pub log: Vec<LogLine>,
    /// Work remains: step again at once, after other messages had their turn.
    pub busy: bool,
}

/// One event on its way to its session.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreEvent {
    /// Session that the host opened.
    pub session: Arc<str>,
    /// The event as JSON; see [`hermitcrab::event`].
    pub json: Bytes,
}

/// News of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreReport {
    /// Id of the job.
    pub job: Arc<str>,
    /// What happened.
    pub kind: JobReportKind,
}

impl CoreReport {
    /// Whether no other report of the job follows.
    pub fn is_last(&self) -> bool {
        !matches!(self.kind, JobReportKind::Output { .. })
    }
}

/// Something that the core wants done; see [`hermitcrab::effect`].
#[derive(Clone, Debug, PartialEq)]
pub struct CoreEffect {
    /// Unique within the instance; outcomes name it.
    pub id: u64,
    /// Session or job on whose behalf it is done.
    pub owner: Arc<str>,
    /// What to do.
    pub kind: EffectKind,
}

/// Why a call on a core did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoreError {
    /// The call was refused; nothing has changed.
    Refused(SessionError),
    /// A sandbox could not do what was asked.
    Environment(EnvironmentError),
    /// The instance is dead.
    Failed(CoreFailure),
}

/// What killed an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreFailure {
    /// `core_stalled` (it did not return in time), `core_memory` (it wanted
    /// more memory than it may have) or `core_trapped` (anything else). Also
    /// the code of the `ERROR` event that its sessions get.
    pub code: &'static str,
    /// What happened; [`Display`](fmt::Display) adds the way out.
    pub message: String,
    /// Why a command that did this ends, when the instance goes on without it.
    pub ends: EndReason,
}

impl fmt::Display for CoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.message, Self::WAY_OUT)
    }
}

impl CoreFailure {
    /// What [`Display`](fmt::Display) and the message of the `ERROR` event end with.
    pub const WAY_OUT: &str = "; open a new session";

    /// A step cannot be refused, so whatever it answers is a failure.
    pub(crate) fn of(error: CoreError) -> Self {
        match error {
            CoreError::Failed(failure) => failure,
            other => Self {
                code: "core_trapped",
                message: other.to_string(),
                ends: EndReason::Failed,
            },
        }
    }
}

impl From<SessionError> for CoreError {
    fn from(error: SessionError) -> Self {
        Self::Refused(error)
    }
}

impl From<EnvironmentError> for CoreError {
    fn from(error: EnvironmentError) -> Self {
        Self::Environment(error)
    }
}

impl From<CallError> for CoreError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(error) => Self::Refused(error),
            CallError::Environment(error) => Self::Environment(error),
        }
    }
}

impl From<CoreFailure> for CoreError {
    fn from(failure: CoreFailure) -> Self {
        Self::Failed(failure)
    }
}

impl fmt::Display for CoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Environment(error) => error.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for CoreError {}
