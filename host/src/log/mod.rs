//! Logs of runs as files, and what can be done with them: a replay runs one again and
//! compares. The format is the core's own: [`hermitcrab::log`].

mod replay;

pub use hermitcrab::log::{CoreId, Difference, Header, LogError, VERSION};
pub(crate) use replay::{OpenEffect, Progress};
pub use replay::{Replay, ReplayError, Replayed, Stop};

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use hermitcrab::effect::Outcome;
use hermitcrab::environment::EnvironmentInfo;
use hermitcrab::log::{Entry, LogReader, LogWriter, Output};
use hermitcrab::session::InstanceCall;
use serde_json::Value;

use crate::core::CoreStep;

/// A log that cannot be used, and why.
#[derive(Debug)]
pub struct LogFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub error: LogError,
}

impl fmt::Display for LogFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for LogFileError {}

/// Opens a log.
fn open(path: &Path) -> Result<LogReader<File>, LogFileError> {
    File::open(path)
        .map_err(LogError::Io)
        .and_then(LogReader::open)
        .map_err(|error| LogFileError {
            path: path.to_owned(),
            error,
        })
}

/// What the first session of a log was opened with.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Its settings, see [`SessionConfig`](hermitcrab::session::SessionConfig).
    pub config: Value,
    /// Where its tools ran, if that was outside of the core.
    pub remote: Option<EnvironmentInfo>,
}

/// Reads a log up to where its first session is opened; `None`: it holds no session.
///
/// # Errors
/// It cannot be used.
pub fn opening(path: &Path) -> Result<Option<Opening>, LogFileError> {
    let mut log = open(path)?;
    let broken = |error| LogFileError {
        path: path.to_owned(),
        error,
    };
    // Numbers of environments count from 1, in the order of their calls.
    let mut environments = Vec::new();
    while let Some(entry) = log.read().map_err(broken)? {
        match entry {
            Entry::Call(InstanceCall::AddRemoteEnvironment { info }) => {
                environments.push(Some(info));
            }
            Entry::Call(InstanceCall::AddMemoryEnvironment { .. }) => environments.push(None),
            Entry::Call(InstanceCall::OpenSession {
                environment,
                config,
                ..
            }) => {
                let index = usize::try_from(environment).unwrap_or_default();
                let remote = environments.into_iter().nth(index.saturating_sub(1));
                let remote = remote.flatten();
                return Ok(Some(Opening { config, remote }));
            }
            _ => {}
        }
    }
    Ok(None)
}

impl<'a> From<&'a CoreStep> for Output<'a> {
    fn from(step: &'a CoreStep) -> Self {
        let effects = step.effects.iter();
        let reports = step.reports.iter();
        Self {
            events: step.events.iter().map(|event| &event.json).collect(),
            effects: effects
                .map(|effect| (effect.id, &*effect.owner, &effect.kind))
                .collect(),
            reports: reports.map(|report| (&*report.job, &report.kind)).collect(),
            log: &step.log,
            busy: step.busy,
        }
    }
}

/// Writes the log of a core that runs to a file.
pub(crate) struct Recorder(LogWriter<File>);

impl Recorder {
    /// Begins a log in a new file.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub(crate) fn create(path: &Path, header: &Header) -> io::Result<Self> {
        let file = File::options().write(true).create_new(true).open(path)?;
        LogWriter::begin(file, header).map(Self)
    }

    /// Notes a call that was made.
    pub(crate) fn call(&mut self, call: &InstanceCall) {
        self.0.call(call);
    }

    /// Notes a step and what came of it.
    pub(crate) fn step(&mut self, now_ms: u64, outcomes: &[Outcome], step: &CoreStep) {
        self.0.step(now_ms, outcomes, &step.into());
    }

    /// Why the log is not whole, if it is not.
    pub(crate) fn failed(&self) -> Option<&io::Error> {
        self.0.failed()
    }
}
