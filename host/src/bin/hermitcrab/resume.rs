//! `run --resume` and `run --continue`: goes on with a kept session where its process
//! ended.

use std::path::{Path, PathBuf};

use hermitcrab_host::log::{self, ReplayError};

use crate::cli::{EnvironmentKind, RunOptions};
use crate::connect;
use crate::failure::{Code, Failure};
use crate::fork::{self, Origin};
use crate::journal::{self, Held};
use crate::replay;
use crate::restore;
use crate::secrets::Secrets;
use crate::workspace;

/// Which session, if the options name one.
///
/// # Errors
/// There is none.
pub(crate) fn wanted(options: &RunOptions) -> Result<Option<String>, Failure> {
    let is_wanted = options.journal.r#continue || options.journal.resume.is_some();
    if is_wanted && options.environment_kind() == EnvironmentKind::Overlay {
        return Err(Failure::usage(fork::NOT_ELSEWHERE));
    }
    if options.journal.r#continue {
        let directory = workspace::directory(&options.dir)?;
        return Ok(Some(journal::newest(&directory)?.about.id));
    }
    Ok(options.journal.resume.clone())
}

/// Goes on with the session `id`.
///
/// # Errors
/// It cannot be used, or the run does not end well.
pub(crate) fn run(id: &str, mut options: RunOptions, secrets: &Secrets) -> Result<Code, Failure> {
    if options.journal.r#continue {
        // It has named the session.
        options.dir = PathBuf::from(".");
    }
    let held = Held::open(id, &options.journal)?;
    if options.fence.sandbox.is_none() {
        // A session does not lose its bounds on the way.
        options.fence.fill(held.fence()?);
    }
    let name = PathBuf::from(format!("session {id}"));
    let unusable = |error| replay::failed(ReplayError::Log(error));
    let source = || held.session().log().map_err(journal::failed);
    let header = match log::header(&name, source()?) {
        Ok(header) => header,
        Err(error) => return Err(unusable(error)),
    };
    if header.core.hash != connect::core_id().hash {
        return from_saved(&held, &header.core.version, options, secrets);
    }
    let opening = log::opening_in(&name, source()?).map_err(unusable)?;
    let Some(opening) = opening else {
        return Err(Failure::usage(format!(
            "the session {id} ended before it began: give its task to another one"
        )));
    };
    let origin = Origin::End {
        name: name.clone(),
        held: held.clone(),
    };
    fork::go_on(origin, &opening, options, Vec::new(), secrets)
}

/// Goes on with what a core of another version has saved last.
fn from_saved(
    held: &Held,
    version: &str,
    options: RunOptions,
    secrets: &Secrets,
) -> Result<Code, Failure> {
    let id = held.id();
    let saved = held.session().saved().map_err(journal::failed)?;
    let Some(saved) = saved else {
        return Err(Failure::usage(format!(
            "the session {id} was written by another build of hermitcrab ({version}) and \
             interrupted in its first task: go on with that build, or give the task again"
        )));
    };
    eprintln!(
        "hermitcrab: another build of hermitcrab wrote the session {id}; it goes on from the end \
         of its last task"
    );
    let directory = PathBuf::from(&held.session().about().directory);
    let options = match options.dir == Path::new(".") {
        true => RunOptions {
            dir: directory,
            ..options
        },
        false => options,
    };
    let shown = format!("session {id}");
    restore::with(&shown, saved, Some(held.clone()), options, secrets)
}
