//! Calls as data: what a host can tell an instance, and one of its sessions.
//!
//! A core is a function of its inputs: a host that keeps them can pass them to a
//! fresh core and has the same core again. So each call is declared here, once, as a
//! value. The faces convert it; [`Instance::call`] and [`Session::call`] carry it out.
//! As JSON a call is an object with the field `call`. Logs hold that JSON, so names
//! never change.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent::{AgentCall, AgentInfo};
use super::config::SessionConfig;
use super::error::{SessionError, SessionErrorKind};
use super::instance::Instance;
use super::job::Action;
use super::record::SessionRecord;
use super::saved;
use super::state::Session;
use crate::environment::{EnvironmentCall, EnvironmentError, EnvironmentInfo, ExecRequest};
use crate::event::SessionState;
use crate::llm::Content;
use crate::memory::clock;
use crate::memory::{Change, Delta, EndReason, MemorySettings};

/// A call on an [`Instance`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum InstanceCall {
    /// Adds a sandbox with these settings, see [`crate::memory::MemorySettings`] →
    /// its number.
    AddMemoryEnvironment {
        /// An object.
        settings: Value,
    },
    /// Adds an environment that the host answers for → its number.
    AddRemoteEnvironment {
        /// What it is.
        info: EnvironmentInfo,
    },
    /// Rejects writes by tools from now on, see [`Instance::make_read_only`] → `Done`.
    MakeReadOnly {
        /// Number of the environment.
        environment: u32,
        /// Whether commands run nevertheless.
        allow_commands: bool,
    },
    /// See [`Instance::log_calls`] → number of the log.
    LogCalls {
        /// Number of the environment.
        environment: u32,
    },
    /// Adds the files of a tar archive below a sandbox's working directory; all or
    /// none → `Done`.
    ImportTar {
        /// Number of the sandbox.
        environment: u32,
        /// The archive.
        #[serde(with = "crate::text::blob")]
        archive: Bytes,
    },
    /// Adds files below a sandbox's working directory; all or none → `Done`.
    ImportFiles {
        /// Number of the sandbox.
        environment: u32,
        /// Paths and contents.
        #[serde(with = "crate::text::blob::files")]
        files: Vec<(String, Bytes)>,
    },
    /// Replaces all files of a sandbox by those of a tar archive of a whole tree →
    /// `Done`.
    ReplaceTree {
        /// Number of the sandbox.
        environment: u32,
        /// The archive, with names relative to the root.
        #[serde(with = "crate::text::blob")]
        archive: Bytes,
    },
    /// Applies changes, see [`crate::memory::Delta`]; all or none → `Done`.
    ApplyDelta {
        /// Number of the sandbox.
        environment: u32,
        /// What is added or changed, as a tar archive.
        #[serde(with = "crate::text::blob")]
        archive: Bytes,
        /// Paths that are removed before.
        removed: Vec<String>,
    },
    /// Has a sandbox's shell call a program of the host's from now on → `Done`.
    LendProgram {
        /// Number of the sandbox.
        environment: u32,
        /// Name of the program.
        name: String,
    },
    /// Opens a shell that keeps its state from command to command, over the files of
    /// a sandbox → its number, which is that of an environment.
    OpenTerminal {
        /// Number of the sandbox.
        environment: u32,
    },
    /// Forgets such a shell; unknown numbers are ignored → `Done`.
    CloseTerminal {
        /// Its number.
        terminal: u32,
    },
    /// A sandbox's working directory → a tar archive. Changes nothing.
    ExportTar {
        /// Number of the sandbox.
        environment: u32,
    },
    /// Remembers a sandbox as it is, in constant time → number of the snapshot.
    Snapshot {
        /// Number of the sandbox.
        environment: u32,
    },
    /// Puts a remembered sandbox back → `Done`.
    Restore {
        /// Number of the sandbox.
        environment: u32,
        /// Number of the snapshot.
        snapshot: u64,
    },
    /// What changed since a snapshot → the changes. Changes nothing.
    Changes {
        /// Number of the sandbox.
        environment: u32,
        /// Number of the snapshot.
        snapshot: u64,
    },
    /// Forgets a snapshot; unknown numbers are ignored → `Done`.
    ForgetSnapshot {
        /// Number of the snapshot.
        snapshot: u64,
    },
    /// Starts a command outside of any session → id of the job.
    StartExec {
        /// Number of the environment.
        environment: u32,
        /// The command.
        request: ExecRequest,
    },
    /// Makes a call outside of any session → id of the job.
    StartCall {
        /// Number of the environment.
        environment: u32,
        /// The call.
        request: EnvironmentCall,
    },
    /// Does something for the tool that runs as an effect, see [`Instance::act`] →
    /// id of the job.
    Act {
        /// Id of the effect.
        effect: u64,
        /// What to do.
        action: Action,
    },
    /// Ends a job early; unknown ids are ignored → `Done`.
    CancelJob {
        /// Id of the job.
        job: String,
    },
    /// Commands of sandboxes that would run in the next step end there → `Done`.
    EndCommands {
        /// Why.
        reason: EndReason,
    },
    /// Opens a session → its id.
    OpenSession {
        /// Number of the environment.
        environment: u32,
        /// Settings, see [`SessionConfig`].
        config: Value,
        /// Session to go on with, see [`SessionRecord`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<Value>,
    },
    /// A sandbox more that is as another one is now: files, clock and random numbers;
    /// takes constant time → its number.
    CopyEnvironment {
        /// Number of the other one.
        environment: u32,
    },
    /// A session, and the sandbox that it works in, as a file → an archive. It must stand
    /// still. Changes nothing.
    SaveSession {
        /// Id of the session.
        session: String,
    },
    /// Adds the sandbox of a saved session → its number.
    AddSavedEnvironment {
        /// What `SaveSession` gave.
        #[serde(with = "crate::text::blob")]
        saved: Bytes,
        /// Settings that are other than they were, as those of `AddMemoryEnvironment`;
        /// its programs are those that the host lends now.
        settings: Value,
    },
    /// Opens a session that goes on where a saved one was → its id.
    OpenSavedSession {
        /// Number of the environment.
        environment: u32,
        /// What `SaveSession` gave.
        #[serde(with = "crate::text::blob")]
        saved: Bytes,
        /// Settings that are other than they were, an object.
        settings: Value,
    },
    /// Opens a session that goes on where another one stands still now → its id.
    CopySession {
        /// Id of the other one.
        session: String,
        /// Number of the environment.
        environment: u32,
        /// Settings that are other than its, an object.
        settings: Value,
    },
    /// A call on a session → `Session`.
    Session {
        /// Id of the session.
        session: String,
        /// The call.
        ask: SessionCall,
    },
    /// Releases a session that has ended; unknown ids are ignored → `Done`.
    ForgetSession {
        /// Id of the session.
        session: String,
    },
}

