//! Sessions: the agentic loop and everything that steers it (spec 2).
//!
//! A session owns its history, state and queues; an [`Instance`] owns the
//! sessions, their environments and jobs, and is what a host steps. Nothing
//! here does I/O or knows a provider's wire format.

mod agent;
mod call;
mod compaction;
mod config;
mod context;
mod context_watch;
mod control;
mod emitter;
mod error;
mod handle;
mod history;
mod instance;
mod job;
mod r#loop;
mod meter;
mod model;
mod open;
mod orientation;
mod output;
mod prompt;
mod record;
mod repetition;
mod round;
mod rules;
mod saved;
mod state;
mod system_prompt;
mod transcript;
mod transport;
mod turn;
mod workspace;

pub use agent::{AgentCall, AgentInfo, Status as AgentStatus};
pub use call::{CallError, InstanceCall, InstanceReply, SessionCall, SessionReply};
pub use compaction::settings::Compaction;
pub use config::{AwaitingInput, ProviderEndpoint, SessionConfig};
pub use emitter::SessionEvent;
pub use error::{SessionError, SessionErrorKind};
pub use instance::{Instance, LogLine, Step};
pub use job::{Action, JobReport, JobReportKind};
pub use orientation::project_around;
pub use record::{RecordedMessage, SessionRecord};
pub use saved::{SavedSession, config_of as saved_config};
pub use state::Session;
pub use turn::Turn;

use crate::llm::list_models;
use crate::profile::{Profile, Toolset};
use crate::tool::Offers;

/// Reads all tables that sessions otherwise read when they first need them:
/// catalogue, profiles, declarations. Changes nothing but the time they take.
pub fn prepare() {
    list_models(None);
    for profile in Profile::names().into_iter().filter_map(Profile::of) {
        for toolset in [Toolset::Spec, Toolset::Native] {
            // Opening a session says what cannot be read.
            let _ = profile.registry(toolset, &Offers::default());
            let _ = agent::prepare(profile.wire, toolset);
        }
    }
}
