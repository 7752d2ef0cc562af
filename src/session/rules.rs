//! Whether the rules of an approval policy are about tools that there are.

use super::error::SessionError;
use crate::tool::Registry;
use crate::tool::approval::ApprovalSettings;

/// What the tools that lead subagents are called in the specification.
const LEAD_TOOLS: [&str; 4] = ["spawn_agent", "send_input", "wait", "close_agent"];

/// Every rule of `approval.tools` is about a tool of the session, or about one
/// that the core has for other sessions: one policy serves all providers.
pub(super) fn check(approval: &ApprovalSettings, registry: &Registry) -> Result<(), SessionError> {
    let is_tool = |name: &str| {
        name == "*"
            || registry.names().any(|known| known == name)
            || registry.has_kind(name)
            || Registry::executors().any(|known| known == name)
            || LEAD_TOOLS.contains(&name)
    };
    let Some(name) = approval.tools.keys().find(|name| !is_tool(name)) else {
        return Ok(());
    };
    let names: Vec<_> = registry.names().collect();
    Err(SessionError::invalid_config(format!(
        "`approval.tools` has {name:?}, which is no tool; there are {} and `*`; set the rule \
         of a tool that comes later with `configure`, once it is registered",
        names.join(", ")
    )))
}
