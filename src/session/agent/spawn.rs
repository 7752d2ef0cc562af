//! Starting a subagent: its workspace, its model, its tools and its limits.

use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::try_join3;
use serde_json::Value;

use crate::environment::{EnvironmentErrorKind, absolute_path, is_within};
use crate::llm::model_info;
use crate::profile::Profile;
use crate::session::config::{AwaitingInput, SessionConfig};
use crate::session::open;
use crate::session::state::{Agent, Identity, Parts, Shared};
use crate::session::workspace::Workspace;
use crate::tool::{CallContext, RegisterError, Registry, Schema, ToolError};

/// Turn limit where the call sets none (spec 7.2).
const DEFAULT_MAX_TURNS: u32 = 50;

/// What `spawn_agent` was asked for.
pub(in crate::session) struct Task {
    pub(in crate::session) text: String,
    pub(in crate::session) working_dir: Option<String>,
    pub(in crate::session) model: Option<String>,
    pub(in crate::session) max_turns: Option<u32>,
    /// JSON Schema of its final answer; absent: the answer is text.
    pub(in crate::session) output_schema: Option<Value>,
}

/// Starts a subagent of `parent` on `task`.
pub(in crate::session) async fn spawn(
    parent: &Rc<Shared>,
    call: &CallContext,
    task: Task,
) -> Result<Agent, ToolError> {
    if task.text.trim().is_empty() {
        return Err(ToolError::new(
            "task is empty; say what the subagent is to do",
        ));
    }
    if let Some(schema) = &task.output_schema {
        let refused = |error| ToolError::new(format!("output_schema: {error}"));
        Schema::compile(schema).map_err(refused)?;
    }
    let workspace = workspace(parent, call, task.working_dir.as_deref()).await?;
    let limit = parent.config.borrow().max_subagents;
    let working = parent.agents.working();
    if working >= usize::try_from(limit).unwrap_or(usize::MAX) {
        return Err(ToolError::new(format!(
            "{working} subagents are at work, the limit is {limit}; wait for one of them or close \
             it first"
        )));
    }
    let (profile, mut config) = settings(parent, &task)?;
    let (from, to) = (parent.workspace.info(), workspace.info());
    config.approval = config
        .approval
        .moved(&from.working_directory, &to.working_directory);
    let registry = tools(parent, &profile, &config)?;
    let emitter = parent.emitter.child();
    let id = emitter.agent_id().cloned().unwrap_or_default();
    let session = open::start(Parts {
        identity: Identity {
            id: parent.identity.id.clone(),
            agent: Some(id.clone()),
            depth: parent.identity.depth + 1,
            cache_key: parent.identity.cache_key.clone(),
        },
        profile,
        workspace,
        port: parent.port.clone(),
        random: parent.random.clone(),
        spawner: parent.spawner.clone(),
        emitter,
        meter: parent.meter.child(),
        config,
        registry,
        host_tools: Vec::new(),
    })
    .map_err(|error| ToolError::new(error.to_string()))?;
    let text: Rc<str> = task.text.as_str().into();
    session
        .submit(task.text)
        .map_err(|error| ToolError::new(error.to_string()))?;
    let agent = Agent {
        id,
        task: text,
        session,
    };
    parent.agents.add(agent.clone());
    Ok(agent)
}

