//! `hermitcrab fork`: goes on live from a round of a recorded run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use hermitcrab::session::SessionConfig;
use hermitcrab_host::log::{Opening, ReplayError};
use hermitcrab_host::tree::Tree;
use hermitcrab_host::{Continuation, Fork, ForkError, Guardian, log};

use crate::approve;
use crate::archive;
use crate::attach;
use crate::cli::{ForkOptions, Place, RunOptions};
use crate::connect::{self, HostSession};
use crate::edits;
use crate::failure::{Code, Failure};
use crate::foreign;
use crate::ground::{self, Ground};
use crate::output;
use crate::programs;
use crate::provider;
use crate::replay;
use crate::save;
use crate::secrets::Secrets;
use crate::settings::{self, Texts};
use crate::task::{self, Ready};

/// Replays the log up to the round, changes what the options say and goes on.
///
/// # Errors
/// The log does not lead there, the options do not fit, or the run does not end well.
pub(crate) fn fork(mut options: ForkOptions, secrets: &Secrets) -> Result<Code, Failure> {
    if let Some(trajectory) = options.from.take() {
        return foreign::fork(&trajectory, options, secrets);
    }
    let Some(file) = options.log.take() else {
        return Err(Failure::usage("name a log, or a trajectory with --from"));
    };
    let unusable = |error| replay::failed(ReplayError::Log(error));
    let opening = log::opening(&file).map_err(unusable)?;
    let opening = opening.ok_or_else(|| replay::failed(ReplayError::NoSuchRound(None)))?;
    if options.run.restore.is_some() {
        return Err(Failure::usage(
            "--restore is for run; a fork goes on from FILE",
        ));
    }
    place(&mut options.run, &opening)?;
    output::distinct(&[
        ("the log", Some(&*file)),
        ("--out", options.run.out.as_deref()),
    ])?;
    ground::check(&options.run)?;
    let recorded = SessionConfig::from_json(&opening.config.to_string())
        .map_err(|error| Failure::failed(error.to_string()))?;
    let recorded = recorded.without_address();
    let told = options.steer.take().or(options.run.prompt.take());
    options.run.prompt = told;
    let options = options;

    let wanted = settings::over(options.run.settings.config.as_deref(), &recorded)?;
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
    let texts = Texts::read(&options.run.settings)?;
    let prompt = match options.run.prompt {
        Some(_) => task::read(&options.run)?,
        None => String::new(),
    };
    let prompt = attach::attached(prompt, &options.run.attach)?;
    let edits = edits::read(&options.edit)?;
    let is_local = options.run.place() == Place::Local;
    if is_local && !edits.is_empty() {
        return Err(Failure::usage(
            "--edit needs a run with --env memory: edit the file itself",
        ));
    }
    let passed = ground::passed(&options.run, secrets)?;
    let output = output::file("--out", options.run.out.as_deref())?;
    let lent = options.run.python.as_deref().map(programs::python);
    let lent = lent.transpose()?.unwrap_or_default();
    let ground = match is_local {
        // SAFETY: nothing so far has started a thread.
        true => Ground::Local(
            options.run.dir.clone(),
            unsafe { ground::guardian() }?,
            passed,
        ),
        false => Ground::Memory(Bytes::new(), lent),
    };
    let (settings, model) = (&options.run.settings, options.run.model.as_deref());
    let mut wanted = settings::config(settings, named, model, texts, wanted);
    settings::set_approval(&mut wanted, options.run.approve);
    settings::check(&wanted, settings, model)?;
    let providers = settings::with_others(chosen, &mut wanted, secrets);
    let (approver, questions) = approve::approver(&options.run, &ground);
    let save = options.run.save.as_deref().map(save::File::create);
    let save = save.transpose()?;

    task::carry_out(&options.run, output, questions, async || {
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
        let fork = host.fork(&file, options.at, with);
        let fork = fork.map_err(failed)?;
        let before = match is_local {
            true => Tree::new(),
            false => tree(&fork).await?,
        };
        edits::write(&fork.session, edits).await?;
        let fork = fork.configure(wanted, approver).await;
        let fork = fork.map_err(connect::failed)?;
        let session = HostSession {
            session: fork.session,
            instance: fork.instance,
            continuation: fork.continuation,
            save,
            _guardian: guardian,
        };
        if prompt.is_empty() && session.continuation == Continuation::Input {
            return Err(failed(ForkError::NoInput(options.at)));
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
        if options.env == Some(Place::Local) {
            return Err(Failure::usage(
                "--env local: the files of the run are those of its sandbox; leave --env out",
            ));
        }
        options.env = Some(Place::Memory);
        return Ok(());
    };
    if options.env == Some(Place::Memory) {
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

async fn tree(fork: &Fork) -> Result<Tree, Failure> {
    let tar = fork.session.environment().export_tar().await;
    archive::from_tar(&tar.map_err(connect::failed)?)
}

pub(crate) fn failed(error: ForkError) -> Failure {
    match error {
        ForkError::Replay(error) => replay::failed(error),
        ForkError::NoInput(_) => Failure::usage(format!("{error}, with --steer TEXT")),
        ForkError::NoEnvironment(_) | ForkError::Host(_) => Failure::usage(error.to_string()),
    }
}
