//! The native core, stepped by hand over a local environment: the shortest way
//! from a case to the loop, without the host crate's driver.

use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::effect::{Effect, EffectKind, Outcome, OutcomeKind};
use hermitcrab::session::{Instance, Session, SessionConfig, SessionError};
use hermitcrab_host::{
    CancellationToken, Credentials, ExecIo, HostEnvironment, HttpTransport, LocalEnvironment,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::case::Tree;
use super::face::{Face, Handle, HostTools, Opened, Place, SessionCall};
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
        let environment = LocalEnvironment::new(Path::new(self.0.directory()))
            .expect("the working directory exists");
        let (ready, opened) = oneshot::channel();
        let world = World {
            environment: Arc::new(environment),
            transport: HttpTransport::new(credentials),
            tools,
        };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, drive(config, world, ready));
        });
        opened.await.expect("the driver answers")
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

type Request = (SessionCall, oneshot::Sender<Result<(), SessionError>>);

struct Calls(mpsc::UnboundedSender<Request>);

#[async_trait]
impl Handle for Calls {
    async fn call(&self, call: SessionCall) -> Result<(), SessionError> {
        let (answer, answered) = oneshot::channel();
        self.0.send((call, answer)).expect("the driver runs");
        answered.await.expect("the driver answers")
    }
}

async fn drive(
    config: SessionConfig,
    world: World,
    ready: oneshot::Sender<Result<Opened, SessionError>>,
) {
    let mut instance = Instance::new([7; 32]);
    let environment = instance.add_remote_environment(world.environment.info());
    let session = match instance.open_session(environment, config) {
        Ok(session) => session,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let (calls, mut requests) = mpsc::unbounded_channel();
    let (events, receiver) = mpsc::unbounded_channel();
    let (outcomes, mut arrived) = mpsc::unbounded_channel::<Outcome>();
    let handle = Arc::new(Calls(calls));
    let _ = ready.send(Ok(Opened { session: handle, events: receiver }));
    let world = Rc::new(world);
    let mut running: Vec<(u64, CancellationToken)> = Vec::new();
    let mut events = Some(events);
    let mut batch = Vec::new();
    loop {
        let step = instance.step(now_ms(), batch.drain(..));
        for event in step.events {
            let ended = event.json.starts_with(b"{\"kind\":\"SESSION_END\"");
            if let Some(events) = &events {
                let _ = events.send(event.json);
            }
            if ended {
                events = None;
            }
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
            request = requests.recv() => match request {
                Some((call, answer)) => {
                    let _ = answer.send(make(&session, call));
                }
                None => return,
            },
            Some(outcome) = arrived.recv() => {
                running.retain(|(id, _)| *id != outcome.id || !outcome.kind.is_final());
                batch.push(outcome);
            }
        }
    }
}

fn make(session: &Session, call: SessionCall) -> Result<(), SessionError> {
    match call {
        SessionCall::Submit(text) => session.submit(text),
        SessionCall::Answer(text) => session.answer(text),
        SessionCall::Steer(text) => session.steer(text).map(drop),
        SessionCall::FollowUp(text) => session.follow_up(text),
        SessionCall::System(text) => session.add_system_turn(text),
        SessionCall::Interrupt => session.interrupt(),
        SessionCall::Abort => {
            session.abort();
            Ok(())
        }
        SessionCall::Close => session.close(),
        SessionCall::Configure(patch) => session.configure(&patch),
        SessionCall::Register(definition) => session.register_tool(definition),
        SessionCall::Unregister(name) => session.unregister_tool(&name).map(drop),
    }
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
            world.transport.send(request, &cancel, &mut |kind| put(kind)).await;
            return;
        }
        EffectKind::Exec { request, .. } => {
            let mut output = |stream, data: Bytes| put(OutcomeKind::ExecOutput { stream, data });
            let io = ExecIo { output: &mut output, cancel: cancel.clone() };
            match world.environment.exec(request, io).await {
                Ok(status) => OutcomeKind::ExecEnd(status),
                Err(error) => OutcomeKind::ExecFailed(error),
            }
        }
        EffectKind::Environment { call, .. } => {
            let call = async { OutcomeKind::Environment(world.environment.call(call).await) };
            or_cancelled(&mut Box::pin(call)).await
        }
        EffectKind::CallTool { name, arguments, .. } => {
            let (progress, mut texts) = mpsc::unbounded_channel();
            let call = async {
                let call = world.tools.call(&name, &arguments, &progress);
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
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
