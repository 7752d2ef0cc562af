//! Forks: a run goes on live from one of its rounds. The log is run again up to
//! there, and the driver takes the core over with what it waits for.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermitcrab::effect::{EffectKind, HostToolResult, OutcomeKind};
use hermitcrab::environment::{EnvironmentError, EnvironmentErrorKind};
use hermitcrab::llm::{Content, HttpRequest, TransportError, TransportErrorKind};
use hermitcrab::log::{Delivered, OpenEffect};
use hermitcrab::session::{SessionConfig, SessionRecord, Turn};
use serde_json::{Map, Value};

use crate::approval::ApprovalFn;
use crate::core::CoreEffect;
use crate::driver::{Driver, DriverHandle, SessionLink};
use crate::environment::HostEnvironment;
use crate::error::HostError;
use crate::host::Host;
use crate::http::HttpPerformer;
use crate::instance::Instance;
use crate::log::{Replay, ReplayError, Stop};
use crate::memory::{EnvironmentChoice, EnvironmentHandle};
use crate::program::{Lent, ProgramFn};
use crate::session::{Controller, Session, SessionOptions};
use crate::tool::HostTool;

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
    /// Who performs its HTTP exchanges; absent: the host's transport ([`Host::http`]).
    pub http: Option<Arc<dyn HttpPerformer>>,
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
    /// Its first session. Its events are those from now on. It stands still until
    /// [`Continuation::begin`].
    pub session: Session,
    /// Where the log was left.
    pub stop: Stop,
    /// How the session goes on from there.
    pub continuation: Continuation,
}

/// How a session goes on from where its history ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// Its last input is done: it needs another one.
    Input,
    /// It is paused before a request ([`Controller::pause_at`]).
    Unpause,
    /// Its history ends with something that the model has not answered.
    Resume,
}

impl Continuation {
    /// How a session goes on that is opened with `record`.
    pub fn of(record: &SessionRecord) -> Self {
        match record.turns.last() {
            None => Self::Input,
            Some(Turn::Assistant { tool_calls, .. }) if tool_calls.is_empty() => Self::Input,
            Some(_) => Self::Resume,
        }
    }

    /// Lets the session go on with `message`, which may be empty if it needs no input.
    ///
    /// # Errors
    /// The session is over or at work, or it needs an input.
    pub async fn begin(self, session: &Controller, message: Content) -> Result<(), HostError> {
        if self == Self::Input {
            return session.submit(message).await;
        }
        if !message.is_empty() {
            session.steer(message).await?;
        }
        match self {
            Self::Unpause => session.pause_at(None).await,
            Self::Input | Self::Resume => session.resume().await,
        }
    }
}

impl Fork {
    /// Gives the session the settings `wanted`. If one differs that cannot change in an
    /// open session, another session with the same history and files takes its place,
    /// and `approval` decides about its calls.
    ///
    /// # Errors
    /// The settings are wrong, or the core is gone.
    pub async fn configure(
        self,
        wanted: SessionConfig,
        approval: Option<ApprovalFn>,
    ) -> Result<Self, HostError> {
        let now = self.session.config().await?;
        let patch = differences(&now, &wanted)?;
        if patch.is_empty() {
            return Ok(self);
        }
        if !patch.keys().any(|name| SessionConfig::is_fixed(name)) {
            self.session.configure(Value::Object(patch)).await?;
            return Ok(self);
        }
        let record = self.session.record().await?;
        let environment = EnvironmentChoice::Existing(self.session.environment().clone());
        let mut options = SessionOptions::new(wanted, environment).record(record);
        options.approval = approval;
        let other = self.instance.open_session(options).await?;
        self.session.abort().await?;
        Ok(Self {
            session: other,
            continuation: match self.continuation {
                Continuation::Unpause => Continuation::Resume,
                other => other,
            },
            ..self
        })
    }
}

/// What of `wanted` differs.
fn differences(
    now: &SessionConfig,
    wanted: &SessionConfig,
) -> Result<Map<String, Value>, HostError> {
    let fields = |config: &SessionConfig| match serde_json::to_value(config) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(HostError::Setup("the settings cannot be read".to_owned())),
    };
    let now = fields(now)?;
    let differs = |(name, value): &(String, Value)| now.get(name) != Some(value);
    Ok(fields(wanted)?.into_iter().filter(differs).collect())
}

