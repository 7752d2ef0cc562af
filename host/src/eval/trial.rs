//! One attempt at one trial: an instance, a session, the inputs of the task, then
//! the checker over a copy of the tree that is left.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hermitcrab::session::SessionConfig;

use super::atif::Trajectory;
use super::budget::{Gate, Meter, RunBudget};
use super::check::{Checked, Checking};
use super::follow::{Class, Ended, Follower};
use super::programs::Programs;
use super::results::Outcome;
use super::scripted::ScriptedTransport;
use super::suite::{Checker, EnvironmentKind, Limits, Task};
use super::verdict::Verdict;
use super::write_tree::write_tree;
use crate::environment::HostEnvironment;
use crate::error::HostError;
use crate::host::{Host, InstanceOptions};
use crate::http::HttpPerformer;
use crate::local::{Guardian, LocalEnvironment};
use crate::memory::{EnvironmentChoice, EnvironmentHandle, MemoryOptions};
use crate::session::{Session, SessionOptions};
use crate::tree::{self, Tree};

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
    /// The trees that checkers of steps saw.
    pub(super) steps: Vec<StepTree>,
    pub(super) wall_ms: u64,
    pub(super) session_model: String,
}

/// The tree at the end of a step.
pub(super) struct StepTree {
    /// Number of the step, from 0.
    pub(super) step: usize,
    pub(super) tree: Tree,
    /// Whether the agent went no further, though there were more steps.
    pub(super) is_last: bool,
}

/// A tree that an agent left.
pub(super) struct Final {
    pub(super) tree: Tree,
    /// The same as a tar archive, where it came as one.
    pub(super) archive: Option<Bytes>,
}

impl Final {
    /// The tree of a sandbox as it is now; after the death of the core, as it was before.
    pub(super) async fn of(sandbox: &EnvironmentHandle) -> Result<Self, String> {
        let archive = match sandbox.export_tar().await {
            Err(HostError::Core(_)) => sandbox.recover_tar().await,
            other => other,
        };
        let archive = archive.map_err(|error| format!("cannot read the files: {error}"))?;
        let tree = tree::from_tar(&archive)
            .map_err(|error| format!("cannot read the files: {}", super::reason(&error)))?;
        Ok(Self {
            tree,
            archive: Some(archive),
        })
    }
}

/// Why the agent's part ended.
enum End {
    Session(Ended),
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
            steps: Vec::new(),
            wall_ms: 0,
            session_model: String::new(),
        };
        let end = match self.agent(task, seed, log, began, &mut attempt).await {
            Ok(end) => end,
            Err((class, why)) => End::Session(Ended::Infra(class, why)),
        };
        attempt.wall_ms = millis(began);
        let end = match (end, &attempt.after) {
            (End::Session(Ended::Naturally), Some(after)) => {
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
            (End::Session(Ended::Naturally), None) => {
                Some((Outcome::AgentError, "its files are lost".to_owned()))
            }
            (End::Session(Ended::ByLimit(why)), _) => Some((Outcome::Limit, why)),
            (End::Session(Ended::ByAgent(why)), _) => Some((Outcome::AgentError, why)),
            (End::Session(Ended::Infra(class, why)), _) => {
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
            programs: self.lent(task, checker.needs_python())?,
            env: &task.check_env,
            timeout_ms: task.check_timeout_ms,
            needs_reward: task.needs_reward,
            local: self.local,
        };
        Ok(checking.check(&after.tree, archive).await)
    }

    /// Programs of a task; `python` is lent, too, where that is asked for.
    fn lent(
        &self,
        task: &Task,
        python: bool,
    ) -> Result<std::collections::BTreeMap<String, crate::program::ProgramFn>, String> {
        match task.takes_all_programs {
            true => Ok(self.programs.all()),
            false if python => {
                let mut needed = task.programs.clone();
                needed.insert("python3".to_owned());
                self.programs.lent(&needed)
            }
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
        if task.place == EnvironmentKind::Local && !self.local {
            let why = "the task runs commands on this machine: allow that with --env local";
            return Err((Class::Setup, why.to_owned()));
        }
        let programs = self.lent(task, false).map_err(|why| (Class::Setup, why))?;
        let limits = task.limits.or(self.limits);
        let mut meter = Meter::new(limits, self.budget.clone());
        let mut http = match &task.script {
            Some((model, _)) => Arc::new(ScriptedTransport::new(model.clone())) as _,
            None => self.provider.clone().map_err(|why| (Class::Setup, why))?,
        };
        let mut asks = None;
        if meter.asks() {
            let (gate, receiver) = Gate::before(http);
            asks = Some(receiver);
            http = Arc::new(gate);
        }
        let options = InstanceOptions {
            seed: Some(seed),
            record: self.log.then_some(log),
            http: Some(http),
            ..InstanceOptions::default()
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
        let mut end = End::Session(Ended::Naturally);
        for (step, input) in task.inputs.iter().enumerate() {
            if let Err(error) = session.submit(input.instruction.as_str()).await {
                end = End::Session(Ended::by(error));
                break;
            }
            let follower = Follower {
                trajectory: &mut trajectory,
                meter: &mut meter,
                asks: &mut asks,
                limits,
                began,
            };
            end = End::Session(follower.follow(&mut session).await);
            if !matches!(end, End::Session(Ended::Naturally)) {
                break;
            }
            if let Some(checker) = &input.checker {
                let tree = self.tree(&session, place.as_ref()).await;
                let tree = tree.map_err(|why| (Class::Machine, why))?;
                let checked = self.check(task, checker, seed, &tree).await;
                let checked = checked.map_err(|why| (Class::Setup, why))?;
                let failed = input.failed(&checked.verdict);
                attempt.steps.push(StepTree {
                    step,
                    tree: tree.tree,
                    is_last: failed.is_some() && step + 1 < task.inputs.len(),
                });
                let Some(why) = failed else {
                    continue;
                };
                end = End::Step(checked, why);
                break;
            }
        }
        attempt.session_model = trajectory.model.clone();
        attempt.trajectory = Some(trajectory);
        match self.tree(&session, place.as_ref()).await {
            Ok(tree) => attempt.after = Some(tree),
            Err(why) if matches!(end, End::Session(Ended::Naturally)) => {
                return Err((Class::Machine, why));
            }
            Err(_) => {}
        }
        // The log is whole before the trial counts.
        if let Ok(Some(error)) = instance.end_record().await {
            return Err((Class::Disk, super::reason(&error)));
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
        Final::of(session.environment()).await
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

pub(super) fn millis(began: Instant) -> u64 {
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