/// The parent's workspace, or a directory below it.
async fn workspace(
    parent: &Shared,
    call: &CallContext,
    directory: Option<&str>,
) -> Result<Workspace, ToolError> {
    let base = &parent.workspace.info().working_directory;
    let Some(directory) = directory.filter(|directory| !directory.is_empty()) else {
        return Ok(parent.workspace.clone());
    };
    let absolute = absolute_path(base, directory);
    if !is_within(&absolute, base) {
        return Err(ToolError::new(format!(
            "working_dir {directory} is not below the working directory {base}"
        )));
    }
    let environment = &call.environment;
    let found = try_join3(
        environment.stat(&absolute),
        environment.real_path(&absolute),
        environment.real_path(base),
    );
    let problem = match found.await {
        Ok((_, real, root)) if !is_within(&real, &root) => {
            format!("leads out of the working directory {base}, to {real}")
        }
        Ok((metadata, ..)) if metadata.is_dir => return Ok(parent.workspace.within(absolute)),
        Ok(_) => "is not a directory".to_owned(),
        Err(error) if error.kind == EnvironmentErrorKind::NotFound => "does not exist".to_owned(),
        Err(error) => format!("cannot be used: {error}"),
    };
    Err(ToolError::new(format!("working_dir {directory} {problem}")))
}

/// The parent's settings with what the call changes.
fn settings(parent: &Shared, task: &Task) -> Result<(Arc<Profile>, SessionConfig), ToolError> {
    let mut config = SessionConfig {
        max_turns: task.max_turns.unwrap_or(DEFAULT_MAX_TURNS),
        // Nobody could answer.
        awaiting_input: AwaitingInput::Never,
        output_schema: task.output_schema.clone(),
        ..parent.config.borrow().clone()
    };
    let Some(model) = task.model.as_deref().filter(|model| !model.is_empty()) else {
        return Ok((parent.profile.clone(), config));
    };
    let (provider, model) = provider_of(parent, model);
    config.model = model;
    config.context_window = None;
    config.max_tokens = None;
    if provider == parent.profile.id {
        return Ok((parent.profile.clone(), config));
    }
    let profile = config
        .profile_of(&provider)
        .map_err(|error| ToolError::new(error.message))?;
    // `endpoints` says where the other one is; its own subagents may come back.
    let own = config.endpoints.entry(config.provider).or_default();
    own.base_url = config.base_url.take().or(own.base_url.take());
    own.credential = config.credential.take().or(own.credential.take());
    config.provider = provider;
    config.base_instructions = None;
    config.tool_declarations = None;
    Ok((profile, config))
}

/// `openai:gpt-x` names its provider, a model of the catalogue has one, and
/// any other is the parent's.
fn provider_of(parent: &Shared, model: &str) -> (String, String) {
    if let Some((provider, rest)) = model.split_once(':')
        && parent.config.borrow().profile_of(provider).is_ok()
    {
        return (provider.to_owned(), rest.to_owned());
    }
    let known = model_info(model).filter(|known| Profile::of(&known.provider).is_some());
    let provider = known.map_or(parent.profile.id.as_str(), |known| known.provider.as_str());
    (provider.to_owned(), model.to_owned())
}

/// Kinds of tool that change files: who has lost one of them has lost all.
const WRITERS: [&str; 3] = ["write_file", "edit_file", "apply_patch"];

/// The tools that the parent has now. On another provider they are that
/// provider's own, without those whose kind was taken from the parent.
fn tools(
    parent: &Shared,
    profile: &Profile,
    config: &SessionConfig,
) -> Result<Registry, ToolError> {
    let own = parent.registry.borrow();
    let mut registry = own.inherited();
    if profile.id == parent.profile.id {
        return Ok(registry);
    }
    let invalid = |error: RegisterError| ToolError::new(error.to_string());
    let had = parent.config.borrow().registry(&parent.profile);
    let had = had.map_err(invalid)?;
    let mut lost: Vec<&str> = had.kinds().filter(|kind| !own.has_kind(kind)).collect();
    if lost.iter().any(|kind| WRITERS.contains(kind)) {
        lost.extend(WRITERS);
    }
    let mut tools = config.registry(profile).map_err(invalid)?;
    tools.retain(|tool| !lost.contains(&tool.kind()));
    // What the host has added comes along; the parent provider's own does not.
    registry.retain(|tool| !had.has_kind(tool.kind()));
    for tool in registry.tools() {
        tools.register(tool).map_err(invalid)?;
    }
    Ok(tools)
}
