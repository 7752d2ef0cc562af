//! What a runner needs of a face of the core: a place to work in, and a session.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::effect::{Approval, HostToolResult};
use hermitcrab::event::SessionState;
use hermitcrab::llm::{Content, ToolDefinition};
use hermitcrab::session::{AgentCall, AgentStatus, SessionError, Turn};
use hermitcrab_host::{ProgramFn, ToolEnvironment};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::case::Tree;

/// A core together with a kind of environment.
#[async_trait]
pub trait Face: Send + Sync {
    /// A fresh working directory that holds `files`.
    async fn place(&self, files: &Tree) -> Result<Box<dyn Place>, String>;
}

/// One working directory and, once opened, the session in it.
#[async_trait]
pub trait Place: Send + Sync {
    /// Absolute path of the working directory.
    fn directory(&self) -> &str;

    /// Opens the one session. `config` is a `SessionConfig` as JSON; the host
    /// holds `key` under the name `anthropic` for `base_url`.
    async fn open(
        &self,
        config: Value,
        base_url: &str,
        key: &str,
        tools: Arc<dyn HostTools>,
    ) -> Result<Opened, SessionError>;

    /// All files of the working directory, now.
    async fn tree(&self) -> Result<Tree, String>;
}

/// An open session.
pub struct Opened {
    pub session: Arc<dyn Handle>,
    /// The events as JSON; ends after `SESSION_END`.
    pub events: UnboundedReceiver<Bytes>,
}

/// A call on a session.
#[derive(Clone, Debug)]
pub enum SessionCall {
    Submit(Content),
    Answer(Content),
    Steer(Content),
    FollowUp(Content),
    System(String),
    Interrupt,
    Compact,
    Abort,
    Close,
    Configure(Value),
    Register(ToolDefinition),
    Unregister(String),
    Agents,
    AgentHistory(String),
    TellAgent(String, AgentCall),
}

/// Makes calls on a session.
#[async_trait]
pub trait Handle: Send + Sync {
    /// Makes one call; when it returns, the call is done or rejected. What it
    /// gives is JSON, null for nothing.
    async fn call(&self, call: SessionCall) -> Result<Value, SessionError>;
}

/// Who calls a host tool, and the environment that the tool has.
#[derive(Clone, Copy, Default)]
pub struct Caller<'a> {
    pub agent_id: Option<&'a str>,
    /// None where the host is none of the host crate.
    pub environment: Option<&'a ToolEnvironment>,
}

/// An agent as cases see it.
pub fn agent_json(
    id: &str,
    parent: &str,
    task: &str,
    (state, status): (SessionState, AgentStatus),
    (depth, turns): (u32, u32),
) -> Value {
    json!({"id": id, "of_agent": parent.starts_with("agent-"), "task": task, "state": state,
           "status": status, "depth": depth, "turns": turns})
}

/// What cases see of a history: who speaks, and the text of those who are not tools.
pub fn history_json(turns: &[Turn]) -> Value {
    let short = |turn: &Turn| match turn {
        Turn::User { content, .. } => json!(["user", content.text()]),
        Turn::Steering { content, .. } => json!(["steering", content.text()]),
        Turn::Assistant { content, .. } => json!(["assistant", content]),
        Turn::ToolResults { .. } => json!(["tool_results"]),
        Turn::System { content, .. } => json!(["system", content]),
        Turn::Compaction { summary, .. } => json!(["compaction", summary]),
    };
    turns.iter().map(short).collect()
}

/// What the host does for the session. Dropping a future cancels.
#[async_trait]
pub trait HostTools: Send + Sync {
    async fn call(
        &self,
        name: &str,
        arguments: &str,
        progress: &UnboundedSender<String>,
        caller: Caller<'_>,
    ) -> HostToolResult;

    async fn approve(&self, tool_name: &str) -> Approval;

    /// Programs lent to the sandbox.
    fn programs(&self) -> BTreeMap<String, ProgramFn> {
        BTreeMap::new()
    }

    /// Whether anybody is there to ask.
    fn has_approver(&self) -> bool {
        true
    }
}

/// A host without tools of its own.
pub struct NoTools;

#[async_trait]
impl HostTools for NoTools {
    async fn call(
        &self,
        name: &str,
        _: &str,
        _: &UnboundedSender<String>,
        _: Caller<'_>,
    ) -> HostToolResult {
        let content = format!("there is no tool {name}");
        HostToolResult::error(content)
    }

    async fn approve(&self, _: &str) -> Approval {
        Approval::Allow
    }
}
