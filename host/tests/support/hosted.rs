//! Faces and benches of the host crate: a core, native or the component, over
//! the local environment or the sandbox.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;
use hermitcrab::environment::{EnvironmentCall, EnvironmentError, EnvironmentReply, ExecRequest};
use hermitcrab::session::{SessionConfig, SessionError, SessionErrorKind};
#[cfg(unix)]
use hermitcrab_host::overlay::{Overlay, OverlayLimits, Overlays};
use hermitcrab_host::{
    AgentInfo, ApprovalFn, CommandPolicy, Controller, Credentials, EnvironmentChoice,
    EnvironmentHandle, Host, HostError, HostTool, Instance, LocalEnvironment, MemoryOptions,
    ProgramFn, Remote, RemoteEnvironment, SessionOptions, ToolDefinition, ToolInvocation,
};
use serde_json::Value;
use tokio::sync::mpsc;
use wasmtime::MemoryCreator;

use super::bench::{Bench, Ran, Wrap};
use super::case::Tree;
use super::face::{
    Caller, Face, Handle, HostTools, Opened, Place, SessionCall, agent_json, history_json,
};
use super::own::OwnEnvironment;
use super::tree::LocalTree;

/// How the core runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreKind {
    Native,
    Component,
}

/// Where tools run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    Local,
    /// The same directory behind an environment of the consumer's.
    Own,
    Memory,
    /// A directory of this machine, reached like one of a container: by an engine that runs
    /// its calls here.
    Container,
    /// The same with the tools of BusyBox alone, as small containers have them.
    BusyBox,
    /// A directory of this machine, reached through SSH.
    Ssh,
    /// An overlay of a directory.
    #[cfg(unix)]
    Overlay,
}

/// A face of the host crate.
#[derive(Clone)]
pub struct Hosted {
    pub core: CoreKind,
    pub world: World,
    /// Makes the memory of guests, for tests that look into it.
    pub memory: Option<Arc<dyn MemoryCreator>>,
}

impl Hosted {
    pub fn new(core: CoreKind, world: World) -> Self {
        Self {
            core,
            world,
            memory: None,
        }
    }

    /// A host with that core. The component is the one inside this build
    /// (`HERMITCRAB_EMBED`), or the file that `HERMITCRAB_COMPONENT` names.
    fn host(&self, credentials: Credentials) -> Result<Host, HostError> {
        let mut builder = Host::builder().credentials(credentials);
        if self.core == CoreKind::Native {
            builder = builder.native_core();
        } else if let Some(path) = std::env::var_os("HERMITCRAB_COMPONENT") {
            builder = builder.core(path);
        } else if let (Some(_), Some(embedded)) = (&self.memory, option_env!("HERMITCRAB_EMBED")) {
            // A core that runs in memory of the host's own must be compiled
            // for that; its wasm lies beside the one that is embedded.
            builder = builder.core(std::path::Path::new(embedded).with_extension("wasm"));
        }
        if let Some(memory) = &self.memory {
            builder = builder.memory_creator(memory.clone());
        }
        builder.build()
    }
}

/// Stands in for an engine of containers.
fn container(engine: &str) -> Remote {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support");
    Remote::container(path.join(engine).to_string_lossy(), "box")
}

/// Whether `program` is on this machine.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

impl World {
    /// Whether this machine has what it needs.
    pub fn is_there(self) -> bool {
        match self {
            Self::BusyBox => is_there("busybox"),
            Self::Ssh => ssh().is_some(),
            _ => true,
        }
    }
}

/// The server of SSH that `HERMITCRAB_TEST_SSH` names with the options that lead to it
/// (`cargo xtask test elsewhere`).
pub fn ssh() -> Option<Remote> {
    let words = std::env::var("HERMITCRAB_TEST_SSH").ok()?;
    let mut options: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let destination = options.pop()?;
    Some(Remote::Ssh {
        destination,
        options,
    })
}

/// The ground that a core stands on: a directory on disk, or files for a sandbox.
enum Ground {
    Local(LocalTree),
    Own(LocalTree),
    Remote(LocalTree, Remote),
    Memory(Tree),
    #[cfg(unix)]
    Overlay(OverlayTree),
}

