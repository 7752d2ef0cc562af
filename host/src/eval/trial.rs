//! One attempt at one trial: an instance, a session, the inputs of the task, then
//! the checker over a copy of the tree that is left.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hermitcrab::event::{CloseReason, EndReason, EventKind};
use hermitcrab::session::SessionConfig;
use tokio::sync::mpsc;

use super::atif::Trajectory;
use super::budget::{Ask, Gate, Meter, Refusal, RunBudget};
use super::check::{Checked, Checking, Verdict};
use super::programs::Programs;
use super::results::Outcome;
use super::scripted::ScriptedTransport;
use super::suite::{Checker, Limits, Place, Task};
use crate::environment::HostEnvironment;
use crate::error::HostError;
use crate::host::{Host, InstanceOptions};
use crate::http::HttpPerformer;
use crate::local::{Guardian, LocalEnvironment};
use crate::memory::MemoryOptions;
use crate::session::{EnvironmentChoice, Session, SessionOptions};
use crate::tree::{self, Kind, Node, Tree};

/// What all trials of a run have in common.
pub(super) struct Conditions {
    pub(super) host: Host,
    /// Settings of a session, but for provider and model of a task.
    pub(super) config: SessionConfig,
    pub(super) programs: Programs,
    /// Where a task sets none.
    pub(super) limits: Limits,
    pub(super) budget: Arc<RunBudget>,
    /// To the provider, for tasks without a script.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) provider: Result<Arc<dyn HttpPerformer>, String>,
    /// Whether tools act on this machine, in a copy.
    pub(super) local: bool,
    /// Ends commands of local trials if this process cannot.
    pub(super) guardian: Option<Guardian>,
    /// Values that no command of a local trial may see.
    pub(super) secrets: Vec<String>,
    /// Whether each instance writes its log.
    pub(super) log: bool,
}

/// How an attempt ended.
pub(super) struct Attempt {
    pub(super) outcome: Outcome,
    /// One sentence where it has not passed.
    pub(super) reason: Option<String>,
    /// Why another attempt may do better, for `infra_error`.
    pub(super) class: Class,
    pub(super) trajectory: Option<Trajectory>,
    /// The tree at the end, where it is known.
    pub(super) after: Option<Final>,
    pub(super) checked: Option<Checked>,
    pub(super) wall_ms: u64,
    pub(super) session_model: String,
}

/// Kinds of failures that are not the agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Trying again does not help: a key, a setting, a task that is none.
    Setup,
    /// The provider wants fewer calls.
    RateLimit,
    /// The provider or the way to it failed.
    Provider,
    /// This machine failed.
    Machine,
    /// The budget of the run is used up.
    Budget,
}

impl Class {
    /// Attempts after the first, of at most `retries`, and the factor of the wait
    /// between them.
    pub(super) fn retries(self, retries: u32) -> (u32, u32) {
        match self {
            Self::Setup | Self::Budget => (0, 1),
            Self::Machine => (retries.min(1), 1),
            Self::Provider => (retries, 1),
            // Waiting is all that helps.
            Self::RateLimit => (retries.saturating_mul(2), 4),
        }
    }
}

/// A tree that an agent left.
pub(super) struct Final {
    pub(super) tree: Tree,
    /// The same as a tar archive, where it came as one.
    pub(super) archive: Option<Bytes>,
}

/// Why the agent's part ended.
enum End {
    /// It says that it is done.
    Natural,
    Limit(String),
    Agent(String),
    Infra(Class, String),
    /// A step's checker did not pass.
    Step(Checked, String),
}

