//! Plays a case on a face and compares what came of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt as _;
use hermitcrab::effect::{Approval, HostToolResult};
use hermitcrab::environment::{EnvironmentErrorKind, ExecRequest};
use hermitcrab::llm::{Content, ToolDefinition};
use hermitcrab::script::ScriptedModel;
use hermitcrab_host::serve_model::ServeModel;
use hermitcrab_host::{AgentCall, HostError, ProgramFn};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::case::{Action, Call, Case, Decision, Matcher, Returned, Tool, Tree, Use};
use super::face::{Caller, Face, Handle, HostTools, Opened, SessionCall};
use super::normalise::{self, Circumstances};

/// No case takes longer, on however slow a machine.
const HANG: Duration = Duration::from_secs(60);

/// What came of a case.
pub struct Played {
    /// The events as they came.
    pub events: Vec<Value>,
    /// The normalised events and the rejected calls.
    pub transcript: Vec<Value>,
    /// Bodies of the model requests.
    pub requests: Vec<Bytes>,
    /// The files afterwards.
    pub tree: Tree,
    pub directory: String,
    pub base_url: String,
}

/// Plays `case` on `face`.
pub async fn play(case: &Case, face: &dyn Face) -> Result<Played, String> {
    let place = face.place(&case.tree()).await?;
    let directory = place.directory().to_owned();
    let model = ScriptedModel::from_json(&case.script_in(&directory))
        .map_err(|error| format!("the script: {error}"))?;
    let model = ServeModel::start(model, 0).map_err(|error| format!("the model: {error}"))?;
    let base_url = model.url();
    let stage = Arc::new(Stage {
        case: case.clone(),
        model,
        state: Mutex::default(),
        session: OnceLock::new(),
        count: watch::channel(0).0,
    });
    let opened = place
        .open(
            config(case, &base_url)?,
            &base_url,
            "sk-test",
            stage.clone(),
        )
        .await
        .map_err(|error| format!("open: {error}"))?;
    let Opened {
        session,
        mut events,
    } = opened;
    stage.session.set(session).ok().expect("opened once");
    let reader = async {
        while let Some(json) = events.recv().await {
            let event: Value = serde_json::from_slice(&json)
                .map_err(|error| format!("an event that is not JSON: {error}: {json:?}"))?;
            stage.arrived(event).await;
        }
        Ok::<(), String>(())
    };
    let acts = async {
        for action in &case.actions {
            stage.act(action).await;
        }
        if !stage.seen(&kind("SESSION_END"), 1) {
            stage
                .act(&Action {
                    call: Call::Close,
                    wait: false,
                })
                .await;
        }
        stage.wait(&kind("SESSION_END"), 1).await;
        Ok::<(), String>(())
    };
    let both = async { tokio::try_join!(reader, acts) };
    let outcome = tokio::time::timeout(HANG, both).await;
    let state = stage.lock().clone();
    let show = || {
        let lines = state.events.iter().map(|event| format!("  {event}\n"));
        lines.collect::<String>()
    };
    match outcome {
        Err(_) => return Err(format!("hangs after these events:\n{}", show())),
        Ok(Err(why)) => return Err(format!("{why}, after these events:\n{}", show())),
        Ok(Ok(_)) => {}
    }
    normalise::check(&state.events).map_err(|why| format!("{why}\n{}", show()))?;
    let around = Circumstances {
        directory: &directory,
        base_url: &base_url,
        breaks: case.breaks,
    };
    let mut transcript = normalise::transcript(&state.events, &around);
    transcript.extend(state.rejected);
    let requests = stage.model.requests().into_iter();
    Ok(Played {
        events: state.events,
        transcript,
        requests: requests.map(|request| request.body).collect(),
        tree: place.tree().await?,
        directory,
        base_url,
    })
}

