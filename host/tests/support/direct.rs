//! The native core, stepped by hand over a local environment: the shortest way
//! from a case to the loop, without the host crate's driver.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::effect::{Approval, Effect, EffectKind, Outcome, OutcomeKind};
use hermitcrab::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentReply, ExecRequest, LoggingEnvironment,
    ReadOnlyEnvironment,
};
use hermitcrab::session::{
    AgentInfo, Instance, JobReportKind, Session, SessionConfig, SessionError,
};
use hermitcrab_host::{
    CancellationToken, Credentials, ExecIo, HostEnvironment, HttpTransport, LocalEnvironment,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::bench::{Bench, Ran, Wrap};
use super::case::Tree;
use super::face::{
    Caller, Face, Handle, HostTools, Opened, Place, SessionCall, agent_json, history_json,
};
use super::tree;

/// See the module.
pub struct Direct;

#[async_trait]
impl Face for Direct {
    async fn place(&self, files: &Tree) -> Result<Box<dyn Place>, String> {
        Ok(Box::new(DirectPlace(tree::LocalTree::new(files)?)))
    }
}

struct DirectPlace(tree::LocalTree);

#[async_trait]
impl Place for DirectPlace {
    fn directory(&self) -> &str {
        self.0.directory()
    }

    async fn open(
        &self,
        config: Value,
        base_url: &str,
        key: &str,
        tools: Arc<dyn HostTools>,
    ) -> Result<Opened, SessionError> {
        let config = SessionConfig::from_json(&config.to_string())?;
        let credentials = Credentials::new()
            .with("anthropic", key, base_url)
            .expect("a credential");
        let environment = LocalEnvironment::builder(Path::new(self.0.directory()))
            .secrets(credentials.secrets())
            .build()
            .expect("the working directory exists");
        let driver = Driver::start(
            environment,
            HttpTransport::new(credentials),
            tools,
            Wrap::None,
        );
        let (sender, events) = mpsc::unbounded_channel();
        let open = move |desk: &mut Desk| {
            desk.session = Some(desk.instance.open_session(desk.environment, config)?);
            desk.events = Some(sender);
            Ok::<(), SessionError>(())
        };
        driver.run(open).await?;
        Ok(Opened {
            session: Arc::new(driver),
            events,
        })
    }

    async fn tree(&self) -> Result<Tree, String> {
        self.0.read()
    }
}

struct World {
    environment: Arc<LocalEnvironment>,
    transport: HttpTransport,
    tools: Arc<dyn HostTools>,
}

/// Something to do on the driver's thread.
type Job = Box<dyn FnOnce(&mut Desk) + Send>;

/// What the driver's thread works on.
struct Desk {
    instance: Instance,
    environment: u32,
    session: Option<Session>,
    events: Option<mpsc::UnboundedSender<Bytes>>,
    reports: BTreeMap<Rc<str>, mpsc::UnboundedSender<JobReportKind>>,
}

/// The way to a driver's thread. The thread ends when the last clone is gone.
#[derive(Clone)]
struct Driver(mpsc::UnboundedSender<Job>);

impl Driver {
    fn start(
        environment: LocalEnvironment,
        transport: HttpTransport,
        tools: Arc<dyn HostTools>,
        wrap: Wrap,
    ) -> Self {
        let world = World {
            environment: Arc::new(environment),
            transport,
            tools,
        };
        let (jobs, queue) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            tokio::task::LocalSet::new().block_on(&runtime, drive(world, wrap, queue));
        });
        Self(jobs)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk) -> T + Send + 'static,
    ) -> T {
        let (answer, answered) = oneshot::channel();
        let job = move |desk: &mut Desk| {
            let _ = answer.send(work(desk));
        };
        assert!(self.0.send(Box::new(job)).is_ok(), "the driver runs");
        answered.await.expect("the driver answers")
    }
}

#[async_trait]
impl Handle for Driver {
    async fn call(&self, call: SessionCall) -> Result<Value, SessionError> {
        self.run(|desk| make(desk.session.as_ref().expect("a session"), call))
            .await
    }
}

/// The native core over a local environment, for calls without a session.
pub struct DirectBench {
    tree: tree::LocalTree,
    driver: Driver,
}

impl DirectBench {
    pub fn new(files: &Tree, wrap: Wrap) -> Result<Self, String> {
        let tree = tree::LocalTree::new(files)?;
        let environment =
            LocalEnvironment::new(Path::new(tree.directory())).map_err(|e| e.to_string())?;
        let transport = HttpTransport::new(Credentials::new());
        let driver = Driver::start(environment, transport, Arc::new(super::face::NoTools), wrap);
        Ok(Self { tree, driver })
    }