impl Conditions {
    /// Tries `task` once; `log` is where the log goes.
    pub(super) async fn attempt(&self, task: &Task, seed: [u8; 32], log: PathBuf) -> Attempt {
        let began = Instant::now();
        let mut attempt = Attempt {
            outcome: Outcome::InfraError,
            reason: None,
            class: Class::Setup,
            trajectory: None,
            after: None,
            checked: None,
            wall_ms: 0,
            session_model: String::new(),
        };
        let end = match self.agent(task, seed, log, began, &mut attempt).await {
            Ok(end) => end,
            Err((class, why)) => End::Infra(class, why),
        };
        attempt.wall_ms = millis(began);
        let end = match (end, &attempt.after) {
            (End::Natural, Some(after)) => {
                match self.check(task, &task.checker, seed, after).await {
                    Ok(checked) => {
                        let verdict = checked.verdict.clone();
                        attempt.checked = Some(checked);
                        match verdict {
                            Verdict::Passed => None,
                            Verdict::Failed(why) => Some((Outcome::Failed, why)),
                            Verdict::None(why) => Some((Outcome::InfraError, why)),
                        }
                    }
                    Err(why) => Some((Outcome::InfraError, why)),
                }
            }
            (End::Natural, None) => Some((Outcome::AgentError, "its files are lost".to_owned())),
            (End::Limit(why), _) => Some((Outcome::Limit, why)),
            (End::Agent(why), _) => Some((Outcome::AgentError, why)),
            (End::Infra(class, why), _) => {
                attempt.class = class;
                Some((Outcome::InfraError, why))
            }
            (End::Step(checked, why), _) => {
                let outcome = match checked.verdict {
                    Verdict::None(_) => Outcome::InfraError,
                    _ => Outcome::Failed,
                };
                attempt.checked = Some(checked);
                Some((outcome, why))
            }
        };
        match end {
            None => attempt.outcome = Outcome::Passed,
            Some((outcome, why)) => {
                attempt.outcome = outcome;
                attempt.reason = Some(why);
            }
        }
        attempt
    }

    /// Checks `after` with one of a task's checkers.
    ///
    /// # Errors
    /// What the checker needs is not there.
    pub(super) async fn check(
        &self,
        task: &Task,
        checker: &Checker,
        seed: [u8; 32],
        after: &Final,
    ) -> Result<Checked, String> {
        let archive = match (checker, &after.archive) {
            (Checker::Expected(_), _) => Bytes::new(),
            (Checker::Command { .. }, Some(archive)) => archive.clone(),
            (Checker::Command { .. }, None) => tree::to_tar(&after.tree)
                .map_err(|error| {
                    format!("cannot pack {}: {}", error.path, super::reason(&error.why))
                })?
                .into(),
        };
        let checking = Checking {
            host: &self.host,
            checker,
            seed: super::lock::seed(&seed, "check", 0),
            programs: self.lent(task)?,
            env: &task.check_env,
            timeout_ms: task.check_timeout_ms,
            needs_reward: task.needs_reward,
            local: self.local,
        };
        Ok(checking.check(&after.tree, archive).await)
    }

    fn lent(
        &self,
        task: &Task,
    ) -> Result<std::collections::BTreeMap<String, crate::program::ProgramFn>, String> {
        match task.takes_all_programs {
            true => Ok(self.programs.all()),
            false => self.programs.lent(&task.programs),
        }
    }

    async fn agent(
        &self,
        task: &Task,
        seed: [u8; 32],
        log: PathBuf,
        began: Instant,
        attempt: &mut Attempt,
    ) -> Result<End, (Class, String)> {
        if task.place == Place::Local && !self.local {
            let why = "the task runs commands on this machine: allow that with --env local";
            return Err((Class::Setup, why.to_owned()));
        }
        let programs = self.lent(task).map_err(|why| (Class::Setup, why))?;
        let limits = task.limits.or(self.limits);
        let mut meter = Meter::new(limits, self.budget.clone());
        let mut http = match &task.script {
            Some((model, _)) => Arc::new(ScriptedTransport::new(model.clone())) as _,
            None => self.provider.clone().map_err(|why| (Class::Setup, why))?,
        };
        let mut asks = None;
        if meter.asks() {
            let (sender, receiver) = mpsc::unbounded_channel();
            asks = Some(receiver);
            http = Arc::new(Gate {
                inner: http,
                asks: sender,
            });
        }
        let options = InstanceOptions {
            seed: Some(seed),
            record: self.log.then_some(log),
            http: Some(http),
        };
        let instance = self.host.start_instance(options).await.map_err(setup)?;
        let place = match self.local {
            true => Some(Copied::new(task).map_err(|error| {
                let why = format!("cannot copy the files: {}", super::reason(&error));
                (Class::Machine, why)
            })?),
            false => None,
        };
        let environment = match &place {
            Some(place) => self.local(place)?,
            None => EnvironmentChoice::Memory(MemoryOptions {
                archive: match task.tree.is_empty() {
                    true => None,
                    false => Some(task.archive().map_err(|e| (Class::Setup, e.to_string()))?),
                },
                programs,
                ..MemoryOptions::default()
            }),
        };
        let options = SessionOptions::new(self.session_config(task, limits), environment);
        let mut session = instance.open_session(options).await.map_err(setup)?;
        let mut trajectory = Trajectory::new(began, session.id());
        let deadline = limits.wall_ms.map(|ms| began + Duration::from_millis(ms));
        let mut end = End::Natural;
        for input in &task.inputs {
            if let Err(error) = session.submit(input.instruction.as_str()).await {
                end = ended_by(error);
                break;
            }
            let mut seen = Seen::default();
            loop {
                tokio::select! {
                    // What happened before a call was asked for is seen before.
                    biased;
                    event = session.next_event() => {
                        let Some(event) = event else {
                            seen.over = true;
                            break;
                        };
                        let Some((kind, is_own)) = trajectory.see(&event) else { continue };
                        if seen.see(&kind, is_own, &mut meter) {
                            break;
                        }
                    }
                    ask = next(&mut asks) => {
                        let _ = ask.send(meter.ask());
                    }
                    () = at(deadline), if !seen.late => {
                        seen.late = true;
                        // What comes of it are events.
                        let _ = session.abort().await;
                    }
                }
            }
            end = seen.end(&meter, limits);
            if !matches!(end, End::Natural) {
                break;
            }
            if let Some(checker) = &input.checker {
                let tree = self.tree(&session, place.as_ref()).await;
                let tree = tree.map_err(|why| (Class::Machine, why))?;
                let checked = self.check(task, checker, seed, &tree).await;
                let checked = checked.map_err(|why| (Class::Setup, why))?;
                let why = match &checked.verdict {
                    Verdict::Passed => continue,
                    Verdict::Failed(why) | Verdict::None(why) => why,
                };
                let why = format!("step {}: {why}", input.name);
                end = End::Step(checked, why);
                break;
            }
        }
        attempt.session_model = trajectory.model.clone();
        attempt.trajectory = Some(trajectory);
        match self.tree(&session, place.as_ref()).await {
            Ok(tree) => attempt.after = Some(tree),
            Err(why) if matches!(end, End::Natural) => return Err((Class::Machine, why)),
            Err(_) => {}
        }
        Ok(end)
    }

