//! Approvals: the host's word on calls for which the policy asks.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hermitcrab::effect::Approval;

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
