//! `Replay`: passes the inputs of a log to a fresh core and compares the outputs.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use bytes::Bytes;
use serde::Deserialize;

use super::{Comparison, Difference, Entry, Header, LogError, LogReader, Output};
use crate::effect::{EffectKind, Outcome};
use crate::environment::EnvironmentInfo;
use crate::event::SessionState;
use crate::session::{InstanceCall, InstanceReply, SessionCall, SessionReply};

/// A core that a replay can run, whichever way it runs.
pub trait Replayable {
    /// What a step output.
    type Step;
    /// Why a call was not carried out.
    type Error;

    /// See [`crate::session::Instance::step`].
    ///
    /// # Errors
    /// The core has failed.
    fn step(&mut self, now_ms: u64, outcomes: Vec<Outcome>) -> Result<Self::Step, Self::Error>;

    /// See [`crate::session::Instance::call`].
    ///
    /// # Errors
    /// The call was refused, or the core has failed.
    fn call(&mut self, call: InstanceCall) -> Result<InstanceReply, Self::Error>;

    /// Whether the call was refused and the core goes on.
    fn is_refusal(error: &Self::Error) -> bool;

    /// What a step output, to be compared.
    fn output(step: &Self::Step) -> Output<'_>;
}

/// Why a replay cannot go on.
#[derive(Debug)]
pub enum ReplayError<E> {
    /// The log cannot be used.
    Log(LogError),
    /// An output of the core differs.
    Differs(Box<Difference>),
    /// The core failed in this step.
    Core(u64, E),
    /// The log holds no session that got so far; it got to this round, if there is one.
    NoSuchRound(Option<u32>),
}

impl<E: fmt::Display> fmt::Display for ReplayError<E> {
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

impl<E: fmt::Debug + fmt::Display> std::error::Error for ReplayError<E> {}

/// How a replay goes on.
#[derive(Debug)]
pub enum Progress<S> {
    /// A step was repeated.
    Step(S),
    /// The session stands where it was to stop. The steps are those since the
    /// last progress.
    Stopped(Stop, Vec<S>),
    /// The log is at its end.
    End,
}

/// Where a session stands after a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Id of the session.
    pub session: String,
    /// Number of its environment.
    pub environment: u32,
    /// Answers of its model so far.
    pub round: u32,
    /// Whether it stands still before its next request; else its input is done.
    pub is_paused: bool,
}

/// An effect that is under way where a replay stops.
#[derive(Clone, Debug)]
pub struct OpenEffect {
    /// Its id.
    pub id: u64,
    /// Session or job on whose behalf it is done.
    pub owner: String,
    /// What to do.
    pub kind: EffectKind,
    /// What of it was delivered.
    pub delivered: Delivered,
}

/// How far an effect came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Nothing of it was delivered.
    Nothing,
    /// A part of what it brings was delivered.
    Part,
    /// It was cancelled and is to end at once.
    Cancelled,
}

/// A log that is being run again.
pub struct Replay<R: Read, C> {
    log: LogReader<R>,
    core: C,
    comparison: Comparison,
    /// Whether a difference is no error; the differing steps so far.
    tolerated: Option<Vec<u64>>,
    /// The session that the replay is about: the first one that was opened, or the last
    /// one if it stops at the end.
    root: Option<Root>,
    /// Where that session is to stand still.
    pause: Option<u32>,
    /// Where it stood still in the run.
    own_pause: Option<u32>,
    /// Whether the session that was opened last goes on where the log ends.
    goes_on: bool,
    /// What the core wants and has not had the last outcome of; kept if the replay stops
    /// where the run goes on.
    open: BTreeMap<u64, OpenEffect>,
    remote: BTreeMap<u32, EnvironmentInfo>,
    sandboxes: Vec<u32>,
}

impl<R: Read, C> fmt::Debug for Replay<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("steps", &self.comparison.steps())
            .finish_non_exhaustive()
    }
}

struct Root {
    session: String,
    environment: u32,
    /// Its answers so far.
    round: u32,
    /// Its last event.
    last: Bytes,
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

impl<R: Read, C: Replayable> Replay<R, C> {
    /// Begins to repeat `log` in a core that was started with its seed.
    pub fn begin(log: LogReader<R>, core: C) -> Self {
        Self {
            log,
            core,
            comparison: Comparison::default(),
            tolerated: None,
            root: None,
            pause: None,
            own_pause: None,
            goes_on: false,
            open: BTreeMap::new(),
            remote: BTreeMap::new(),
            sandboxes: Vec::new(),
        }
    }

    /// Goes on after a difference; [`Replay::departures`] has all of them.
    pub fn tolerate(&mut self) {
        self.tolerated = Some(Vec::new());
    }

    /// Stops once the first session has `round` answers and all that they asked for
    /// is done: it stands still before its next request, or its input is done. To be
    /// called before the first step.
    pub fn stop_at(&mut self, round: u32) {
        self.pause = Some(round);
    }

