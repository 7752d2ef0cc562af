//! `Replay`: a log as a file that is being run again, in a core of this host.

use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use hermitcrab::effect::Outcome;
use hermitcrab::environment::EnvironmentInfo;
use hermitcrab::event::SessionState;
use hermitcrab::log::{
    self as format, Difference, Header, LogReader, OpenEffect, Output, Progress, Stop,
};
use hermitcrab::session::{InstanceCall, InstanceReply, SessionCall, SessionReply};

use super::{LogFileError, Source};
use crate::core::{CallResult, Core as _, CoreError, CoreEvent, CoreStep, out_of_place};
use crate::journal::Journaled;

/// A replay that came to the end of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Steps.
    pub steps: u64,
    /// Answers of models, those of subagents included.
    pub rounds: u64,
    /// Whether the log was closed by who wrote it; else its last lines may be missing.
    pub closed: bool,
    /// Numbers of the steps whose output differs; with [`Replay::tolerate`] only.
    pub departures: Vec<u64>,
}

/// Why a replay did not come to its end.
#[derive(Debug)]
pub enum ReplayError {
    /// The log cannot be used.
    Log(LogFileError),
    /// An output of the core differs.
    Differs(Box<Difference>),
    /// The core failed in this step.
    Core(u64, CoreError),
    /// The log holds no session that got so far; it got to this round, if there is one.
    NoSuchRound(Option<u32>),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(error) => error.fmt(f),
            Self::Differs(difference) => difference.fmt(f),
            Self::Core(step, error) => write!(f, "step {step}: {error}"),
            Self::NoSuchRound(last) => format::ReplayError::<CoreError>::NoSuchRound(*last).fmt(f),
        }
    }
}

impl std::error::Error for ReplayError {}

impl format::Replayable for Journaled {
    type Step = CoreStep;
    type Error = CoreError;

    fn step(&mut self, now_ms: u64, outcomes: Vec<Outcome>) -> CallResult<CoreStep> {
        crate::core::Core::step(self, now_ms, outcomes)
    }

    fn call(&mut self, call: InstanceCall) -> CallResult<InstanceReply> {
        crate::core::Core::call(self, call)
    }

    fn is_refusal(error: &CoreError) -> bool {
        matches!(error, CoreError::Refused(_) | CoreError::Environment(_))
    }

    fn output(step: &CoreStep) -> Output<'_> {
        step.into()
    }
}

/// A log that is being run again.
pub struct Replay {
    path: PathBuf,
    pub(crate) inner: format::Replay<Source, Journaled>,
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("path", &self.path)
            .field("steps", &self.inner.steps())
            .finish_non_exhaustive()
    }
}

impl Replay {
    /// Begins to repeat the log at `path` in the core that `start` starts with its seed.
    pub(crate) fn begin(
        path: &Path,
        start: impl FnOnce([u8; 32], &Header) -> CallResult<Journaled>,
    ) -> Result<Self, ReplayError> {
        Self::of(path, super::open(path), start)
    }

    /// As [`Replay::begin`], of the log `source`, which errors call `path`.
    pub(crate) fn read(
        path: &Path,
        source: Source,
        start: impl FnOnce([u8; 32], &Header) -> CallResult<Journaled>,
    ) -> Result<Self, ReplayError> {
        Self::of(path, super::read(path, source), start)
    }

    fn of(
        path: &Path,
        log: Result<LogReader<Source>, LogFileError>,
        start: impl FnOnce([u8; 32], &Header) -> CallResult<Journaled>,
    ) -> Result<Self, ReplayError> {
        let log = log.map_err(ReplayError::Log)?;
        let seed = log.seed().map_err(|error| {
            let path = path.to_owned();
            ReplayError::Log(LogFileError { path, error })
        })?;
        let core = start(seed, log.header()).map_err(|error| ReplayError::Core(0, error))?;
        Ok(Self {
            path: path.to_owned(),
            inner: format::Replay::begin(log, core),
        })
    }

    /// What the log begins with.
    pub fn header(&self) -> &Header {
        self.inner.header()
    }

    /// Goes on after a difference; [`Replayed::departures`] has all of them.
    pub fn tolerate(mut self) -> Self {
        self.inner.tolerate();
        self
    }

