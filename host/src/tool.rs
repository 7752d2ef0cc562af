//! What a host lends to sessions: tools, and its word on approvals.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hermitcrab::effect::{Approval, HostToolResult};
use hermitcrab::llm::ToolDefinition;
use tokio_util::sync::CancellationToken;

/// A tool that the host executes.
#[derive(Clone)]
pub struct HostTool {
    /// What the model is told.
    pub definition: ToolDefinition,
    /// Runs one call.
    pub execute: ToolFn,
}

/// Runs one call of a tool. Dropping the future ends the call; that happens
/// 2.5 s after [`ToolInvocation::cancel`] fires at the latest.
pub type ToolFn = Arc<dyn Fn(ToolInvocation) -> BoxFuture<'static, HostToolResult> + Send + Sync>;

/// One call of a host tool.
#[derive(Debug)]
pub struct ToolInvocation {
    /// Session whose model calls.
    pub session_id: Arc<str>,
    /// Id of the call.
    pub call_id: String,
    /// Arguments, a JSON object that is valid under the tool's schema.
    pub arguments: String,
    /// Takes progress text.
    pub progress: Progress,
    /// Fires when the call must end.
    pub cancel: CancellationToken,
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

impl HostTool {
    /// A tool from a definition and an async function.
    pub fn new<F, T>(definition: ToolDefinition, execute: F) -> Self
    where
        F: Fn(ToolInvocation) -> T + Send + Sync + 'static,
        T: Future<Output = HostToolResult> + Send + 'static,
    {
        Self {
            definition,
            execute: Arc::new(move |invocation| Box::pin(execute(invocation))),
        }
    }
}

impl fmt::Debug for HostTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTool")
            .field("name", &self.definition.name)
            .finish_non_exhaustive()
    }
}

/// Decides whether a tool may run. Without one, the answer is
/// [`Approval::NoApprover`].
///
/// Called on the driver's task, in the order of the calls that need approval: it
/// must not block. The futures it returns are awaited side by side.
pub type ApprovalFn = Arc<dyn Fn(ApprovalRequest) -> BoxFuture<'static, Approval> + Send + Sync>;

/// A question whether a tool may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// Session whose model calls.
    pub session_id: Arc<str>,
    /// Tool about to run.
    pub tool_name: String,
    /// Id of the model's call.
    pub call_id: String,
    /// Validated arguments, a JSON object.
    pub arguments: String,
    /// Why the policy asks.
    pub reason: String,
}