/// An overlay with the directory that it is of, which stays as it was.
#[cfg(unix)]
struct OverlayTree {
    overlay: Overlay,
    directory: String,
    /// The overlays, beside what they are of.
    _overlays: tempfile::TempDir,
    below: LocalTree,
    files: Tree,
}

#[cfg(unix)]
impl OverlayTree {
    fn new(files: &Tree) -> Result<Self, String> {
        let below = LocalTree::new(files)?;
        let overlays = tempfile::tempdir().map_err(|error| error.to_string())?;
        let overlay = Overlays::new(overlays.path().join("overlays"), OverlayLimits::default())
            .create(Path::new(below.directory()))
            .map_err(|error| error.to_string())?;
        let directory = overlay.directory().canonicalize();
        let directory = directory.map_err(|error| error.to_string())?;
        Ok(Self {
            directory: directory.to_str().ok_or("TMPDIR is not UTF-8")?.to_owned(),
            overlay,
            _overlays: overlays,
            below,
            files: files.clone(),
        })
    }

    /// The files of the overlay, if those of the directory are untouched.
    fn read(&self) -> Result<Tree, String> {
        if self.below.read()? != self.files {
            return Err("the directory below the overlay has changed".to_owned());
        }
        super::tree::read(&self.overlay.directory())
    }
}

impl Ground {
    fn new(world: World, files: &Tree) -> Result<Self, String> {
        Ok(match world {
            World::Local => Self::Local(LocalTree::new(files)?),
            World::Own => Self::Own(LocalTree::new(files)?),
            World::Memory => Self::Memory(files.clone()),
            World::Container => Self::Remote(LocalTree::new(files)?, container("engine.sh")),
            World::BusyBox => Self::Remote(LocalTree::new(files)?, container("busybox.sh")),
            World::Ssh => Self::Remote(LocalTree::new(files)?, ssh().ok_or("no server")?),
            #[cfg(unix)]
            World::Overlay => Self::Overlay(OverlayTree::new(files)?),
        })
    }

    fn directory(&self) -> &str {
        match self {
            Self::Local(tree) | Self::Own(tree) | Self::Remote(tree, _) => tree.directory(),
            Self::Memory(_) => SANDBOX,
            #[cfg(unix)]
            Self::Overlay(tree) => &tree.directory,
        }
    }

    async fn environment(
        &self,
        instance: &Instance,
        secrets: &Credentials,
        programs: BTreeMap<String, ProgramFn>,
    ) -> Result<EnvironmentHandle, HostError> {
        match self {
            Self::Local(tree) => {
                let environment = LocalEnvironment::builder(Path::new(tree.directory()))
                    .secrets(secrets.secrets())
                    .build()?;
                instance.add_environment(Arc::new(environment)).await
            }
            #[cfg(unix)]
            Self::Overlay(tree) => {
                let environment = LocalEnvironment::builder(&tree.directory)
                    .secrets(secrets.secrets())
                    .build()?;
                instance.add_environment(Arc::new(environment)).await
            }
            Self::Remote(tree, remote) => {
                let connected = RemoteEnvironment::connect(remote.clone(), tree.directory());
                instance.add_environment(Arc::new(connected.await?)).await
            }
            Self::Own(tree) => {
                let environment = OwnEnvironment::new(tree.directory());
                instance.add_environment(Arc::new(environment)).await
            }
            Self::Memory(files) => {
                let files = files
                    .iter()
                    .map(|(path, content)| (path.clone(), content.clone()));
                let options = MemoryOptions {
                    working_directory: SANDBOX.to_owned(),
                    files: files.collect(),
                    programs,
                    ..MemoryOptions::default()
                };
                instance.add_memory(options).await
            }
        }
    }

    async fn tree(&self, environment: Option<&EnvironmentHandle>) -> Result<Tree, String> {
        match (self, environment) {
            (Self::Local(tree) | Self::Own(tree) | Self::Remote(tree, _), _) => tree.read(),
            #[cfg(unix)]
            (Self::Overlay(tree), _) => tree.read(),
            (Self::Memory(files), None) => Ok(files.clone()),
            (Self::Memory(_), Some(environment)) => {
                let archive = environment
                    .export_tar()
                    .await
                    .map_err(|error| error.to_string())?;
                unpacked(&archive).map_err(|error| error.to_string())
            }
        }
    }
}

