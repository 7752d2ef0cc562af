//! The tools through which a model leads subagents (spec 7.2).

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use async_trait::async_trait;
use futures_util::future::{Either, select};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::pin::pin;

use super::{Task, spawn};
use crate::event::SessionState;
use crate::llm::ToolDefinition;
use crate::profile::Toolset;
use crate::session::error::SessionError;
use crate::session::state::{Agent, Shared};
use crate::text::{SortedMap, from_json};
use crate::tool::{
    CallContext, Declared, Invocation, RegisterError, Schema, Tool, ToolError, ToolOutput, compile,
};

/// The declaration of each, in order, with its executor.
const DECLARATIONS: &str = include_str!("tools.json");

/// By provider: what starts a subagent in the native toolset, where the
/// provider's own agent has a tool for it.
const NATIVE: &str = include_str!("tools.native.json");

#[derive(Deserialize)]
struct Declaration {
    executor: Lead,
    #[serde(flatten)]
    definition: ToolDefinition,
}

/// A declaration that has been read, to be bound to sessions.
struct Prepared {
    lead: Lead,
    declared: Declared,
    schema: Rc<Schema>,
}

type Kind = (&'static str, Toolset);

thread_local! {
    /// What has been read, by provider and toolset.
    static PREPARED: RefCell<SortedMap<Kind, Rc<[Prepared]>>> = const { RefCell::new(SortedMap::new()) };
}

/// Reads what [`register`] needs.
pub(in crate::session) fn prepare(
    provider: &'static str,
    toolset: Toolset,
) -> Result<(), RegisterError> {
    prepared(provider, toolset).map(drop)
}

/// The tools that lead subagents of a session on `provider`; read once.
fn prepared(provider: &'static str, toolset: Toolset) -> Result<Rc<[Prepared]>, RegisterError> {
    let kind = (provider, toolset);
    if let Some(known) = PREPARED.with_borrow(|all| all.get(&kind).cloned()) {
        return Ok(known);
    }
    let declarations = declarations(provider, toolset)
        .map_err(|error| RegisterError::Declarations(error.to_string()))?;
    let prepare = |declaration: Declaration| {
        Ok(Prepared {
            lead: declaration.executor,
            schema: Rc::new(compile(&declaration.definition)?),
            declared: declaration.definition.into(),
        })
    };
    let prepared: Rc<[_]> = declarations
        .into_iter()
        .map(prepare)
        .collect::<Result<_, RegisterError>>()?;
    PREPARED.with_borrow_mut(|all| all.insert(kind, prepared.clone()));
    Ok(prepared)
}

fn declarations(provider: &str, toolset: Toolset) -> Result<Vec<Declaration>, serde_json::Error> {
    let mut all: Vec<Declaration> = from_json(DECLARATIONS)?;
    if toolset == Toolset::Native {
        let mut native: Map<String, Value> = from_json(NATIVE)?;
        let spawn = all.iter_mut().find(|one| one.executor == Lead::Spawn);
        if let (Some(spawn), Some(native)) = (spawn, native.remove(provider)) {
            *spawn = serde_json::from_value(native)?;
        }
    }
    Ok(all)
}

/// Gives `session` the tools to lead subagents; a name that is taken stays as
/// it is.
pub(in crate::session) fn register(session: &Rc<Shared>) -> Result<(), RegisterError> {
    let toolset = session.config.borrow().toolset;
    let mut registry = session.registry.borrow_mut();
    for prepared in prepared(session.profile.wire, toolset)?.iter() {
        if registry.get(&prepared.declared.definition().name).is_none() {
            let tool = LeadTool {
                declared: prepared.declared.clone(),
                lead: prepared.lead,
                session: Rc::downgrade(session),
            };
            registry.put(Rc::new(tool), prepared.schema.clone());
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Lead {
    Spawn,
    /// `Spawn`, then `Wait`.
    Run,
    Send,
    Wait,
    Close,
}

/// One of them, bound to the session whose subagents it leads.
struct LeadTool {
    declared: Declared,
    lead: Lead,
    session: Weak<Shared>,
}

#[derive(Deserialize)]
struct SpawnArguments {
    #[serde(alias = "prompt")]
    task: String,
    working_dir: Option<String>,
    model: Option<String>,
    max_turns: Option<u32>,
    output_schema: Option<Value>,
    /// Of `Run`: do not wait.
    #[serde(default)]
    run_in_background: bool,
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

impl Tool for LeadTool {
    fn definition(&self) -> &Rc<ToolDefinition> {
        self.declared.definition()
    }

    /// All share the output limit that spec 5.2 sets for subagents.
    fn kind(&self) -> &str {
        "spawn_agent"
    }

    fn is_inherited(&self) -> bool {
        false
    }

    fn read(&self, arguments: Value) -> Result<Box<dyn Invocation + '_>, ToolError> {
        let Some(session) = self.session.upgrade() else {
            return Err(ToolError::new("the session is gone"));
        };
        let agent_id = |arguments| {
            let read = self.declared.parse::<AgentArguments>(arguments);
            read.map(|arguments| arguments.agent_id)
        };
        let order = match self.lead {
            Lead::Spawn | Lead::Run => {
                let arguments: SpawnArguments = self.declared.parse(arguments)?;
                Order::Spawn {
                    waits: self.lead == Lead::Run && !arguments.run_in_background,
                    task: Task {
                        text: arguments.task,
                        working_dir: arguments.working_dir,
                        model: arguments.model,
                        max_turns: arguments.max_turns,
                        output_schema: arguments.output_schema,
                    },
                }
            }
            Lead::Send => Order::Send(self.declared.parse(arguments)?),
            Lead::Wait => Order::Wait(agent_id(arguments)?),
            Lead::Close => Order::Close(agent_id(arguments)?),
        };
        Ok(Box::new(Call { session, order }))
    }
}

/// What a call asks for.
enum Order {
    Spawn { task: Task, waits: bool },
    Send(SendArguments),
    Wait(String),
    Close(String),
}

struct Call {
    session: Rc<Shared>,
    order: Order,
}

#[async_trait(?Send)]
impl Invocation for Call {
    async fn execute(self: Box<Self>, call: &CallContext) -> Result<ToolOutput, ToolError> {
        let Self { session, order } = *self;
        let text = match order {
            Order::Spawn { task, waits } => {
                let agent = spawn(&session, call, task).await?;
                if waits {
                    at_rest(call, &agent).await?;
                    agent.report().whole()
                } else {
                    agent.report().head()
                }
            }
            Order::Send(SendArguments { agent_id, message }) => {
                send(&find(&session, &agent_id)?, message)?
            }
            Order::Wait(agent_id) => {
                let agent = find(&session, &agent_id)?;
                at_rest(call, &agent).await?;
                agent.report().whole()
            }
            Order::Close(agent_id) => {
                let agent = find(&session, &agent_id)?;
                agent.session.abort();
                agent.session.0.control.at_rest().await;
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

/// What the model reads of a message that it sent.
fn send(agent: &Agent, message: String) -> Result<String, ToolError> {
    let sent = match agent.session.state() {
        SessionState::Processing => "gets the message at its next step",
        _ => "works on the message",
    };
    let refused = |error: SessionError| ToolError::new(error.to_string());
    agent.steer(message.into()).map_err(refused)?;
    Ok(format!("{} {sent}", agent.id))
}

/// Waits for the agent, or until the call is cancelled.
async fn at_rest(call: &CallContext, agent: &Agent) -> Result<(), ToolError> {
    let rest = pin!(agent.session.0.control.at_rest());
    match select(rest, pin!(call.scope.cancel.cancelled())).await {
        Either::Left(_) => Ok(()),
        Either::Right(_) => Err(ToolError::stopped("before it ended")),
    }
}
