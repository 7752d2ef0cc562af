//! `hermitcrab run`: begins anew, or goes on with a session that was kept or saved.

use crate::cli::RunOptions;
use crate::failure::{Code, Failure};
use crate::restore;
use crate::resume;
use crate::run::{self, Past};
use crate::secrets::Secrets;

/// Runs one task.
///
/// # Errors
/// Everything but a natural end, with its exit code and a sentence.
pub(crate) fn run(mut options: RunOptions, secrets: &Secrets) -> Result<Code, Failure> {
    if let Some(id) = resume::wanted(&options)? {
        return resume::run(&id, options, secrets);
    }
    match options.restore.take() {
        Some(saved) => restore::run(&saved, options, secrets),
        None => run::run_from(options, secrets, Past::default()),
    }
}