    async fn reports(
        &self,
        start: impl FnOnce(&mut Instance, u32) -> Result<Rc<str>, SessionError> + Send + 'static,
    ) -> (String, mpsc::UnboundedReceiver<JobReportKind>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let job = self
            .driver
            .run(move |desk| {
                let job =
                    start(&mut desk.instance, desk.environment).expect("the environment exists");
                desk.reports.insert(job.clone(), sender);
                job.to_string()
            })
            .await;
        (job, receiver)
    }
}

#[async_trait]
impl Bench for DirectBench {
    fn directory(&self) -> &str {
        self.tree.directory()
    }

    async fn call(&self, call: EnvironmentCall) -> Result<EnvironmentReply, EnvironmentError> {
        let (_, mut reports) = self
            .reports(|core, environment| core.start_call(environment, call))
            .await;
        match reports.recv().await {
            Some(JobReportKind::Call(result)) => result,
            other => panic!("a call reported {other:?}"),
        }
    }

    async fn exec(&self, request: ExecRequest, cancel_on_output: bool) -> Ran {
        let (job, mut reports) = self
            .reports(|core, environment| core.start_exec(environment, request))
            .await;
        let mut output = Vec::new();
        loop {
            match reports.recv().await {
                Some(JobReportKind::Output { stream, data }) => {
                    output.push((stream, data));
                    if cancel_on_output {
                        let job = job.clone();
                        self.driver
                            .run(move |desk| desk.instance.cancel_job(&job))
                            .await;
                    }
                }
                Some(JobReportKind::Exec(result)) => return Ran { output, result },
                other => panic!("a command reported {other:?}"),
            }
        }
    }

    async fn tree(&self) -> Result<Tree, String> {
        self.tree.read()
    }
}

async fn drive(world: World, wrap: Wrap, mut queue: mpsc::UnboundedReceiver<Job>) {
    let mut instance = Instance::new([7; 32]);
    let environment = instance.add_remote_environment(world.environment.info());
    let wrapped = match wrap {
        Wrap::None => Ok(()),
        Wrap::ReadOnly => instance.wrap_environment(environment, |inner| {
            Rc::new(ReadOnlyEnvironment::new(inner))
        }),
        Wrap::ReadOnlyWithCommands => instance.wrap_environment(environment, |inner| {
            Rc::new(ReadOnlyEnvironment::allowing_commands(inner))
        }),
        Wrap::Logging(log) => instance.wrap_environment(environment, |inner| {
            let log = Rc::new(move |line: &str| {
                log.lock()
                    .expect("no panic while logging")
                    .push(line.to_owned())
            });
            Rc::new(LoggingEnvironment::new(inner, log))
        }),
    };
    wrapped.expect("the environment exists");
    let mut desk = Desk {
        instance,
        environment,
        session: None,
        events: None,
        reports: BTreeMap::new(),
    };
    let (outcomes, mut arrived) = mpsc::unbounded_channel::<Outcome>();
    let world = Rc::new(world);
    let mut running: Vec<(u64, CancellationToken)> = Vec::new();
    let mut batch = Vec::new();
    loop {
        let step = desk.instance.step(now_ms(), batch.drain(..));
        for event in step.events {
            let value: serde_json::Value =
                serde_json::from_slice(&event.json).expect("events are JSON");
            let ended = value["kind"] == "SESSION_END" && value.get("agent_id").is_none();
            desk.events.as_ref().map(|events| events.send(event.json));
            if ended {
                desk.events = None;
            }
        }
        for report in step.reports {
            desk.reports.get(&report.job).map(|to| to.send(report.kind));
        }
        for effect in step.effects {
            if let EffectKind::Cancel { target } = effect.kind {
                let found = running.iter().find(|(id, _)| *id == target);
                found.inspect(|(_, token)| token.cancel());
                continue;
            }
            let token = CancellationToken::new();
            running.push((effect.id, token.clone()));
            tokio::task::spawn_local(perform(world.clone(), effect, token, outcomes.clone()));
        }
        if step.busy {
            continue;
        }
        tokio::select! {
            job = queue.recv() => match job {
                Some(job) => job(&mut desk),
                None => return,
            },
            Some(outcome) = arrived.recv() => {
                running.retain(|(id, _)| *id != outcome.id || !outcome.kind.is_final());
                batch.push(outcome);
            }
        }
    }
}

