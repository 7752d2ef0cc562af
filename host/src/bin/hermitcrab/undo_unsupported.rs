//! `hermitcrab undo` where there is no local environment yet: nothing is noted.

use std::path::Path;
use std::sync::Arc;

use hermitcrab_host::{HostEnvironment, LocalEnvironment};

use crate::cli::UndoOptions;
use crate::failure::{Code, Failure};
use crate::journal::Held;

/// Undoes nothing.
#[derive(Clone, Default)]
pub(crate) struct Undo {}

/// What came of it.
pub(crate) struct Undone {
    /// Paths that are as they were.
    pub(crate) paths: Vec<String>,
    /// What a person reads of it, in lines.
    pub(crate) told: String,
}

impl Undo {
    /// Says that there is nothing.
    pub(crate) async fn undo(&self, _: Option<u64>, _: &Path) -> Undone {
        Undone {
            paths: Vec::new(),
            told: "! this session notes nothing of what it changes".to_owned(),
        }
    }

    /// `local` as it is.
    pub(crate) fn checkpointed(
        &mut self,
        local: LocalEnvironment,
        _: &Path,
        _: Option<&Held>,
    ) -> Arc<dyn HostEnvironment> {
        Arc::new(local)
    }
}

/// Says that there is nothing.
///
/// # Errors
/// Always.
pub(crate) fn undo(_: &UndoOptions) -> Result<Code, Failure> {
    Err(Failure::usage(
        "there is nothing to undo: changes are noted on Linux and macOS only".to_owned(),
    ))
}

/// Nothing is kept.
///
/// # Errors
/// None.
pub(crate) fn forget(_: &str) -> Result<(), Failure> {
    Ok(())
}