/// Why a run cannot be forked.
#[derive(Debug)]
pub enum ForkError {
    /// The log does not lead there.
    Replay(ReplayError),
    /// The run worked in this directory outside of the core, and there is no
    /// [`ForkOptions::environment`].
    NoEnvironment(String),
    /// This round ended an input, so the session needs another one.
    NoInput(u32),
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
            Self::NoInput(round) => write!(
                f,
                "round {round} is where an input of the run was done: say what comes next"
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
    /// all that they asked for is done. The next request begins with the same bytes as
    /// in the run. Needs a tokio runtime.
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
        if let Some(info) = replay.remote().next()
            && options.environment.is_none()
        {
            return Err(ForkError::NoEnvironment(info.working_directory.clone()));
        }
        Ok(self.go_on(replay, stop, options, FORKED))
    }

    /// Lets a driver take the core over. What was under way and can have acted outside
    /// ends with `cut_off` as its reason.
    pub(crate) fn go_on(
        &self,
        replay: Replay,
        stop: Stop,
        options: ForkOptions,
        cut_off: &'static str,
    ) -> Fork {
        let tools = options.tools.into_iter();
        let tools = tools.map(|tool| (tool.definition.name, tool.execute));
        let mut link =
            SessionLink::after(replay.inner.last_event(), tools.collect(), options.approval);
        link.environment = Some(stop.environment);
        let events = link.events.clone();
        let remote: Vec<u32> = replay.inner.remote().keys().copied().collect();
        let sandboxes = replay.inner.sandboxes().to_vec();
        let (core, open) = replay.into_parts();
        let id: Arc<str> = stop.session.as_str().into();
        let (session, root) = (id.clone(), id.clone());
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
                take_up(driver, effect, &root, cut_off);
            }
        };
        let http = options.http.unwrap_or_else(|| Arc::new(self.http()));
        let driver = DriverHandle::start_with(core, http, set_up);
        let environment = EnvironmentHandle::new(driver.clone(), stop.environment);
        let session = Session::attached(driver.clone(), id, environment, events);
        Fork {
            instance: Instance { driver },
            session,
            continuation: match stop.is_paused {
                true => Continuation::Unpause,
                false => Continuation::Input,
            },
            stop,
        }
    }
}

/// Why what was under way is cut off in a fork.
const FORKED: &str = "cut off, because the run was forked here";

/// Performs an effect that was under way, or says that it was cut off: of what can
/// change something outside, nobody knows how far it came. The session `root`
/// asks the model again once it goes on; other requests of which nothing has arrived
/// are sent again.
fn take_up(driver: &mut Driver, open: OpenEffect, root: &str, cut_off: &str) {
    let failed = || EnvironmentError::new(EnvironmentErrorKind::Io, cut_off);
    let is_asked_again = |http: &HttpRequest| open.owner == root && http.method == "POST";
    let is_asked_again = matches!(&open.kind, EffectKind::Http(http) if is_asked_again(http));
    let effect = CoreEffect {
        id: open.id,
        owner: open.owner.into(),
        kind: open.kind,
    };
    match (&effect.kind, open.delivered) {
        (_, Delivered::Cancelled) => driver.end_cancelled(&effect),
        (EffectKind::Http(_), delivered) if is_asked_again || delivered == Delivered::Part => {
            driver.answer(
                &effect,
                OutcomeKind::HttpFailed(TransportError {
                    kind: TransportErrorKind::Broken,
                    message: cut_off.to_owned(),
                }),
            )
        }
        (EffectKind::Exec { .. }, _) => {
            driver.answer(&effect, OutcomeKind::ExecFailed(failed()));
        }
        (EffectKind::Environment { call, .. }, _) if call.writes() => {
            driver.answer(&effect, OutcomeKind::Environment(Err(failed())));
        }
        (EffectKind::CallTool { .. }, _) => {
            let result = HostToolResult::error(cut_off.to_owned());
            driver.answer(&effect, OutcomeKind::ToolEnd(result));
        }
        (_, Delivered::Nothing | Delivered::Part) => driver.start(effect),
    }
}
