//! `hermitcrab fork --from`: goes on with the conversation of a trajectory, of any
//! harness.

use std::fs;
use std::path::Path;

use hermitcrab_host::{Continuation, trajectory};

use crate::cli::{EnvironmentKind, ForkOptions};
use crate::edits;
use crate::failure::{Code, Failure, reason};
use crate::harmless::harmless;
use crate::run::{self, Past};
use crate::secrets::Secrets;

/// Runs on with the history of the trajectory `file`.
///
/// # Errors
/// The trajectory cannot be used, the options do not fit, or the run does not end well.
pub(crate) fn fork(
    file: &Path,
    mut options: ForkOptions,
    secrets: &Secrets,
) -> Result<Code, Failure> {
    // There is no log, so what stands first is the prompt.
    let first = options.log.take().map(|first| first.into_os_string());
    if first.is_some() && (options.steer.is_some() || options.run.prompt.is_some()) {
        return Err(Failure::usage(
            "with --from there is no FILE: give the trajectory and one PROMPT",
        ));
    }
    if options.run.restore.is_some() {
        return Err(Failure::usage(
            "--restore is for run; a fork goes on from the trajectory",
        ));
    }
    let message = options.steer.take().or(options.run.prompt.take()).or(first);
    options.run.prompt = message;
    if options.run.environment_kind() != EnvironmentKind::Memory && !options.edit.is_empty() {
        return Err(Failure::usage(
            "--edit needs --env memory: edit the file itself",
        ));
    }
    let shown = file.display();
    let json = fs::read(file).map_err(|error| {
        Failure::usage(format!("cannot read --from {shown}: {}", reason(&error)))
    })?;
    let history = trajectory::history(&json, options.at)
        .map_err(|error| Failure::usage(format!("--from {shown}: {error}")))?;
    let needs_input = Continuation::of(&history.record) == Continuation::Input;
    if needs_input && options.run.prompt.is_none() && options.run.attach.is_empty() {
        return Err(Failure::usage(format!(
            "round {} is where an input of the trajectory was done: say what comes next, with \
             --steer TEXT",
            options.at
        )));
    }
    let edits = edits::read(&options.edit)?;
    eprintln!(
        "hermitcrab: this goes on with the files of {} as they are now: a trajectory has what \
         the model read and wrote, not the files",
        options.run.dir.display()
    );
    if !history.left_out.is_empty() {
        let list = harmless(&history.left_out.join("; "));
        eprintln!("hermitcrab: left out of the trajectory: {list}");
    }
    let past = Past {
        history: Some(history.record),
        edits,
    };
    run::run_from(options.run, secrets, past)
}
