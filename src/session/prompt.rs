//! The system prompt of a session: built from what was found at its start, and
//! built anew for the next request when the model or the tools have
//! changed. While they do not, it stays the same bytes, which providers cache.

use std::rc::Rc;

use super::state::Shared;
use super::system_prompt::{Found, Orientation, SystemPrompt};
use crate::llm::model_info;
use crate::profile::{EnvironmentFacts, Layers};

/// What a subagent reads about its part.
const ROLE: &str = include_str!("agent/system.md");

/// Has the prompt built from what an earlier session found; nothing, if that had not
/// begun.
pub(super) fn take_over(session: &Shared, found: Found) {
    session.transcript.prompt.borrow_mut().found = found;
}

/// Whether there is no need to look around: an earlier session did.
pub(super) fn is_known(session: &Shared) -> bool {
    session.transcript.prompt.borrow().found.now_ms > 0
}

/// Builds the first prompt from what was found.
pub(super) fn start(session: &Shared, orientation: Orientation) {
    let found = Found {
        orientation,
        now_ms: session.port.now_ms(),
    };
    let prompt = build(session, found);
    *session.transcript.prompt.borrow_mut() = prompt;
}

/// The prompt for a request that is sent now.
pub(super) fn current(session: &Shared) -> Rc<str> {
    let tools = session.registry.borrow().definitions();
    let mut prompt = session.transcript.prompt.borrow_mut();
    if !Rc::ptr_eq(&prompt.tools, &tools) || prompt.model != session.model_name() {
        let found = std::mem::take(&mut prompt.found);
        *prompt = build(session, found);
    }
    prompt.text.clone()
}

fn build(session: &Shared, found: Found) -> SystemPrompt {
    let info = session.workspace.info();
    let config = session.config.borrow();
    let model = session.model_name();
    let known = model_info(&model);
    let registry = session.registry.borrow();
    let vocabulary = registry.offered_vocabulary();
    let base = config
        .base_instructions
        .clone()
        .unwrap_or_else(|| session.profile.base_instructions(&vocabulary));
    let facts = EnvironmentFacts {
        working_directory: &info.working_directory,
        platform: &info.platform,
        os_version: &info.os_version,
        now_ms: found.now_ms,
        utc_offset_minutes: info.utc_offset_minutes,
        bounds: &info.bounds,
        model: known.map_or(model.as_str(), |known| known.display_name.as_str()),
        knowledge_cutoff: known.and_then(|known| known.knowledge_cutoff.as_deref()),
    };
    let tools = registry.definitions();
    let text = Layers {
        base: &base,
        environment: &facts,
        git: found.orientation.git.as_ref(),
        tools: &tools,
        role: session.identity.agent.as_ref().map(|_| ROLE),
        documents: &found.orientation.documents,
        documents_missing: found.orientation.documents_missing.as_deref(),
        user: config.instructions.as_deref(),
        output: config.output_schema.as_ref(),
    }
    .to_prompt(&session.profile, &vocabulary);
    SystemPrompt {
        text: text.into(),
        model,
        tools,
        found,
    }
}