/// Compares what came of a case with what it expects, the transcript apart.
pub fn compare(case: &Case, played: &Played) -> Result<(), String> {
    let around = Circumstances {
        directory: &played.directory,
        base_url: &played.base_url,
        breaks: case.breaks,
    };
    let mut wrong = Vec::new();
    let expected = case.tree_after();
    for path in expected.keys().chain(played.tree.keys()) {
        let (want, have) = (expected.get(path), played.tree.get(path));
        let shown = |bytes: Option<&Bytes>| match bytes {
            Some(bytes) => format!("{:.200?}", String::from_utf8_lossy(bytes)),
            None => "absent".to_owned(),
        };
        if want != have {
            wrong.push(format!(
                "{path}: should be {}, is {}",
                shown(want),
                shown(have)
            ));
        }
    }
    wrong.dedup();
    let bodies: Vec<Value> = played
        .requests
        .iter()
        .map(|body| serde_json::from_slice(body).unwrap_or_default())
        .collect();
    if let Some(count) = case.expect.request_count
        && count != bodies.len()
    {
        wrong.push(format!(
            "the model should get {count} requests, got {}",
            bodies.len()
        ));
    }
    for assertion in &case.expect.requests {
        wrong.extend(assertion.check(&bodies, &around).err());
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

/// The configuration that the session gets.
fn config(case: &Case, base_url: &str) -> Result<Value, String> {
    let mut config = Map::new();
    config.insert("retry".to_owned(), json!({"jitter": false}));
    config.extend(case.config.clone());
    config.insert("base_url".to_owned(), base_url.into());
    config.insert("credential".to_owned(), "anthropic".into());
    let tools: Vec<_> = case.tools.iter().map(definition).collect();
    let tools = serde_json::to_value(tools).map_err(|error| error.to_string())?;
    config.insert("tools".to_owned(), tools);
    Ok(Value::Object(config))
}

fn definition(tool: &Tool) -> ToolDefinition {
    ToolDefinition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
        custom: None,
        strict: None,
        unchecked: false,
    }
}

fn kind(kind: &str) -> Matcher {
    serde_json::from_value(json!({"kind": kind})).expect("a matcher")
}

/// Everything that a play shares.
struct Stage {
    case: Case,
    model: ServeModel,
    state: Mutex<State>,
    session: OnceLock<Arc<dyn Handle>>,
    /// How many events have arrived.
    count: watch::Sender<usize>,
}

#[derive(Clone, Default)]
struct State {
    events: Vec<Value>,
    rejected: Vec<Value>,
    registered: BTreeMap<String, Tool>,
    calls: BTreeMap<String, usize>,
    approvals: BTreeMap<String, usize>,
}

impl Stage {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self, matcher: &Matcher, nth: usize) -> bool {
        matcher.nth_in(nth, &self.lock().events)
    }

    async fn wait(&self, matcher: &Matcher, nth: usize) {
        self.wait_since(0, |events| matcher.nth_in(nth, events))
            .await;
    }

    /// Waits until the events from `start` on are as wanted.
    async fn wait_since(&self, start: usize, wanted: impl Fn(&[Value]) -> bool) {
        let mut count = self.count.subscribe();
        loop {
            count.borrow_and_update();
            if wanted(&self.lock().events[start..]) {
                return;
            }
            // The sender lives as long as `self`.
            let _ = count.changed().await;
        }
    }

    async fn arrived(&self, event: Value) {
        let count = {
            let mut state = self.lock();
            state.events.push(event.clone());
            state.events.len()
        };
        for rule in &self.case.when {
            let is_it = rule.event.matches(&event)
                && !rule
                    .event
                    .nth_in(rule.nth, &self.lock().events[..count - 1])
                && rule.event.nth_in(rule.nth, &self.lock().events[..count]);
            if is_it {
                for action in &rule.r#do {
                    self.act(&Action {
                        wait: false,
                        ..action.clone()
                    })
                    .await;
                }
            }
        }
        self.count.send_replace(count);
    }

    async fn act(&self, action: &Action) {
        let start = self.lock().events.len();
        let call = match action.call.clone() {
            Call::Submit(said) => SessionCall::Submit(said.into()),
            Call::Answer(said) => SessionCall::Answer(said.into()),
            Call::Steer(said) => SessionCall::Steer(said.into()),
            Call::FollowUp(said) => SessionCall::FollowUp(said.into()),
            Call::System(text) => SessionCall::System(text),
            Call::Interrupt => SessionCall::Interrupt,
            Call::Compact => SessionCall::Compact,
            Call::Abort => SessionCall::Abort,
            Call::Close => SessionCall::Close,
            Call::Configure(patch) => SessionCall::Configure(patch),
            Call::Unregister(name) => SessionCall::Unregister(name),
            Call::Register(tool) => {
                let definition = definition(&tool);
                let mut state = self.lock();
                state.calls.remove(&tool.name);
                state.registered.insert(tool.name.clone(), *tool);
                SessionCall::Register(definition)
            }
            Call::Agents => SessionCall::Agents,
            Call::AgentHistory(agent) => SessionCall::AgentHistory(agent),
            Call::SteerAgent(agent, said) => {
                SessionCall::TellAgent(agent, AgentCall::Steer(said.into()))
            }
            Call::InterruptAgent(agent) => SessionCall::TellAgent(agent, AgentCall::Interrupt),
            Call::CloseAgent(agent) => SessionCall::TellAgent(agent, AgentCall::Close),
            Call::Release(name) => {
                self.model.release(&name);
                return;
            }
            Call::Held(name) => {
                self.model.held(&name).await;
                return;
            }
            Call::Until(matcher, nth) => {
                self.wait(&matcher, nth).await;
                return;
            }
        };
        let session = self.session.get().expect("the session is open");
        let result = session.call(call).await;
        match result {
            Ok(_) if action.wait => self.wait_since(start, idle).await,
            Ok(Value::Null) => {}
            Ok(answer) => {
                let mut line = Map::new();
                line.insert(action.call.name().to_owned(), answer);
                self.lock().rejected.push(line.into());
            }
            Err(error) => {
                let line = json!({"call_error": {"call": action.call.name(), "kind": error.kind}});
                self.lock().rejected.push(line);
            }
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        let registered = self.lock().registered.get(name).cloned();
        registered.or_else(|| {
            self.case
                .tools
                .iter()
                .find(|tool| tool.name == name)
                .cloned()
        })
    }
}

