//! Sessions: the agentic loop and everything that steers it (spec 2).
//!
//! A session owns its history, state and queues; an [`Instance`] owns the
//! sessions, their environments and jobs, and is what a host steps. Nothing
//! here does I/O or knows a provider's wire format.

mod agent;
mod config;
mod context;
mod emitter;
mod error;
mod ground;
mod history;
mod input;
mod instance;
mod job;
mod model;
mod open;
mod orientation;
mod record;
mod repetition;
mod round;
mod state;
mod transport;
mod turn;

pub use config::{AwaitingInput, ProviderEndpoint, SessionConfig};
pub use emitter::SessionEvent;
pub use error::{SessionError, SessionErrorKind};
pub use instance::{Instance, Step};
pub use job::{JobReport, JobReportKind};
pub use record::{RecordedMessage, SessionRecord};
pub use state::Session;
pub use turn::Turn;
