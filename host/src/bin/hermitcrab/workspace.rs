//! `Workspace`: where the tools of a run act, and the options that decide about it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use hermitcrab_host::{Guardian, Remote};

use crate::cli::{EnvironmentKind, FenceOptions, RunOptions, SandboxMode};
use crate::failure::{Failure, reason};
use crate::output;
use crate::programs::Programs;
use crate::provider;
use crate::secrets::{self, Secrets};

/// Variables for commands, with their values.
pub(crate) type Variables = Vec<(String, OsString)>;

/// Where tools act.
pub(crate) enum Workspace {
    /// This machine.
    Local(Machine),
    /// The sandbox, with this tar loaded and these programs lent.
    Memory(Bytes, Programs),
    /// This directory of another machine or of a container.
    Elsewhere(Remote, String),
}

/// Where local tools act.
pub(crate) struct Machine {
    /// Absolute.
    pub(crate) directory: PathBuf,
    /// Who ends commands if this process cannot.
    pub(crate) guardian: Guardian,
    /// What commands get of the variables that look like secrets.
    pub(crate) variables: Variables,
    pub(crate) fence: FenceOptions,
    /// Whether commands write to a terminal.
    pub(crate) terminal: bool,
    /// Whether what changes is noted, so that it can be undone.
    pub(crate) checkpoints: bool,
}

/// Options that fit one place only.
///
/// # Errors
/// One does not fit.
pub(crate) fn check(options: &RunOptions) -> Result<(), Failure> {
    output::distinct(&[
        ("--record", options.record.as_deref()),
        ("--save", options.save.as_deref()),
        ("--out", options.out.as_deref()),
        (output::LAST_MESSAGE, options.output_last_message.as_deref()),
    ])?;
    let fence = &options.fence;
    if options.environment_kind() == EnvironmentKind::Memory {
        let given = match () {
            () if fence.is_on() => "--sandbox",
            () if fence.net => "--net",
            () if !fence.allow_write.is_empty() => "--allow-write",
            () if options.tty => "--tty",
            () => return Ok(()),
        };
        return Err(Failure::usage(format!(
            "{given} needs --env local: the tools of a run with --env memory reach nothing of this machine"
        )));
    }
    let useless = match () {
        () if !fence.is_on() && fence.net => Some("--net"),
        () if !fence.is_on() && !fence.allow_write.is_empty() => Some("--allow-write"),
        () if fence.sandbox == Some(SandboxMode::ReadOnly) && !fence.allow_write.is_empty() => {
            Some("--allow-write")
        }
        () => None,
    };
    if let Some(given) = useless {
        let reason = match given {
            "--net" => "without a sandbox commands have the network",
            _ => "it widens what that lets tools change",
        };
        let needed = match given {
            "--net" => "--sandbox read-only or workspace-write",
            _ => "--sandbox workspace-write",
        };
        return Err(Failure::usage(format!("{given} needs {needed}: {reason}")));
    }
    for path in &fence.allow_write {
        std::fs::metadata(path).map_err(|error| {
            Failure::usage(format!(
                "cannot open --allow-write {}: {}",
                path.display(),
                reason(&error)
            ))
        })?;
    }
    if options.out.is_some() {
        return Err(Failure::usage(
            "--out needs --env memory: a local run has changed the directory itself",
        ));
    }
    if options.python.is_some() {
        return Err(Failure::usage(
            "--python needs --env memory: commands of a local run have the Python of this machine",
        ));
    }
    Ok(())
}

/// An absolute path to a directory that exists.
pub(crate) fn directory(path: &Path) -> Result<PathBuf, Failure> {
    let shown = path.display();
    let absolute = std::fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "the directory {shown} does not exist: create it or choose another --dir"
        )),
        _ => Failure::usage(format!("cannot open --dir {shown}: {}", reason(&error))),
    })?;
    if !absolute.is_dir() {
        return Err(Failure::usage(format!(
            "--dir {shown} is not a directory: name the directory to work in"
        )));
    }
    Ok(absolute)
}

/// What `--pass-env` names.
pub(crate) fn passed(options: &RunOptions, held: &Secrets) -> Result<Variables, Failure> {
    if options.environment_kind() == EnvironmentKind::Memory && !options.pass_env.is_empty() {
        return Err(Failure::usage(
            "--pass-env needs --env local: commands in the sandbox have no variables of yours",
        ));
    }
    let keys = provider::keys();
    let theirs: Vec<OsString> = keys.iter().filter_map(|key| held.value(key)).collect();
    let value = |name: &String| match held.value(name) {
        None => Err(Failure::usage(format!(
            "--pass-env {name}: there is no such variable: set it or leave the option out"
        ))),
        Some(value) if theirs.iter().any(|key| secrets::holds(&value, key)) => {
            Err(Failure::usage(format!(
                "--pass-env {name}: it holds the key of a provider, which no command gets: make one of its own for commands"
            )))
        }
        Some(value) => Ok((name.clone(), value)),
    };
    options.pass_env.iter().map(value).collect()
}

/// Who ends the commands of a run that is killed.
///
/// # Safety
/// No other thread runs in this process yet.
pub(crate) unsafe fn guardian() -> Result<Guardian, Failure> {
    // SAFETY: the caller's promise.
    unsafe { Guardian::start() }
        .map_err(|error| Failure::failed(format!("cannot start a process: {}", reason(&error))))
}
