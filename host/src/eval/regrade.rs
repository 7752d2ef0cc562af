//! `eval regrade`: the checkers alone, over the trees that a run recorded.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use tokio_util::sync::CancellationToken;

use super::artifacts;
use super::budget::RunBudget;
use super::lock::Parts;
use super::programs::Programs;
use super::results::{self, Directory, Outcome, Row};
use super::run::unhex;
use super::settings;
use super::statistics::{Summary, Sums};
use super::suite::{Entry, Limits, LoadOptions, Suite, Task};
use super::trial::{Conditions, Final};
use super::verdict::Verdict;
use crate::host::Host;

/// What came of it.
#[derive(Debug, Default)]
pub struct Regraded {
    /// Trials that were checked again and ended otherwise: before and after.
    pub moved: Vec<(Row, Row)>,
    /// Trials that were checked again.
    pub checked: usize,
    /// Trials that could not be, and why.
    pub left: Vec<(String, u32, String)>,
    /// All trials as they are now.
    pub summary: Summary,
}

/// Checks the recorded trials in `directory` again, `jobs` at a time, and replaces
/// their records at the end.
///
/// # Errors
/// It is no run, its suite is gone, another run uses it, or the disk fails.
pub async fn regrade(
    host: Host,
    programs: Programs,
    directory: &Path,
    jobs: usize,
    stop: CancellationToken,
) -> Result<Regraded, String> {
    let settings = settings::read(directory)?;
    let rows = results::read(directory)?;
    let taken = Directory::take(directory)?;
    let suite = Suite::open(&settings.suite).map_err(|error| error.to_string())?;
    let index: HashMap<String, usize> = (0..suite.len())
        .map(|index| (suite.task_name(index).to_owned(), index))
        .collect();
    let load = LoadOptions {
        script: settings.script.clone(),
        provider_answers: settings.provider_answers,
    };
    let conditions = Conditions {
        provider: Err(String::new()),
        host,
        config: Default::default(),
        programs,
        limits: Limits::default(),
        budget: RunBudget::new(Default::default()),
        local: settings.env == "local",
        guardian: None,
        secrets: Vec::new(),
        log: false,
    };
    let mut regraded = Regraded::default();
    let mut after = Vec::with_capacity(rows.len());
    // Rows are sorted by task: one is loaded at a time.
    let mut current: Option<(String, Result<Arc<Task>, String>)> = None;
    let mut tasks = Vec::with_capacity(rows.len());
    for row in rows {
        if current.as_ref().is_none_or(|(name, _)| *name != row.task) {
            let task = match index.get(&row.task) {
                None => Err("its task is no longer in the suite".to_owned()),
                Some(index) => match suite.load(*index, &load) {
                    Ok(Entry::Task(task)) => Ok(task),
                    Ok(Entry::Skipped(why)) => Err(why),
                    Err(error) => Err(error.to_string()),
                },
            };
            current = Some((row.task.clone(), task));
        }
        let task = current.as_ref().map(|(_, task)| task.clone());
        tasks.push((row, task.unwrap_or_else(|| Err(String::new()))));
    }
    let checks = tasks.into_iter().map(|(row, task)| {
        let (conditions, stop) = (&conditions, &stop);
        async move {
            if stop.is_cancelled() {
                let why = "interrupted".to_owned();
                return (row, Err(Some(why)));
            }
            let result = again(conditions, directory, &row, task).await;
            (row, result)
        }
    });
    let mut checks = stream::iter(checks).buffer_unordered(jobs.max(1));
    while let Some((old, result)) = checks.next().await {
        let new = match result {
            Ok(new) => new,
            Err(why) => {
                if let Some(why) = why {
                    regraded.left.push((old.task.clone(), old.trial, why));
                }
                after.push(old);
                continue;
            }
        };
        regraded.checked += 1;
        if new.outcome != old.outcome {
            regraded.moved.push((old, new.clone()));
        }
        after.push(new);
    }
    drop(checks);
    let by_name = |row: &Row| (row.task.clone(), row.trial);
    after.sort_by_key(by_name);
    regraded.moved.sort_by_key(|(old, _)| by_name(old));
    regraded.left.sort();
    let mut sums = Sums::default();
    after.iter().for_each(|row| sums.add(row));
    regraded.summary = sums.summary();
    taken.rewrite(&after)?;
    super::report::write(directory).map_err(|error| results::cannot_write(directory, &error))?;
    Ok(regraded)
}

/// The record after another check; without a reason where there is nothing to check.
async fn again(
    conditions: &Conditions,
    directory: &Path,
    row: &Row,
    task: Result<Arc<Task>, String>,
) -> Result<Row, Option<String>> {
    let dir = directory.join(&row.dir);
    // A trial without a verdict can have one now if only its checker was missing.
    let came_to_checker = dir.join(artifacts::CHECK).exists();
    if matches!(row.outcome, Outcome::Limit | Outcome::AgentError) {
        return Err(None);
    }
    if row.outcome == Outcome::InfraError && !came_to_checker {
        return Err(Some(format!(
            "the agent has not come to its end: {}",
            row.reason.as_deref().unwrap_or("-")
        )));
    }
    let task = task.map_err(Some)?;
    let parts = Parts::of_task(&task);
    if parts.files != row.parts.files {
        let why = "the files of its task have changed: run it again";
        return Err(Some(why.to_owned()));
    }
    let seed = unhex(&row.seed).ok_or_else(|| Some("its seed is damaged".to_owned()))?;
    let lost = |error| Some(format!("its tree is lost: {}", super::reason(&error)));
    let check = async |checker, tree| {
        let tree = Final {
            tree,
            archive: None,
        };
        let checked = conditions.check(&task, checker, seed, &tree).await;
        checked.map_err(Some)
    };
    let mut at_step = None;
    for (step, input) in task.inputs.iter().enumerate() {
        let Some(checker) = &input.checker else {
            continue;
        };
        let Some(seen) = artifacts::step_tree(&dir, step, &task.tree).map_err(lost)? else {
            let why = "the agent has not come to its end, or it is not recorded: run it again";
            return Err(Some(format!("step {}: {why}", input.name)));
        };
        let checked = check(checker, seen.tree).await?;
        if let Some(why) = input.failed(&checked.verdict) {
            at_step = Some((checked, why));
            break;
        }
        if seen.is_last {
            let why = "it passes now, but the agent ended there: run it again";
            return Err(Some(format!("step {}: {why}", input.name)));
        }
    }
    let (checked, why) = match at_step {
        Some((checked, why)) => (checked, Some(why)),
        None => {
            let tree = artifacts::final_tree(&dir, &task.tree).map_err(lost)?;
            (check(&task.checker, tree).await?, None)
        }
    };
    let (outcome, reason) = match (&checked.verdict, why) {
        (Verdict::Passed, _) => (Outcome::Passed, None),
        (Verdict::Failed(own), why) => (Outcome::Failed, Some(why.unwrap_or_else(|| own.clone()))),
        (Verdict::None(own), why) => (
            Outcome::InfraError,
            Some(why.unwrap_or_else(|| own.clone())),
        ),
    };
    artifacts::write_check(&dir, &checked)
        .map_err(|error| Some(results::cannot_write(directory, &error)))?;
    let parts = Parts {
        checker: parts.checker,
        ..row.parts.clone()
    };
    Ok(Row {
        outcome,
        reason,
        passed: outcome.passed(),
        rewards: checked.rewards.clone(),
        check_ms: checked.ms,
        lock: parts.lock(),
        parts,
        ..row.clone()
    })
}
