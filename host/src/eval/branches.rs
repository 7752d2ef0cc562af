//! Branches: forks of one log at one round, side by side. Each has its own settings,
//! goes on to the end of its input, and a checker decides about a copy of its tree.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use hermitcrab::llm::Content;
use hermitcrab::session::SessionConfig;
use tokio_util::sync::CancellationToken;

use super::artifacts;
use super::atif::Trajectory;
use super::branch::{self, Branch, BranchOutcome, Changes};
use super::budget::{Gate, Meter, RunBudget, RunLimits};
use super::check::{Checked, Checking};
use super::follow::{Class, Ended, Follower};
use super::results::Tokens;
use super::suite::{Checker, Limits};
use super::throttle::Throttled;
use super::trial::{Final, millis};
use super::verdict::Verdict;
use crate::error::HostError;
use crate::event::Event;
use crate::fork::{ForkError, ForkOptions};
use crate::host::Host;
use crate::http::HttpPerformer;
use crate::log::ReplayError;
use crate::program::ProgramFn;
use crate::tree::{self, Tree};

/// Forks of one log at one round: `trials` for each of `models`.
pub struct Branches {
    /// Runs the forks and the checkers.
    pub host: Host,
    /// The log, of a run with a sandbox.
    pub log: PathBuf,
    /// The round that all of them go on from.
    pub round: u32,
    /// A message to the model at that point. May be empty, unless the round ended an
    /// input.
    pub message: Content,
    /// Files of the sandbox that are replaced before the model goes on.
    pub edits: Vec<(String, Bytes)>,
    /// The settings of the branches, complete: with provider and model.
    pub models: Vec<SessionConfig>,
    /// Branches of each model.
    pub trials: u32,
    /// Branches at the same time.
    pub jobs: usize,
    /// Decides about the tree of each branch that came to its natural end.
    pub checker: Option<Checker>,
    /// How long that may take, in ms.
    pub check_timeout_ms: u64,
    /// Programs of the sandboxes, by name, also for the checker.
    pub programs: BTreeMap<String, ProgramFn>,
    /// Limits of one branch, counted from the fork on.
    pub limits: Limits,
    /// Limits of all branches together.
    pub run_limits: RunLimits,
    /// Directory for what branches leave, each in its own: `log.gz`, `diff.patch`,
    /// `trajectory.json`, `check.json`, `branch.json`.
    pub out: Option<PathBuf>,
}

impl fmt::Debug for Branches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Branches")
            .field("log", &self.log)
            .field("round", &self.round)
            .field("trials", &self.trials)
            .finish_non_exhaustive()
    }
}

/// Why there is no result for every branch.
#[derive(Debug)]
pub enum BranchError {
    /// The log cannot be forked at the round.
    Fork(ForkError),
    /// What was asked for cannot be done; nothing has run.
    Usage(String),
    /// The results cannot be written.
    Failed(String),
    /// It was asked to stop.
    Interrupted,
}

impl fmt::Display for BranchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fork(error) => error.fmt(f),
            Self::Usage(message) | Self::Failed(message) => f.write_str(message),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for BranchError {}

/// The run at the round.
struct Start {
    tree: Tree,
    /// The events that a trajectory is made of.
    events: Vec<Event>,
}

/// What all branches share.
struct Shared {
    start: Start,
    http: Arc<dyn HttpPerformer>,
    budget: Arc<RunBudget>,
}

