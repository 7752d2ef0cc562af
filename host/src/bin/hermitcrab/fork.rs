//! `hermitcrab fork`: goes on live from a round of a recorded run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use hermitcrab::session::SessionConfig;
use hermitcrab_host::log::{Opening, ReplayError};
use hermitcrab_host::tree::Tree;
use hermitcrab_host::{EnvironmentChoice, Fork, ForkError, Guardian, SessionOptions, log};
use serde_json::{Map, Value};

use crate::archive;
use crate::attach;
use crate::cli::{ForkOptions, Place, RunOptions};
use crate::connect::{self, Begins, HostSession};
use crate::failure::{Code, Failure, reason};
use crate::output::Output;
use crate::programs;
use crate::provider;
use crate::replay;
use crate::run::{self, Ground, Ready, Texts};
use crate::secrets::Secrets;

/// Replays the log up to the round, changes what the options say and goes on.
///
/// # Errors
/// The log does not lead there, the options do not fit, or the run does not end well.
pub(crate) fn fork(mut options: ForkOptions, secrets: &Secrets) -> Result<Code, Failure> {
    let unusable = |error| replay::failed(ReplayError::Log(error));
    let opening = log::opening(&options.log).map_err(unusable)?;
    let opening = opening.ok_or_else(|| replay::failed(ReplayError::NoSuchRound(None)))?;
    place(&mut options.run, &opening)?;
    run::check_place(&options.run)?;
    let recorded = SessionConfig::from_json(&opening.config.to_string())
        .map_err(|error| Failure::failed(error.to_string()))?;
    let told = options.steer.take().or(options.run.prompt.take());
    options.run.prompt = told;
    let options = options;

    let wanted = run::over(options.run.config.as_deref(), &recorded)?;
    let named = options
        .run
        .provider
        .clone()
        .unwrap_or(wanted.provider.clone());
    let wire = wanted.profile_of(&named).map(|profile| profile.wire);
    let chosen = provider::choose(
        Some(wire.unwrap_or(&named)),
        options.run.base_url.as_deref(),
        |name| secrets.variable(name),
    )?;
    let texts = Texts::read(&options.run)?;
    let prompt = match options.run.prompt {
        Some(_) => run::task(&options.run)?,
        None => String::new(),
    };
    let prompt = attach::attached(prompt, &options.run.attach)?;
    let edits = edits(&options.edit)?;
    let is_local = options.run.env == Place::Local;
    if is_local && !edits.is_empty() {
        return Err(Failure::usage(
            "--edit needs a run with --env memory: edit the file itself",
        ));
    }
    let passed = run::passed(&options.run, secrets)?;
    let output = options.run.out.as_deref().map(Output::create).transpose()?;
    let lent = options.run.python.as_deref().map(programs::python);
    let lent = lent.transpose()?.unwrap_or_default();
    let ground = match is_local {
        // SAFETY: nothing so far has started a thread.
        true => Ground::Local(options.run.dir.clone(), unsafe { run::guardian() }?, passed),
        false => Ground::Memory(Bytes::new(), lent),
    };
    let mut wanted = run::config(&options.run, named, texts, wanted);
    run::check(&wanted, &options.run)?;
    let providers = run::with_others(chosen, &mut wanted, secrets);
    let (approver, questions) = run::approver(&options.run, &ground);

    run::carry_out(&options.run, output, questions, async || {
        let host = connect::chosen_core(connect::with_keys(&providers));
        let host = host.build().map_err(connect::failed)?;
        let mut guardian: Option<Guardian> = None;
        let mut with = hermitcrab_host::ForkOptions {
            approval: approver.clone(),
            record: options.run.record.clone(),
            ..hermitcrab_host::ForkOptions::default()
        };
        match ground {
            Ground::Local(directory, watching, variables) => {
                let watching = guardian.insert(watching);
                let local = connect::local(directory, watching, variables, &providers)?;
                with.environment = Some(Arc::new(local));
                eprintln!(
                    "hermitcrab: this goes on in {} as it is now: the log has what the model \
                     read and wrote, not the files",
                    options.run.dir.display()
                );
            }
            Ground::Memory(_, programs) => with.programs = programs,
        }
        let fork = host.fork(&options.log, options.at, with);
        let fork = fork.map_err(failed)?;
        let before = match is_local {
            true => Tree::new(),
            false => tree(&fork).await?,
        };
        for (path, content) in edits {
            let environment = fork.session.environment();
            let written = environment.write(&path, content).await;
            written.map_err(|error| Failure::usage(format!("--edit {path}: {error}")))?;
        }
        let session = set_up(fork, wanted, approver, guardian).await?;
        if prompt.is_empty() && matches!(session.begins, Begins::Idle) {
            return Err(Failure::usage(format!(
                "round {} is where an input of the run was done: say what comes next, with \
                 --steer TEXT",
                options.at
            )));
        }
        Ok(Ready {
            session,
            prompt,
            before,
        })
    })
}

