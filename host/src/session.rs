//! `Session`: a session as the host's users hold it, and `Controller`, which
//! steers it from elsewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use hermitcrab::event::SessionState;
use hermitcrab::llm::Content;
use hermitcrab::session::{
    AgentCall, AgentInfo, InstanceCall, SessionCall, SessionConfig, SessionError, SessionErrorKind,
    SessionRecord, SessionReply, Turn,
};
use serde_json::{Map, Value};

use crate::approval::ApprovalFn;
use crate::core::{Core as _, out_of_place};
use crate::driver::{Driver, DriverHandle, Queue, SessionLink, ToolFn};
use crate::error::HostError;
use crate::event::Event;
use crate::instance::Instance;
use crate::memory::{EnvironmentChoice, EnvironmentHandle};
use crate::program::ProgramFn;
use crate::tool::HostTool;

/// What a session starts from.
#[derive(Clone)]
pub struct SessionOptions {
    /// Settings.
    pub config: SessionConfig,
    /// Where its tools run.
    pub environment: EnvironmentChoice,
    /// Tools that the host executes, beside those of the profile.
    pub tools: Vec<HostTool>,
    /// Decides about the calls for which `config.approval` asks. Without it, the
    /// answer is no, with a reason that the model reads.
    pub approval: Option<ApprovalFn>,
    /// Earlier session whose conversation it goes on with.
    pub record: Option<SessionRecord>,
    /// A new file for the [log](crate::log) of its instance, for
    /// [`Host::open_session`](crate::Host::open_session): an instance that runs already
    /// has one from its start, or none.
    pub log: Option<PathBuf>,
}

impl SessionOptions {
    /// A session with the tools of its profile only.
    pub fn new(config: SessionConfig, environment: EnvironmentChoice) -> Self {
        Self {
            config,
            environment,
            tools: Vec::new(),
            approval: None,
            record: None,
            log: None,
        }
    }

    /// Writes the log of the run to a new file.
    pub fn log(mut self, file: impl Into<PathBuf>) -> Self {
        self.log = Some(file.into());
        self
    }

    /// Adds a tool that the host executes.
    pub fn tool(mut self, tool: HostTool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Sets who decides about approvals.
    pub fn approval(mut self, approval: ApprovalFn) -> Self {
        self.approval = Some(approval);
        self
    }

    /// Goes on with the conversation of an earlier session.
    pub fn record(mut self, record: SessionRecord) -> Self {
        self.record = Some(record);
        self
    }
}

impl std::fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionOptions")
            .field("config", &self.config)
            .field("environment", &self.environment)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// What a session takes over with that goes on where another one is: a saved one
/// ([`Instance::restore`](crate::Instance::restore)), or one that goes on itself
/// ([`Controller::fork`]).
#[derive(Clone, Default)]
pub struct TakeoverOptions {
    /// Settings that are other than they were, a JSON object; null: none are. Another
    /// provider's session does not take over what is about a model.
    pub settings: Value,
    /// Where its tools run; absent: in a sandbox as that one's is, or, where that one
    /// works outside of the core, in the same place.
    pub environment: Option<EnvironmentChoice>,
    /// Tools that the host executes.
    pub tools: Vec<HostTool>,
    /// Decides about calls, as in [`SessionOptions`].
    pub approval: Option<ApprovalFn>,
    /// Programs that the host lends to the shell of a saved sandbox, by name. A copy has
    /// those of its original.
    pub programs: BTreeMap<String, ProgramFn>,
}

impl std::fmt::Debug for TakeoverOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TakeoverOptions")
            .field("settings", &self.settings)
            .field("environment", &self.environment)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// A session and its events. Dropping it aborts the session; the events that
/// are left are lost.
///
/// Events must be read: when more than a thousand wait, the session's effects
/// pause until some are taken. Nothing is dropped.
pub struct Session {
    controller: Controller,
    events: Arc<Queue<Event>>,
}

/// Steers a session from another task. Cheap to clone; does not keep the
/// session alive.
#[derive(Clone, Debug)]
pub struct Controller(Arc<Link>);

struct Link {
    driver: DriverHandle,
    id: Arc<str>,
    environment: EnvironmentHandle,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.id.fmt(f)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let id = self.id.clone();
        self.driver.send(move |driver| {
            let session = id.to_string();
            let _ = driver.core.tell(InstanceCall::ForgetSession { session });
        });
    }
}

