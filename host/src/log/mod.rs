//! Logs of runs as files, and what can be done with them: a replay runs one again and
//! compares. The format is the core's own: [`hermitcrab::log`].

mod replay;

pub use hermitcrab::log::{CoreId, Difference, Header, LogError, Stop, VERSION};
pub use replay::{Replay, ReplayError, Replayed};

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use hermitcrab::effect::Outcome;
use hermitcrab::environment::EnvironmentInfo;
use hermitcrab::log::{Entry, LogReader, LogWriter, Output};
use hermitcrab::session::InstanceCall;
use serde_json::Value;

use crate::core::CoreStep;
use crate::keys::Keys;

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

/// What a log is read from: its bytes.
pub type Source = Box<dyn Read + Send>;

/// What a log is written to.
pub(crate) type Sink = Box<dyn Write + Send>;

/// Opens a log.
fn open(path: &Path) -> Result<LogReader<Source>, LogFileError> {
    match File::open(path) {
        Ok(file) => read(path, Box::new(file)),
        Err(error) => Err(LogFileError {
            path: path.to_owned(),
            error: LogError::Io(error),
        }),
    }
}

/// Reads the log `source`, which errors call `path`.
fn read(path: &Path, source: Source) -> Result<LogReader<Source>, LogFileError> {
    LogReader::open(source).map_err(|error| LogFileError {
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

/// What the log `source`, which errors call `path`, begins with.
///
/// # Errors
/// It cannot be used.
pub fn header(path: &Path, source: Source) -> Result<Header, LogFileError> {
    Ok(read(path, source)?.header().clone())
}

/// Reads a log up to where its first session is opened; `None`: it holds no session.
///
/// # Errors
/// It cannot be used.
pub fn opening(path: &Path) -> Result<Option<Opening>, LogFileError> {
    opening_of(path, open(path)?)
}

/// As [`opening`], of the log `source`, which errors call `path`.
///
/// # Errors
/// It cannot be used.
pub fn opening_in(path: &Path, source: Source) -> Result<Option<Opening>, LogFileError> {
    opening_of(path, read(path, source)?)
}

fn opening_of(path: &Path, mut log: LogReader<Source>) -> Result<Option<Opening>, LogFileError> {
    let broken = |error| LogFileError {
        path: path.to_owned(),
        error,
    };
    // Numbers of environments count from 1, in the order of their calls.
    let mut environments = Vec::new();
    while let Some(entry) = log.read().map_err(broken)? {
        let Entry::Call(call) = entry else { continue };
        if call.adds_sandbox() {
            environments.push(None);
        }
        if let Some(environment) = call.opens_session_in() {
            let unusable = |_| broken(LogError::NotALog);
            let config = call.opening_config().map_err(unusable)?;
            let index = usize::try_from(environment).unwrap_or_default();
            let remote = environments.into_iter().nth(index.saturating_sub(1));
            let remote = remote.flatten();
            return Ok(config.map(|config| Opening { config, remote }));
        }
        if let InstanceCall::AddRemoteEnvironment { info } = call {
            environments.push(Some(info));
        }
    }
    Ok(None)
}

impl<'a> From<&'a CoreStep> for Output<'a> {
    fn from(step: &'a CoreStep) -> Self {
        let events = step.events.iter();
        let effects = step.effects.iter();
        let reports = step.reports.iter();
        Self {
            events: events.map(|event| (&*event.session, &event.json)).collect(),
            effects: effects
                .map(|effect| (effect.id, &*effect.owner, &effect.kind))
                .collect(),
            reports: reports.map(|report| (&*report.job, &report.kind)).collect(),
            log: &step.log,
            busy: step.busy,
        }
    }
}

/// Why a log ends before its run.
const HOLDS_A_KEY: &str = "what came next holds a key of the host's, which no file may";

/// Writes the log of a core that runs.
pub(crate) struct Recorder(LogWriter<Sink>);

impl Recorder {
    /// Begins a log in a new file. A line that would hold one of `keys`, such as one of
    /// which a server has sent a piece in each delta, ends it.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub(crate) fn create(path: &Path, header: &Header, keys: &Keys) -> io::Result<Self> {
        let mut options = File::options();
        options.write(true).create_new(true);
        // What was said and read is in it.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Self::begin(Box::new(options.open(path)?), header, keys)
    }

    /// Begins a log in `sink`, as [`Recorder::create`].
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn begin(sink: Sink, header: &Header, keys: &Keys) -> io::Result<Self> {
        let keys = keys.clone();
        let holds_a_key = move |line: &[u8]| keys.are_in(line).then(|| HOLDS_A_KEY.to_owned());
        let writer = LogWriter::begin(sink, header)?;
        Ok(Self(writer.refusing(holds_a_key)))
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

    /// Ends the log.
    ///
    /// # Errors
    /// It is not whole.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.0.finish()
    }
}