/// What came of using the environment, in a line.
async fn used(one: &Use, caller: Caller<'_>) -> String {
    let environment = caller.environment.expect("a host with `needs: host`");
    let result = match one {
        Use::Place(_) => {
            let agent = caller.agent_id.unwrap_or("none");
            Ok(format!("{agent} in {}", environment.working_directory()))
        }
        Use::Exec(command) => {
            let request = ExecRequest {
                command: command.clone(),
                ..ExecRequest::default()
            };
            environment.exec(request).await.map(|output| {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                format!("exit {}: {text}", output.status.exit_code)
            })
        }
        Use::Read(path) => {
            let read = environment.read(path).await;
            read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        }
        Use::Write(path, text) => {
            let written = environment.write(path, text.clone()).await;
            written.map(|()| "written".to_owned())
        }
        Use::List(path) => environment.list(path, 1).await.map(|entries| {
            let paths: Vec<_> = entries.into_iter().map(|entry| entry.path).collect();
            paths.join(" ")
        }),
    };
    result.unwrap_or_else(|error| match error {
        // Environments say it in words of their own.
        HostError::Environment(error) if error.kind == EnvironmentErrorKind::NotFound => {
            "not found".to_owned()
        }
        HostError::Environment(error) => error.message,
        other => other.to_string(),
    })
}

/// Whether the session has left `PROCESSING`.
fn idle(events: &[Value]) -> bool {
    let mut own = events
        .iter()
        .filter(|event| event.get("agent_id").is_none());
    own.any(|event| {
        event["kind"] == "SESSION_END"
            || (event["kind"] == "STATE_CHANGED" && event["data"]["from"] == "PROCESSING")
    })
}

#[async_trait]
impl HostTools for Stage {
    async fn call(
        &self,
        name: &str,
        arguments: &str,
        progress: &UnboundedSender<String>,
        caller: Caller<'_>,
    ) -> HostToolResult {
        let Some(tool) = self.tool(name) else {
            let content = format!("the case has no tool {name}");
            return HostToolResult::error(content);
        };
        let behaviour = {
            let mut state = self.lock();
            let count = state.calls.entry(name.to_owned()).or_default();
            *count += 1;
            tool.behaviour.nth(*count - 1).clone()
        };
        for text in behaviour.progress {
            let _ = progress.send(text);
        }
        for action in &behaviour.r#do {
            self.act(&Action {
                wait: false,
                ..action.clone()
            })
            .await;
        }
        if let Some(matcher) = &behaviour.wait_for {
            self.wait(matcher, 1).await;
        }
        if let Some(uses) = &behaviour.uses {
            let mut lines = Vec::new();
            for one in uses {
                lines.push(used(one, caller).await);
            }
            return HostToolResult::ok(lines.join("\n"));
        }
        let content = match (behaviour.echo, &behaviour.returns, &behaviour.fails) {
            (true, None, None) => arguments.into(),
            (false, Some(Returned::Text(text)), None) | (false, None, Some(text)) => text.into(),
            (false, Some(Returned::Content(items)), None) => Content::from_mcp(items),
            _ => panic!("{name}: exactly one of returns, fails and echo"),
        };
        HostToolResult {
            content,
            is_error: behaviour.fails.is_some(),
        }
    }

    fn programs(&self) -> BTreeMap<String, ProgramFn> {
        let programs = self.case.programs.iter();
        programs
            .map(|(name, program)| {
                let program = program.clone();
                let run: ProgramFn =
                    Arc::new(move |call| std::future::ready(program.run(&call.request)).boxed());
                (name.clone(), run)
            })
            .collect()
    }

    fn has_approver(&self) -> bool {
        self.case.approver
    }

    async fn approve(&self, tool_name: &str) -> Approval {
        let decision = self.case.approvals.get(tool_name).and_then(|decisions| {
            let mut state = self.lock();
            let count = state.approvals.entry(tool_name.to_owned()).or_default();
            *count += 1;
            decisions.get(*count - 1).or(decisions.last()).cloned()
        });
        match decision {
            None | Some(Decision::Allow) => Approval::Allow,
            Some(Decision::Deny { deny }) => Approval::Deny { reason: deny },
            Some(Decision::Wait) => std::future::pending().await,
        }
    }
}
