//! `Session`: the handle that hosts call, and the state behind it.
//!
//! Calls check whether they are legal (spec 2.3), queue what they bring and
//! return; the session's task does the rest in the next step.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use futures_util::future::select;
use serde_json::Value;

use super::agent::{AgentCall, AgentInfo, Agents};
use super::config::SessionConfig;
use super::context::ContextWatch;
use super::emitter::Emitter;
use super::error::{SessionError, SessionErrorKind};
use super::ground::Place;
use super::history::History;
use super::meter::Meter;
use super::open;
use super::prompt::{self, Found, SystemPrompt};
use super::record::{RecordedMessage, SessionRecord};
use super::repetition::Repetition;
use super::turn::Turn;
use crate::effect::{EffectPort, Random, Spawner};
use crate::environment::{Cancel, CancelReason, Environment, Scope};
use crate::event::{Attachment, CloseReason, EndReason, EventKind, SessionState, Totals};
use crate::llm::{Content, ToolDefinition, ToolResult};
use crate::profile::Profile;
use crate::tool::{HostTool, Registry, Tool};

/// Everything a session consists of. Shared by its handle and its task.
pub(super) struct Shared {
    /// Id of the session that the host opened.
    pub(super) id: Rc<str>,
    /// Id of the subagent, if it is one.
    pub(super) agent: Option<Rc<str>>,
    /// 0 for a session that the host opened, 1 for its subagents, and so on.
    pub(super) depth: u32,
    pub(super) profile: Arc<Profile>,
    pub(super) place: Place,
    pub(super) port: EffectPort,
    pub(super) random: Random,
    pub(super) spawner: Spawner,
    pub(super) emitter: Emitter,
    pub(super) meter: Meter,
    pub(super) config: RefCell<SessionConfig>,
    pub(super) registry: RefCell<Registry>,
    pub(super) history: RefCell<History>,
    /// Results of the running round, in the order in which they came.
    pub(super) finished: RefCell<Vec<ToolResult>>,
    /// Key under which the provider caches the prefix.
    pub(super) cache_key: Rc<str>,
    pub(super) prompt: RefCell<SystemPrompt>,
    pub(super) repetition: RefCell<Repetition>,
    pub(super) context: Cell<ContextWatch>,
    pub(super) mailbox: Mailbox,
    pub(super) agents: Agents,
    /// How the last input ended; what a subagent's parent asks.
    pub(super) outcome: RefCell<Outcome>,
    state: Cell<SessionState>,
    /// Who waits for the session to come to rest.
    resting: RefCell<Vec<Waker>>,
    /// Fires when the session is aborted; every other scope hangs on it.
    pub(super) life: Cancel,
    /// Fires when the current input must end; `stop` says why.
    input: RefCell<Cancel>,
    stop: Cell<Option<EndReason>>,
    closing: Cell<Option<CloseReason>>,
    pause: Pause,
}

/// Where the session stands still.
#[derive(Default)]
struct Pause {
    /// Number of answers from which on no request is sent.
    at: Cell<Option<u32>>,
    is_on: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// How the last input ended.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) reason: Option<EndReason>,
    /// Message of the last error.
    pub(super) error: Option<String>,
    /// Why the last answer is not one, if so.
    pub(super) doubt: Option<&'static str>,
}

/// What waits for the session's task.
#[derive(Default)]
pub(super) struct Mailbox {
    input: RefCell<Option<Work>>,
    follow_ups: RefCell<VecDeque<Content>>,
    injected: RefCell<VecDeque<Injected>>,
    steering_ids: Cell<u64>,
    waker: RefCell<Option<Waker>>,
}

/// A message for the next gap between tool rounds.
pub(super) enum Injected {
    Steering { id: u64, content: Content },
    System { content: String },
}

/// What to process.
pub(super) enum Work {
    /// An input.
    Input(Content),
    /// What the history leaves open.
    GoOn,
}

/// What the session's task does next.
pub(super) enum Command {
    Process(Work),
    Close(CloseReason),
}