/// Answer to an [`InstanceCall`].
#[derive(Clone, Debug, PartialEq)]
pub enum InstanceReply {
    /// Nothing beside that it was done.
    Done,
    /// Number of what was made.
    Number(u64),
    /// Id of what was begun.
    Id(String),
    /// A tar archive.
    Archive(Bytes),
    /// What changed, sorted by path.
    Changes(Vec<Change>),
    /// What a session answered.
    Session(SessionReply),
}

/// A call on a [`Session`]; each is the method of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum SessionCall {
    /// Current state → `State`.
    State,
    /// Starts an input → `Done`.
    Submit {
        /// The input.
        #[serde(default)]
        input: Content,
    },
    /// Answers the model's question → `Done`.
    Answer {
        /// The answer.
        #[serde(default)]
        input: Content,
    },
    /// Goes on with what was cut off → `Done`.
    Resume,
    /// Queues a message for the next gap between tool rounds → `Number`, which its
    /// events bear.
    Steer {
        /// The message.
        #[serde(default)]
        message: Content,
    },
    /// Queues an input for when the current one is done → `Done`.
    FollowUp {
        /// The input.
        #[serde(default)]
        message: Content,
    },
    /// Queues instructions of the host's developer → `Done`.
    AddSystemTurn {
        /// The instructions.
        content: String,
    },
    /// Ends the current input only → `Done`.
    Interrupt,
    /// Ends the session from any state → `Done`.
    Abort,
    /// Closes the session → `Done`.
    Close,
    /// Has the older part of the conversation summarised, see [`Session::compact`] →
    /// `Done`.
    Compact,
    /// Sends no request once there are so many answers, see [`Session::pause_at`] →
    /// `Done`.
    PauseAt {
        /// Answers of the model; none: goes on.
        answers: Option<u32>,
    },
    /// Whether it stands still before a request → `Flag`.
    IsPaused,
    /// The configuration in force → `Json`, an object.
    Config,
    /// Replaces settings → `Done`.
    Configure {
        /// The settings, an object.
        patch: Value,
    },
    /// Registers a tool that the host executes → `Done`.
    RegisterTool {
        /// See [`crate::llm::ToolDefinition`].
        definition: Value,
    },
    /// Removes a tool → `Flag`: whether there was one.
    UnregisterTool {
        /// Its name.
        name: String,
    },
    /// The subagents → `Agents`.
    Agents,
    /// The turns of a subagent so far → `Json`, an array.
    AgentHistory {
        /// Its id.
        agent: String,
    },
    /// Tells a subagent something → `Done`.
    TellAgent {
        /// Its id.
        agent: String,
        /// The call to it.
        tell: AgentCall,
    },
    /// Names of the tools that the model is offered → `Names`.
    ToolNames,
    /// The turns so far → `Json`, an array.
    History,
    /// The session as it is now → `Json`, see [`SessionRecord`].
    Record,
}

