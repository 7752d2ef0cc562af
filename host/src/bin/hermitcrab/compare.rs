//! `hermitcrab compare`: forks a run onto several models, checks what comes of each,
//! and prints a table.

mod models;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use hermitcrab::llm::Content;
use hermitcrab::session::SessionConfig;
use hermitcrab_host::eval::suite::{Checker, Limits};
use hermitcrab_host::eval::{Branch, BranchError, BranchOutcome, Branches, RunLimits};
use hermitcrab_host::log::ReplayError;
use hermitcrab_host::{CancellationToken, ForkError, ProgramFn, WasiCommand, log};

use crate::cli::CompareOptions;
use crate::connect;
use crate::edits;
use crate::eval;
use crate::failure::{Code, Failure, reason};
use crate::fork;
use crate::programs;
use crate::prompt;
use crate::replay;
use crate::secrets::Secrets;
use crate::settings::{self, Texts};

/// Runs the branches, shows each as it ends, and prints the table.
///
/// # Errors
/// The log does not lead there, the options do not fit, or a branch has no result.
pub(crate) fn compare(options: CompareOptions, secrets: &Secrets) -> Result<Code, Failure> {
    let unusable = |error| replay::failed(ReplayError::Log(error));
    let opening = log::opening(&options.log).map_err(unusable)?;
    let opening = opening.ok_or_else(|| replay::failed(ReplayError::NoSuchRound(None)))?;
    if let Some(info) = opening.remote {
        return Err(local(&info.working_directory));
    }
    let recorded = SessionConfig::from_json(&opening.config.to_string())
        .map_err(|error| Failure::failed(error.to_string()))?;
    let wanted = settings::over(options.settings.config.as_deref(), &recorded)?;
    let texts = Texts::read(&options.settings)?;
    let message = match options.steer.as_deref().or(options.prompt.as_deref()) {
        Some(named) => Content::from(prompt::read(Some(named), io::stdin())?),
        None => Content::default(),
    };
    let edits = edits::read(&options.edit)?;
    let checker = options.check.as_deref().map(checker).transpose()?;
    let programs = lent(&options)?;
    let (models, providers) = models::chosen(&options, &wanted, &texts, secrets)?;

    let count = models.len() * options.trials as usize;
    let host = connect::chosen_core(connect::with_keys(&providers));
    let branches = Branches {
        host: host.build().map_err(connect::failed)?,
        log: options.log.clone(),
        round: options.at,
        message,
        edits,
        models,
        trials: options.trials,
        jobs: options.jobs as usize,
        checker,
        check_timeout_ms: options.check_timeout_ms,
        programs,
        limits: Limits {
            rounds: options.max_rounds,
            wall_ms: None,
            tokens: options.max_tokens,
            cost_usd: options.max_cost,
        },
        run_limits: RunLimits {
            tokens: options.budget_tokens,
            cost_usd: options.budget_cost,
        },
        out: options.out,
    };
    let (mut done, mut unprinted) = (Vec::new(), None);
    let work = |stop: CancellationToken| {
        let broken = stop.clone();
        let (done, unprinted) = (&mut done, &mut unprinted);
        branches.run(stop, move |branch| {
            let number = done.len() + 1;
            let _ = writeln!(io::stderr(), "{number} of {count}: {}", told(branch));
            done.push(branch.clone());
            // Nobody reads any more: no branch has to be paid for.
            if options.json
                && let Err(failure) = print_json(branch)
            {
                *unprinted = Some(failure);
                broken.cancel();
            }
        })
    };
    let runtime = eval::runtime()?;
    let ended = runtime.block_on(eval::until_stopped(work));
    runtime.shutdown_timeout(Duration::from_millis(500));
    if let Some(failure) = unprinted {
        return Err(failure);
    }
    let (branches, failure) = match ended? {
        Ok(branches) => (branches, None),
        // What has ended by then is worth the table.
        Err(error @ (BranchError::Interrupted | BranchError::Failed(_))) => {
            (done, Some(failed(error)))
        }
        Err(error) => return Err(failed(error)),
    };
    if !options.json && !branches.is_empty() {
        eval::print(&table::of(&branches, options.check.is_some()))?;
    }
    match failure {
        Some(failure) => Err(failure),
        None => results(&branches),
    }
}

fn local(directory: &str) -> Failure {
    Failure::usage(format!(
        "the run worked in {directory}, outside of a sandbox, so its log has no files to give \
         each branch: record a run with --env memory, or fork this one with `hermitcrab fork`, \
         one model at a time"
    ))
}

fn checker(file: &Path) -> Result<Checker, Failure> {
    let content = fs::read(file).map_err(|error| {
        let reason = reason(&error);
        Failure::usage(format!("--check: cannot read {}: {reason}", file.display()))
    })?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(Checker::script(&name, content.into()))
}

fn lent(options: &CompareOptions) -> Result<BTreeMap<String, ProgramFn>, Failure> {
    let python = options
        .python
        .as_deref()
        .map(programs::python)
        .transpose()?;
    let mut all = python.unwrap_or_default();
    let workers = (options.jobs as usize).min(2 * eval::processors());
    for (name, file) in &options.programs {
        let command = WasiCommand::load(file, workers)
            .map_err(|error| Failure::usage(format!("--program {name}: {error}")))?;
        all.insert(name.clone(), command.program());
    }
    Ok(all)
}

fn print_json(branch: &Branch) -> Result<(), Failure> {
    let json = serde_json::to_string(branch).map_err(|error| Failure::failed(error.to_string()))?;
    eval::print(&(json + "\n"))
}

/// A branch that has ended, as a line.
fn told(branch: &Branch) -> String {
    let wall = eval::duration(Duration::from_millis(branch.wall_ms));
    let cost = branch.cost_usd.map(|cost| format!(", ${cost:.4}"));
    let rounds = match branch.rounds {
        1 => "1 round".to_owned(),
        count => format!("{count} rounds"),
    };
    let why = branch.reason.as_deref().map(eval::one_line);
    format!(
        "{}.{} {}: {rounds}, {wall}{}{}",
        eval::one_line(&branch.model),
        branch.trial,
        branch.outcome.as_str(),
        cost.unwrap_or_default(),
        why.map_or_else(String::new, |why| format!(" ({why})")),
    )
}

fn failed(error: BranchError) -> Failure {
    match error {
        BranchError::Fork(ForkError::NoEnvironment(directory)) => local(&directory),
        BranchError::Fork(error) => fork::failed(error),
        BranchError::Usage(message) => Failure::usage(message),
        BranchError::Failed(message) => Failure::failed(message),
        BranchError::Interrupted => Failure {
            code: Code::INTERRUPTED,
            message: "interrupted".to_owned(),
        },
    }
}

/// Whether every branch has a result.
fn results(branches: &[Branch]) -> Result<Code, Failure> {
    let without = |branch: &&Branch| branch.outcome == BranchOutcome::InfraError;
    match branches.iter().filter(without).count() {
        0 => Ok(Code::DONE),
        1 => Err(Failure::failed(
            "1 branch has no result: its line above says why",
        )),
        count => Err(Failure::failed(format!(
            "{count} branches have no result: their lines above say why"
        ))),
    }
}