impl Session {
    pub(crate) async fn open(
        driver: DriverHandle,
        environment: EnvironmentHandle,
        options: SessionOptions,
    ) -> Result<Self, HostError> {
        let SessionOptions {
            mut config,
            tools,
            approval,
            record,
            log,
            ..
        } = options;
        if log.is_some() {
            return Err(HostError::Setup(
                "a log begins with its instance: open the session with Host::open_session, or \
                 start the instance with Host::recorded_instance"
                    .to_owned(),
            ));
        }
        let functions = functions(&tools);
        config
            .tools
            .extend(tools.into_iter().map(|tool| tool.definition));
        let open = InstanceCall::OpenSession {
            environment: environment.number(),
            config: to_json(&config)?,
            record: record.as_ref().map(to_json).transpose()?,
        };
        Self::begin(driver, environment, open, functions, approval).await
    }

    /// Opens a session by `open`, with the host's part of it.
    async fn begin(
        driver: DriverHandle,
        environment: EnvironmentHandle,
        open: InstanceCall,
        functions: BTreeMap<String, ToolFn>,
        approval: Option<ApprovalFn>,
    ) -> Result<Self, HostError> {
        let number = environment.number();
        let (id, events) = driver
            .call(move |driver| {
                let id = driver.core.id(open)?;
                let mut link = SessionLink::new(functions, approval);
                link.environment = Some(number);
                let events = link.events.clone();
                driver.sessions.insert(id.clone(), link);
                Ok((id, events))
            })
            .await?;
        Ok(Self::attached(driver, id, environment, events))
    }

    /// Opens a session that goes on where another one is, by the call that `open` makes
    /// of the number of its environment and of its settings.
    pub(crate) async fn take_over(
        driver: DriverHandle,
        environment: EnvironmentHandle,
        options: TakeoverOptions,
        open: impl FnOnce(u32, Value) -> InstanceCall,
    ) -> Result<Self, HostError> {
        let mut settings = match options.settings {
            Value::Null => Map::new(),
            Value::Object(settings) => settings,
            _ => {
                return Err(SessionError::new(
                    SessionErrorKind::InvalidConfig,
                    "the settings must be a JSON object",
                )
                .into());
            }
        };
        let definitions: Vec<_> = options.tools.iter().map(|tool| &tool.definition).collect();
        settings.insert("tools".to_owned(), to_json(&definitions)?);
        let open = open(environment.number(), Value::Object(settings));
        let functions = functions(&options.tools);
        Self::begin(driver, environment, open, functions, options.approval).await
    }

    /// A handle to a session that the driver has.
    pub(crate) fn attached(
        driver: DriverHandle,
        id: Arc<str>,
        environment: EnvironmentHandle,
        events: Arc<Queue<Event>>,
    ) -> Self {
        let controller = Controller(Arc::new(Link {
            driver,
            id,
            environment,
        }));
        Self { controller, events }
    }

    /// The next event; `None` after `SESSION_END`.
    pub async fn next_event(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.events.poll_next(cx)).await
    }

    /// A handle that steers the session from another task.
    pub fn controller(&self) -> Controller {
        self.controller.clone()
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Session").field(&self.id()).finish()
    }
}

/// A session is steered like its controller.
impl std::ops::Deref for Session {
    type Target = Controller;

    fn deref(&self) -> &Controller {
        &self.controller
    }
}

impl Stream for Session {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.events.poll_next(cx)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.events.abandon();
        let id = self.controller.0.id.clone();
        self.controller.0.driver.send(move |driver| {
            let _ = driver.core.ask(&id, SessionCall::Abort);
        });
    }
}

/// Each call answers when the session has accepted or refused it; what comes
/// of it are events. Errors are those of the core: a call that is not legal in
/// the session's state, a setting that makes no sense, an instance that died.
impl Controller {
    /// Id of the session: a UUID.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The environment that the session's tools run in.
    pub fn environment(&self) -> &EnvironmentHandle {
        &self.0.environment
    }

    /// Current state (spec 2.3).
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn state(&self) -> Result<SessionState, HostError> {
        match self.call(SessionCall::State).await? {
            SessionReply::State(state) => Ok(state),
            other => Err(out_of_place("a state", &other).into()),
        }
    }

    /// Starts an input: a text, or [`Part`](hermitcrab::llm::Part)s with images
    /// and documents. Legal when idle and, as the answer, when the model has asked
    /// something.
    ///
    /// # Errors
    /// Not legal now, or an image or document that no model can have; nothing has
    /// changed.
    pub async fn submit(&self, input: impl Into<Content>) -> Result<(), HostError> {
        let input = input.into();
        self.tell(SessionCall::Submit { input }).await
    }

    /// Answers the model's question.
    ///
    /// # Errors
    /// The model has asked nothing.
    pub async fn answer(&self, input: impl Into<Content>) -> Result<(), HostError> {
        let input = input.into();
        self.tell(SessionCall::Answer { input }).await
    }

    /// Goes on with what was cut off: the model is asked with the history as it
    /// is.
    ///
    /// # Errors
    /// Nothing was cut off, or the session is at work.
    pub async fn resume(&self) -> Result<(), HostError> {
        self.tell(SessionCall::Resume).await
    }