/// Answer to a [`SessionCall`].
#[derive(Clone, Debug, PartialEq)]
pub enum SessionReply {
    /// Nothing beside that it was done.
    Done,
    /// A state.
    State(SessionState),
    /// A number.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// Subagents, each after the one that started it.
    Agents(Vec<AgentInfo>),
    /// Names, in order.
    Names(Vec<String>),
    /// JSON.
    Json(Bytes),
}

/// Why a call was not carried out; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// It makes no sense here or now.
    Refused(SessionError),
    /// A sandbox could not do what was asked.
    Environment(EnvironmentError),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Environment(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CallError {}

impl From<SessionError> for CallError {
    fn from(error: SessionError) -> Self {
        Self::Refused(error)
    }
}

impl From<EnvironmentError> for CallError {
    fn from(error: EnvironmentError) -> Self {
        Self::Environment(error)
    }
}

impl InstanceCall {
    /// Whether the call changes nothing: a core that was never asked is the same.
    pub fn is_question(&self) -> bool {
        match self {
            Self::ExportTar { .. } | Self::Changes { .. } | Self::SaveSession { .. } => true,
            Self::Session { ask, .. } => ask.is_question(),
            _ => false,
        }
    }

    /// Whether the call answers the number of a new sandbox.
    pub fn adds_sandbox(&self) -> bool {
        matches!(
            self,
            Self::AddMemoryEnvironment { .. }
                | Self::AddSavedEnvironment { .. }
                | Self::CopyEnvironment { .. }
        )
    }

    /// Number of the environment, if the call opens a session.
    pub fn opens_session_in(&self) -> Option<u32> {
        match self {
            Self::OpenSession { environment, .. }
            | Self::OpenSavedSession { environment, .. }
            | Self::CopySession { environment, .. } => Some(*environment),
            _ => None,
        }
    }

    /// The settings of the session that the call opens, where it names all of them.
    ///
    /// # Errors
    /// Those of a saved session cannot be read.
    pub fn opening_config(&self) -> Result<Option<Value>, SessionError> {
        match self {
            Self::OpenSession { config, .. } => Ok(Some(config.clone())),
            Self::OpenSavedSession {
                saved, settings, ..
            } => saved::config_of(saved, settings).map(Some),
            _ => Ok(None),
        }
    }
}

impl SessionCall {
    /// Whether the call changes nothing.
    pub fn is_question(&self) -> bool {
        matches!(
            self,
            Self::State
                | Self::IsPaused
                | Self::Config
                | Self::Agents
                | Self::AgentHistory { .. }
                | Self::ToolNames
                | Self::History
                | Self::Record
        )
    }

    /// What is said to a model, if the call says something.
    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::Submit { input } | Self::Answer { input } => Some(input),
            Self::Steer { message } | Self::FollowUp { message } => Some(message),
            Self::TellAgent {
                tell: AgentCall::Steer(message),
                ..
            } => Some(message),
            _ => None,
        }
    }

    /// The same, to be filled in.
    pub fn content_mut(&mut self) -> Option<&mut Content> {
        match self {
            Self::Submit { input } | Self::Answer { input } => Some(input),
            Self::Steer { message } | Self::FollowUp { message } => Some(message),
            Self::TellAgent {
                tell: AgentCall::Steer(message),
                ..
            } => Some(message),
            _ => None,
        }
    }
}