/// Working directory of the sandbox.
const SANDBOX: &str = "/workspace";

fn unpacked(archive: &[u8]) -> std::io::Result<Tree> {
    let mut tree = Tree::new();
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_dir() {
            continue;
        }
        let path = entry
            .path()?
            .to_string_lossy()
            .trim_start_matches("./")
            .to_owned();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content)?;
        tree.insert(path, content.into());
    }
    Ok(tree)
}

#[async_trait]
impl Face for Hosted {
    async fn place(&self, files: &Tree) -> Result<Box<dyn Place>, String> {
        Ok(Box::new(HostedPlace {
            ground: Ground::new(self.world, files)?,
            face: self.clone(),
            environment: std::sync::OnceLock::new(),
        }))
    }
}

struct HostedPlace {
    face: Hosted,
    ground: Ground,
    environment: std::sync::OnceLock<EnvironmentHandle>,
}

impl HostedPlace {
    async fn opened(
        &self,
        mut config: Value,
        credentials: Credentials,
        tools: Arc<dyn HostTools>,
    ) -> Result<Opened, HostError> {
        let definitions = config
            .as_object_mut()
            .and_then(|config| config.remove("tools"));
        let definitions: Vec<ToolDefinition> =
            serde_json::from_value(definitions.unwrap_or_else(|| Value::Array(Vec::new())))
                .map_err(|error| HostError::Setup(error.to_string()))?;
        let config = SessionConfig::from_json(&config.to_string())?;
        let instance = self.face.host(credentials.clone())?.instance()?;
        let environment = self
            .ground
            .environment(&instance, &credentials, tools.programs())
            .await?;
        let _ = self.environment.set(environment.clone());
        let mut options = SessionOptions::new(config, EnvironmentChoice::Existing(environment));
        for definition in definitions {
            options = options.tool(host_tool(definition, tools.clone()));
        }
        if tools.has_approver() {
            let approving = tools.clone();
            let approval: ApprovalFn = Arc::new(move |request| {
                let tools = approving.clone();
                async move { tools.approve(&request.tool_name).await }.boxed()
            });
            options = options.approval(approval);
        }
        let mut session = instance.open_session(options).await?;
        let controller = session.controller();
        let (sender, events) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(event) = session.next_event().await {
                let _ = sender.send(event.json().clone());
            }
        });
        let session = Arc::new(HostedSession { controller, tools });
        Ok(Opened { session, events })
    }
}

#[async_trait]
impl Place for HostedPlace {
    fn directory(&self) -> &str {
        self.ground.directory()
    }

    async fn open(
        &self,
        config: Value,
        base_url: &str,
        key: &str,
        tools: Arc<dyn HostTools>,
    ) -> Result<Opened, SessionError> {
        let credentials = Credentials::new()
            .with("anthropic", key, base_url)
            .expect("a credential");
        self.opened(config, credentials, tools)
            .await
            .map_err(refusal)
    }

    async fn tree(&self) -> Result<Tree, String> {
        self.ground.tree(self.environment.get()).await
    }
}

fn host_tool(definition: ToolDefinition, tools: Arc<dyn HostTools>) -> HostTool {
    let name = definition.name.clone();
    HostTool::new(definition, move |invocation: ToolInvocation| {
        let (tools, name) = (tools.clone(), name.clone());
        async move {
            let (sender, mut texts) = mpsc::unbounded_channel::<String>();
            let caller = Caller {
                agent_id: invocation.agent_id.as_deref(),
                environment: Some(&invocation.environment),
            };
            let mut call = tools.call(&name, &invocation.arguments, &sender, caller);
            loop {
                tokio::select! {
                    biased;
                    Some(text) = texts.recv() => invocation.progress.show(text).await,
                    result = &mut call => {
                        while let Ok(text) = texts.try_recv() {
                            invocation.progress.show(text).await;
                        }
                        return result;
                    }
                    // The driver drops the future; here it may as well.
                    () = invocation.cancel.cancelled() => std::future::pending().await,
                }
            }
        }
    })
}

struct HostedSession {
    controller: Controller,
    tools: Arc<dyn HostTools>,
}

