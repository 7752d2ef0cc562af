//! The four tools through which a model leads subagents (spec 7.2).

use std::rc::{Rc, Weak};

use async_trait::async_trait;
use futures_util::future::{Either, select};
use serde::Deserialize;
use serde_json::Value;
use std::pin::pin;

use super::{Agent, Task, spawn};
use crate::event::SessionState;
use crate::llm::ToolDefinition;
use crate::session::state::Shared;
use crate::tool::{CallContext, Declared, RegisterError, Tool, ToolError, ToolOutput};

/// Name, description and parameters of each, in order.
const DECLARATIONS: &str = include_str!("tools.json");

/// Gives `session` the tools to lead subagents; a name that is taken stays as
/// it is.
pub(in crate::session) fn register(session: &Rc<Shared>) -> Result<(), RegisterError> {
    let declarations: Vec<ToolDefinition> = serde_json::from_str(DECLARATIONS)
        .map_err(|error| RegisterError::Declarations(error.to_string()))?;
    let mut registry = session.registry.borrow_mut();
    for definition in declarations {
        let lead = match definition.name.as_str() {
            "spawn_agent" => Lead::Spawn,
            "send_input" => Lead::Send,
            "wait" => Lead::Wait,
            "close_agent" => Lead::Close,
            other => return Err(RegisterError::NoExecutor(other.to_owned())),
        };
        if registry.get(&definition.name).is_none() {
            registry.register(Rc::new(LeadTool {
                declared: definition.into(),
                lead,
                session: Rc::downgrade(session),
            }))?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Lead {
    Spawn,
    Send,
    Wait,
    Close,
}

/// One of the four, bound to the session whose subagents it leads.
struct LeadTool {
    declared: Declared,
    lead: Lead,
    session: Weak<Shared>,
}

#[derive(Deserialize)]
struct SpawnArguments {
    task: String,
    working_dir: Option<String>,
    model: Option<String>,
    max_turns: Option<u32>,
}

#[derive(Deserialize)]
struct SendArguments {
    agent_id: String,
    message: String,
}

#[derive(Deserialize)]
struct AgentArguments {
    agent_id: String,
}

#[async_trait(?Send)]
impl Tool for LeadTool {
    fn definition(&self) -> &ToolDefinition {
        self.declared.definition()
    }

    /// All share the output limit that spec 5.2 sets for subagents.
    fn kind(&self) -> &str {
        "spawn_agent"
    }

    fn is_inherited(&self) -> bool {
        false
    }

    async fn execute(&self, call: &CallContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let Some(session) = self.session.upgrade() else {
            return Err(ToolError::new("the session is gone"));
        };
        let text = match self.lead {
            Lead::Spawn => {
                let arguments: SpawnArguments = self.declared.parse(arguments)?;
                let task = Task {
                    text: arguments.task,
                    working_dir: arguments.working_dir,
                    model: arguments.model,
                    max_turns: arguments.max_turns,
                };
                spawn(&session, call, task).await?.report().head()
            }
            Lead::Send => {
                let arguments: SendArguments = self.declared.parse(arguments)?;
                send(&find(&session, &arguments.agent_id)?, arguments.message)?
            }
            Lead::Wait => {
                let arguments: AgentArguments = self.declared.parse(arguments)?;
                let agent = find(&session, &arguments.agent_id)?;
                at_rest(call, &agent).await?;
                agent.report().whole()
            }
            Lead::Close => {
                let arguments: AgentArguments = self.declared.parse(arguments)?;
                let agent = find(&session, &arguments.agent_id)?;
                agent.session.abort();
                agent.session.0.at_rest().await;
                agent.report().head()
            }
        };
        Ok(ToolOutput::bounded(text, call.max_captured_bytes))
    }
}

fn find(session: &Shared, id: &str) -> Result<Agent, ToolError> {
    session.agents.get(id).ok_or_else(|| {
        let all = session.agents.all();
        let known: Vec<&str> = all.iter().map(|agent| &*agent.id).collect();
        ToolError::new(match known.as_slice() {
            [] => format!("no subagent {id}; none has been started"),
            known => format!("no subagent {id}; there are {}", known.join(", ")),
        })
    })
}

/// To one that works as steering, to one that rests as its next input.
fn send(agent: &Agent, message: String) -> Result<String, ToolError> {
    let sent = match agent.session.state() {
        SessionState::Processing => agent
            .session
            .steer(message)
            .map(|_| format!("{} gets the message at its next step", agent.id)),
        SessionState::Closed => {
            return Err(ToolError::new(format!(
                "{} is closed; start another with spawn_agent",
                agent.id
            )));
        }
        SessionState::Idle | SessionState::AwaitingInput => agent
            .session
            .submit(message)
            .map(|()| format!("{} works on the message", agent.id)),
    };
    sent.map_err(|error| ToolError::new(error.to_string()))
}

/// Waits for the agent, or until the call is cancelled.
async fn at_rest(call: &CallContext, agent: &Agent) -> Result<(), ToolError> {
    let rest = pin!(agent.session.0.at_rest());
    match select(rest, pin!(call.scope.cancel.cancelled())).await {
        Either::Left(_) => Ok(()),
        Either::Right(_) => Err(ToolError::new("interrupted before it ended")),
    }
}