fn make(session: &Session, call: SessionCall) -> Result<Value, SessionError> {
    let done = match call {
        SessionCall::Submit(text) => session.submit(text),
        SessionCall::Answer(text) => session.answer(text),
        SessionCall::Steer(text) => session.steer(text).map(drop),
        SessionCall::FollowUp(text) => session.follow_up(text),
        SessionCall::System(text) => session.add_system_turn(text),
        SessionCall::Interrupt => session.interrupt(),
        SessionCall::Compact => session.compact(),
        SessionCall::Abort => {
            session.abort();
            Ok(())
        }
        SessionCall::Close => session.close(),
        SessionCall::Configure(patch) => session.configure(&patch),
        SessionCall::Register(definition) => session.register_tool(definition),
        SessionCall::Unregister(name) => session.unregister_tool(&name).map(drop),
        SessionCall::TellAgent(agent, call) => session.tell_agent(&agent, call),
        SessionCall::Agents => {
            let agents = session.agents().into_iter();
            let shown = |agent: AgentInfo| {
                let now = (agent.state, agent.status);
                let count = (agent.depth, agent.turns);
                agent_json(&agent.id, &agent.parent_id, &agent.task, now, count)
            };
            return Ok(agents.map(shown).collect());
        }
        SessionCall::AgentHistory(agent) => {
            return session
                .agent_history(&agent)
                .map(|turns| history_json(&turns));
        }
    };
    done.map(|()| Value::Null)
}

async fn perform(
    world: Rc<World>,
    effect: Effect,
    cancel: CancellationToken,
    outcomes: mpsc::UnboundedSender<Outcome>,
) {
    let id = effect.id;
    let outcomes = Mutex::new(outcomes);
    let put = |kind| {
        let sender = outcomes.lock().expect("no panic while sending");
        let _ = sender.send(Outcome { id, kind });
    };
    let or_cancelled = async |work: &mut (dyn Future<Output = OutcomeKind> + Unpin)| {
        tokio::select! {
            biased;
            () = cancel.cancelled() => OutcomeKind::Cancelled,
            outcome = work => outcome,
        }
    };
    let last = match effect.kind {
        EffectKind::Http(request) => {
            world
                .transport
                .send(request, &cancel, &mut |kind| put(kind))
                .await;
            return;
        }
        EffectKind::Exec { request, .. } => {
            let mut output = |stream, data: Bytes| put(OutcomeKind::ExecOutput { stream, data });
            let io = ExecIo {
                output: &mut output,
                cancel: cancel.clone(),
            };
            match world.environment.exec(request, io).await {
                Ok(status) => OutcomeKind::ExecEnd(status),
                Err(error) => OutcomeKind::ExecFailed(error),
            }
        }
        EffectKind::Environment { call, .. } => {
            let call = async { OutcomeKind::Environment(world.environment.call(call).await) };
            or_cancelled(&mut Box::pin(call)).await
        }
        EffectKind::CallTool {
            name, arguments, ..
        } => {
            let (progress, mut texts) = mpsc::unbounded_channel();
            let call = async {
                let call = world
                    .tools
                    .call(&name, &arguments, &progress, Caller::default());
                let mut call = std::pin::pin!(call);
                loop {
                    tokio::select! {
                        biased;
                        Some(text) = texts.recv() => put(OutcomeKind::ToolOutput(text)),
                        result = &mut call => {
                            while let Ok(text) = texts.try_recv() {
                                put(OutcomeKind::ToolOutput(text));
                            }
                            return OutcomeKind::ToolEnd(result);
                        }
                    }
                }
            };
            or_cancelled(&mut Box::pin(call)).await
        }
        EffectKind::AskApproval { .. } if !world.tools.has_approver() => {
            OutcomeKind::Approval(Approval::NoApprover)
        }
        EffectKind::AskApproval { tool_name, .. } => {
            let approval = async { OutcomeKind::Approval(world.tools.approve(&tool_name).await) };
            or_cancelled(&mut Box::pin(approval)).await
        }
        EffectKind::Sleep { ms } => {
            let sleep = async {
                tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
                OutcomeKind::Slept
            };
            or_cancelled(&mut Box::pin(sleep)).await
        }
        EffectKind::RunProgram(_) | EffectKind::Cancel { .. } => return,
    };
    put(last);
}

fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
