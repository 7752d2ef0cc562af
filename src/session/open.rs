//! Opening a session: its tools, its first event, its task.

use std::rc::Rc;

use super::agent;
use super::input;
use super::state::{Parts, Session, Shared};
use crate::tool::RegisterError;

/// Starts a session that accepts input at once. Later tools win: the profile's,
/// those for subagents where there may be any, the host's.
pub(super) fn start(mut parts: Parts) -> Result<Session, RegisterError> {
    let host_tools = std::mem::take(&mut parts.host_tools);
    let leads = parts.depth < parts.config.max_subagent_depth;
    let session = Rc::new(Shared::new(parts));
    if leads {
        agent::register(&session)?;
    }
    for tool in host_tools {
        session.registry.borrow_mut().register(tool)?;
    }
    input::announce(&session);
    session.spawner.spawn(input::run(session.clone()));
    Ok(Session(session))
}
