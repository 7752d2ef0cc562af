//! `hermitcrab undo`: gives files back what was in them before a session changed them.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use hermitcrab_host::checkpoint::{
    CheckpointStore, Checkpointed, Limits, NotRestored, RoundChanges, UndoError, unsuited,
};
use hermitcrab_host::{HostEnvironment, LocalEnvironment, STATE_DIR, state_dir};

use crate::cli::UndoOptions;
use crate::failure::{Code, Failure, reason};
use crate::harmless::harmless;
use crate::journal::Held;
use crate::workspace;

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
                if let Some(kept) = &done.kept {
                    let kept = kept.display().to_string();
                    told.push_str(&format!(
                        "\nWhat was in them until now is in {}",
                        harmless(&kept)
                    ));
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
        secrets: &[&str],
        held: Option<&Held>,
    ) -> Arc<dyn HostEnvironment> {
        let Some(store) = store().filter(|_| unsuited(directory).is_none()) else {
            return Arc::new(local);
        };
        let id = held.map(Held::id);
        match store.begin(id.as_deref(), directory) {
            Ok(checkpoints) => {
                let checkpoints = checkpoints.without(secrets.iter().copied());
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
    let directory = workspace::directory(&options.dir)?;
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
        return Err(match &options.session {
            None => nothing("no session is known that has changed something"),
            Some(id) => Failure::usage(format!(
                "no session {} is known that has changed something in {shown}; `hermitcrab sessions` lists those that are kept",
                harmless(id)
            )),
        });
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
            let changed = steps.iter().filter(|step| !step.paths.is_empty());
            let rounds: Vec<String> = changed.map(|step| step.round.to_string()).collect();
            let unknown = steps.iter().flat_map(|step| &step.uncovered);
            let unknown: Vec<String> = unknown.map(|why| harmless(why)).collect();
            return Err(match (rounds.is_empty(), unknown.is_empty()) {
                (false, _) => Failure::usage(format!(
                    "nothing changed in that round or after it in {shown}; something changed in round {}",
                    rounds.join(", ")
                )),
                (true, false) => Failure::failed(format!(
                    "there is nothing to undo in {shown} that is noted: {}",
                    unknown.join("; ")
                )),
                (true, true) => nothing("everything is undone"),
            });
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
    if let Some(kept) = &done.kept {
        let kept = harmless(&kept.display().to_string());
        eprintln!("hermitcrab: what was in them until now is in {kept}");
    }
    let mut left = Vec::new();
    if !done.not.is_empty() {
        left.push(format!("not undone:\n{}", listed(&done.not, &directory)));
    }
    if !done.uncovered.is_empty() {
        let whys = done
            .uncovered
            .iter()
            .map(|why| format!("  {}", harmless(why)));
        let whys: Vec<String> = whys.collect();
        left.push(format!("there may be more to undo:\n{}", whys.join("\n")));
    }
    match left.is_empty() {
        true => Ok(Code::DONE),
        false => Err(Failure::failed(left.join("\n"))),
    }
}

/// Removes what is kept of a session for undoing it.
///
/// # Errors
/// A process has it, or it cannot be removed.
pub(crate) fn forget(id: &str) -> Result<(), Failure> {
    let deleted = store().map_or(Ok(()), |store| store.delete(id));
    deleted.map_err(|error| {
        let (id, why) = (harmless(id), reason(&error));
        Failure::failed(format!("cannot delete what undoes the session {id}: {why}"))
    })
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
fn described(step: &RoundChanges, directory: &Path) -> String {
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
