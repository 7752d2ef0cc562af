//! `hermitcrab undo`: gives files back what was in them before a session changed them.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use hermitcrab_host::checkpoint::{
    CheckpointStore, Checkpointed, Limits, NotRestored, Step, UndoError, unsuited,
};
use hermitcrab_host::{HostEnvironment, LocalEnvironment, STATE_DIR, state_dir};

use crate::cli::UndoOptions;
use crate::failure::{Code, Failure, reason};
use crate::ground;
use crate::harmless::harmless;
use crate::journal::Held;

/// Paths that are named of a step.
const SHOWN: usize = 20;

fn store() -> Option<CheckpointStore> {
    let dir = state_dir()?;
    Some(CheckpointStore::new(
        dir.join("checkpoints"),
        Limits::default(),
    ))
}

/// Undoes what the session of this process changed.
#[derive(Clone, Default)]
pub(crate) struct Undo(Option<Arc<Checkpointed>>);

/// What came of it.
pub(crate) struct Undone {
    /// Paths that are as they were.
    pub(crate) paths: Vec<String>,
    /// What a person reads of it, in lines.
    pub(crate) told: String,
}

impl Undo {
    /// Undoes the round `from` and all after it; without one, the last that changed
    /// something.
    pub(crate) async fn undo(&self, from: Option<u64>, directory: &Path) -> Undone {
        let nothing = |told: String| Undone {
            paths: Vec::new(),
            told,
        };
        let Some(checkpointed) = &self.0 else {
            return nothing("! this session notes nothing of what it changes".to_owned());
        };
        match checkpointed.undo(from, false).await {
            Err(error) => {
                let mut told = format!("! {error}");
                if let UndoError::Refused(paths) = &error {
                    told.push_str(&format!(":\n{}", listed(paths, directory)));
                }
                nothing(told)
            }
            Ok(done) => {
                let paths = done.paths.iter().map(|path| relative(path, directory));
                let paths: Vec<String> = paths.collect();
                let mut told = format!("Undone: {}", paths.join(", "));
                if !done.not.is_empty() {
                    told.push_str(&format!(
                        "\n! not undone:\n{}",
                        listed(&done.not, directory)
                    ));
                }
                for why in &done.uncovered {
                    told.push_str(&format!("\n! there may be more: {}", harmless(why)));
                }
                Undone { paths, told }
            }
        }
    }

    /// `local` with checkpoints, where there can be some. A run goes on without.
    pub(crate) fn checkpointed(
        &mut self,
        local: LocalEnvironment,
        directory: &Path,
        held: Option<&Held>,
    ) -> Arc<dyn HostEnvironment> {
        let Some(store) = store().filter(|_| unsuited(directory).is_none()) else {
            return Arc::new(local);
        };
        let id = held.map(Held::id);
        match store.begin(id.as_deref(), directory) {
            Ok(checkpoints) => {
                let checkpointed = Arc::new(Checkpointed::new(local, checkpoints));
                self.0 = Some(checkpointed.clone());
                checkpointed
            }
            Err(error) => {
                eprintln!(
                    "hermitcrab: what this run changes cannot be undone: {}; --no-checkpoints does without",
                    harmless(&reason(&error))
                );
                Arc::new(local)
            }
        }
    }
}

/// Undoes.
///
/// # Errors
/// There is nothing to undo, or it cannot be.
pub(crate) fn undo(options: &UndoOptions) -> Result<Code, Failure> {
    let directory = ground::directory(&options.dir)?;
    let shown = harmless(&directory.display().to_string());
    let nothing = |why: &str| {
        Failure::usage(format!(
            "there is nothing to undo in {shown}: {why}; what a run with --no-checkpoints or \
             before its first change did is not noted"
        ))
    };
    if let Some(why) = unsuited(&directory) {
        return Err(nothing(why));
    }
    let Some(store) = store() else {
        return Err(Failure::usage(format!(
            "there is no home directory with checkpoints in it; set {STATE_DIR}"
        )));
    };
    let found = store.newest(&directory, options.session.as_deref());
    let found = found.map_err(|error| {
        let why = reason(&error);
        Failure::failed(format!("cannot read the checkpoints of {shown}: {why}"))
    })?;
    let Some(mut checkpoints) = found else {
        return Err(nothing("no session is known that has changed something"));
    };
    let steps = checkpoints.steps();
    let mut stdout = std::io::stdout().lock();
    if options.list {
        for step in &steps {
            let _ = writeln!(stdout, "{}", described(step, &directory));
        }
        return Ok(Code::DONE);
    }
    let done = match checkpoints.undo(options.to, options.partly) {
        Ok(done) => done,
        Err(UndoError::Nothing) => {
            let rounds: Vec<String> = steps.iter().map(|step| step.round.to_string()).collect();
            return Err(nothing(&match rounds.is_empty() {
                true => "everything is undone".to_owned(),
                false => format!("no such round; something changed in {}", rounds.join(", ")),
            }));
        }
        Err(error @ UndoError::Busy) => return Err(Failure::failed(error.to_string())),
        Err(error @ UndoError::Refused(_)) => {
            let UndoError::Refused(paths) = &error else {
                unreachable!("matched above")
            };
            let list = listed(paths, &directory);
            return Err(Failure::failed(format!(
                "{error}:\n{list}\n--partly undoes the others"
            )));
        }
    };
    for path in &done.paths {
        let _ = writeln!(stdout, "{}", relative(path, &directory));
    }
    for why in &done.uncovered {
        eprintln!("hermitcrab: there may be more: {}", harmless(why));
    }
    if done.not.is_empty() {
        return Ok(Code::DONE);
    }
    Err(Failure::failed(format!(
        "not undone:\n{}",
        listed(&done.not, &directory)
    )))
}

fn relative(path: &str, directory: &Path) -> String {
    let path = Path::new(path);
    let shown = path.strip_prefix(directory).unwrap_or(path);
    harmless(&shown.display().to_string())
}

fn listed(paths: &[NotRestored], directory: &Path) -> String {
    let lines = paths.iter().map(|left| {
        let path = relative(&left.path, directory);
        format!("  {path}: {}", harmless(&left.why))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// `3  src/a.rs, b.rs (file tools, `cargo fmt`)`.
fn described(step: &Step, directory: &Path) -> String {
    let mut paths: Vec<String> = step
        .paths
        .iter()
        .map(|path| relative(path, directory))
        .collect();
    let more = paths.len().saturating_sub(SHOWN);
    paths.truncate(SHOWN);
    if more > 0 {
        paths.push(format!("and {more} more"));
    }
    let mut line = format!("{}  {}", step.round, paths.join(", "));
    if !step.by.is_empty() {
        line.push_str(&format!(" ({})", harmless(&step.by.join(", "))));
    }
    for why in &step.uncovered {
        line.push_str(&format!("\n   {}", harmless(why)));
    }
    line
}
