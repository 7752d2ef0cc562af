//! Writes what a plan came to, and takes everything back if a step fails: a
//! patch changes all of its files or none.

use std::collections::BTreeSet;
use std::pin::pin;

use bytes::Bytes;
use futures_util::future::{Either, select};

use super::plan::Plan;
use crate::environment::{Environment, EnvironmentError, EnvironmentErrorKind, Scope};
use crate::tool::{CallContext, MAX_FILE_BYTES, ToolError};

/// Time in ms that an interrupted call still has for writing, and as much again
/// for taking back what it wrote. Files are written in less, unless the
/// environment does not answer.
const GRACE_MS: u64 = 2_000;

/// Levels of a new directory that are looked at before it is removed again.
const MAX_DEPTH: u32 = 1_000;

/// One change of the file tree, with what takes it back.
#[derive(Debug)]
enum Change {
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

/// Carries out `plan`. An interrupt that comes before the first write stops it;
/// one that comes later lets it finish, if the environment still answers: what
/// a host has begun to write may reach the disk also after it is cancelled, and
/// then no one could say what the files hold.
pub(super) async fn commit(call: &CallContext, plan: Plan) -> Result<(), ToolError> {
    if call.scope.cancel.is_cancelled() {
        return Err(ToolError::stopped("before it changed anything"));
    }
    let steps = steps(&plan);
    let environment = call.environment.detached();
    let failure = in_time(call, &environment, run(&environment, &steps)).await;
    let Some((failed, error)) = failure else {
        return Ok(());
    };
    let environment = call.environment.detached();
    let back = roll_back(&environment, &steps[..=failed], &plan.new_dirs);
    let kept = in_time(call, &environment, back).await;
    Err(explain(&steps[failed], error, &kept))
}

/// Awaits `work`, which goes on in `environment` after an interrupt of the
/// call, but not for longer than [`GRACE_MS`].
async fn in_time<T>(
    call: &CallContext,
    environment: &Environment,
    work: impl Future<Output = T>,
) -> T {
    let limit = async {
        call.scope.cancel.cancelled().await;
        call.port
            .sleep(&Scope::new(call.scope.owner.clone()), GRACE_MS)
            .await;
        environment.scope().cancel.cancel();
    };
    match select(pin!(work), pin!(limit)).await {
        Either::Left((result, _)) => result,
        Either::Right(((), work)) => work.await,
    }
}

/// Runs all steps, up to the first that fails: its index and why.
async fn run(environment: &Environment, steps: &[Change]) -> Option<(usize, EnvironmentError)> {
    for (index, step) in steps.iter().enumerate() {
        if let Err(error) = step.run(environment).await {
            return Some((index, error));
        }
    }
    None
}

/// What to do, in an order in which as little as possible is lost if even the
/// way back fails: files are removed last, but for those that stand in the way.
fn steps(plan: &Plan) -> Vec<Change> {
    let mut renamed = BTreeSet::new();
    let mut writes = Vec::new();
    for (path, state) in &plan.files {
        let Some(after) = &state.after else { continue };
        let mut before = state.before.clone();
        let origin = state.origin.as_ref().filter(|origin| *origin != path);
        if let (None, Some(origin)) = (&before, origin)
            && let Some(source) = plan.get(origin)
            && source.after.is_none()
            && plan.can_move(origin)
            && !path.starts_with(&format!("{origin}/"))
        {
            renamed.insert(origin.as_str());
            before.clone_from(&source.before);
            writes.push(Change::Rename {
                from: origin.clone(),
                to: path.clone(),
            });
        }
        if before.as_ref() != Some(after) {
            writes.push(Change::Write {
                path: path.clone(),
                before,
                content: after.clone(),
            });
        }
    }
    let removed = plan.files.iter().filter_map(|(path, state)| {
        let before = state.before.clone().filter(|_| state.after.is_none())?;
        (!renamed.contains(path.as_str())).then(|| Change::Remove {
            path: path.clone(),
            before,
        })
    });
    let in_the_way = |step: &Change| plan.has_below(step.path());
    let (mut steps, removed): (Vec<_>, Vec<_>) = removed.partition(in_the_way);
    steps.extend(writes);
    steps.extend(removed);
    steps
}

impl Change {
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
    done: &[Change],
    new_dirs: &BTreeSet<String>,
) -> Vec<String> {
    let mut kept = Vec::new();
    // A removed file comes back last: a new directory may stand in its place.
    let (removed, written): (Vec<_>, Vec<_>) = done
        .iter()
        .rev()
        .partition(|step| matches!(step, Change::Remove { .. }));
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

async fn undo(environment: &Environment, steps: &[&Change], kept: &mut Vec<String>) {
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
fn explain(step: &Change, error: EnvironmentError, kept: &[String]) -> ToolError {
    let stopped = error.kind == EnvironmentErrorKind::Cancelled;
    let mut message = match stopped {
        true => "before it ended".to_owned(),
        false => {
            let verb = match step {
                Change::Rename { .. } => "move a file to",
                Change::Write { .. } => "write",
                Change::Remove { .. } => "remove",
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
    ToolError {
        stopped,
        ..ToolError::new(message)
    }
}