/// Sets the place of the run to that of the log.
fn place(options: &mut RunOptions, opening: &Opening) -> Result<(), Failure> {
    if options.dir != Path::new(".") {
        return Err(Failure::usage(
            "--dir is that of the run, which its history names: leave it out",
        ));
    }
    let Some(info) = &opening.remote else {
        options.env = Place::Memory;
        return Ok(());
    };
    if options.env == Place::Memory {
        return Err(Failure::usage(
            "--env memory: the run was a local one, and its log has no files; leave --env out",
        ));
    }
    options.dir = PathBuf::from(&info.working_directory);
    match options.dir.is_dir() {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "the run worked in {}, which is not there: its history names that directory, so a \
             fork needs it",
            options.dir.display()
        ))),
    }
}

/// The files that `--edit` names: path in the sandbox, and content.
fn edits(options: &[String]) -> Result<Vec<(String, Bytes)>, Failure> {
    let edit = |option: &String| {
        let parts = option.split_once('=').filter(|(path, _)| !path.is_empty());
        let (path, file) = parts.ok_or_else(|| {
            Failure::usage(format!(
                "--edit {option}: write PATH=FILE, a path in the sandbox and the file to put there"
            ))
        })?;
        let content = fs::read(file).map_err(|error| {
            Failure::usage(format!("--edit: cannot read {file}: {}", reason(&error)))
        })?;
        Ok((path.to_owned(), content.into()))
    };
    options.iter().map(edit).collect()
}

async fn tree(fork: &Fork) -> Result<Tree, Failure> {
    let tar = fork.session.environment().export_tar().await;
    archive::from_tar(&tar.map_err(connect::failed)?)
}

/// The forked session with the settings that are wanted; where one of those differs
/// that a session keeps, another session with its history.
async fn set_up(
    fork: Fork,
    wanted: SessionConfig,
    approval: Option<hermitcrab_host::ApprovalFn>,
    guardian: Option<Guardian>,
) -> Result<HostSession, Failure> {
    let Fork {
        instance,
        session,
        stop,
    } = fork;
    let now = session.config().await.map_err(connect::failed)?;
    let patch = differences(&fields(&now)?, fields(&wanted)?);
    let begins = match stop.is_paused {
        true => Begins::Paused,
        false => Begins::Idle,
    };
    let ready = |session, begins| HostSession {
        session,
        instance: instance.clone(),
        begins,
        _guardian: guardian,
    };
    if !patch.keys().any(|name| SessionConfig::is_fixed(name)) {
        let patched = session.configure(Value::Object(patch)).await;
        patched.map_err(connect::failed)?;
        return Ok(ready(session, begins));
    }
    let record = session.record().await.map_err(connect::failed)?;
    let environment = EnvironmentChoice::Existing(session.environment().clone());
    let mut options = SessionOptions::new(wanted, environment).record(record);
    options.approval = approval;
    let other = instance.open_session(options).await;
    let other = other.map_err(connect::failed)?;
    session.abort().await.map_err(connect::failed)?;
    let begins = match begins {
        Begins::Paused => Begins::Open,
        begins => begins,
    };
    Ok(ready(other, begins))
}

fn fields(config: &SessionConfig) -> Result<Map<String, Value>, Failure> {
    match serde_json::to_value(config) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(Failure::failed("the settings cannot be read")),
    }
}

/// What of `wanted` differs.
fn differences(now: &Map<String, Value>, wanted: Map<String, Value>) -> Map<String, Value> {
    let differs = |(name, value): &(String, Value)| now.get(name) != Some(value);
    wanted.into_iter().filter(differs).collect()
}

fn failed(error: ForkError) -> Failure {
    match error {
        ForkError::Replay(error) => replay::failed(error),
        ForkError::NoEnvironment(_) | ForkError::Host(_) => Failure::usage(error.to_string()),
    }
}