    /// Stops where the log ends, also if its writer was killed there, with the session
    /// that was opened last. To be called before the first step.
    pub fn stop_at_end(&mut self) {
        self.goes_on = true;
    }

    /// What the log begins with.
    pub fn header(&self) -> &Header {
        self.log.header()
    }

    /// The core.
    pub fn core(&mut self) -> &mut C {
        &mut self.core
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.comparison.steps()
    }

    /// Answers of models so far, those of subagents included.
    pub fn rounds(&self) -> u64 {
        self.comparison.rounds()
    }

    /// At the end: whether the log was closed by who wrote it; else its last lines may
    /// be missing.
    pub fn is_closed(&self) -> bool {
        self.log.is_closed()
    }

    /// Numbers of the steps so far whose output differs.
    pub fn departures(&self) -> &[u64] {
        self.tolerated.as_deref().unwrap_or_default()
    }

    /// Id of the first session so far.
    pub fn session(&self) -> Option<&str> {
        self.root.as_ref().map(|root| &*root.session)
    }

    /// Number of the environment of the first session.
    pub fn environment(&self) -> Option<u32> {
        self.root.as_ref().map(|root| root.environment)
    }

    /// The last event of the first session.
    pub fn last_event(&self) -> Bytes {
        let root = self.root.as_ref();
        root.map(|root| root.last.clone()).unwrap_or_default()
    }

    /// The environments outside of the core so far, by number.
    pub fn remote(&self) -> &BTreeMap<u32, EnvironmentInfo> {
        &self.remote
    }

    /// Numbers of the sandboxes so far.
    pub fn sandboxes(&self) -> &[u32] {
        &self.sandboxes
    }

    /// On whose behalf the core waits for something.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        self.open.values().map(|open| &*open.owner)
    }

    /// Gives the core away, with what it waits for.
    pub fn into_parts(self) -> (C, Vec<OpenEffect>) {
        (self.core, self.open.into_values().collect())
    }

    /// Repeats the log up to its next step.
    ///
    /// # Errors
    /// The log is damaged, it ends before it was to stop, or the core outputs
    /// something else: the first difference.
    pub fn advance(&mut self) -> Result<Progress<C::Step>, ReplayError<C::Error>> {
        loop {
            let Some(entry) = self.log.read().map_err(ReplayError::Log)? else {
                return match (self.pause, self.goes_on) {
                    (Some(_), _) => Err(self.no_such_round()),
                    (None, false) => Ok(Progress::End),
                    (None, true) => self.stop_here(),
                };
            };
            match entry {
                Entry::Call(call) => self.call(call)?,
                Entry::Step {
                    now_ms,
                    outcomes,
                    output,
                } => {
                    let step = self.step(now_ms, outcomes)?;
                    return self.judge(&output, step);
                }
            }
        }
    }

    fn stop_here(&mut self) -> Result<Progress<C::Step>, ReplayError<C::Error>> {
        let is_paused = self.is_paused()?;
        let root = self.root.as_ref().ok_or(ReplayError::NoSuchRound(None))?;
        let stop = Stop {
            session: root.session.clone(),
            environment: root.environment,
            round: root.round,
            is_paused,
        };
        Ok(Progress::Stopped(stop, Vec::new()))
    }

