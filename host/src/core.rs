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
use hermitcrab::environment::{EnvironmentCall, EnvironmentError, EnvironmentInfo, ExecRequest};
use hermitcrab::event::SessionState;
use hermitcrab::llm::Content;
use hermitcrab::memory::Change;
use hermitcrab::session::{Action, AgentCall, AgentStatus, JobReportKind, LogLine, SessionError};

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

    /// Commands of sandboxes that would run in the next step end there.
    fn end_commands(&mut self, reason: EndReason) -> CallResult<()>;

    /// Adds a sandbox inside the core; settings as a JSON object. Returns its number.
    fn add_memory_environment(&mut self, options_json: &str) -> CallResult<u32>;

    /// Adds an environment that the host answers for. Returns its number.
    fn add_remote_environment(&mut self, info: EnvironmentInfo) -> CallResult<u32>;

    /// Rejects writes by tools, and commands unless `commands` allows them.
    fn make_read_only(&mut self, environment: u32, commands: CommandPolicy) -> CallResult<()>;

    /// Logs calls to an environment from now on; returns the number of the log.
    fn log_calls(&mut self, environment: u32) -> CallResult<u32>;

    /// Adds the files of a tar archive below a sandbox's working directory.
    fn import_tar(&mut self, environment: u32, archive: &Bytes) -> CallResult<()>;

    /// A sandbox's working directory as a tar archive.
    fn export_tar(&mut self, environment: u32) -> CallResult<Bytes>;

    /// Adds files to a sandbox: pairs of path and content.
    fn import_files(&mut self, environment: u32, files: Vec<(String, Bytes)>) -> CallResult<()>;

    /// Remembers a sandbox as it is; returns a number for it.
    fn snapshot(&mut self, environment: u32) -> CallResult<u64>;

    /// Puts a remembered sandbox back.
    fn restore(&mut self, environment: u32, snapshot: u64) -> CallResult<()>;

    /// What changed since a snapshot.
    fn changes(&mut self, environment: u32, snapshot: u64) -> CallResult<Vec<Change>>;

    /// Forgets a snapshot. Unknown numbers are ignored.
    fn forget_snapshot(&mut self, snapshot: u64) -> CallResult<()>;

    /// Starts a command outside of any session; returns the id of the job.
    fn start_exec(&mut self, environment: u32, request: ExecRequest) -> CallResult<Arc<str>>;

    /// Makes a call outside of any session; returns the id of the job.
    fn start_call(&mut self, environment: u32, call: EnvironmentCall) -> CallResult<Arc<str>>;

    /// Does something for the tool that runs as an effect, in the environment of
    /// its session; returns the id of the job.
    fn act(&mut self, effect: u64, action: Action) -> CallResult<Arc<str>>;

    /// Ends a job early. Unknown ids are ignored.
    fn cancel_job(&mut self, job: &str) -> CallResult<()>;

    /// Opens a session; settings as a JSON object, and the record of an earlier
    /// session to go on with. Returns its id.
    fn open_session(
        &mut self,
        environment: u32,
        config_json: &str,
        record_json: Option<&str>,
    ) -> CallResult<Arc<str>>;

    /// State of a session.
    fn state(&mut self, session: &str) -> CallResult<SessionState>;

    /// Starts an input.
    fn submit(&mut self, session: &str, input: &Content) -> CallResult<()>;

    /// Answers the model's question.
    fn answer(&mut self, session: &str, input: &Content) -> CallResult<()>;

    /// Goes on with what was cut off.
    fn resume(&mut self, session: &str) -> CallResult<()>;

    /// Queues a steering message; returns its number.
    fn steer(&mut self, session: &str, message: &Content) -> CallResult<u64>;

    /// Queues an input for when the current one is done.
    fn follow_up(&mut self, session: &str, message: &Content) -> CallResult<()>;

    /// Queues instructions of the host's developer.
    fn add_system_turn(&mut self, session: &str, content: &str) -> CallResult<()>;

    /// Ends the current input only.
    fn interrupt(&mut self, session: &str) -> CallResult<()>;

    /// Ends the session from any state.
    fn abort(&mut self, session: &str) -> CallResult<()>;

    /// Closes a session that is not processing.
    fn close(&mut self, session: &str) -> CallResult<()>;

    /// The configuration in force, as JSON.
    fn config(&mut self, session: &str) -> CallResult<String>;

    /// Replaces the settings named in a JSON object.
    fn configure(&mut self, session: &str, patch_json: &str) -> CallResult<()>;

    /// Registers a tool that the host executes; the definition as JSON.
    fn register_tool(&mut self, session: &str, definition_json: &str) -> CallResult<()>;

    /// Removes a tool; says whether there was one.
    fn unregister_tool(&mut self, session: &str, name: &str) -> CallResult<bool>;

    /// The subagents, those of subagents too.
    fn agents(&mut self, session: &str) -> CallResult<Vec<AgentInfo>>;

    /// The turns of a subagent so far, as a JSON array.
    fn agent_history(&mut self, session: &str, agent: &str) -> CallResult<Bytes>;

    /// Tells a subagent something.
    fn tell_agent(&mut self, session: &str, agent: &str, call: AgentCall) -> CallResult<()>;

    /// Names of the tools that the model is offered.
    fn tool_names(&mut self, session: &str) -> CallResult<Vec<String>>;

    /// The turns so far, as a JSON array.
    fn history(&mut self, session: &str) -> CallResult<Bytes>;

    /// The session as it is now, as a JSON object.
    fn record(&mut self, session: &str) -> CallResult<Bytes>;

    /// Releases the handle of a session that has ended. Unknown ids are ignored.
    fn forget_session(&mut self, session: &str) -> CallResult<()>;
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

/// Why commands end that killed an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// They did not pause.
    Work,
    /// They needed more memory than there is.
    Memory,
    /// They recursed until the stack was full.
    Stack,
    /// They failed in another way.
    Failed,
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

/// A subagent, see [`hermitcrab::session::AgentInfo`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInfo {
    /// Its id, the `agent_id` of its events.
    pub id: Arc<str>,
    /// Session or subagent that started it.
    pub parent_id: Arc<str>,
    /// What it was started for.
    pub task: String,
    /// What it is doing.
    pub state: SessionState,
    /// What has become of its work so far.
    pub status: AgentStatus,
    /// 1 for a subagent of the session, 2 for one of that, and so on.
    pub depth: u32,
    /// Answers of its model so far.
    pub turns: u32,
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
