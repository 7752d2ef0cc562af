//! `Replay`: passes the inputs of a log to a fresh core and compares the outputs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use hermitcrab::effect::EffectKind;
use hermitcrab::environment::EnvironmentInfo;
use hermitcrab::event::SessionState;
use hermitcrab::log::{Comparison, Difference, Entry, Header, LogError, LogReader};
use hermitcrab::session::{InstanceCall, InstanceReply, SessionCall, SessionReply};
use serde::Deserialize;

use super::LogFileError;
use crate::core::{
    CallResult, Core as _, CoreEffect, CoreError, CoreEvent, CoreStep, out_of_place,
};
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

/// Where a session stands after a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Id of the session.
    pub session: Arc<str>,
    /// Number of its environment.
    pub environment: u32,
    /// Answers of its model so far.
    pub round: u32,
    /// Whether it stands still before its next request; else its input is done.
    pub is_paused: bool,
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
            Self::NoSuchRound(None) => f.write_str("the log holds no session"),
            Self::NoSuchRound(Some(0)) => f.write_str("the model has answered nothing in this run"),
            Self::NoSuchRound(Some(last)) => {
                write!(f, "the run has {last} rounds: name one of 0 to {last}")
            }
        }
    }
}

impl std::error::Error for ReplayError {}

/// A log that is being run again.
pub struct Replay {
    path: PathBuf,
    log: LogReader<File>,
    pub(crate) core: Journaled,
    comparison: Comparison,
    /// Whether a difference is no error; the differing steps so far.
    tolerated: Option<Vec<u64>>,
    /// The first session that was opened.
    root: Option<Root>,
    /// Where that session is to stand still.
    pause: Option<u32>,
    /// Where it stood still in the run.
    own_pause: Option<u32>,
    /// What the core wants and has not had the last outcome of.
    open: BTreeMap<u64, OpenEffect>,
    /// The environments outside of the core.
    pub(crate) remote: BTreeMap<u32, EnvironmentInfo>,
    /// The sandboxes.
    pub(crate) sandboxes: Vec<u32>,
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("path", &self.path)
            .field("steps", &self.comparison.steps())
            .finish_non_exhaustive()
    }
}

struct Root {
    session: Arc<str>,
    environment: u32,
    /// Its answers so far.
    round: u32,
    /// Its last event.
    last: Bytes,
}

/// An effect that is under way where a replay stops.
pub(crate) struct OpenEffect {
    pub(crate) effect: CoreEffect,
    /// How far it came.
    pub(crate) progress: Progress,
}

/// How far an effect came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing of it was delivered.
    Begun,
    /// A part of what it brings was delivered.
    Streaming,
    /// It is to end at once.
    Cancelled,
}

/// The part of an event that says where its session stands.
#[derive(Deserialize)]
struct Told {
    kind: String,
    data: Turns,
    agent_id: Option<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Turns {
    turns: u32,
}

impl Replay {
    /// Begins to repeat the log at `path` in the core that `start` starts with its seed.
    pub(crate) fn begin(
        path: &Path,
        start: impl FnOnce([u8; 32], &Header) -> CallResult<Journaled>,
    ) -> Result<Self, ReplayError> {
        let log = super::open(path).map_err(ReplayError::Log)?;
        let seed = log
            .seed()
            .map_err(|error| ReplayError::Log(at(path, error)))?;
        let core = start(seed, log.header()).map_err(|error| ReplayError::Core(0, error))?;
        Ok(Self {
            path: path.to_owned(),
            log,
            core,
            comparison: Comparison::default(),
            tolerated: None,
            root: None,
            pause: None,
            own_pause: None,
            open: BTreeMap::new(),
            remote: BTreeMap::new(),
            sandboxes: Vec::new(),
        })
    }

    /// What the log begins with.
    pub fn header(&self) -> &Header {
        self.log.header()
    }

    /// Goes on after a difference; [`Replayed::departures`] has all of them.
    pub fn tolerate(mut self) -> Self {
        self.tolerated = Some(Vec::new());
        self
    }

