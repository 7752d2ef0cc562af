//! `run --restore`: goes on with a saved session.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use hermitcrab::session::SavedSession;
use hermitcrab_host::tree::Tree;
use hermitcrab_host::{Continuation, EnvironmentChoice, Guardian, HostError, TakeoverOptions};

use crate::approve;
use crate::archive;
use crate::attach;
use crate::cli::{EnvironmentKind, RunOptions};
use crate::connect::{self, HostSession};
use crate::defaults;
use crate::failure::{Code, Failure, reason};
use crate::fork;
use crate::journal::{Held, Keep};
use crate::output;
use crate::programs;
use crate::provider;
use crate::save;
use crate::secrets::Secrets;
use crate::settings::{self, Texts};
use crate::task::{self, Ready};
use crate::undo::Undo;
use crate::workspace::{self, Machine, Workspace};

/// Opens the session saved in `file`, changes what the options say and goes on.
///
/// # Errors
/// The file or the options cannot be used, or the run does not end well.
pub(crate) fn run(file: &Path, options: RunOptions, secrets: &Secrets) -> Result<Code, Failure> {
    let shown = file.display();
    let bytes: Bytes = fs::read(file)
        .map_err(|error| {
            Failure::usage(format!("cannot read --restore {shown}: {}", reason(&error)))
        })?
        .into();
    output::distinct(&[("--restore", Some(file)), ("--out", options.out.as_deref())])?;
    with(&format!("--restore {shown}"), bytes, None, options, secrets)
}

/// Goes on with the saved session `bytes`, which errors call `shown`. It is kept as what is
/// `held`, else as `options` say.
///
/// # Errors
/// As [`run`].
pub(crate) fn with(
    shown: &str,
    bytes: Bytes,
    held: Option<Held>,
    mut options: RunOptions,
    secrets: &Secrets,
) -> Result<Code, Failure> {
    let saved = SavedSession::read(&bytes)
        .map_err(|error| Failure::usage(format!("{shown}: {}", error.message)))?;
    place(&mut options, &saved)?;
    defaults::fence(&mut options)?;
    workspace::check(&options)?;
    let options = options;

    let wanted = settings::over(options.settings.config.as_deref(), &saved.config)?;
    let named = options.provider.clone();
    let named = named.unwrap_or_else(|| wanted.provider.clone());
    let wire = wanted.profile_of(&named).map(|profile| profile.wire);
    let chosen = provider::choose(
        Some(wire.unwrap_or(&named)),
        options.base_url.as_deref(),
        |name| secrets.variable(name),
    )?;
    let texts = Texts::read(&options.settings)?;
    let continuation = Continuation::of(&saved.record);
    let prompt = match (&options.prompt, continuation) {
        // Something waits for the model already.
        (None, Continuation::Resume) => String::new(),
        _ => task::read(&options)?,
    };
    let prompt = attach::attached(prompt, &options.attach)?;
    let passed = workspace::passed(&options, secrets)?;
    let output = output::file("--out", options.out.as_deref())?;
    let lent = options.python.as_deref().map(programs::python);
    let lent = lent.transpose()?.unwrap_or_default();
    let is_local = options.environment_kind() == EnvironmentKind::Local;
    let keep = match is_local {
        true => Keep::of(&options, &workspace::directory(&options.dir)?, &prompt),
        false => None,
    };
    let workspace = match is_local {
        // SAFETY: nothing so far has started a thread.
        true => Workspace::Local(Machine {
            directory: workspace::directory(&options.dir)?,
            guardian: unsafe { workspace::guardian() }?,
            variables: passed,
            fence: options.fence.clone(),
            terminal: options.tty,
            checkpoints: !options.journal.no_checkpoints,
        }),
        false => Workspace::Memory(Bytes::new(), lent),
    };
    let model = options.model.as_deref();
    let mut wanted = settings::config(&options.settings, named, model, texts, wanted);
    settings::set_approval(&mut wanted, options.approve);
    settings::check(&wanted, &options.settings, model)?;
    let providers = settings::with_others(chosen, &mut wanted, secrets);
    let (approver, questions) = approve::approver(&options, &wanted, &workspace);
    let save = options
        .save
        .as_deref()
        .map(save::File::create)
        .transpose()?;

    task::carry_out(&options, output, questions, async || {
        let host = connect::chosen_core(connect::with_keys(&providers));
        let host = host.build().map_err(connect::failed)?;
        let held = held
            .or_else(|| keep.and_then(|keep| keep.begin(&wanted, &connect::secrets(&providers))));
        let record = options.record.as_deref();
        let instance = connect::instance(&host, record, held.as_ref()).await?;
        let mut guardian: Option<Guardian> = None;
        let mut undo = Undo::default();
        let mut with = TakeoverOptions {
            settings: serde_json::to_value(&wanted)
                .map_err(|error| Failure::failed(error.to_string()))?,
            approval: approver.clone(),
            ..TakeoverOptions::default()
        };
        match workspace {
            Workspace::Local(machine) => {
                let local = connect::local(&machine, &providers, held.as_ref(), &mut undo)?;
                guardian = Some(machine.guardian);
                with.environment = Some(EnvironmentChoice::Host(local));
            }
            Workspace::Memory(_, programs) => with.programs = programs,
            Workspace::Elsewhere(..) => return Err(Failure::usage(fork::NOT_ELSEWHERE)),
        }
        let session = instance
            .restore(bytes.clone(), with)
            .await
            .map_err(|error| {
                if let Some(log) = &options.record {
                    // Nothing has run.
                    let _ = fs::remove_file(log);
                }
                match error {
                    HostError::Session(_) | HostError::Environment(_) => {
                        Failure::usage(format!("{shown}: {error}"))
                    }
                    error => connect::failed(error),
                }
            })?;
        if let Some(held) = &held {
            held.commit();
        }
        let before = match is_local {
            true => Tree::new(),
            false => {
                let tar = session.environment().export_tar().await;
                archive::from_tar(&tar.map_err(connect::failed)?)?
            }
        };
        Ok(Ready {
            session: HostSession {
                session,
                instance,
                continuation,
                save,
                held,
                undo,
                max_cost_usd: wanted.max_cost_usd,
                _guardian: guardian,
            },
            prompt,
            before,
        })
    })
}

/// Sets the place of the run to that of the session.
fn place(options: &mut RunOptions, saved: &SavedSession) -> Result<(), Failure> {
    if options.environment_kind() == EnvironmentKind::Overlay {
        return Err(Failure::usage(fork::NOT_ELSEWHERE));
    }
    if !saved.has_sandbox {
        if options.env == Some(EnvironmentKind::Memory) {
            return Err(Failure::usage(
                "--env memory: the saved session worked in a directory, and its files are not in \
                 the file; leave --env out, and say with --dir where it goes on",
            ));
        }
        return Ok(());
    }
    if options.env == Some(EnvironmentKind::Local) {
        return Err(Failure::usage(
            "--env local: the files of the saved session are those of its sandbox; leave --env out",
        ));
    }
    if options.dir != Path::new(".") {
        return Err(Failure::usage(
            "--dir: the files of the saved session are those of its sandbox; leave --dir out",
        ));
    }
    options.env = Some(EnvironmentKind::Memory);
    Ok(())
}
