//! What hosts see of subagents and tell them: the same ones that a session's
//! model leads, at every depth.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::Status;
use crate::event::SessionState;
use crate::llm::Content;
use crate::session::error::{SessionError, SessionErrorKind};
use crate::session::state::{Agent, Agents};
use crate::session::turn::Turn;

/// A subagent as hosts see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentInfo {
    /// Its id, the `agent_id` of its events.
    pub id: String,
    /// Session or subagent that started it.
    pub parent_id: String,
    /// What it was started for.
    pub task: String,
    /// What it is doing.
    pub state: SessionState,
    /// What has become of its work so far.
    pub status: Status,
    /// 1 for a subagent of the session, 2 for one of that, and so on.
    pub depth: u32,
    /// Answers of its model so far.
    pub turns: u32,
}

/// What a host tells a subagent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCall {
    /// A message: for the next gap between tool rounds of one that works, the
    /// next input of one that rests.
    Steer(Content),
    /// Ends what it is doing; it takes new messages.
    Interrupt,
    /// Ends it for good. One that has ended stays as it is.
    Close,
}

impl Agents {
    /// All of them with theirs, each before its own, in the order of their start.
    pub(in crate::session) fn infos(&self, parent: &Rc<str>) -> Vec<AgentInfo> {
        let mut infos = Vec::new();
        for agent in self.all() {
            let session = &agent.session.0;
            let report = agent.report();
            infos.push(AgentInfo {
                id: agent.id.to_string(),
                parent_id: parent.to_string(),
                task: agent.task.to_string(),
                state: agent.session.state(),
                status: report.status,
                depth: session.identity.depth,
                turns: report.turns_used,
            });
            infos.extend(session.agents.infos(&agent.id));
        }
        infos
    }

    /// The turns of a subagent so far, also of one that is closed.
    pub(in crate::session) fn history(&self, id: &str) -> Result<Vec<Turn>, SessionError> {
        Ok(self.named(id)?.session.history())
    }

    /// Tells a subagent something.
    pub(in crate::session) fn tell(&self, id: &str, call: AgentCall) -> Result<(), SessionError> {
        let agent = self.named(id)?;
        match call {
            AgentCall::Steer(message) => agent.steer(message),
            AgentCall::Interrupt => agent.session.interrupt(),
            AgentCall::Close => {
                agent.session.abort();
                Ok(())
            }
        }
    }

    fn named(&self, id: &str) -> Result<Agent, SessionError> {
        self.find(id).ok_or_else(|| {
            let infos = self.infos(&"".into());
            let known: Vec<&str> = infos.iter().map(|info| &*info.id).collect();
            let message = match known.as_slice() {
                [] => format!("no subagent {id}; none has been started"),
                known => format!("no subagent {id}; there are {}", known.join(", ")),
            };
            SessionError::new(SessionErrorKind::NotFound, message)
        })
    }

    /// The one with this id, at any depth.
    fn find(&self, id: &str) -> Option<Agent> {
        let found = self.get(id);
        let below = || {
            let all = self.all();
            all.iter().find_map(|agent| agent.session.0.agents.find(id))
        };
        found.or_else(below)
    }
}

impl Agent {
    /// To one that works as steering, to one that rests as its next input.
    pub(super) fn steer(&self, message: Content) -> Result<(), SessionError> {
        match self.session.state() {
            SessionState::Processing => self.session.steer(message).map(drop),
            SessionState::Idle | SessionState::AwaitingInput => self.session.submit(message),
            SessionState::Closed => {
                let message = format!("{} is closed; start another one", self.id);
                Err(SessionError::new(SessionErrorKind::Closed, message))
            }
        }
    }
}
