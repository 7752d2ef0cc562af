//! Opening a session: its tools, its first event, its task.

use std::rc::Rc;

use super::agent;
use super::error::{SessionError, SessionErrorKind};
use super::input;
use super::state::{Parts, Session, Shared};
use crate::tool::approval::ApprovalSettings;
use crate::tool::{RegisterError, Registry};

/// Starts a session that accepts input at once. Later tools win: the profile's,
/// those for subagents where there may be any, the host's.
pub(super) fn start(mut parts: Parts) -> Result<Session, SessionError> {
    let host_tools = std::mem::take(&mut parts.host_tools);
    let leads = parts.depth < parts.config.max_subagent_depth;
    let session = Rc::new(Shared::new(parts));
    let invalid =
        |error: RegisterError| SessionError::new(SessionErrorKind::InvalidTool, error.to_string());
    if leads {
        agent::register(&session).map_err(invalid)?;
    }
    for tool in host_tools {
        let registered = session.registry.borrow_mut().register(tool);
        registered.map_err(invalid)?;
    }
    // A subagent keeps its parent's rules, whatever its own tools are.
    if session.agent.is_none() {
        check_rules(
            &session.config.borrow().approval,
            &session.registry.borrow(),
        )?;
    }
    input::announce(&session);
    session.spawner.spawn(input::run(session.clone()));
    Ok(Session(session))
}

/// Every rule of `approval.tools` is about a tool of the session, or about one
/// that the core has for other sessions: one policy serves all providers.
pub(super) fn check_rules(
    approval: &ApprovalSettings,
    registry: &Registry,
) -> Result<(), SessionError> {
    let is_tool = |name: &str| {
        name == "*"
            || registry.names().any(|known| known == name)
            || registry.has_kind(name)
            || Registry::executors().any(|known| known == name)
            || agent::EXECUTORS.contains(&name)
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