    /// Repeats the rest of the log and gives its events to `event`.
    ///
    /// # Errors
    /// The log is damaged, or the core outputs something else: the first difference.
    pub fn run(mut self, mut event: impl FnMut(&CoreEvent)) -> Result<Replayed, ReplayError> {
        while let Some(entry) = self.next()? {
            if let Some(step) = self.play(entry)? {
                step.events.iter().for_each(&mut event);
            }
        }
        Ok(Replayed {
            steps: self.comparison.steps(),
            rounds: self.comparison.rounds(),
            closed: self.log.is_closed(),
            departures: self.tolerated.unwrap_or_default(),
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
        self.pause = Some(round);
        while let Some(entry) = self.next()? {
            let Some((step, is_paused)) = self.play_until(entry)? else {
                continue;
            };
            step.events.iter().for_each(&mut event);
            let is_end = |event: &CoreEvent| event.json.starts_with(PROCESSING_END);
            let reached = self.root.as_ref().is_some_and(|root| root.round >= round);
            let is_done = reached && step.events.iter().any(is_end) && self.is_idle()?;
            if is_done {
                self.settle(&mut event)?;
            }
            if (is_paused || is_done)
                && let Some(root) = &self.root
            {
                return Ok(Stop {
                    session: root.session.clone(),
                    environment: root.environment,
                    round: root.round,
                    is_paused,
                });
            }
        }
        let last = self.root.as_ref().map(|root| root.round);
        Err(ReplayError::NoSuchRound(last))
    }

    /// Repeats what follows without a call: responses that end, timers that are
    /// cancelled. Then the session is free to go on.
    fn settle(&mut self, event: &mut impl FnMut(&CoreEvent)) -> Result<(), ReplayError> {
        while let Some(entry @ Entry::Step { .. }) = self.next()? {
            if let Some(step) = self.play(entry)? {
                step.events.iter().for_each(&mut *event);
            }
        }
        self.pause = None;
        let answers = None;
        self.ask_root(SessionCall::PauseAt { answers }).map(drop)
    }

    /// What the first session has said last.
    pub(crate) fn last_event(&self) -> Bytes {
        self.root
            .as_ref()
            .map(|root| root.last.clone())
            .unwrap_or_default()
    }

    /// Gives the core away, with what it waits for.
    pub(crate) fn into_parts(self) -> (Journaled, Vec<OpenEffect>) {
        (self.core, self.open.into_values().collect())
    }

    /// The state of a session, as [`SessionState`] has it.
    ///
    /// # Errors
    /// There is no such session.
    pub fn state(&mut self, session: &str) -> CallResult<SessionState> {
        match self.core.ask(session, SessionCall::State)? {
            SessionReply::State(state) => Ok(state),
            other => Err(out_of_place("a state", &other)),
        }
    }

    /// The turns of a session, a JSON array.
    ///
    /// # Errors
    /// There is no such session.
    pub fn history(&mut self, session: &str) -> CallResult<Bytes> {
        match self.core.ask(session, SessionCall::History)? {
            SessionReply::Json(json) => Ok(json),
            other => Err(out_of_place("JSON", &other)),
        }
    }

    /// The working directory of a sandbox as a tar archive.
    ///
    /// # Errors
    /// The environment is none.
    pub fn export_tar(&mut self, environment: u32) -> CallResult<Bytes> {
        self.core.export_tar(environment)
    }

    fn next(&mut self) -> Result<Option<Entry>, ReplayError> {
        let entry = self.log.read();
        entry.map_err(|error| ReplayError::Log(at(&self.path, error)))
    }

    /// Plays an entry, and says whether the first session stands still where it is to.
    /// A step in which it begins to lacks a request, so it is not compared.
    fn play_until(&mut self, entry: Entry) -> Result<Option<(CoreStep, bool)>, ReplayError> {
        let Entry::Step {
            now_ms,
            outcomes,
            output,
        } = entry
        else {
            self.play(entry)?;
            return Ok(None);
        };
        let step = self.step(now_ms, outcomes)?;
        let is_early = self.own_pause.is_some_and(|own| Some(own) < self.pause);
        let is_paused = !is_early && self.is_paused()?;
        if !is_paused {
            self.compare(&output, &step)?;
        }
        Ok(Some((step, is_paused)))
    }

    fn play(&mut self, entry: Entry) -> Result<Option<CoreStep>, ReplayError> {
        match entry {
            Entry::Call(call) => {
                self.call(call)?;
                Ok(None)
            }
            Entry::Step {
                now_ms,
                outcomes,
                output,
            } => {
                let step = self.step(now_ms, outcomes)?;
                self.compare(&output, &step)?;
                Ok(Some(step))
            }
        }
    }

    fn call(&mut self, call: InstanceCall) -> Result<(), ReplayError> {
        let opened = match &call {
            InstanceCall::OpenSession { environment, .. } => Some(*environment),
            _ => None,
        };
        let remote = match &call {
            InstanceCall::AddRemoteEnvironment { info } => Some(info.clone()),
            _ => None,
        };
        let is_sandbox = matches!(call, InstanceCall::AddMemoryEnvironment { .. });
        let call = self.with_pause(call);
        let small = |number| u32::try_from(number).unwrap_or(u32::MAX);
        match self.core.call(call) {
            Ok(InstanceReply::Id(id)) => {
                if let (Some(environment), None) = (opened, &self.root) {
                    self.root = Some(Root {
                        session: id.into(),
                        environment,
                        round: 0,
                        last: Bytes::new(),
                    });
                    if let answers @ Some(_) = self.pause {
                        self.ask_root(SessionCall::PauseAt { answers })?;
                    }
                }
            }
            Ok(InstanceReply::Number(number)) => {
                if is_sandbox {
                    self.sandboxes.push(small(number));
                }
                if let Some(info) = remote {
                    self.remote.insert(small(number), info);
                }
            }
            // What was refused then is refused now.
            Ok(_) | Err(CoreError::Refused(_) | CoreError::Environment(_)) => {}
            Err(error) => return Err(self.failed(error)),
        }
        Ok(())
    }

    /// A pause of the run's counts beside the one that is asked for here.
    fn with_pause(&mut self, call: InstanceCall) -> InstanceCall {
        match call {
            InstanceCall::Session {
                session,
                ask: SessionCall::PauseAt { answers: own },
            } if self.pause.is_some() && self.is_root(&session) => {
                self.own_pause = own;
                let answers = own.into_iter().chain(self.pause).min();
                let ask = SessionCall::PauseAt { answers };
                InstanceCall::Session { session, ask }
            }
            call => call,
        }
    }

    fn is_root(&self, session: &str) -> bool {
        let root = self.root.as_ref();
        root.is_some_and(|root| &*root.session == session)
    }

    fn step(
        &mut self,
        now_ms: u64,
        outcomes: Vec<hermitcrab::effect::Outcome>,
    ) -> Result<CoreStep, ReplayError> {
        for outcome in &outcomes {
            if outcome.kind.is_final() {
                self.open.remove(&outcome.id);
            } else if let Some(open) = self.open.get_mut(&outcome.id) {
                open.progress = Progress::Streaming;
            }
        }
        let step = self.core.step(now_ms, outcomes);
        let step = step.map_err(|error| ReplayError::Core(self.comparison.steps() + 1, error))?;
        for effect in &step.effects {
            if let EffectKind::Cancel { target } = effect.kind {
                if let Some(open) = self.open.get_mut(&target) {
                    open.progress = Progress::Cancelled;
                }
            } else {
                let effect = effect.clone();
                let progress = Progress::Begun;
                self.open.insert(effect.id, OpenEffect { effect, progress });
            }
        }
        if let Some(root) = &mut self.root {
            root.follow(&step);
        }
        Ok(step)
    }

    fn compare(&mut self, recorded: &str, step: &CoreStep) -> Result<(), ReplayError> {
        match (
            self.comparison.step(recorded, &step.into()),
            &mut self.tolerated,
        ) {
            (Ok(()), _) => Ok(()),
            (Err(difference), Some(tolerated)) => {
                tolerated.push(difference.step);
                Ok(())
            }
            (Err(difference), None) => Err(ReplayError::Differs(difference)),
        }
    }

    fn is_paused(&mut self) -> Result<bool, ReplayError> {
        self.ask_root(SessionCall::IsPaused)
            .map(|reply| reply == Some(SessionReply::Flag(true)))
    }

    fn is_idle(&mut self) -> Result<bool, ReplayError> {
        let state = self.ask_root(SessionCall::State)?;
        Ok(state != Some(SessionReply::State(SessionState::Processing)))
    }

    fn ask_root(&mut self, ask: SessionCall) -> Result<Option<SessionReply>, ReplayError> {
        let Some(root) = &self.root else {
            return Ok(None);
        };
        match self.core.ask(&root.session, ask) {
            Ok(reply) => Ok(Some(reply)),
            // It is over, and its host has released it.
            Err(CoreError::Refused(_)) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: CoreError) -> ReplayError {
        ReplayError::Core(self.comparison.steps(), error)
    }
}

const PROCESSING_END: &[u8] = br#"{"kind":"PROCESSING_END""#;
const USAGE: &[u8] = br#"{"kind":"USAGE""#;

impl Root {
    /// Counts its answers.
    fn follow(&mut self, step: &CoreStep) {
        for event in step
            .events
            .iter()
            .filter(|event| event.session == self.session)
        {
            self.last = event.json.clone();
            if !event.json.starts_with(USAGE) && !event.json.starts_with(PROCESSING_END) {
                continue;
            }
            match serde_json::from_slice(&event.json) {
                Ok(Told {
                    agent_id: Some(_), ..
                })
                | Err(_) => {}
                Ok(Told { kind, .. }) if kind == "USAGE" => self.round += 1,
                // A stopped answer counts, too.
                Ok(Told { data, .. }) => self.round = data.turns,
            }
        }
    }
}

fn at(path: &Path, error: LogError) -> LogFileError {
    LogFileError {
        path: path.to_owned(),
        error,
    }
}