/// What a session is made of, at open.
pub(super) struct Parts {
    pub(super) id: Rc<str>,
    pub(super) agent: Option<Rc<str>>,
    pub(super) depth: u32,
    pub(super) profile: Arc<Profile>,
    pub(super) place: Place,
    pub(super) port: EffectPort,
    pub(super) random: Random,
    pub(super) spawner: Spawner,
    pub(super) emitter: Emitter,
    pub(super) meter: Meter,
    pub(super) config: SessionConfig,
    pub(super) registry: Registry,
    /// Tools that the host executes; they win over others of their names.
    pub(super) host_tools: Vec<Rc<dyn Tool>>,
    /// Key under which the provider caches the prefix.
    pub(super) cache_key: Rc<str>,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            id: parts.id,
            agent: parts.agent,
            depth: parts.depth,
            profile: parts.profile,
            place: parts.place,
            port: parts.port,
            random: parts.random,
            spawner: parts.spawner,
            emitter: parts.emitter,
            meter: parts.meter,
            config: RefCell::new(parts.config),
            registry: RefCell::new(parts.registry),
            history: RefCell::default(),
            finished: RefCell::default(),
            cache_key: parts.cache_key,
            prompt: RefCell::default(),
            repetition: RefCell::default(),
            context: Cell::default(),
            mailbox: Mailbox::default(),
            agents: Agents::default(),
            outcome: RefCell::default(),
            state: Cell::new(SessionState::Idle),
            resting: RefCell::default(),
            life: Cancel::new(),
            input: RefCell::default(),
            stop: Cell::new(None),
            closing: Cell::new(None),
            pause: Pause::default(),
        }
    }

    pub(super) fn emit(&self, kind: EventKind) {
        match &kind {
            EventKind::Error { message, .. } => {
                self.outcome.borrow_mut().error = Some(message.clone());
            }
            EventKind::ProcessingEnd { reason, .. } => {
                self.outcome.borrow_mut().reason = Some(*reason);
            }
            _ => {}
        }
        self.emitter.emit(kind);
    }

    pub(super) fn state(&self) -> SessionState {
        self.state.get()
    }

    pub(super) fn set_state(&self, to: SessionState) {
        let from = self.state.replace(to);
        if from != to {
            self.emit(EventKind::StateChanged { from, to });
        }
        if self.is_at_rest() {
            for waker in self.resting.take() {
                waker.wake();
            }
        }
    }

    /// Whether nothing is being processed, and a session that is closing has
    /// closed.
    pub(super) fn is_at_rest(&self) -> bool {
        match self.state.get() {
            SessionState::Processing => false,
            SessionState::Closed => true,
            SessionState::Idle | SessionState::AwaitingInput => self.closing.get().is_none(),
        }
    }

    /// Resolves when the session is at rest.
    pub(super) async fn at_rest(&self) {
        poll_fn(|cx| {
            if self.is_at_rest() {
                return Poll::Ready(());
            }
            self.resting.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// A scope that belongs to this session and ends with `cancel`.
    pub(super) fn scope(&self, cancel: Cancel) -> Scope {
        Scope {
            owner: self.id.clone(),
            agent: self.agent.clone(),
            cancel,
        }
    }

    /// The environment as seen from `scope`.
    pub(super) fn environment_in(&self, scope: &Scope) -> Environment {
        Environment::new(self.place.inner(), scope.clone())
    }

    /// Begins an input: nothing stops it yet. Called when the input is
    /// accepted, so that a stop right behind it is not lost.
    pub(super) fn begin_input(&self) {
        self.stop.set(None);
        *self.outcome.borrow_mut() = Outcome::default();
        *self.input.borrow_mut() = Cancel::new();
    }

    /// Fires when the current input must end.
    pub(super) fn input_cancel(&self) -> Cancel {
        self.input.borrow().clone()
    }

    /// Ends the current input for `reason`; the first reason stands, except
    /// that an abort overrides everything.
    pub(super) fn stop_input(&self, reason: EndReason) {
        if self.stop.get().is_none() || reason == EndReason::Aborted {
            self.stop.set(Some(reason));
        }
        self.cancel_input(match reason {
            EndReason::TimeLimit => CancelReason::TimeLimit,
            _ => CancelReason::Interrupted,
        });
    }

    /// Ends the current input because that of a parent ends.
    pub(super) fn interrupt_for(&self, why: CancelReason) {
        if self.stop.get().is_none() {
            self.stop.set(Some(EndReason::Interrupted));
        }
        self.cancel_input(why);
    }

    fn cancel_input(&self, why: CancelReason) {
        self.input_cancel().cancel_for(why);
        self.agents.interrupt(why);
    }

    /// Why the current input must end, if it must.
    pub(super) fn stopped(&self) -> Option<EndReason> {
        self.stop.get()
    }

    /// Waits while the session is to pause before a request; says whether it had to.
    /// A stop of the input ends the pause.
    pub(super) async fn paused(&self, scope: &Scope) -> bool {
        let due = || {
            let answers = self.history.borrow().assistant_turns();
            self.pause.at.get().is_some_and(|at| answers >= at)
        };
        if self.stopped().is_some() || !due() {
            return false;
        }
        self.pause.is_on.set(true);
        let released = pin!(poll_fn(|cx| {
            if !due() {
                return Poll::Ready(());
            }
            *self.pause.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        }));
        select(released, scope.cancel.cancelled()).await;
        self.pause.is_on.set(false);
        true
    }

    pub(super) fn begin_closing(&self, reason: CloseReason) {
        if self.closing.get().is_none() {
            self.closing.set(Some(reason));
        }
        self.mailbox.wake();
    }

    pub(super) fn closing(&self) -> Option<CloseReason> {
        self.closing.get()
    }

    /// The next thing to do; closing comes before input.
    pub(super) async fn next_command(&self) -> Command {
        poll_fn(|cx| {
            if let Some(reason) = self.closing.get() {
                return Poll::Ready(Command::Close(reason));
            }
            if let Some(input) = self.mailbox.input.take() {
                return Poll::Ready(Command::Process(input));
            }
            *self.mailbox.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl Mailbox {
    pub(super) fn next_follow_up(&self) -> Option<Content> {
        self.follow_ups.borrow_mut().pop_front()
    }

    pub(super) fn next_injected(&self) -> Option<Injected> {
        self.injected.borrow_mut().pop_front()
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A session of an [`super::Instance`]. Clones are handles to the same session.
#[derive(Clone)]
pub struct Session(pub(super) Rc<Shared>);

impl Session {
    /// Id of the session: a UUID.
    pub fn id(&self) -> &Rc<str> {
        &self.0.id
    }

    /// Current state (spec 2.3).
    pub fn state(&self) -> SessionState {
        if self.0.closing().is_some() {
            SessionState::Closed
        } else {
            self.0.state()
        }
    }

    /// Starts an input: a text, or texts, images and documents. Legal in `IDLE`
    /// and, as the answer, in `AWAITING_INPUT`; the session is then `PROCESSING`.
    pub fn submit(&self, input: impl Into<Content>) -> Result<(), SessionError> {
        let input = self.admitted("submit", input.into())?;
        self.begin(
            "submit",
            Work::Input(input),
            "steer it or send a follow-up, or interrupt it first",
        )
    }

    /// `content`, if it may enter the history.
    fn admitted(&self, call: &str, content: Content) -> Result<Content, SessionError> {
        let invalid = |problem| {
            SessionError::new(SessionErrorKind::InvalidInput, format!("{call}: {problem}"))
        };
        let content = content.checked().map_err(|bad| invalid(bad.to_string()))?;
        if !self.0.history.borrow().has_room_for(&content) {
            let problem = "the conversation holds too many images and documents with these; leave \
                           some out, or open a new session";
            return Err(invalid(problem.to_owned()));
        }
        Ok(content)
    }

    /// Goes on with what the history leaves open: an input that was cut off by
    /// the end of its process, an error or an interruption. The model is asked
    /// with the history as it is. Legal where `submit` is, if something is open.
    pub fn resume(&self) -> Result<(), SessionError> {
        match self.state() {
            state @ (SessionState::Idle | SessionState::AwaitingInput)
                if !self.0.history.borrow().is_open() =>
            {
                let way_out = "nothing was cut off; use submit()";
                Err(SessionError::illegal("resume", state, way_out))
            }
            _ => self.begin("resume", Work::GoOn, "it is at work"),
        }
    }

    fn begin(&self, call: &str, work: Work, way_out: &str) -> Result<(), SessionError> {
        match self.state() {
            SessionState::Idle | SessionState::AwaitingInput => {
                self.0.begin_input();
                self.0.set_state(SessionState::Processing);
                *self.0.mailbox.input.borrow_mut() = Some(work);
                self.0.mailbox.wake();
                Ok(())
            }
            state => Err(SessionError::illegal(call, state, way_out)),
        }
    }

    /// Answers the model's question. Legal in `AWAITING_INPUT` only.
    pub fn answer(&self, input: impl Into<Content>) -> Result<(), SessionError> {
        match self.state() {
            SessionState::AwaitingInput => self.submit(input),
            state => Err(SessionError::illegal(
                "answer",
                state,
                "the model has asked nothing; use submit()",
            )),
        }
    }

    /// Queues a message for the next gap between tool rounds; when idle, for
    /// the next input (spec 2.6). Returns the number that its
    /// `STEERING_QUEUED`, `STEERING_INJECTED` or `STEERING_DROPPED` event bears.
    pub fn steer(&self, message: impl Into<Content>) -> Result<u64, SessionError> {
        self.open("steer")?;
        let content = self.admitted("steer", message.into())?;
        let id = self.0.mailbox.steering_ids.get() + 1;
        self.0.mailbox.steering_ids.set(id);
        self.0.emit(EventKind::SteeringQueued {
            id,
            content: content.text(),
            attachments: Attachment::all(&content),
        });
        self.0
            .mailbox
            .injected
            .borrow_mut()
            .push_back(Injected::Steering { id, content });
        Ok(id)
    }

    /// Queues an input for when the current one is done (spec 2.6). A session
    /// that closes before emits `FOLLOW_UP_DROPPED`.
    pub fn follow_up(&self, message: impl Into<Content>) -> Result<(), SessionError> {
        self.open("follow_up")?;
        let content = self.admitted("follow_up", message.into())?;
        let mut follow_ups = self.0.mailbox.follow_ups.borrow_mut();
        follow_ups.push_back(content);
        Ok(())
    }

    /// Queues instructions of the host's developer; they enter the history as
    /// a system turn where steering does (spec 2.4).
    pub fn add_system_turn(&self, content: impl Into<String>) -> Result<(), SessionError> {
        self.open("add_system_turn")?;
        self.0
            .mailbox
            .injected
            .borrow_mut()
            .push_back(Injected::System {
                content: content.into(),
            });
        Ok(())
    }

    /// Ends the current input only: effects are cancelled, open tool calls get
    /// results, and the session becomes `IDLE`. Does nothing where no input is
    /// processed: it may have ended just before.
    pub fn interrupt(&self) -> Result<(), SessionError> {
        self.open("interrupt")?;
        if self.state() == SessionState::Processing {
            self.0.stop_input(EndReason::Interrupted);
        }
        Ok(())
    }

    /// Ends the session from any state, gracefully (spec appendix B). Calling
    /// it again changes nothing.
    pub fn abort(&self) {
        if self.state() == SessionState::Closed {
            return;
        }
        self.0.begin_closing(CloseReason::Aborted);
        self.0.stop_input(EndReason::Aborted);
        self.0.life.cancel();
        self.0.agents.abort();
    }

    /// Closes the session; one that is processing is aborted. Closing it again
    /// changes nothing.
    pub fn close(&self) -> Result<(), SessionError> {
        match self.state() {
            SessionState::Closed => {}
            SessionState::Processing => self.abort(),
            SessionState::Idle | SessionState::AwaitingInput => {
                self.0.begin_closing(CloseReason::Closed);
            }
        }
        Ok(())
    }

    /// From now on no request is sent once the conversation has `answers` answers of
    /// the model: what came before that is done, tools included. `None`: the session
    /// goes on.
    pub fn pause_at(&self, answers: Option<u32>) {
        self.0.pause.at.set(answers);
        if let Some(waker) = self.0.pause.waker.take() {
            waker.wake();
        }
    }

    /// Whether it stands still before a request.
    pub fn is_paused(&self) -> bool {
        self.0.pause.is_on.get()
    }

    /// The configuration in force.
    pub fn config(&self) -> SessionConfig {
        self.0.config.borrow().clone()
    }

    /// Replaces the settings named in `patch`, a JSON object. In force from
    /// the next model call or tool call on (spec 1.2, 2.7).
    pub fn configure(&self, patch: &Value) -> Result<(), SessionError> {
        self.open("configure")?;
        let config = self.0.config.borrow().patched(patch)?;
        if patch.get("approval").is_some() {
            open::check_rules(&config.approval, &self.0.registry.borrow())?;
        }
        *self.0.config.borrow_mut() = config;
        Ok(())
    }

    /// Registers a tool that the host executes; it replaces a tool of the same
    /// name (spec 3.7). In force from the next model call on.
    pub fn register_tool(&self, definition: ToolDefinition) -> Result<(), SessionError> {
        self.open("register_tool")?;
        self.0
            .registry
            .borrow_mut()
            .register(Rc::new(HostTool::new(definition)))
            .map_err(|error| SessionError::new(SessionErrorKind::InvalidTool, error.to_string()))
    }

    /// Removes a tool; says whether there was one.
    pub fn unregister_tool(&self, name: &str) -> Result<bool, SessionError> {
        self.open("unregister_tool")?;
        Ok(self.0.registry.borrow_mut().unregister(name))
    }

    /// Names of the tools that the model is offered, in order.
    pub fn tool_names(&self) -> Vec<String> {
        self.0
            .registry
            .borrow()
            .names()
            .map(str::to_owned)
            .collect()
    }

    /// The subagents, those of subagents too: each after the one that started it.
    pub fn agents(&self) -> Vec<AgentInfo> {
        let id = self.0.agent.as_ref().unwrap_or(&self.0.id);
        self.0.agents.infos(id)
    }

    /// The turns of a subagent so far, also of one that is closed.
    pub fn agent_history(&self, agent: &str) -> Result<Vec<Turn>, SessionError> {
        self.0.agents.history(agent)
    }

    /// Tells a subagent something; what comes of it are its events.
    pub fn tell_agent(&self, agent: &str, call: AgentCall) -> Result<(), SessionError> {
        self.0.agents.tell(agent, call)
    }

    /// The turns so far.
    pub fn history(&self) -> Vec<Turn> {
        self.0.history.borrow().turns().to_vec()
    }

    /// The session as it is now, to be opened again later: see [`SessionRecord`].
    pub fn record(&self) -> SessionRecord {
        let now = self.0.port.now_ms();
        let history = self.0.history.borrow();
        let mut turns = history.turns().to_vec();
        let finished = self.0.finished.borrow();
        if !finished.is_empty() {
            turns.push(Turn::ToolResults {
                results: finished.clone(),
                timestamp_ms: now,
            });
        }
        if let Some(Work::Input(content)) = &*self.0.mailbox.input.borrow() {
            turns.push(Turn::User {
                content: content.clone(),
                timestamp_ms: now,
            });
        }
        let injected = self.0.mailbox.injected.borrow();
        let message = |message: &Injected| match message {
            Injected::Steering { content, .. } => RecordedMessage::Steering {
                content: content.clone(),
            },
            Injected::System { content } => RecordedMessage::System {
                content: content.clone(),
            },
        };
        SessionRecord {
            turns,
            requests: history.conversation().seals(),
            cache_key: Some(self.0.cache_key.to_string()),
            awaiting_input: self.0.state() == SessionState::AwaitingInput,
            injected: injected.iter().map(message).collect(),
            follow_ups: self.0.mailbox.follow_ups.borrow().iter().cloned().collect(),
            ..SessionRecord::default()
        }
    }

    /// Takes over what a completed `record` holds. For a session that has just
    /// been opened.
    pub(super) fn restore(&self, record: SessionRecord) -> Result<(), SessionError> {
        let mut repetition = self.0.repetition.borrow_mut();
        let window = self.0.config.borrow().loop_detection_window;
        let window = usize::try_from(window).unwrap_or(usize::MAX);
        for turn in &record.turns {
            if let Turn::Assistant { tool_calls, .. } = turn {
                for call in tool_calls {
                    repetition.record(&call.name, &call.arguments, window);
                    repetition.detect(window);
                }
            }
        }
        *self.0.history.borrow_mut() = History::restored(record.turns, &record.requests);
        for message in record.injected {
            match message {
                RecordedMessage::Steering { content } => drop(self.steer(content)?),
                RecordedMessage::System { content } => self.add_system_turn(content)?,
            }
        }
        for message in record.follow_ups {
            self.follow_up(message)?;
        }
        if record.awaiting_input {
            self.0.set_state(SessionState::AwaitingInput);
        }
        Ok(())
    }

    /// Takes over what an earlier session found at its start and has used.
    pub(super) fn go_on_with(&self, found: Found, used: &Totals) {
        prompt::take_over(&self.0, found);
        self.0.meter.take_over(used);
    }

    fn open(&self, call: &str) -> Result<(), SessionError> {
        match self.state() {
            SessionState::Closed => Err(SessionError::illegal(call, SessionState::Closed, "")),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
