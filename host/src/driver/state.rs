//! What the driver consists of: its state, the handle that sends it calls, and what
//! it hands to a tool.
//!
//! One file, for the types name each other: a call is made on the driver, the driver
//! holds the tools of sessions, and a tool is handed the environment of its session,
//! which sends calls to the driver.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hermitcrab::effect::{HostToolResult, Outcome};
use hermitcrab::session::JobReportKind;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::queue::Queue;
use crate::approval::ApprovalFn;
use crate::core::{CallResult, Core, CoreFailure};
use crate::environment::HostEnvironment;
use crate::error::HostError;
use crate::event::Event;
use crate::http::HttpPerformer;
use crate::journal::Journaled;
use crate::program::Lent;

/// An effect that has not had its final outcome.
pub(super) struct Live {
    pub(super) cancel: CancellationToken,
    pub(super) task: AbortHandle,
    pub(super) is_exec: bool,
}

/// Owns a core and everything that it needs outside.
pub(crate) struct Driver {
    pub(crate) core: Journaled,
    pub(super) handle: WeakHandle,
    /// The core as it was before the call that ended it.
    pub(super) recovered: Option<Box<dyn Core>>,
    pub(super) http: Arc<dyn HttpPerformer>,
    pub(super) outcomes: mpsc::Sender<Outcome>,
    pub(super) live: HashMap<u64, Live>,
    pub(crate) sessions: BTreeMap<Arc<str>, SessionLink>,
    pub(crate) jobs: BTreeMap<Arc<str>, Arc<Queue<JobReportKind>>>,
    pub(crate) environments: HashMap<u32, Arc<dyn HostEnvironment>>,
    /// Programs lent to a sandbox, by its number.
    pub(crate) programs: HashMap<u32, Lent>,
    /// Where the lines of each log go, by its number.
    pub(crate) logs: HashMap<u32, LogFn>,
    pub(super) failed: Option<CoreFailure>,
}

/// Takes the lines of a log.
pub(super) type LogFn = Box<dyn FnMut(&str) + Send>;

/// A call, carried out between two steps.
pub(super) type Command = Box<dyn FnOnce(&mut Driver) + Send>;

/// Sends calls to a driver. When the last clone is gone, the driver cancels
/// what is under way and ends.
#[derive(Clone)]
pub(crate) struct DriverHandle {
    pub(super) commands: mpsc::UnboundedSender<Command>,
}

/// Becomes a handle while there are others. A driver that held a handle itself
/// would never end.
pub(super) struct WeakHandle(pub(super) mpsc::WeakUnboundedSender<Command>);

impl WeakHandle {
    pub(super) fn upgrade(&self) -> Option<DriverHandle> {
        let commands = self.0.upgrade()?;
        Some(DriverHandle { commands })
    }
}

impl DriverHandle {
    /// Whether both send to the same driver.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.commands.same_channel(&other.commands)
    }

    /// Makes a call and returns its result. The step that follows has not
    /// happened yet.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Driver) -> Result<T, HostError> + Send + 'static,
    ) -> Result<T, HostError> {
        let (reply, result) = oneshot::channel();
        self.send(move |driver| {
            let _ = reply.send(call(driver));
        });
        result.await.unwrap_or(Err(HostError::Stopped))
    }

    /// Makes a call of the core.
    pub(crate) async fn core<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut dyn Core) -> CallResult<T> + Send + 'static,
    ) -> Result<T, HostError> {
        self.call(|driver| Ok(call(&mut driver.core)?)).await
    }

    /// Makes a call whose result nobody waits for.
    pub(crate) fn send(&self, call: impl FnOnce(&mut Driver) + Send + 'static) {
        // A driver that has ended has nothing left to do.
        let _ = self.commands.send(Box::new(call));
    }
}

/// What a session of the host consists of besides its core part.
pub(crate) struct SessionLink {
    pub(crate) events: Arc<Queue<Event>>,
    pub(crate) tools: BTreeMap<String, ToolFn>,
    pub(crate) approval: Option<ApprovalFn>,
    /// The session's last event, for its number.
    pub(super) last: Bytes,
    /// `TOOL_CALL_START` of each call that runs.
    pub(super) calls: Vec<Bytes>,
    /// Number of its environment, if that is one of the host's.
    pub(crate) environment: Option<u32>,
}

impl SessionLink {
    pub(crate) fn new(tools: BTreeMap<String, ToolFn>, approval: Option<ApprovalFn>) -> Self {
        Self::after(Bytes::new(), tools, approval)
    }

    /// Of a session whose last event was `last`.
    pub(crate) fn after(
        last: Bytes,
        tools: BTreeMap<String, ToolFn>,
        approval: Option<ApprovalFn>,
    ) -> Self {
        Self {
            events: Arc::default(),
            tools,
            approval,
            last,
            calls: Vec::new(),
            environment: None,
        }
    }
}

/// Runs one call of a tool. Dropping the future ends the call; that happens
/// 2.5 s after [`ToolInvocation::cancel`] fires at the latest.
pub type ToolFn = Arc<dyn Fn(ToolInvocation) -> BoxFuture<'static, HostToolResult> + Send + Sync>;

/// One call of a host tool.
#[derive(Debug)]
pub struct ToolInvocation {
    /// Session whose model calls.
    pub session_id: Arc<str>,
    /// Subagent whose model calls, if it is one's.
    pub agent_id: Option<String>,
    /// Id of the call.
    pub call_id: String,
    /// The environment of the session, for as long as the call runs.
    pub environment: ToolEnvironment,
    /// Arguments, a JSON object that is valid under the tool's schema.
    pub arguments: String,
    /// Takes progress text.
    pub progress: Progress,
    /// Fires when the call must end.
    pub cancel: CancellationToken,
}

/// The environment of a session as a tool of the host has it. What the tool
/// changes there, and the commands that it runs, are under the same policy as
/// those of the model: wrappers, approvals of commands and of writes, limits of
/// time. Whatever is under way ends with the call.
#[derive(Clone)]
pub struct ToolEnvironment {
    pub(crate) driver: DriverHandle,
    pub(crate) effect: u64,
    pub(crate) working_directory: Arc<str>,
}

/// Shows progress of a host tool as `TOOL_CALL_OUTPUT_DELTA` events.
pub struct Progress(pub(crate) Box<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>);

impl Progress {
    /// Shows `text`; returns when more may come.
    pub async fn show(&self, text: impl Into<String>) {
        (self.0)(text.into()).await;
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}
