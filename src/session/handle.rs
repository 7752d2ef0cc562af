//! `Session`: the handle that hosts call.
//!
//! Calls check whether they are legal (spec 2.3), queue what they bring and
//! return; the session's task does the rest in the next step.

use std::rc::Rc;

use serde_json::Value;

use super::agent::{AgentCall, AgentInfo};
use super::config::SessionConfig;
use super::control::{Injected, Work};
use super::error::{SessionError, SessionErrorKind};
use super::history::History;
use super::prompt;
use super::record::{RecordedMessage, SessionRecord};
use super::rules;
use super::state::Session;
use super::system_prompt::Found;
use super::turn::Turn;
use crate::event::{Attachment, CloseReason, EndReason, EventKind, SessionState, Totals};
use crate::llm::{Content, ToolDefinition};
use crate::tool::HostTool;

impl Session {
    /// Id of the session: a UUID.
    pub fn id(&self) -> &Rc<str> {
        &self.0.identity.id
    }

    /// Current state (spec 2.3).
    pub fn state(&self) -> SessionState {
        if self.0.control.closing().is_some() {
            SessionState::Closed
        } else {
            self.0.control.state()
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
        if !self.0.transcript.history.borrow().has_room_for(&content) {
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
                if !self.0.transcript.history.borrow().is_open() =>
            {
                let way_out = "nothing was cut off; use submit()";
                Err(SessionError::illegal("resume", state, way_out))
            }
            _ => self.begin("resume", Work::GoOn, "it is at work"),
        }
    }

    /// Has the model summarise the older part of the conversation, which from then on
    /// it reads in its place; the turns stay in the history. Where an input is
    /// processed, that happens before its next request, else at once: the session is
    /// `PROCESSING` until `COMPACTION_END`, and follow-ups come behind it. The setting
    /// `compaction` says what stays; without it, its defaults do.
    ///
    /// # Errors
    /// The session is closed.
    pub fn compact(&self) -> Result<(), SessionError> {
        match self.state() {
            SessionState::Closed => {
                return Err(SessionError::illegal("compact", SessionState::Closed, ""));
            }
            SessionState::Processing => self.0.transcript.compaction.call(),
            state @ (SessionState::Idle | SessionState::AwaitingInput) => {
                // Not an input: the outcome of the last one stands.
                self.0.control.begin_input();
                self.0.set_state(SessionState::Processing);
                self.0.control.mailbox.process(Work::Compact(state));
            }
        }
        Ok(())
    }

    fn begin(&self, call: &str, work: Work, way_out: &str) -> Result<(), SessionError> {
        match self.state() {
            SessionState::Idle | SessionState::AwaitingInput => {
                self.0.begin_input();
                self.0.set_state(SessionState::Processing);
                self.0.control.mailbox.process(work);
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
        let id = self.0.control.mailbox.next_steering_id();
        self.0.emit(EventKind::SteeringQueued {
            id,
            content: content.text(),
            attachments: Attachment::all(&content),
        });
        self.0
            .control
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
        let mut follow_ups = self.0.control.mailbox.follow_ups.borrow_mut();
        follow_ups.push_back(content);
        Ok(())
    }

    /// Queues instructions of the host's developer; they enter the history as
    /// a system turn where steering does (spec 2.4).
    pub fn add_system_turn(&self, content: impl Into<String>) -> Result<(), SessionError> {
        self.open("add_system_turn")?;
        self.0
            .control
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
        self.0.control.begin_closing(CloseReason::Aborted);
        self.0.stop_input(EndReason::Aborted);
        self.0.control.life.cancel();
        self.0.agents.abort();
    }

    /// Closes the session; one that is processing is aborted. Closing it again
    /// changes nothing.
    pub fn close(&self) -> Result<(), SessionError> {
        match self.state() {
            SessionState::Closed => {}
            SessionState::Processing => self.abort(),
            SessionState::Idle | SessionState::AwaitingInput => {
                self.0.control.begin_closing(CloseReason::Closed);
            }
        }
        Ok(())
    }

    /// From now on no request is sent once the conversation has `answers` answers of
    /// the model: what came before that is done, tools included. `None`: the session
    /// goes on.
    pub fn pause_at(&self, answers: Option<u32>) {
        self.0.control.pause.set(answers);
    }

    /// Whether it stands still before a request.
    pub fn is_paused(&self) -> bool {
        self.0.control.pause.is_on()
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
            rules::check(&config.approval, &self.0.registry.borrow())?;
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
        let id = self
            .0
            .identity
            .agent
            .as_ref()
            .unwrap_or(&self.0.identity.id);
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
        self.0.transcript.history.borrow().turns().to_vec()
    }

    /// The session as it is now, to be opened again later: see [`SessionRecord`].
    pub fn record(&self) -> SessionRecord {
        let now = self.0.port.now_ms();
        let history = self.0.transcript.history.borrow();
        let mut turns = history.turns().to_vec();
        let finished = self.0.transcript.finished.borrow();
        if !finished.is_empty() {
            turns.push(Turn::ToolResults {
                results: finished.clone(),
                timestamp_ms: now,
            });
        }
        if let Some(Work::Input(content)) = &*self.0.control.mailbox.input.borrow() {
            turns.push(Turn::User {
                content: content.clone(),
                timestamp_ms: now,
            });
        }
        let injected = self.0.control.mailbox.injected.borrow();
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
            requests: history.requests(),
            cache_key: Some(self.0.identity.cache_key.to_string()),
            awaiting_input: self.0.control.state() == SessionState::AwaitingInput,
            injected: injected.iter().map(message).collect(),
            follow_ups: self
                .0
                .control
                .mailbox
                .follow_ups
                .borrow()
                .iter()
                .cloned()
                .collect(),
            ..SessionRecord::default()
        }
    }

    /// Takes over what a completed `record` holds. For a session that has just
    /// been opened.
    pub(super) fn restore(&self, record: SessionRecord) -> Result<(), SessionError> {
        let mut repetition = self.0.transcript.repetition.borrow_mut();
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
        *self.0.transcript.history.borrow_mut() = History::restored(record.turns, &record.requests);
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