    fn session_config(&self, task: &Task, limits: Limits) -> SessionConfig {
        let mut config = self.config.clone();
        if let Some(provider) = &task.provider {
            config.provider = provider.clone();
        }
        if let Some(model) = &task.model {
            config.model = model.clone();
        }
        if let Some(rounds) = limits.rounds {
            // The trial's own count comes first, and counts subagents, too.
            config.max_tool_rounds_per_input =
                u32::try_from(rounds).map_or(u32::MAX, |it| it.saturating_add(1));
        }
        config
    }

    fn local(&self, place: &Copied) -> Result<EnvironmentChoice, (Class, String)> {
        let mut builder = LocalEnvironment::builder(&place.work).secrets(self.secrets.clone());
        if let Some(guardian) = &self.guardian {
            builder = builder.guardian(guardian);
        }
        let local = builder.build().map_err(|e| (Class::Machine, e.message))?;
        let local: Arc<dyn HostEnvironment> = Arc::new(local);
        Ok(EnvironmentChoice::Host(local))
    }

    /// The tree as it is now; after the death of the core, as it was before.
    async fn tree(&self, session: &Session, place: Option<&Copied>) -> Result<Final, String> {
        if let Some(place) = place {
            let tree = super::suite::read_tree(&place.work).map_err(|error| error.to_string())?;
            return Ok(Final {
                tree,
                archive: None,
            });
        }
        let sandbox = session.environment();
        let archive = match sandbox.export_tar().await {
            Err(HostError::Core(_)) => sandbox.recover_tar().await,
            other => other,
        };
        let archive = archive.map_err(|error| format!("cannot read the files: {error}"))?;
        let tree = tree::from_tar(&archive)
            .map_err(|error| format!("cannot read the files: {}", super::reason(&error)))?;
        Ok(Final {
            tree,
            archive: Some(archive),
        })
    }
}

/// A copy of a task's files in a temporary directory, gone when it is dropped.
struct Copied {
    _directory: tempfile::TempDir,
    work: PathBuf,
}

impl Copied {
    fn new(task: &Task) -> std::io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("hermitcrab-").tempdir()?;
        let work = directory.path().join("work");
        write_tree(&task.tree, &work)?;
        Ok(Self {
            _directory: directory,
            work,
        })
    }
}

