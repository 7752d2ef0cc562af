//! Subagents (spec 7): sessions that a session's model starts for a part of
//! its task. They run beside it in the same instance, on the same files, with
//! separate histories and limits.
//!
//! A subagent has no rights that its parent lacks: it gets the parent's tools,
//! approvals and limits, and it ends when the parent does.

mod lead;
mod spawn;
mod tools;

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

pub use lead::{AgentCall, AgentInfo};
pub(super) use spawn::{Task, spawn};
pub(super) use tools::{prepare, register};

use super::state::{Agent, Agents, Shared};
use crate::environment::CancelReason;
use crate::event::{EndReason, SessionState};

impl Agents {
    pub(super) fn add(&self, agent: Agent) {
        self.0.borrow_mut().push(agent);
    }

    pub(super) fn get(&self, id: &str) -> Option<Agent> {
        let agents = self.0.borrow();
        agents.iter().find(|agent| &*agent.id == id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Agent> {
        self.0.borrow().clone()
    }

    /// Those that work on something.
    pub(super) fn working(&self) -> usize {
        let agents = self.0.borrow();
        agents.iter().filter(|agent| agent.is_working()).count()
    }

    /// Ends what they are doing. Stopping the parent stops its helpers: whoever
    /// presses stop does not expect work to go on unseen.
    pub(super) fn interrupt(&self, why: CancelReason) {
        for agent in self.all() {
            if agent.is_working() {
                agent.session.0.interrupt_for(why);
            }
        }
    }

    /// Ends them for good.
    pub(super) fn abort(&self) {
        for agent in self.all() {
            agent.session.abort();
        }
    }

    /// Resolves when none works any more.
    pub(super) async fn at_rest(&self) {
        for agent in self.all() {
            agent.session.0.control.at_rest().await;
        }
    }

    /// Closes them and resolves when their last events are out.
    pub(super) async fn close(&self) {
        self.abort();
        self.at_rest().await;
    }
}

impl Agent {
    fn is_working(&self) -> bool {
        !self.session.0.control.is_at_rest() && !self.is_closed()
    }

    /// Whether it was closed. One that worked then may never come to rest.
    fn is_closed(&self) -> bool {
        self.session.state() == SessionState::Closed
    }

    /// What became of its work so far (spec 7.3).
    pub(super) fn report(&self) -> Report {
        let session = &self.session.0;
        let history = session.transcript.history.borrow();
        let outcome = session.transcript.outcome.borrow();
        let status = if self.is_working() {
            Status::Running
        } else if session.control.is_at_rest()
            && outcome.reason == Some(EndReason::Completed)
            && outcome.doubt.is_none()
        {
            Status::Completed
        } else {
            Status::Failed
        };
        let value = outcome.output.as_ref().map(Value::to_string);
        let text = || history.last_answer().unwrap_or_default().to_owned();
        Report {
            agent_id: self.id.clone(),
            status,
            closed: self.is_closed(),
            trouble: trouble(session, status),
            output: value.unwrap_or_else(text),
            turns_used: history.assistant_turns(),
        }
    }
}

/// Why the work is not done, in words.
fn trouble(session: &Shared, status: Status) -> Option<String> {
    let outcome = session.transcript.outcome.borrow();
    let limit = |name: &str, value: u64| format!("it was stopped by its limit: {name} {value}");
    let config = session.config.borrow();
    match (status, outcome.reason) {
        (Status::Running | Status::Completed, _) => None,
        _ if !session.control.is_at_rest() => {
            Some("it was closed before it had finished".to_owned())
        }
        (_, Some(EndReason::TurnLimit)) => Some(limit("max_turns", config.max_turns.into())),
        (_, Some(EndReason::RoundLimit)) => Some(limit(
            "max_tool_rounds_per_input",
            config.max_tool_rounds_per_input.into(),
        )),
        (_, Some(EndReason::TimeLimit)) => Some(limit("max_wall_ms", config.max_wall_ms)),
        (_, Some(EndReason::CostLimit)) => {
            let most = config.max_cost_usd.unwrap_or_default();
            Some(format!("it was stopped by its limit: max_cost_usd {most}"))
        }
        (_, Some(EndReason::Interrupted)) => Some("it was interrupted".to_owned()),
        (_, Some(EndReason::Aborted)) => Some("it was closed before it had finished".to_owned()),
        (_, Some(EndReason::Completed)) => outcome.doubt.map(str::to_owned),
        _ => Some(match &outcome.error {
            Some(error) => error.clone(),
            None => "it was closed before it had begun".to_owned(),
        }),
    }
}

/// Status of a subagent (spec 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It works on something.
    Running,
    /// It has done its last task.
    Completed,
    /// Its last task ended early.
    Failed,
}

/// What the parent's model reads about a subagent (spec 7.3 `SubAgentResult`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) agent_id: Rc<str>,
    pub(super) status: Status,
    pub(super) closed: bool,
    pub(super) trouble: Option<String>,
    pub(super) output: String,
    pub(super) turns_used: u32,
}

impl Report {
    /// Id and status alone.
    pub(super) fn head(&self) -> String {
        let status = match self.status {
            Status::Running => "running",
            Status::Completed => "completed",
            Status::Failed => "failed",
        };
        let closed = if self.closed { ", closed" } else { "" };
        format!("agent_id: {}\nstatus: {status}{closed}", self.agent_id)
    }

    /// Everything, for `wait`: fields, an empty line, the answer.
    pub(super) fn whole(&self) -> String {
        let success = self.status == Status::Completed;
        let mut text = format!(
            "{}\nsuccess: {success}\nturns_used: {}",
            self.head(),
            self.turns_used
        );
        if let Some(trouble) = &self.trouble {
            text.push_str("\nerror: ");
            text.push_str(trouble);
        }
        text.push_str("\n\n");
        text.push_str(match self.output.as_str() {
            "" => "(no answer)",
            output => output,
        });
        text
    }
}