#[async_trait]
impl Handle for HostedSession {
    async fn call(&self, call: SessionCall) -> Result<Value, SessionError> {
        let session = &self.controller;
        let result = match call {
            SessionCall::Submit(text) => session.submit(text).await,
            SessionCall::Answer(text) => session.answer(text).await,
            SessionCall::Steer(text) => session.steer(text).await.map(drop),
            SessionCall::FollowUp(text) => session.follow_up(text).await,
            SessionCall::System(text) => session.add_system_turn(text).await,
            SessionCall::Interrupt => session.interrupt().await,
            SessionCall::Compact => session.compact().await,
            SessionCall::Abort => session.abort().await,
            SessionCall::Close => session.close().await,
            SessionCall::Configure(patch) => session.configure(patch).await,
            SessionCall::Register(definition) => {
                session
                    .register_tool(host_tool(definition, self.tools.clone()))
                    .await
            }
            SessionCall::Unregister(name) => session.unregister_tool(&name).await.map(drop),
            SessionCall::TellAgent(agent, call) => session.tell_agent(agent, call).await,
            SessionCall::Agents => {
                let agents = session.agents().await.map_err(refusal)?;
                let shown = |agent: AgentInfo| {
                    let AgentInfo {
                        id,
                        parent_id,
                        task,
                        ..
                    } = &agent;
                    let now = (agent.state, agent.status);
                    agent_json(id, parent_id, task, now, (agent.depth, agent.turns))
                };
                return Ok(agents.into_iter().map(shown).collect());
            }
            SessionCall::AgentHistory(agent) => {
                let turns = session.agent_history(agent).await.map_err(refusal)?;
                return Ok(history_json(&turns));
            }
        };
        result.map(|()| Value::Null).map_err(refusal)
    }
}

/// What the core refused; anything else fails the case with its sentence.
fn refusal(error: HostError) -> SessionError {
    match error {
        HostError::Session(error) => error,
        other => SessionError::new(SessionErrorKind::NotFound, other.to_string()),
    }
}

/// An environment behind a core of the host crate, for calls without a session.
pub struct HostedBench {
    ground: Ground,
    environment: EnvironmentHandle,
}

impl HostedBench {
    pub async fn new(
        core: CoreKind,
        world: World,
        files: &Tree,
        wrap: Wrap,
    ) -> Result<Self, String> {
        let ground = Ground::new(world, files)?;
        let start = async {
            let instance = Hosted::new(core, world)
                .host(Credentials::new())?
                .instance()?;
            let environment = ground
                .environment(&instance, &Credentials::new(), BTreeMap::new())
                .await?;
            match wrap {
                Wrap::None => {}
                Wrap::ReadOnly => environment.make_read_only(CommandPolicy::Deny).await?,
                Wrap::ReadOnlyWithCommands => {
                    environment.make_read_only(CommandPolicy::Allow).await?
                }
                Wrap::Logging(log) => {
                    let put =
                        move |line: &str| log.lock().expect("unpoisoned").push(line.to_owned());
                    environment.log_calls(put).await?;
                }
            }
            Ok(environment)
        };
        let environment = start.await.map_err(|error: HostError| error.to_string())?;
        Ok(Self {
            ground,
            environment,
        })
    }
}

#[async_trait]
impl Bench for HostedBench {
    fn directory(&self) -> &str {
        self.ground.directory()
    }

    async fn call(&self, call: EnvironmentCall) -> Result<EnvironmentReply, EnvironmentError> {
        self.environment.call(call).await.map_err(environment_error)
    }

    async fn exec(&self, request: ExecRequest, cancel_on_output: bool) -> Ran {
        let mut output = Vec::new();
        let begun = tokio::sync::Notify::new();
        let put = |stream, data: Bytes| {
            output.push((stream, data));
            begun.notify_one();
        };
        let stop = async {
            match cancel_on_output {
                true => begun.notified().await,
                false => std::future::pending().await,
            }
        };
        let result = self.environment.exec_until(request, put, stop).await;
        Ran {
            output,
            result: result.map_err(environment_error),
        }
    }

    async fn tree(&self) -> Result<Tree, String> {
        self.ground.tree(Some(&self.environment)).await
    }
}

fn environment_error(error: HostError) -> EnvironmentError {
    match error {
        HostError::Environment(error) => error,
        other => panic!("{other}"),
    }
}