/// Writes `tree` to a new `directory`.
pub(super) fn write_tree(tree: &Tree, directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for (path, node) in tree {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        match node.kind {
            Kind::Directory => std::fs::create_dir_all(&path)?,
            Kind::Link => link(node, &path)?,
            Kind::Plain | Kind::Executable => {
                std::fs::write(&path, &node.content)?;
                set_mode(node, &path)?;
            }
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(node: &Node, path: &Path) -> std::io::Result<()> {
    let target = String::from_utf8_lossy(&node.content).into_owned();
    std::os::unix::fs::symlink(target, path)
}

#[cfg(unix)]
fn set_mode(node: &Node, path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = std::fs::Permissions::from_mode(node.mode);
    std::fs::set_permissions(path, permissions)
}

#[cfg(not(unix))]
fn link(_node: &Node, _path: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn set_mode(_node: &Node, _path: &Path) -> std::io::Result<()> {
    Ok(())
}

async fn next(asks: &mut Option<mpsc::UnboundedReceiver<Ask>>) -> Ask {
    let asked = match asks {
        Some(asks) => asks.recv().await,
        None => None,
    };
    match asked {
        Some(ask) => ask,
        None => std::future::pending().await,
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

fn millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A host or a session that could not be set up.
fn setup(error: HostError) -> (Class, String) {
    let class = match &error {
        HostError::Session(_) | HostError::Environment(_) => Class::Setup,
        _ => Class::Machine,
    };
    (class, error.to_string())
}

fn ended_by(error: HostError) -> End {
    match error {
        HostError::Core(failure) => End::Agent(failure.message),
        other => End::Infra(Class::Machine, other.to_string()),
    }
}

/// What the events of an input say about its end.
#[derive(Default)]
struct Seen {
    reason: Option<EndReason>,
    /// Code and message of the last error.
    error: Option<(String, String)>,
    /// No event follows.
    over: bool,
    closed_by_error: bool,
    /// The wall time is over.
    late: bool,
}

impl Seen {
    /// Takes an event; says whether the input is done.
    fn see(&mut self, kind: &EventKind, is_own: bool, meter: &mut Meter) -> bool {
        match kind {
            EventKind::Usage {
                prompt_tokens,
                output_tokens,
                cost_usd,
                ..
            } => meter.used(prompt_tokens + output_tokens, *cost_usd),
            EventKind::Retry { .. } => meter.retried(),
            EventKind::Error { code, message, .. } if is_own => {
                self.error = Some((code.clone(), message.clone()));
            }
            EventKind::ProcessingEnd { reason, .. } if is_own => {
                self.reason = Some(*reason);
                return !self.late;
            }
            EventKind::SessionEnd { reason, .. } if is_own => {
                self.closed_by_error = *reason == CloseReason::Error;
                return true;
            }
            _ => {}
        }
        false
    }

    fn end(self, meter: &Meter, limits: Limits) -> End {
        match &meter.refusal {
            Some(Refusal::Trial(why)) => return End::Limit(why.clone()),
            Some(Refusal::Run(why)) => return End::Infra(Class::Budget, why.clone()),
            None => {}
        }
        if self.late {
            let ms = limits.wall_ms.unwrap_or_default();
            return End::Limit(format!("the limit of {ms} ms wall time is reached"));
        }
        match self.reason {
            Some(EndReason::Completed | EndReason::AwaitingInput) if !self.closed_by_error => {
                End::Natural
            }
            Some(EndReason::RoundLimit) => End::Limit("the limit of tool rounds is reached".into()),
            Some(EndReason::TurnLimit) => End::Limit("the limit of turns is reached".into()),
            Some(EndReason::TimeLimit) => End::Limit("the limit of wall time is reached".into()),
            _ => {
                let (code, message) = self
                    .error
                    .unwrap_or_else(|| (String::new(), "the session ended early".to_owned()));
                classified(&code, message)
            }
        }
    }
}

/// Whose fault an error is (`LlmErrorKind`, `CoreFailure`).
fn classified(code: &str, message: String) -> End {
    let message = message
        .strip_suffix(crate::core::CoreFailure::WAY_OUT)
        .map(str::to_owned)
        .unwrap_or(message);
    match code {
        "rate_limit" => End::Infra(Class::RateLimit, message),
        "server" | "network" | "stream" | "request_timeout" | "unknown" => {
            End::Infra(Class::Provider, message)
        }
        "authentication" | "access_denied" | "quota_exceeded" | "not_found" | "configuration" => {
            End::Infra(Class::Setup, message)
        }
        // What its commands took.
        "core_stalled" | "core_memory" => End::Limit(message),
        _ => End::Agent(message),
    }
}