impl Instance {
    /// Carries out a call.
    ///
    /// # Errors
    /// As those of the method that does it.
    pub fn call(&mut self, call: InstanceCall) -> Result<InstanceReply, CallError> {
        use InstanceReply as Reply;
        let id = |id: std::rc::Rc<str>| Reply::Id(id.to_string());
        Ok(match call {
            InstanceCall::AddMemoryEnvironment { settings } => {
                let settings = memory_settings(settings)?;
                Reply::Number(self.add_memory_environment(settings).into())
            }
            InstanceCall::AddRemoteEnvironment { info } => {
                Reply::Number(self.add_remote_environment(info).into())
            }
            InstanceCall::MakeReadOnly {
                environment,
                allow_commands,
            } => {
                self.make_read_only(environment, allow_commands)?;
                Reply::Done
            }
            InstanceCall::LogCalls { environment } => {
                Reply::Number(self.log_calls(environment)?.into())
            }
            InstanceCall::ImportTar {
                environment,
                archive,
            } => {
                self.sandbox_for("import_tar", environment)?
                    .import_tar(&archive)?;
                Reply::Done
            }
            InstanceCall::ImportFiles { environment, files } => {
                self.sandbox_for("import_files", environment)?
                    .import_files(files)?;
                Reply::Done
            }
            InstanceCall::ReplaceTree {
                environment,
                archive,
            } => {
                self.sandbox_for("replace_tree", environment)?
                    .replace_tree(&archive)?;
                Reply::Done
            }
            InstanceCall::ApplyDelta {
                environment,
                archive,
                removed,
            } => {
                let delta = Delta {
                    archive: archive.into(),
                    removed,
                };
                self.sandbox_for("apply_delta", environment)?
                    .apply(&delta)?;
                Reply::Done
            }
            InstanceCall::LendProgram { environment, name } => {
                self.sandbox_for("lend_program", environment)?.lend(&name);
                Reply::Done
            }
            InstanceCall::OpenTerminal { environment } => {
                Reply::Number(self.open_terminal(environment)?.into())
            }
            InstanceCall::CloseTerminal { terminal } => {
                self.close_terminal(terminal);
                Reply::Done
            }
            InstanceCall::ExportTar { environment } => Reply::Archive(
                self.sandbox_for("export_tar", environment)?
                    .export_tar()?
                    .into(),
            ),
            InstanceCall::Snapshot { environment } => {
                let snapshot = self.sandbox_for("snapshot", environment)?.snapshot();
                Reply::Number(self.keep_snapshot(snapshot))
            }
            InstanceCall::Restore {
                environment,
                snapshot,
            } => {
                let sandbox = self.sandbox_for("restore", environment)?;
                sandbox.restore(self.snapshot(snapshot)?);
                Reply::Done
            }
            InstanceCall::Changes {
                environment,
                snapshot,
            } => {
                let sandbox = self.sandbox_for("changes", environment)?;
                Reply::Changes(sandbox.changes_since(self.snapshot(snapshot)?))
            }
            InstanceCall::ForgetSnapshot { snapshot } => {
                self.forget_snapshot(snapshot);
                Reply::Done
            }
            InstanceCall::StartExec {
                environment,
                request,
            } => id(self.start_exec(environment, request)?),
            InstanceCall::StartCall {
                environment,
                request,
            } => id(self.start_call(environment, request)?),
            InstanceCall::Act { effect, action } => id(self.act(effect, action)?),
            InstanceCall::CancelJob { job } => {
                self.cancel_job(&job);
                Reply::Done
            }
            InstanceCall::EndCommands { reason } => {
                clock::end_commands(reason.into());
                Reply::Done
            }
            InstanceCall::OpenSession {
                environment,
                config,
                record,
            } => {
                let record = record.map(|record| record.to_string());
                let session =
                    self.open_from_json(environment, &config.to_string(), record.as_deref())?;
                Reply::Id(self.keep_session(session))
            }
            InstanceCall::CopyEnvironment { environment } => {
                Reply::Number(self.copy_environment(environment)?.into())
            }
            InstanceCall::SaveSession { session } => {
                Reply::Archive(self.save_session(self.session(&session)?)?)
            }
            InstanceCall::AddSavedEnvironment { saved, settings } => {
                let settings = memory_settings(settings)?;
                Reply::Number(self.add_saved_environment(&saved, settings)?.into())
            }
            InstanceCall::OpenSavedSession {
                environment,
                saved,
                settings,
            } => {
                let session = self.open_saved_session(environment, &saved, &settings)?;
                Reply::Id(self.keep_session(session))
            }
            InstanceCall::CopySession {
                session,
                environment,
                settings,
            } => {
                let session = self.session(&session)?.clone();
                let session = self.copy_session(&session, environment, &settings)?;
                Reply::Id(self.keep_session(session))
            }
            InstanceCall::Session { session, ask } => {
                let session = self.session(&session)?.clone();
                Reply::Session(session.call(ask)?)
            }
            InstanceCall::ForgetSession { session } => {
                self.forget_session(&session);
                Reply::Done
            }
        })
    }

