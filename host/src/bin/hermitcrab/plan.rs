//! `Plan`: everything that a session is opened with.

use std::path::PathBuf;

use hermitcrab::session::{SessionConfig, SessionRecord};
use hermitcrab_host::ApprovalFn;

use crate::journal::Keep;
use crate::provider::Chosen;
use crate::save;
use crate::workspace::Workspace;

/// Everything that a session is opened with.
pub(crate) struct Plan {
    /// Keys and where they may go: of the session's provider, and of others for
    /// subagents.
    pub(crate) providers: Vec<Chosen>,
    /// The session's settings.
    pub(crate) config: SessionConfig,
    /// Where tools act.
    pub(crate) workspace: Workspace,
    /// Who is asked for approval.
    pub(crate) approver: Option<ApprovalFn>,
    /// The conversation that it goes on with.
    pub(crate) history: Option<SessionRecord>,
    /// Where the log of the run goes.
    pub(crate) record: Option<PathBuf>,
    /// How the run is kept, if it is.
    pub(crate) keep: Option<Keep>,
    /// Where the session goes when its task is done.
    pub(crate) save: Option<save::File>,
}
