//! `hermitcrab fork`: goes on live from a round of a recorded run.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use hermitcrab::session::SessionConfig;
use hermitcrab_host::log::{Opening, ReplayError};
use hermitcrab_host::tree::Tree;
use hermitcrab_host::{Continuation, Fork, ForkError, Guardian, Host, log};

use crate::approve;
use crate::archive;
use crate::attach;
use crate::cli::{EnvironmentKind, ForkOptions, RunOptions};
use crate::connect::{self, HostSession};
use crate::defaults;
use crate::edits;
use crate::failure::{Code, Failure};
use crate::foreign;
use crate::journal::{self, Held};
use crate::output;
use crate::programs;
use crate::provider;
use crate::replay;
use crate::save;
use crate::secrets::Secrets;
use crate::settings::{self, Texts};
use crate::task::{self, Ready};
use crate::undo::Undo;
use crate::workspace::{self, Machine, Workspace};

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
    if options.run.journal.resume.is_some() || options.run.journal.r#continue {
        return Err(Failure::usage(
            "--resume and --continue are for run; a fork goes on from FILE",
        ));
    }
    output::distinct(&[
        ("the log", Some(&*file)),
        ("--out", options.run.out.as_deref()),
    ])?;
    let told = options.steer.take().or(options.run.prompt.take());
    options.run.prompt = told;
    let edits = edits::read(&options.edit)?;
    let at = options.at;
    go_on(
        Origin::Round { file, at },
        &opening,
        options.run,
        edits,
        secrets,
    )
}

/// Where a run goes on.
pub(crate) enum Origin {
    /// At a round of a log.
    Round {
        /// The log.
        file: PathBuf,
        /// Answers of the model before that.
        at: u32,
    },
    /// Where a kept session ended.
    End {
        /// What errors call it.
        name: PathBuf,
        /// The session.
        held: Held,
    },
}

impl Origin {
    /// The session that is kept, if it is one.
    fn held(&self) -> Option<&Held> {
        match self {
            Self::Round { .. } => None,
            Self::End { held, .. } => Some(held),
        }
    }

    async fn fork(&self, host: &Host, with: hermitcrab_host::ForkOptions) -> Result<Fork, Failure> {
        match self {
            Self::Round { file, at } => host.fork(file, *at, with).map_err(failed),
            Self::End { name, held } => {
                let source = held.session().log().map_err(journal::failed)?;
                let fork = host.resume(name, source, held.log(), with).await;
                let fork = fork.map_err(failed)?;
                held.commit();
                Ok(fork)
            }
        }
    }
}