    /// Opens a session with settings and record as JSON, see [`SessionConfig`] and
    /// [`SessionRecord`].
    ///
    /// # Errors
    /// Settings or a record that cannot be used.
    pub fn open_from_json(
        &mut self,
        environment: u32,
        config: &str,
        record: Option<&str>,
    ) -> Result<Session, SessionError> {
        let config = SessionConfig::from_json(config)?;
        match record.map(SessionRecord::from_json).transpose()? {
            None => self.open_session(environment, config),
            Some(record) => self.open_recorded_session(environment, config, record),
        }
    }
}

impl Session {
    /// Carries out a call.
    ///
    /// # Errors
    /// As those of the method that does it.
    pub fn call(&self, call: SessionCall) -> Result<SessionReply, SessionError> {
        use SessionReply as Reply;
        match call {
            SessionCall::State => return Ok(Reply::State(self.state())),
            SessionCall::Submit { input } => self.submit(input)?,
            SessionCall::Answer { input } => self.answer(input)?,
            SessionCall::Resume => self.resume()?,
            SessionCall::Steer { message } => return Ok(Reply::Number(self.steer(message)?)),
            SessionCall::FollowUp { message } => self.follow_up(message)?,
            SessionCall::AddSystemTurn { content } => self.add_system_turn(content)?,
            SessionCall::Interrupt => self.interrupt()?,
            SessionCall::Abort => self.abort(),
            SessionCall::Close => self.close()?,
            SessionCall::Compact => self.compact()?,
            SessionCall::PauseAt { answers } => self.pause_at(answers),
            SessionCall::IsPaused => return Ok(Reply::Flag(self.is_paused())),
            SessionCall::Config => return Ok(json(&self.config())),
            SessionCall::Configure { patch } => self.configure(&patch)?,
            SessionCall::RegisterTool { definition } => {
                let definition = serde_json::from_value(definition).map_err(|error| {
                    let message = format!("invalid tool: {error}");
                    SessionError::new(SessionErrorKind::InvalidTool, message)
                })?;
                self.register_tool(definition)?;
            }
            SessionCall::UnregisterTool { name } => {
                return Ok(Reply::Flag(self.unregister_tool(&name)?));
            }
            SessionCall::Agents => return Ok(Reply::Agents(self.agents())),
            SessionCall::AgentHistory { agent } => return Ok(json(&self.agent_history(&agent)?)),
            SessionCall::TellAgent { agent, tell } => self.tell_agent(&agent, tell)?,
            SessionCall::ToolNames => return Ok(Reply::Names(self.tool_names())),
            SessionCall::History => return Ok(json(&self.history())),
            SessionCall::Record => return Ok(json(&self.record())),
        }
        Ok(Reply::Done)
    }
}