    /// Queues a message for the next gap between tool rounds; returns the
    /// number that its events bear.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn steer(&self, message: impl Into<Content>) -> Result<u64, HostError> {
        let message = message.into();
        match self.call(SessionCall::Steer { message }).await? {
            SessionReply::Number(number) => Ok(number),
            other => Err(out_of_place("a number", &other).into()),
        }
    }

    /// Queues an input for when the current one is done.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn follow_up(&self, message: impl Into<Content>) -> Result<(), HostError> {
        let message = message.into();
        self.tell(SessionCall::FollowUp { message }).await
    }

    /// Queues instructions of the developer for the next gap between tool rounds.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn add_system_turn(&self, content: impl Into<String>) -> Result<(), HostError> {
        let content = content.into();
        self.tell(SessionCall::AddSystemTurn { content }).await
    }

    /// Ends the current input only; the session goes on.
    ///
    /// # Errors
    /// Nothing is being processed.
    pub async fn interrupt(&self) -> Result<(), HostError> {
        self.tell(SessionCall::Interrupt).await
    }

    /// Has the model summarise the older part of the conversation, which from then on
    /// it reads in its place: before the next request, or at once where no input is
    /// processed. `COMPACTION_END` tells what came of it.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn compact(&self) -> Result<(), HostError> {
        self.tell(SessionCall::Compact).await
    }

    /// From now on no request is sent once the conversation has `answers` answers of
    /// the model; what came before that is done, tools included. `None`: the session
    /// goes on.
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn pause_at(&self, answers: Option<u32>) -> Result<(), HostError> {
        self.tell(SessionCall::PauseAt { answers }).await
    }

    /// Whether it stands still before a request.
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn is_paused(&self) -> Result<bool, HostError> {
        match self.call(SessionCall::IsPaused).await? {
            SessionReply::Flag(flag) => Ok(flag),
            other => Err(out_of_place("yes or no", &other).into()),
        }
    }

    /// The session as a file, with all files of its sandbox if it works in one:
    /// [`Instance::restore`](crate::Instance::restore) goes on with it, in any process,
    /// and the package does in Node and in a page. It is a tar archive. There is no key
    /// in it.
    ///
    /// # Errors
    /// The session does not stand still, or is closed; one of the host's keys stands in
    /// what was said or in the files.
    pub async fn save(&self) -> Result<Bytes, HostError> {
        let session = self.0.id.to_string();
        let save = |driver: &mut Driver| driver.core.save(session);
        self.0.driver.call(save).await
    }

    /// Another session in the same instance that goes on where this one stands still, in
    /// a copy of its sandbox. It takes about as long as copying the conversation.
    ///
    /// # Errors
    /// The session does not stand still, or is closed; settings that make no sense.
    pub async fn fork(&self, mut options: TakeoverOptions) -> Result<Session, HostError> {
        let Link {
            driver,
            id,
            environment,
        } = &*self.0;
        let instance = Instance {
            driver: driver.clone(),
        };
        let place = match options.environment.take() {
            Some(choice) => instance.environment(choice).await?,
            None if environment.is_sandbox().await? => environment.copy().await?,
            None => environment.clone(),
        };
        let session = id.to_string();
        Session::take_over(driver.clone(), place, options, |environment, settings| {
            InstanceCall::CopySession {
                session,
                environment,
                settings,
            }
        })
        .await
    }

    /// Ends the session from any state, gracefully.
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn abort(&self) -> Result<(), HostError> {
        self.tell(SessionCall::Abort).await
    }

    /// Closes the session.
    ///
    /// # Errors
    /// It is processing.
    pub async fn close(&self) -> Result<(), HostError> {
        self.tell(SessionCall::Close).await
    }

    /// The configuration in force.
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn config(&self) -> Result<SessionConfig, HostError> {
        let json = self.json(SessionCall::Config).await?;
        Ok(SessionConfig::from_json(&String::from_utf8_lossy(&json))?)
    }

    /// Replaces the settings named in `patch`, a JSON object; in force from
    /// the next model call or tool call on.
    ///
    /// # Errors
    /// A setting that is unknown, out of range or fixed.
    pub async fn configure(&self, patch: Value) -> Result<(), HostError> {
        self.tell(SessionCall::Configure { patch }).await
    }

    /// Registers a tool; it replaces one of the same name. In force from the
    /// next model call on.
    ///
    /// # Errors
    /// A definition that cannot be used.
    pub async fn register_tool(&self, tool: HostTool) -> Result<(), HostError> {
        let definition = to_json(&tool.definition)?;
        let id = self.0.id.clone();
        self.0
            .driver
            .call(move |driver| {
                driver
                    .core
                    .ask(&id, SessionCall::RegisterTool { definition })?;
                if let Some(link) = driver.sessions.get_mut(&id) {
                    link.tools.insert(tool.definition.name, tool.execute);
                }
                Ok(())
            })
            .await
    }

    /// Removes a tool; says whether there was one.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn unregister_tool(&self, name: impl Into<String>) -> Result<bool, HostError> {
        let name = name.into();
        // A call that runs keeps its function; a later one is an unknown tool.
        match self.call(SessionCall::UnregisterTool { name }).await? {
            SessionReply::Flag(flag) => Ok(flag),
            other => Err(out_of_place("yes or no", &other).into()),
        }
    }

    /// The subagents, those of subagents too: each after the one that started it.
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn agents(&self) -> Result<Vec<AgentInfo>, HostError> {
        match self.call(SessionCall::Agents).await? {
            SessionReply::Agents(agents) => Ok(agents),
            other => Err(out_of_place("agents", &other).into()),
        }
    }

    /// The turns of a subagent so far, also of one that is closed.
    ///
    /// # Errors
    /// There is no such subagent.
    pub async fn agent_history(&self, agent: impl Into<String>) -> Result<Vec<Turn>, HostError> {
        let agent = agent.into();
        read_turns(&self.json(SessionCall::AgentHistory { agent }).await?)
    }

    /// Tells a subagent something: a message, to end what it is doing, or to end
    /// for good. What comes of it are its events.
    ///
    /// # Errors
    /// There is no such subagent; it is closed, or has nothing to interrupt.
    pub async fn tell_agent(
        &self,
        agent: impl Into<String>,
        call: AgentCall,
    ) -> Result<(), HostError> {
        let agent = agent.into();
        let tell = call;
        self.tell(SessionCall::TellAgent { agent, tell }).await
    }

    /// Names of the tools that the model is offered, in order.
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn tool_names(&self) -> Result<Vec<String>, HostError> {
        match self.call(SessionCall::ToolNames).await? {
            SessionReply::Names(names) => Ok(names),
            other => Err(out_of_place("names", &other).into()),
        }
    }

    /// The turns so far.
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn history(&self) -> Result<Vec<Turn>, HostError> {
        read_turns(&self.json(SessionCall::History).await?)
    }

    /// The session as it is now, to be opened again later; see
    /// [`SessionOptions::record`].
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn record(&self) -> Result<SessionRecord, HostError> {
        read_record(&self.json(SessionCall::Record).await?)
    }

    /// After the instance has died: the session as it was before the call that
    /// ended it; see [`EnvironmentHandle::recover_tar`]. A command that ran then
    /// has the result that it was cut off.
    ///
    /// # Errors
    /// As of [`EnvironmentHandle::recover_tar`].
    pub async fn recover_record(&self) -> Result<SessionRecord, HostError> {
        let id = self.0.id.clone();
        let recover = move |driver: &mut crate::driver::Driver| {
            Ok(driver.recovered()?.ask(&id, SessionCall::Record)?)
        };
        read_record(&as_json(self.0.driver.call(recover).await?)?)
    }

    /// Makes any call on the session; the methods above are some of them.
    ///
    /// # Errors
    /// As those of the method of the same name.
    pub async fn call(&self, call: SessionCall) -> Result<SessionReply, HostError> {
        let id = self.0.id.clone();
        self.0.driver.core(move |core| core.ask(&id, call)).await
    }

    async fn tell(&self, call: SessionCall) -> Result<(), HostError> {
        self.call(call).await.map(drop)
    }

    async fn json(&self, call: SessionCall) -> Result<Bytes, HostError> {
        as_json(self.call(call).await?)
    }
}

fn as_json(reply: SessionReply) -> Result<Bytes, HostError> {
    match reply {
        SessionReply::Json(json) => Ok(json),
        other => Err(out_of_place("JSON", &other).into()),
    }
}

fn read_turns(json: &[u8]) -> Result<Vec<Turn>, HostError> {
    serde_json::from_slice(json)
        .map_err(|error| HostError::Setup(format!("the core's history is broken: {error}")))
}

fn read_record(json: &[u8]) -> Result<SessionRecord, HostError> {
    serde_json::from_slice(json)
        .map_err(|error| HostError::Setup(format!("the core's record is broken: {error}")))
}

/// What executes the tools, by their names.
fn functions(tools: &[HostTool]) -> BTreeMap<String, ToolFn> {
    let function = |tool: &HostTool| (tool.definition.name.clone(), tool.execute.clone());
    tools.iter().map(function).collect()
}

fn to_json(value: &impl serde::Serialize) -> Result<Value, HostError> {
    serde_json::to_value(value).map_err(|error| {
        SessionError::new(SessionErrorKind::InvalidConfig, error.to_string()).into()
    })
}
