//! Forks: a run goes on live from one of its rounds. The log is run again up to
//! there, and the driver takes the core over with what it waits for.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermitcrab::effect::{EffectKind, OutcomeKind};
use hermitcrab::environment::{EnvironmentError, EnvironmentErrorKind};
use hermitcrab::llm::{TransportError, TransportErrorKind};

use crate::driver::{Driver, DriverHandle, SessionLink};
use crate::environment::HostEnvironment;
use crate::error::HostError;
use crate::host::{Host, Instance};
use crate::log::{OpenEffect, Progress, Replay, ReplayError, Stop};
use crate::memory::EnvironmentHandle;
use crate::program::{Lent, ProgramFn};
use crate::session::Session;
use crate::tool::{ApprovalFn, HostTool};

/// What a run goes on with, beside its log.
#[derive(Clone, Default)]
pub struct ForkOptions {
    /// Answers for the environments outside of the core. A fork has the history of
    /// the run, not what its commands changed there.
    pub environment: Option<Arc<dyn HostEnvironment>>,
    /// Programs of its sandboxes, by name.
    pub programs: BTreeMap<String, ProgramFn>,
    /// The tools of the run that its host executes. Those that are missing fail, and
    /// the model reads it.
    pub tools: Vec<HostTool>,
    /// Decides about the calls for which the run asks.
    pub approval: Option<ApprovalFn>,
    /// A new file for the log of the fork, which begins as that of the run.
    pub record: Option<PathBuf>,
}

impl fmt::Debug for ForkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForkOptions")
            .field("tools", &self.tools)
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

/// A run that can go on from one of its rounds.
#[derive(Debug)]
pub struct Fork {
    /// The core.
    pub instance: Instance,
    /// Its first session. Its events are those from now on. While
    /// [`Stop::is_paused`], it stands still before its next request:
    /// [`pause_at(None)`](crate::Controller::pause_at) lets it go on, with what it
    /// heard meanwhile.
    pub session: Session,
    /// Where it stands.
    pub stop: Stop,
}

/// Why a run cannot be forked.
#[derive(Debug)]
pub enum ForkError {
    /// The log does not lead there.
    Replay(ReplayError),
    /// The run worked in this directory outside of the core, and there is no
    /// [`ForkOptions::environment`].
    NoEnvironment(String),
    /// The host could not do its part.
    Host(HostError),
}

impl fmt::Display for ForkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replay(error) => error.fmt(f),
            Self::NoEnvironment(directory) => write!(
                f,
                "the run worked in {directory}, outside of the core; give the fork an environment"
            ),
            Self::Host(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ForkError {}

impl From<ReplayError> for ForkError {
    fn from(error: ReplayError) -> Self {
        Self::Replay(error)
    }
}

impl From<HostError> for ForkError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl Host {
    /// Runs the log at `file` again until its first session has `round` answers and
    /// all that they asked for is done, and goes on live from there. The next request
    /// begins with the same bytes as in the run. Needs a tokio runtime.
    ///
    /// # Errors
    /// The log does not lead there, or what the run needs is missing.
    pub fn fork(&self, file: &Path, round: u32, options: ForkOptions) -> Result<Fork, ForkError> {
        let place = self.place()?;
        let mut failed = None;
        let replay = Replay::begin(file, |seed, header| {
            let core = self
                .journaled_core(seed, self.limits_of(header))?
                .hold(place);
            let Some(record) = &options.record else {
                return Ok(core);
            };
            match self.recorder(record, &seed) {
                Ok(recorder) => Ok(core.record(recorder)),
                Err(error) => {
                    failed = Some(error);
                    Ok(core)
                }
            }
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        let mut replay = replay?;
        let stop = replay.until(round, |_| {})?;
        if let Some(info) = replay.remote.values().next()
            && options.environment.is_none()
        {
            return Err(ForkError::NoEnvironment(info.working_directory.clone()));
        }
        Ok(self.go_on(replay, stop, options))
    }

    fn go_on(&self, replay: Replay, stop: Stop, options: ForkOptions) -> Fork {
        let tools = options.tools.into_iter();
        let tools = tools.map(|tool| (tool.definition.name, tool.execute));
        let link = SessionLink::after(replay.last_event(), tools.collect(), options.approval);
        let events = link.events.clone();
        let remote: Vec<u32> = replay.remote.keys().copied().collect();
        let sandboxes = replay.sandboxes.clone();
        let (core, open) = replay.into_parts();
        let session = stop.session.clone();
        let set_up = move |driver: &mut Driver| {
            driver.sessions.insert(session, link);
            if let Some(environment) = options.environment {
                for number in remote {
                    driver.environments.insert(number, environment.clone());
                }
            }
            for number in sandboxes {
                let programs = Lent::new(options.programs.clone());
                driver.programs.insert(number, programs);
            }
            for effect in open {
                resume(driver, effect);
            }
        };
        let driver = DriverHandle::start_with(core, Arc::new(self.http()), set_up);
        let environment = EnvironmentHandle::new(driver.clone(), stop.environment);
        let session = Session::attached(driver.clone(), stop.session.clone(), environment, events);
        Fork {
            instance: Instance { driver },
            session,
            stop,
        }
    }
}

/// Performs an effect that was under way, or says that it was cut off: of what can
/// change something outside, nobody knows how far it came.
fn resume(driver: &mut Driver, OpenEffect { effect, progress }: OpenEffect) {
    const CUT_OFF: &str = "cut off, because the run was forked here";
    match (&effect.kind, progress) {
        (_, Progress::Cancelled) => driver.end_cancelled(&effect),
        (EffectKind::Http(_), Progress::Streaming) => driver.answer(
            &effect,
            OutcomeKind::HttpFailed(TransportError {
                kind: TransportErrorKind::Broken,
                message: CUT_OFF.to_owned(),
            }),
        ),
        (EffectKind::Exec { .. }, _) => driver.answer(
            &effect,
            OutcomeKind::ExecFailed(EnvironmentError::new(EnvironmentErrorKind::Io, CUT_OFF)),
        ),
        (_, Progress::Begun | Progress::Streaming) => driver.start(effect),
    }
}
