//! Opening a session: its tools, its first event, its task.

use std::rc::Rc;

use super::agent;
use super::error::{SessionError, SessionErrorKind};
use super::r#loop;
use super::rules;
use super::state::{Parts, Session, Shared};
use crate::tool::RegisterError;

/// Starts a session that accepts input at once. Later tools win: the profile's,
/// those for subagents where there may be any, the host's.
pub(super) fn start(mut parts: Parts) -> Result<Session, SessionError> {
    let host_tools = std::mem::take(&mut parts.host_tools);
    let leads = parts.identity.depth < parts.config.max_subagent_depth;
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
    if session.identity.agent.is_none() {
        rules::check(
            &session.config.borrow().approval,
            &session.registry.borrow(),
        )?;
    }
    r#loop::announce(&session);
    session.spawner.spawn(r#loop::run(session.clone()));
    Ok(Session(session))
}