/// Goes on from `origin`, which was opened with `opening`.
///
/// # Errors
/// As [`fork`].
pub(crate) fn go_on(
    origin: Origin,
    opening: &Opening,
    mut options: RunOptions,
    edits: Vec<(String, Bytes)>,
    secrets: &Secrets,
) -> Result<Code, Failure> {
    place(&mut options, opening)?;
    defaults::fence(&mut options)?;
    workspace::check(&options)?;
    let recorded = SessionConfig::from_json(&opening.config.to_string())
        .map_err(|error| Failure::failed(error.to_string()))?;
    let recorded = recorded.without_address();
    let options = options;

    let wanted = settings::over(options.settings.config.as_deref(), &recorded)?;
    let named = options.provider.clone().unwrap_or(wanted.provider.clone());
    let wire = wanted.profile_of(&named).map(|profile| profile.wire);
    let chosen = provider::choose(
        Some(wire.unwrap_or(&named)),
        options.base_url.as_deref(),
        |name| secrets.variable(name),
    )?;
    let texts = Texts::read(&options.settings)?;
    let prompt = match options.prompt {
        Some(_) => task::read(&options)?,
        None => String::new(),
    };
    let prompt = attach::attached(prompt, &options.attach)?;
    let is_local = options.environment_kind() == EnvironmentKind::Local;
    if is_local && !edits.is_empty() {
        return Err(Failure::usage(
            "--edit needs a run with --env memory: edit the file itself",
        ));
    }
    let passed = workspace::passed(&options, secrets)?;
    let output = output::file("--out", options.out.as_deref())?;
    let lent = options.python.as_deref().map(programs::python);
    let lent = lent.transpose()?.unwrap_or_default();
    let workspace = match is_local {
        // SAFETY: nothing so far has started a thread.
        true => Workspace::Local(Machine {
            directory: options.dir.clone(),
            guardian: unsafe { workspace::guardian() }?,
            variables: passed,
            fence: options.fence.clone(),
            terminal: options.tty,
            checkpoints: !options.journal.no_checkpoints,
        }),
        false => Workspace::Memory(Bytes::new(), lent),
    };
    let (settings, model) = (&options.settings, options.model.as_deref());
    let mut wanted = settings::config(settings, named, model, texts, wanted);
    settings::set_approval(&mut wanted, options.approve);
    settings::check(&wanted, settings, model)?;
    let providers = settings::with_others(chosen, &mut wanted, secrets);
    let (approver, questions) = approve::approver(&options, &wanted, &workspace);
    let save = options.save.as_deref().map(save::File::create);
    let save = save.transpose()?;

    task::carry_out(&options, output, questions, async || {
        let host = connect::chosen_core(connect::with_keys(&providers));
        let host = host.build().map_err(connect::failed)?;
        let mut guardian: Option<Guardian> = None;
        let mut undo = Undo::default();
        let mut with = hermitcrab_host::ForkOptions {
            approval: approver.clone(),
            record: options.record.clone(),
            ..hermitcrab_host::ForkOptions::default()
        };
        match workspace {
            Workspace::Local(machine) => {
                let local = connect::local(&machine, &providers, origin.held(), &mut undo)?;
                guardian = Some(machine.guardian);
                with.environment = Some(local);
                if let Origin::Round { .. } = origin {
                    eprintln!(
                        "hermitcrab: this goes on in {} as it is now: the log has what the model \
                     read and wrote, not the files",
                        options.dir.display()
                    );
                }
            }
            Workspace::Memory(_, programs) => with.programs = programs,
            Workspace::Elsewhere(..) => return Err(Failure::usage(NOT_ELSEWHERE)),
        }
        let fork = origin.fork(&host, with).await?;
        let before = match is_local {
            true => Tree::new(),
            false => tree(&fork).await?,
        };
        edits::write(&fork.session, edits).await?;
        let max_cost_usd = wanted.max_cost_usd;
        let fork = fork.configure(wanted, approver).await;
        let fork = fork.map_err(connect::failed)?;
        let session = HostSession {
            session: fork.session,
            instance: fork.instance,
            continuation: fork.continuation,
            save,
            held: match &origin {
                Origin::Round { .. } => None,
                Origin::End { held, .. } => Some(held.clone()),
            },
            undo,
            max_cost_usd,
            _guardian: guardian,
        };
        let needs_input = options.chat.is_none();
        if needs_input && prompt.is_empty() && session.continuation == Continuation::Input {
            return Err(match origin {
                Origin::Round { at, .. } => failed(ForkError::NoInput(at)),
                Origin::End { .. } => {
                    Failure::usage("the last task of the session is done: say what comes next")
                }
            });
        }
        Ok(Ready {
            session,
            prompt,
            before,
        })
    })
}

/// Sets the place of the run to that of the log.
/// Why another place does not fit what goes on with a log or a saved session.
pub(crate) const NOT_ELSEWHERE: &str = "what goes on with a log works where its run did: leave --ssh, --container and --env overlay out";

fn place(options: &mut RunOptions, opening: &Opening) -> Result<(), Failure> {
    if matches!(
        options.environment_kind(),
        EnvironmentKind::Elsewhere | EnvironmentKind::Overlay
    ) {
        return Err(Failure::usage(NOT_ELSEWHERE));
    }
    if options.dir != Path::new(".") {
        return Err(Failure::usage(
            "--dir is that of the run, which its history names: leave it out",
        ));
    }
    let Some(info) = &opening.remote else {
        if options.env == Some(EnvironmentKind::Local) {
            return Err(Failure::usage(
                "--env local: the files of the run are those of its sandbox; leave --env out",
            ));
        }
        options.env = Some(EnvironmentKind::Memory);
        return Ok(());
    };
    if options.env == Some(EnvironmentKind::Memory) {
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
