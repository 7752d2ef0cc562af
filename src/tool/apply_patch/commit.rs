//! Writes what a plan came to, and takes everything back if a step fails or
//! the call is interrupted: a patch changes all of its files or none.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::plan::Plan;
use crate::environment::{Environment, EnvironmentError, EnvironmentErrorKind};
use crate::tool::{MAX_FILE_BYTES, ToolError};

/// Levels of a new directory that are looked at before it is removed again.
const MAX_DEPTH: u32 = 1_000;

/// One change of the file tree, with what takes it back.
#[derive(Debug)]
enum Step {
    /// Gives a new path to a file, so that it keeps its permissions.
    Rename { from: String, to: String },
    /// Puts `content` in the place of `before`.
    Write {
        path: String,
        before: Option<Bytes>,
        content: Bytes,
    },
    /// Removes a file that holds `before`.
    Remove { path: String, before: Bytes },
}

/// Carries out `plan`.
pub(super) async fn commit(environment: &Environment, plan: Plan) -> Result<(), ToolError> {
    let steps = steps(&plan);
    for (index, step) in steps.iter().enumerate() {
        let Err(error) = step.run(environment).await else {
            continue;
        };
        let done = &steps[..=index];
        let kept = roll_back(&environment.detached(), done, &plan.new_dirs).await;
        return Err(explain(step, error, &kept));
    }
    Ok(())
}

/// What to do, in an order in which as little as possible is lost if even the
/// way back fails: files are removed last, but for those that stand in the way.
fn steps(plan: &Plan) -> Vec<Step> {
    let mut renamed = BTreeSet::new();
    let mut writes = Vec::new();
    for (path, state) in &plan.files {
        let Some(after) = &state.after else { continue };
        let mut before = state.before.clone();
        let origin = state.origin.as_ref().filter(|origin| *origin != path);
        if let (None, Some(origin)) = (&before, origin)
            && let Some(source) = plan.get(origin)
            && source.after.is_none()
            && !path.starts_with(&format!("{origin}/"))
        {
            renamed.insert(origin.as_str());
            before.clone_from(&source.before);
            writes.push(Step::Rename {
                from: origin.clone(),
                to: path.clone(),
            });
        }
        if before.as_ref() != Some(after) {
            writes.push(Step::Write {
                path: path.clone(),
                before,
                content: after.clone(),
            });
        }
    }
    let removed = plan.files.iter().filter_map(|(path, state)| {
        let before = state.before.clone().filter(|_| state.after.is_none())?;
        (!renamed.contains(path.as_str())).then(|| Step::Remove {
            path: path.clone(),
            before,
        })
    });
    let in_the_way = |step: &Step| plan.has_below(step.path());
    let (mut steps, removed): (Vec<_>, Vec<_>) = removed.partition(in_the_way);
    steps.extend(writes);
    steps.extend(removed);
    steps
}

impl Step {
    /// The path that the step is about.
    fn path(&self) -> &str {
        match self {
            Self::Rename { to: path, .. }
            | Self::Write { path, .. }
            | Self::Remove { path, .. } => path,
        }
    }

    async fn run(&self, environment: &Environment) -> Result<(), EnvironmentError> {
        match self {
            Self::Rename { from, to } => {
                if let Some((parent, _)) = to.rsplit_once('/') {
                    environment.make_dir(parent).await?;
                }
                environment.rename(from, to).await
            }
            Self::Write { path, content, .. } => environment.write(path, content.clone()).await,
            Self::Remove { path, .. } => environment.remove(path).await,
        }
    }

    /// Undoes the step, whether it was done, done in part or not at all.
    async fn undo(&self, environment: &Environment) -> Result<(), EnvironmentError> {
        match self {
            Self::Rename { from, to } => {
                if environment.exists(from).await? {
                    return Ok(());
                }
                environment.rename(to, from).await
            }
            Self::Write { path, before, .. } => restore(environment, path, before.as_ref()).await,
            Self::Remove { path, before } => restore(environment, path, Some(before)).await,
        }
    }
}

/// Puts `before` back, where something else is.
async fn restore(
    environment: &Environment,
    path: &str,
    before: Option<&Bytes>,
) -> Result<(), EnvironmentError> {
    let now = match environment.read(path, MAX_FILE_BYTES).await {
        Ok(content) => Some(content),
        Err(error) if error.kind == EnvironmentErrorKind::NotFound => None,
        Err(error) if error.kind == EnvironmentErrorKind::NotDirectory => None,
        Err(error) => return Err(error),
    };
    match (now.as_ref(), before) {
        (now, before) if now == before => Ok(()),
        (_, Some(before)) => environment.write(path, before.clone()).await,
        (_, None) => environment.remove(path).await,
    }
}

/// Undoes `done`, latest first; returns what could not be undone.
async fn roll_back(
    environment: &Environment,
    done: &[Step],
    new_dirs: &BTreeSet<String>,
) -> Vec<String> {
    let mut kept = Vec::new();
    // A removed file comes back last: a new directory may stand in its place.
    let (removed, written): (Vec<_>, Vec<_>) = done
        .iter()
        .rev()
        .partition(|step| matches!(step, Step::Remove { .. }));
    undo(environment, &written, &mut kept).await;
    let mut gone: Option<&str> = None;
    for dir in new_dirs {
        // A directory goes with all that it holds.
        if gone.is_some_and(|gone| dir.starts_with(&format!("{gone}/"))) {
            continue;
        }
        gone = Some(dir);
        if let Err(error) = remove_dir(environment, dir).await {
            kept.push(format!("{dir} ({error})"));
        }
    }
    undo(environment, &removed, &mut kept).await;
    kept
}

async fn undo(environment: &Environment, steps: &[&Step], kept: &mut Vec<String>) {
    for step in steps {
        if let Err(error) = step.undo(environment).await {
            kept.push(format!("{} ({error})", step.path()));
        }
    }
}

/// Removes a directory if no one has put a file into it.
async fn remove_dir(environment: &Environment, dir: &str) -> Result<(), EnvironmentError> {
    match environment.list(dir, MAX_DEPTH).await {
        Ok(listing) if listing.truncated => Ok(()),
        Ok(listing) if listing.entries.iter().any(|entry| !entry.is_dir) => Ok(()),
        Ok(_) => environment.remove(dir).await,
        Err(error) => match error.kind {
            EnvironmentErrorKind::NotFound | EnvironmentErrorKind::NotDirectory => Ok(()),
            _ => Err(error),
        },
    }
}

/// The failure of `step`, and what it left behind.
fn explain(step: &Step, error: EnvironmentError, kept: &[String]) -> ToolError {
    let mut message = match error.kind {
        EnvironmentErrorKind::Cancelled => "interrupted before it ended".to_owned(),
        _ => {
            let verb = match step {
                Step::Rename { .. } => "move a file to",
                Step::Write { .. } => "write",
                Step::Remove { .. } => "remove",
            };
            format!("cannot {verb} {}: {}", step.path(), error.message)
        }
    };
    if kept.is_empty() {
        message += "; the patch changed nothing";
    } else {
        message += "; the patch was taken back, except for ";
        message += &kept.join(", ");
    }
    ToolError::new(message)
}