    /// Repeats the rest of the log and gives its events to `event`.
    ///
    /// # Errors
    /// The log is damaged, or the core outputs something else: the first difference.
    pub fn run(mut self, mut event: impl FnMut(&CoreEvent)) -> Result<Replayed, ReplayError> {
        while let Progress::Step(step) = self.advance()? {
            step.events.iter().for_each(&mut event);
        }
        Ok(Replayed {
            steps: self.inner.steps(),
            rounds: self.inner.rounds(),
            closed: self.inner.is_closed(),
            departures: self.inner.departures().to_vec(),
        })
    }

    /// Repeats the log until the first session has `round` answers and all that they
    /// asked for is done: it stands still before its next request, or its input is
    /// done.
    ///
    /// # Errors
    /// As [`Replay::run`], or it has fewer rounds.
    pub fn until(
        &mut self,
        round: u32,
        mut event: impl FnMut(&CoreEvent),
    ) -> Result<Stop, ReplayError> {
        self.inner.stop_at(round);
        self.stop(&mut event)
    }

    /// Repeats the whole log, also one whose writer was killed, and stops where its last
    /// session can go on.
    ///
    /// # Errors
    /// As [`Replay::run`], or it has no session.
    pub fn to_end(&mut self) -> Result<Stop, ReplayError> {
        self.inner.stop_at_end();
        self.stop(&mut |_| {})
    }

    fn stop(&mut self, event: &mut dyn FnMut(&CoreEvent)) -> Result<Stop, ReplayError> {
        loop {
            match self.advance()? {
                Progress::Step(step) => step.events.iter().for_each(&mut *event),
                Progress::Stopped(stop, steps) => {
                    let events = steps.iter().flat_map(|step| &step.events);
                    events.for_each(event);
                    return Ok(stop);
                }
                Progress::End => return Err(ReplayError::NoSuchRound(None)),
            }
        }
    }

    fn advance(&mut self) -> Result<Progress<CoreStep>, ReplayError> {
        use format::ReplayError as Of;
        self.inner.advance().map_err(|error| match error {
            Of::Log(error) => {
                let path = self.path.clone();
                ReplayError::Log(LogFileError { path, error })
            }
            Of::Differs(difference) => ReplayError::Differs(difference),
            Of::Core(step, error) => ReplayError::Core(step, error),
            Of::NoSuchRound(last) => ReplayError::NoSuchRound(last),
        })
    }

    /// The environments outside of the core so far.
    pub(crate) fn remote(&self) -> impl Iterator<Item = &EnvironmentInfo> {
        self.inner.remote().values()
    }

    /// On whose behalf the core waits for something.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &str> {
        self.inner.owners()
    }

    /// Lets a session wait before its next request.
    pub(crate) fn pause(&mut self, session: &str) -> CallResult<()> {
        let ask = SessionCall::PauseAt { answers: Some(0) };
        self.inner.core().ask(session, ask).map(drop)
    }

    /// Gives the core away, with what it waits for.
    pub(crate) fn into_parts(self) -> (Journaled, Vec<OpenEffect>) {
        self.inner.into_parts()
    }

    /// The state of a session, as [`SessionState`] has it.
    ///
    /// # Errors
    /// There is no such session.
    pub fn state(&mut self, session: &str) -> CallResult<SessionState> {
        match self.inner.core().ask(session, SessionCall::State)? {
            SessionReply::State(state) => Ok(state),
            other => Err(out_of_place("a state", &other)),
        }
    }

    /// The turns of a session, a JSON array.
    ///
    /// # Errors
    /// There is no such session.
    pub fn history(&mut self, session: &str) -> CallResult<Bytes> {
        match self.inner.core().ask(session, SessionCall::History)? {
            SessionReply::Json(json) => Ok(json),
            other => Err(out_of_place("JSON", &other)),
        }
    }

    /// The working directory of a sandbox as a tar archive.
    ///
    /// # Errors
    /// The environment is none.
    pub fn export_tar(&mut self, environment: u32) -> CallResult<Bytes> {
        self.inner.core().export_tar(environment)
    }
}