fn memory_settings(settings: Value) -> Result<MemorySettings, SessionError> {
    serde_json::from_value(settings).map_err(|error| {
        let message = format!("invalid sandbox settings: {error}");
        SessionError::new(SessionErrorKind::InvalidConfig, message)
    })
}

/// Settings, turns and records are strings, numbers and JSON values: they always
/// serialise.
fn json(value: &impl Serialize) -> SessionReply {
    SessionReply::Json(serde_json::to_vec(value).unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What logs hold, and that it is read again. A log of an older version must
    /// stay readable: a line here is added, never changed.
    fn check(call: &InstanceCall, expected: &Value) {
        let written = serde_json::to_value(call).expect("a call is JSON");
        assert_eq!(&written, expected);
        let read: InstanceCall = serde_json::from_value(written).expect("a call");
        assert_eq!(&read, call);
    }

    fn ask(ask: SessionCall, expected: &Value) {
        let session = "s".to_owned();
        check(
            &InstanceCall::Session { session, ask },
            &json!({"call": "session", "session": "s", "ask": expected}),
        );
    }

    #[test]
    fn calls_on_an_instance() {
        use InstanceCall as Call;
        let environment = 1;
        check(
            &Call::AddMemoryEnvironment {
                settings: json!({}),
            },
            &json!({"call": "add_memory_environment", "settings": {}}),
        );
        check(
            &Call::MakeReadOnly {
                environment,
                allow_commands: true,
            },
            &json!({"call": "make_read_only", "environment": 1, "allow_commands": true}),
        );
        check(
            &Call::LogCalls { environment },
            &json!({"call": "log_calls", "environment": 1}),
        );
        check(
            &Call::ImportTar {
                environment,
                archive: Bytes::from_static(b"\xff\0"),
            },
            &json!({"call": "import_tar", "environment": 1, "archive": {"base64": "/wA="}}),
        );
        let files = vec![
            ("a".to_owned(), "b".into()),
            ("c".to_owned(), Bytes::from_static(b"\xff")),
        ];
        check(
            &Call::ImportFiles { environment, files },
            &json!({"call": "import_files", "environment": 1,
                    "files": [["a", "b"], ["c", {"base64": "/w=="}]]}),
        );
        check(
            &Call::ReplaceTree {
                environment,
                archive: Bytes::from_static(b"\xff\0"),
            },
            &json!({"call": "replace_tree", "environment": 1, "archive": {"base64": "/wA="}}),
        );
        check(
            &Call::ApplyDelta {
                environment,
                archive: "a".into(),
                removed: vec!["/b".to_owned()],
            },
            &json!({"call": "apply_delta", "environment": 1, "archive": "a", "removed": ["/b"]}),
        );
        check(
            &Call::LendProgram {
                environment,
                name: "python3".to_owned(),
            },
            &json!({"call": "lend_program", "environment": 1, "name": "python3"}),
        );
        check(
            &Call::OpenTerminal { environment },
            &json!({"call": "open_terminal", "environment": 1}),
        );
        check(
            &Call::CloseTerminal { terminal: 2 },
            &json!({"call": "close_terminal", "terminal": 2}),
        );
        check(
            &Call::Restore {
                environment,
                snapshot: 2,
            },
            &json!({"call": "restore", "environment": 1, "snapshot": 2}),
        );
        check(
            &Call::StartCall {
                environment,
                request: EnvironmentCall::Write {
                    path: "a".to_owned(),
                    content: "b".into(),
                },
            },
            &json!({"call": "start_call", "environment": 1,
                    "request": {"call": "write", "path": "a", "content": "b"}}),
        );
        check(
            &Call::Act {
                effect: 3,
                action: Action::Exec(ExecRequest::default()),
            },
            &json!({"call": "act", "effect": 3, "action": {"exec":
                    {"command": "", "timeout_ms": 0, "working_dir": null, "env": {}}}}),
        );
        check(
            &Call::EndCommands {
                reason: EndReason::Stack,
            },
            &json!({"call": "end_commands", "reason": "stack"}),
        );
        check(
            &Call::OpenSession {
                environment,
                config: json!({"model": "m"}),
                record: None,
            },
            &json!({"call": "open_session", "environment": 1, "config": {"model": "m"}}),
        );
        let session = || "s".to_owned();
        check(
            &Call::CopyEnvironment { environment },
            &json!({"call": "copy_environment", "environment": 1}),
        );
        check(
            &Call::SaveSession { session: session() },
            &json!({"call": "save_session", "session": "s"}),
        );
        check(
            &Call::AddSavedEnvironment {
                saved: "a".into(),
                settings: json!({"programs": ["python3"]}),
            },
            &json!({"call": "add_saved_environment", "saved": "a",
                    "settings": {"programs": ["python3"]}}),
        );
        check(
            &Call::OpenSavedSession {
                environment,
                saved: "a".into(),
                settings: json!({"model": "m"}),
            },
            &json!({"call": "open_saved_session", "environment": 1, "saved": "a",
                    "settings": {"model": "m"}}),
        );
        check(
            &Call::CopySession {
                session: session(),
                environment,
                settings: json!({}),
            },
            &json!({"call": "copy_session", "session": "s", "environment": 1, "settings": {}}),
        );
        check(
            &Call::ForgetSession {
                session: "s".to_owned(),
            },
            &json!({"call": "forget_session", "session": "s"}),
        );
    }

    #[test]
    fn calls_on_a_session() {
        use SessionCall as Call;
        ask(Call::State, &json!({"call": "state"}));
        ask(
            Call::Submit { input: "hi".into() },
            &json!({"call": "submit", "input": "hi"}),
        );
        ask(
            Call::Steer {
                message: "no".into(),
            },
            &json!({"call": "steer", "message": "no"}),
        );
        ask(
            Call::FollowUp {
                message: "then".into(),
            },
            &json!({"call": "follow_up", "message": "then"}),
        );
        ask(
            Call::Configure {
                patch: json!({"max_turns": 1}),
            },
            &json!({"call": "configure", "patch": {"max_turns": 1}}),
        );
        ask(
            Call::TellAgent {
                agent: "a".to_owned(),
                tell: AgentCall::Steer("go".into()),
            },
            &json!({"call": "tell_agent", "agent": "a", "tell": {"steer": "go"}}),
        );
        ask(
            Call::TellAgent {
                agent: "a".to_owned(),
                tell: AgentCall::Close,
            },
            &json!({"call": "tell_agent", "agent": "a", "tell": "close"}),
        );
        ask(Call::Interrupt, &json!({"call": "interrupt"}));
        ask(
            Call::PauseAt { answers: Some(3) },
            &json!({"call": "pause_at", "answers": 3}),
        );
    }
}