impl Branches {
    /// Runs all branches; `stop` ends them early. `heard` gets each one when it is done.
    ///
    /// # Errors
    /// See [`BranchError`]. A branch that fails is a [`Branch`].
    pub async fn run(
        self,
        stop: CancellationToken,
        mut heard: impl FnMut(&Branch),
    ) -> Result<Vec<Branch>, BranchError> {
        let all = Arc::new(self);
        let start = {
            let all = all.clone();
            tokio::task::spawn_blocking(move || all.start())
        };
        let start = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(BranchError::Interrupted),
            start = start => start.map_err(|error| BranchError::Failed(error.to_string()))??,
        };
        all.prepare_out()?;
        let shared = Shared {
            start,
            http: Arc::new(Throttled::new(all.host.http(), all.jobs.max(1))),
            budget: RunBudget::new(all.run_limits),
        };
        let branches = all.models.iter().enumerate().flat_map(|(at, config)| {
            let (all, shared) = (&all, &shared);
            (1..=all.trials).map(move |trial| async move {
                let branch = all.branch(config, trial, shared).await;
                branch.map(|branch| (at, branch))
            })
        });
        let mut running = stream::iter(branches).buffer_unordered(all.jobs.max(1));
        let mut done = Vec::new();
        loop {
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => return Err(BranchError::Interrupted),
                next = running.next() => next,
            };
            let Some(ended) = next else { break };
            let (at, branch) = ended.map_err(BranchError::Failed)?;
            heard(&branch);
            done.push((at, branch));
        }
        done.sort_by_key(|(at, branch)| (*at, branch.trial));
        Ok(done.into_iter().map(|(_, branch)| branch).collect())
    }

    /// Replays the log up to the round, to see before any branch whether it leads there.
    fn start(&self) -> Result<Start, BranchError> {
        let replayed = |error: ReplayError| BranchError::Fork(error.into());
        let mut replay = self.host.replay(&self.log).map_err(replayed)?;
        let mut events = Vec::new();
        let seen = |event: &crate::core::CoreEvent| {
            let parsed = Event::from_json(event.json.clone());
            if Trajectory::takes(&parsed) {
                events.push((event.session.clone(), parsed));
            }
        };
        let stop = replay.until(self.round, seen).map_err(replayed)?;
        if let Some(info) = replay.remote().next() {
            let directory = info.working_directory.clone();
            return Err(BranchError::Fork(ForkError::NoEnvironment(directory)));
        }
        if !stop.is_paused && self.message.is_empty() {
            return Err(BranchError::Fork(ForkError::NoInput(self.round)));
        }
        let tar = replay.export_tar(stop.environment);
        let tar = tar.map_err(|error| BranchError::Fork(HostError::from(error).into()))?;
        let unreadable = |error: io::Error| BranchError::Failed(error.to_string());
        let own = events.into_iter();
        let own = own.filter(|(session, _)| **session == *stop.session);
        Ok(Start {
            tree: tree::from_tar(&tar).map_err(unreadable)?,
            events: own.map(|(_, event)| event).collect(),
        })
    }

    /// Makes the directory of the results; those of branches must be new.
    fn prepare_out(&self) -> Result<(), BranchError> {
        let Some(out) = &self.out else { return Ok(()) };
        fs::create_dir_all(out).map_err(|error| {
            let reason = super::reason(&error);
            BranchError::Usage(format!("cannot make {}: {reason}", out.display()))
        })?;
        let names = self
            .models
            .iter()
            .map(|config| branch::directory_of(config, 1));
        match names.map(|name| out.join(name)).find(|dir| dir.exists()) {
            None => Ok(()),
            Some(dir) => Err(BranchError::Usage(format!(
                "{} exists already: choose another --out, or remove it",
                dir.display()
            ))),
        }
    }

    /// One branch.
    ///
    /// # Errors
    /// Its files cannot be written.
    async fn branch(
        &self,
        config: &SessionConfig,
        trial: u32,
        shared: &Shared,
    ) -> Result<Branch, String> {
        let name = branch::directory_of(config, trial);
        let dir = self.out.as_ref().map(|out| out.join(&name));
        let unwritable = |dir: &Path, error: &io::Error| {
            format!("cannot write {}: {}", dir.display(), super::reason(error))
        };
        if let Some(dir) = &dir {
            fs::create_dir(dir).map_err(|error| unwritable(dir, &error))?;
        }
        let mut branch = Branch {
            provider: config.provider.clone(),
            model: config.model.clone(),
            trial,
            outcome: BranchOutcome::InfraError,
            passed: None,
            rewards: None,
            reason: None,
            rounds: 0,
            tokens: Tokens::default(),
            cost_usd: None,
            wall_ms: 0,
            model_ms: 0,
            tool_ms: 0,
            check_ms: 0,
            diff: None,
            dir: dir.as_ref().map(|_| name),
        };
        let log = dir.as_ref().map(|dir| dir.join(artifacts::LOG));
        match self.agent(config, log, shared, &mut branch).await {
            Err(why) => branch.reason = Some(why),
            Ok(left) => {
                let checked = self
                    .judge(left.ended, left.after.as_ref(), trial, &mut branch)
                    .await;
                let patch = left.after.map(|after| {
                    let diff = tree::diff(&shared.start.tree, &after.tree);
                    let (files, added, removed) = diff.counts();
                    branch.diff = Some(Changes {
                        files,
                        added,
                        removed,
                    });
                    diff.patch
                });
                if let Some(dir) = &dir {
                    branch::write(dir, &branch, patch, checked.as_ref(), &left.trajectory)
                        .map_err(|error| unwritable(dir, &error))?;
                }
            }
        }
        Ok(branch)
    }

    /// Forks, and follows the agent to the end of its input.
    ///
    /// # Errors
    /// One sentence: the fork cannot begin, or its files are lost.
    async fn agent(
        &self,
        config: &SessionConfig,
        log: Option<PathBuf>,
        shared: &Shared,
        branch: &mut Branch,
    ) -> Result<Left, String> {
        let mut meter = Meter::new(self.limits, shared.budget.clone());
        let mut http = shared.http.clone();
        let mut asks = None;
        if meter.asks() {
            let (gate, receiver) = Gate::before(http);
            asks = Some(receiver);
            http = Arc::new(gate);
        }
        let options = ForkOptions {
            programs: self.programs.clone(),
            record: log,
            http: Some(http),
            ..ForkOptions::default()
        };
        let fork = {
            let (host, file, round) = (self.host.clone(), self.log.clone(), self.round);
            tokio::task::spawn_blocking(move || host.fork(&file, round, options))
        };
        let fork = fork.await.map_err(|error| error.to_string())?;
        let fork = fork.map_err(|error| error.to_string())?;
        let fork = fork.configure(config.clone(), None).await;
        let fork = fork.map_err(|error| error.to_string())?;
        let (mut session, instance) = (fork.session, fork.instance);
        for (path, content) in &self.edits {
            let written = session.environment().write(path, content.clone()).await;
            written.map_err(|error| format!("cannot edit {path}: {error}"))?;
        }
        let began = Instant::now();
        let mut trajectory = Trajectory::forked(began, session.id(), &shared.start.events);
        let message = self.message.clone();
        let begun = fork
            .continuation
            .begin(&session.controller(), message)
            .await;
        let ended = match begun {
            Err(error) => Ended::by(error),
            Ok(()) => {
                let follower = Follower {
                    trajectory: &mut trajectory,
                    meter: &mut meter,
                    asks: &mut asks,
                    limits: self.limits,
                    began,
                };
                follower.follow(&mut session).await
            }
        };
        branch.wall_ms = millis(began);
        branch.rounds = trajectory.rounds;
        branch.tokens = Tokens {
            input: trajectory.prompt_tokens,
            output: trajectory.output_tokens,
            cached: trajectory.cached_tokens,
            reasoning: trajectory.reasoning_tokens,
        };
        branch.cost_usd = trajectory.cost_usd;
        branch.model_ms = trajectory.model_ms;
        branch.tool_ms = trajectory.tool_ms;
        if let Ok(Some(why)) = instance.end_record().await {
            return Err(format!("its log is not whole: {why}"));
        }
        let after = Final::of(session.environment()).await;
        let (ended, after) = match (ended, after) {
            (Ended::Naturally, Err(why)) => (Ended::Infra(Class::Machine, why), None),
            (ended, after) => (ended, after.ok()),
        };
        Ok(Left {
            ended,
            after,
            trajectory,
        })
    }

    /// Decides about a branch; runs the checker if it came to its natural end.
    async fn judge(
        &self,
        ended: Ended,
        after: Option<&Final>,
        trial: u32,
        branch: &mut Branch,
    ) -> Option<Checked> {
        let (outcome, reason, checked) = match (ended, &self.checker, after) {
            (Ended::Naturally, Some(checker), Some(after)) => {
                let checked = self.check(checker, after, trial).await;
                let (outcome, reason) = match &checked.verdict {
                    Verdict::Passed => (BranchOutcome::Passed, None),
                    Verdict::Failed(why) => (BranchOutcome::Failed, Some(why.clone())),
                    Verdict::None(why) => (BranchOutcome::InfraError, Some(why.clone())),
                };
                (outcome, reason, Some(checked))
            }
            (Ended::Naturally, ..) => (BranchOutcome::Ended, None, None),
            (Ended::ByLimit(why), ..) => (BranchOutcome::Limit, Some(why), None),
            (Ended::ByAgent(why), ..) => (BranchOutcome::AgentError, Some(why), None),
            (Ended::Infra(_, why), ..) => (BranchOutcome::InfraError, Some(why), None),
        };
        branch.outcome = outcome;
        branch.reason = reason;
        branch.passed = match (outcome, &self.checker) {
            (BranchOutcome::InfraError, _) | (_, None) => None,
            (outcome, Some(_)) => Some(outcome == BranchOutcome::Passed),
        };
        if let Some(checked) = &checked {
            branch.check_ms = checked.ms;
            branch.rewards = checked.rewards.clone();
        }
        checked
    }

    async fn check(&self, checker: &Checker, after: &Final, trial: u32) -> Checked {
        let env = BTreeMap::new();
        let checking = Checking {
            host: &self.host,
            checker,
            seed: super::lock::seed(&[0; 32], "check", trial),
            programs: self.programs.clone(),
            env: &env,
            timeout_ms: self.check_timeout_ms,
            needs_reward: false,
            local: false,
        };
        let archive = after.archive.clone().unwrap_or_default();
        checking.check(&after.tree, archive).await
    }
}

/// What an agent left.
struct Left {
    ended: Ended,
    after: Option<Final>,
    trajectory: Trajectory,
}