    /// A call on the first session, if it is still there.
    ///
    /// # Errors
    /// The core has failed.
    pub fn ask(&mut self, ask: SessionCall) -> Result<Option<SessionReply>, ReplayError<C::Error>> {
        let Some(root) = &self.root else {
            return Ok(None);
        };
        let session = root.session.clone();
        match self.core.call(InstanceCall::Session { session, ask }) {
            Ok(InstanceReply::Session(reply)) => Ok(Some(reply)),
            Ok(_) => Ok(None),
            // It is over, and its host has released it.
            Err(error) if C::is_refusal(&error) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Compares a step, unless the first session begins to stand still in it: then it
    /// lacks a request.
    fn judge(
        &mut self,
        recorded: &str,
        step: C::Step,
    ) -> Result<Progress<C::Step>, ReplayError<C::Error>> {
        let Some(round) = self.pause else {
            self.compare(recorded, &step)?;
            return Ok(Progress::Step(step));
        };
        let is_early = self.own_pause.is_some_and(|own| own < round);
        let is_paused = !is_early && self.is_paused()?;
        if !is_paused {
            self.compare(recorded, &step)?;
        }
        let reached = self.root.as_ref().is_some_and(|root| root.round >= round);
        let ends = |output: &Output<'_>| {
            let is_end = |(_, json): &(&str, &Bytes)| json.starts_with(PROCESSING_END);
            output.events.iter().any(is_end)
        };
        let is_done = reached && ends(&C::output(&step)) && self.is_idle()?;
        let mut steps = vec![step];
        if is_done {
            self.settle(&mut steps)?;
        }
        if (is_paused || is_done)
            && let Some(root) = &self.root
        {
            let stop = Stop {
                session: root.session.clone(),
                environment: root.environment,
                round: root.round,
                is_paused,
            };
            return Ok(Progress::Stopped(stop, steps));
        }
        Ok(steps.pop().map_or(Progress::End, Progress::Step))
    }

    /// Repeats what follows without a call: responses that end, timers that are
    /// cancelled. Then the session is free to go on.
    fn settle(&mut self, steps: &mut Vec<C::Step>) -> Result<(), ReplayError<C::Error>> {
        while let Some(Entry::Step {
            now_ms,
            outcomes,
            output,
        }) = self.log.read().map_err(ReplayError::Log)?
        {
            let step = self.step(now_ms, outcomes)?;
            self.compare(&output, &step)?;
            steps.push(step);
        }
        self.pause = None;
        let answers = None;
        self.ask(SessionCall::PauseAt { answers }).map(drop)
    }

    fn call(&mut self, call: InstanceCall) -> Result<(), ReplayError<C::Error>> {
        let opened = call.opens_session_in();
        let remote = match &call {
            InstanceCall::AddRemoteEnvironment { info } => Some(info.clone()),
            _ => None,
        };
        let is_sandbox = call.adds_sandbox();
        if self.goes_on && matches!(call, InstanceCall::ForgetSession { .. }) {
            // It changes nothing but what is known of a session that is over.
            return Ok(());
        }
        let call = self.with_pause(call);
        let small = |number| u32::try_from(number).unwrap_or(u32::MAX);
        match self.core.call(call) {
            Ok(InstanceReply::Id(session)) => {
                if let Some(environment) = opened
                    && (self.root.is_none() || self.goes_on)
                {
                    self.root = Some(Root {
                        session,
                        environment,
                        round: 0,
                        last: Bytes::new(),
                    });
                    if let answers @ Some(_) = self.pause {
                        self.ask(SessionCall::PauseAt { answers })?;
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
            Ok(_) => {}
            // What was refused then is refused now.
            Err(error) if C::is_refusal(&error) => {}
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
            } if self.pause.is_some() && self.session() == Some(&session) => {
                self.own_pause = own;
                let answers = own.into_iter().chain(self.pause).min();
                let ask = SessionCall::PauseAt { answers };
                InstanceCall::Session { session, ask }
            }
            call => call,
        }
    }

    fn step(
        &mut self,
        now_ms: u64,
        outcomes: Vec<Outcome>,
    ) -> Result<C::Step, ReplayError<C::Error>> {
        for outcome in &outcomes {
            if outcome.kind.is_final() {
                self.open.remove(&outcome.id);
            } else if let Some(open) = self.open.get_mut(&outcome.id) {
                open.delivered = Delivered::Part;
            }
        }
        let step = self.core.step(now_ms, outcomes);
        let step = step.map_err(|error| ReplayError::Core(self.steps() + 1, error))?;
        let output = C::output(&step);
        if self.pause.is_some() || self.goes_on {
            for (id, owner, kind) in &output.effects {
                if let EffectKind::Cancel { target } = kind {
                    if let Some(open) = self.open.get_mut(target) {
                        open.delivered = Delivered::Cancelled;
                    }
                } else {
                    let open = OpenEffect {
                        id: *id,
                        owner: (*owner).to_owned(),
                        kind: (*kind).clone(),
                        delivered: Delivered::Nothing,
                    };
                    self.open.insert(*id, open);
                }
            }
        }
        if let Some(root) = &mut self.root {
            root.follow(&output);
        }
        Ok(step)
    }

    fn compare(&mut self, recorded: &str, step: &C::Step) -> Result<(), ReplayError<C::Error>> {
        let compared = self.comparison.step(recorded, &C::output(step));
        match (compared, &mut self.tolerated) {
            (Ok(()), _) => Ok(()),
            (Err(difference), Some(tolerated)) => {
                tolerated.push(difference.step);
                Ok(())
            }
            (Err(difference), None) => Err(ReplayError::Differs(difference)),
        }
    }

    fn is_paused(&mut self) -> Result<bool, ReplayError<C::Error>> {
        let reply = self.ask(SessionCall::IsPaused)?;
        Ok(reply == Some(SessionReply::Flag(true)))
    }

    fn is_idle(&mut self) -> Result<bool, ReplayError<C::Error>> {
        let state = self.ask(SessionCall::State)?;
        Ok(state != Some(SessionReply::State(SessionState::Processing)))
    }

    fn no_such_round(&self) -> ReplayError<C::Error> {
        ReplayError::NoSuchRound(self.root.as_ref().map(|root| root.round))
    }

    fn failed(&self, error: C::Error) -> ReplayError<C::Error> {
        ReplayError::Core(self.steps(), error)
    }
}

const PROCESSING_END: &[u8] = br#"{"kind":"PROCESSING_END""#;

impl Root {
    /// Counts its answers.
    fn follow(&mut self, output: &Output<'_>) {
        for (_, json) in output
            .events
            .iter()
            .filter(|(session, _)| *session == self.session)
        {
            self.last = (*json).clone();
            if !super::tells_answer(json) && !json.starts_with(PROCESSING_END) {
                continue;
            }
            match serde_json::from_slice(json) {
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
