//! What happened in a trial, collected from its events, and written as a trajectory
//! in ATIF-v1.7 (Harbor's Agent Trajectory Interchange Format). Models' time and
//! tools' time are apart; subagents are trajectories within that of their parent. The
//! format is read in [`crate::trajectory`].

use std::collections::HashMap;
use std::time::Instant;

use hermitcrab::event::EventKind;
use hermitcrab::llm::Sampled;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::cut;
use crate::event::Event;

/// Characters of one output that a trajectory holds; the log has all.
const OUTPUT: usize = 1 << 20;

/// The trajectory of a trial as it grows.
pub(super) struct Trajectory {
    began: Instant,
    session: String,
    /// That of the session first; each subagent behind the one that started it.
    agents: Vec<Agent>,
    by_id: HashMap<String, usize>,
    /// Answers of models.
    pub(super) rounds: u64,
    pub(super) prompt_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) reasoning_tokens: u64,
    pub(super) cost_usd: Option<f64>,
    pub(super) model_ms: u64,
    /// Of the session's own calls; those of subagents are within.
    pub(super) tool_ms: u64,
    /// Model that the session started with.
    pub(super) model: String,
    /// Why the last input ended.
    pub(super) end: String,
}

#[derive(Default)]
struct Agent {
    id: Option<String>,
    parent: usize,
    model: String,
    steps: Vec<Step>,
    notes: Vec<Value>,
    /// Whether a call of its parent shows it.
    is_shown: bool,
}

#[derive(Default)]
struct Step {
    source: &'static str,
    message: String,
    timestamp: String,
    start_ms: u64,
    reasoning: Option<String>,
    finish_reason: Option<String>,
    calls: Vec<Call>,
    usage: Option<Usage>,
    /// Whether it was copied from the trajectory that this one goes on from.
    is_copied: bool,
}

struct Call {
    id: String,
    name: String,
    arguments: Value,
    start_ms: u64,
    output: Option<String>,
    is_error: bool,
    ms: u64,
    exit_code: Option<i32>,
    agent: Option<usize>,
}

struct Usage {
    model: String,
    prompt: u64,
    output: u64,
    cached: u64,
    reasoning: u64,
    cost_usd: Option<f64>,
    model_ms: u64,
    attempt: u32,
    sampled: Option<Box<Sampled>>,
}

/// Whose event it is, and when it happened.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    timestamp: String,
    agent_id: Option<String>,
    parent_id: Option<String>,
}

/// Kinds that a trajectory is made of; the others are not parsed.
const KINDS: [&str; 11] = [
    "SESSION_START",
    "USER_INPUT",
    "STEERING_INJECTED",
    "ASSISTANT_TEXT_END",
    "USAGE",
    "TOOL_CALL_START",
    "TOOL_CALL_END",
    "PROCESSING_END",
    "RETRY",
    "WARNING",
    "ERROR",
];

impl Trajectory {
    pub(super) fn new(began: Instant, session: &str) -> Self {
        Self {
            began,
            session: session.to_owned(),
            agents: vec![Agent::default()],
            by_id: HashMap::new(),
            rounds: 0,
            prompt_tokens: 0,
            output_tokens: 0,
            cached_tokens: 0,
            reasoning_tokens: 0,
            cost_usd: Some(0.0),
            model_ms: 0,
            tool_ms: 0,
            model: String::new(),
            end: String::new(),
        }
    }

    /// The trajectory of a session that goes on from `events`, those of another run. What
    /// is counted and timed begins now.
    pub(super) fn forked(began: Instant, session: &str, events: &[Event]) -> Self {
        let mut whole = Self::new(began, session);
        for event in events {
            whole.see(event);
        }
        for agent in &mut whole.agents {
            agent.notes.clear();
            for step in &mut agent.steps {
                step.is_copied = true;
            }
        }
        Self {
            agents: whole.agents,
            by_id: whole.by_id,
            model: whole.model,
            ..Self::new(began, session)
        }
    }

    /// Whether a trajectory is made of an event of this kind.
    pub(super) fn takes(event: &Event) -> bool {
        KINDS.contains(&event.kind())
    }

    /// Takes an event; returns its kind if it is one that is looked at, and whether it
    /// is the session's own.
    pub(super) fn see(&mut self, event: &Event) -> Option<(EventKind, bool)> {
        if !Self::takes(event) && event.kind() != "SESSION_END" {
            return None;
        }
        let kind = event.parse()?;
        let head: Head = serde_json::from_slice(event.json()).unwrap_or_default();
        let is_own = head.agent_id.is_none();
        let agent = self.agent(&head);
        self.take(agent, &head.timestamp, &kind);
        Some((kind, is_own))
    }

    fn agent(&mut self, head: &Head) -> usize {
        let Some(id) = &head.agent_id else { return 0 };
        if let Some(known) = self.by_id.get(id) {
            return *known;
        }
        let parent = head.parent_id.as_ref();
        let parent = parent.and_then(|id| self.by_id.get(id)).copied();
        self.agents.push(Agent {
            id: Some(id.clone()),
            parent: parent.unwrap_or(0),
            ..Agent::default()
        });
        self.by_id.insert(id.clone(), self.agents.len() - 1);
        self.agents.len() - 1
    }

    fn take(&mut self, agent: usize, timestamp: &str, kind: &EventKind) {
        let start_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let step = |source: &'static str, message: &str| Step {
            source,
            message: message.to_owned(),
            timestamp: timestamp.to_owned(),
            start_ms,
            ..Step::default()
        };
        match kind {
            EventKind::SessionStart { model, .. } => {
                if agent == 0 {
                    self.model = model.clone();
                }
                self.agents[agent].model = model.clone();
            }
            EventKind::UserInput { content, .. } => {
                self.agents[agent].steps.push(step("user", content));
            }
            EventKind::SteeringInjected {
                content, source, ..
            } => {
                let source = match source {
                    hermitcrab::event::SteeringSource::Host => "user",
                    _ => "system",
                };
                self.agents[agent].steps.push(step(source, content));
            }
            EventKind::AssistantTextEnd {
                text,
                reasoning,
                finish_reason,
                ..
            } => self.agents[agent].steps.push(Step {
                reasoning: reasoning.clone(),
                finish_reason: Some(finish_reason.clone()),
                ..step("agent", text)
            }),
            EventKind::Usage {
                purpose,
                model,
                prompt_tokens,
                output_tokens,
                reasoning_tokens,
                cache_read_tokens,
                cost_usd,
                model_ms,
                attempt,
                sampled,
                ..
            } => {
                let usage = Usage {
                    model: model.clone(),
                    prompt: *prompt_tokens,
                    output: *output_tokens,
                    cached: cache_read_tokens.unwrap_or(0),
                    reasoning: reasoning_tokens.unwrap_or(0),
                    cost_usd: *cost_usd,
                    model_ms: *model_ms,
                    attempt: *attempt,
                    sampled: sampled.clone(),
                };
                self.rounds += u64::from(purpose.is_none());
                self.prompt_tokens += usage.prompt;
                self.output_tokens += usage.output;
                self.cached_tokens += usage.cached;
                self.reasoning_tokens += usage.reasoning;
                self.cost_usd = self.cost_usd.zip(*cost_usd).map(|(all, one)| all + one);
                self.model_ms += usage.model_ms;
                if purpose.is_none()
                    && let Some(step) = self.agents[agent].steps.last_mut()
                    && step.source == "agent"
                {
                    step.start_ms = start_ms.saturating_sub(usage.model_ms);
                    step.usage = Some(usage);
                }
            }
            EventKind::ToolCallStart {
                tool_name,
                call_id,
                arguments,
            } => {
                let call = Call {
                    id: call_id.clone(),
                    name: tool_name.clone(),
                    // The format wants an object.
                    arguments: match arguments {
                        Value::Object(_) => arguments.clone(),
                        other => json!({ "raw": other }),
                    },
                    start_ms,
                    output: None,
                    is_error: false,
                    ms: 0,
                    exit_code: None,
                    agent: None,
                };
                let steps = &mut self.agents[agent].steps;
                if let Some(step) = steps.iter_mut().rev().find(|step| step.source == "agent") {
                    step.calls.push(call);
                }
            }
            EventKind::ToolCallEnd {
                call_id,
                output,
                error,
                is_error,
                exit_code,
                duration_ms,
                ..
            } => {
                let text = output.as_deref().or(error.as_deref()).unwrap_or_default();
                let started = self.started_by(agent, text);
                if agent == 0 {
                    self.tool_ms += duration_ms;
                }
                let steps = self.agents[agent].steps.iter_mut().rev();
                let mut calls = steps.flat_map(|step| step.calls.iter_mut());
                let open = |call: &&mut Call| call.id == *call_id && call.output.is_none();
                if let Some(call) = calls.find(open) {
                    call.output = Some(cut(text, OUTPUT).into_owned());
                    call.is_error = *is_error;
                    call.ms = *duration_ms;
                    call.exit_code = *exit_code;
                    call.agent = started;
                }
            }
            EventKind::ProcessingEnd { reason, .. } if agent == 0 => {
                self.end = serde_json::to_value(reason)
                    .ok()
                    .and_then(|reason| Some(reason.as_str()?.replace('_', " ")))
                    .unwrap_or_default();
            }
            EventKind::Retry { .. } | EventKind::Warning { .. } | EventKind::Error { .. } => {
                let mut note = serde_json::to_value(kind).unwrap_or_default();
                note["start_ms"] = start_ms.into();
                self.agents[agent].notes.push(note);
            }
            _ => {}
        }
    }

    /// The subagent that a call has started, if its result says so: it begins with
    /// the id, as `spawn_agent` answers.
    fn started_by(&mut self, parent: usize, text: &str) -> Option<usize> {
        let id = text.strip_prefix("agent_id: ")?.lines().next()?;
        let agent = *self.by_id.get(id)?;
        let subagent = &mut self.agents[agent];
        if subagent.parent != parent || std::mem::replace(&mut subagent.is_shown, true) {
            return None;
        }
        Some(agent)
    }

    /// The whole as ATIF; `extra` is what is known of the trial beside it.
    pub(super) fn to_json(&self, extra: Value) -> Value {
        let subagents: Vec<Value> = (1..self.agents.len())
            .map(|agent| self.one(agent))
            .collect();
        let mut root = self.one(0);
        root["session_id"] = self.session.clone().into();
        root["final_metrics"]["total_prompt_tokens"] = self.prompt_tokens.into();
        root["final_metrics"]["total_completion_tokens"] = self.output_tokens.into();
        root["final_metrics"]["total_cached_tokens"] = self.cached_tokens.into();
        if let Some(cost) = self.cost_usd {
            root["final_metrics"]["total_cost_usd"] = cost.into();
        }
        if !subagents.is_empty() {
            root["subagent_trajectories"] = subagents.into();
        }
        let mut all = Map::new();
        if let Value::Object(extra) = extra {
            all.extend(extra);
        }
        all.insert("model_ms".to_owned(), self.model_ms.into());
        all.insert("tool_ms".to_owned(), self.tool_ms.into());
        all.insert("end".to_owned(), self.end.clone().into());
        if !self.agents[0].notes.is_empty() {
            all.insert("notes".to_owned(), self.agents[0].notes.clone().into());
        }
        root["extra"] = all.into();
        root
    }

    fn id(&self, agent: usize) -> &str {
        self.agents[agent].id.as_deref().unwrap_or(&self.session)
    }

    fn one(&self, number: usize) -> Value {
        let agent = &self.agents[number];
        let mut steps: Vec<Value> = Vec::with_capacity(agent.steps.len());
        for (at, step) in agent.steps.iter().enumerate() {
            steps.push(self.step(at + 1, step, &agent.model));
        }
        if steps.is_empty() {
            // The format wants one; an agent that never began has none.
            steps.push(
                json!({"step_id": 1, "source": "system", "message": "the agent did not begin"}),
            );
        }
        let usages = || agent.steps.iter().filter_map(|step| step.usage.as_ref());
        let sum = |of: fn(&Usage) -> u64| usages().map(of).sum::<u64>();
        let mut metrics = json!({
            "total_prompt_tokens": sum(|usage| usage.prompt),
            "total_completion_tokens": sum(|usage| usage.output),
            "total_cached_tokens": sum(|usage| usage.cached),
            "total_steps": steps.len(),
        });
        // Not by `sum`, to which nothing is -0.
        let cost = usages().try_fold(0.0, |all, usage| Some(all + usage.cost_usd?));
        if let Some(cost) = cost {
            metrics["total_cost_usd"] = cost.into();
        }
        let mut about = json!({"name": "hermitcrab", "version": env!("CARGO_PKG_VERSION")});
        if !agent.model.is_empty() {
            about["model_name"] = agent.model.clone().into();
        }
        let mut whole = json!({
            "schema_version": "ATIF-v1.7",
            "trajectory_id": self.id(number),
            "agent": about,
            "steps": steps,
            "final_metrics": metrics,
        });
        if number > 0 {
            let mut extra = json!({ "parent": self.id(agent.parent) });
            if !agent.notes.is_empty() {
                extra["notes"] = agent.notes.clone().into();
            }
            whole["extra"] = extra;
        }
        whole
    }

    fn step(&self, number: usize, step: &Step, model: &str) -> Value {
        let mut whole = json!({
            "step_id": number,
            "timestamp": step.timestamp,
            "source": step.source,
            "message": step.message,
        });
        if step.is_copied {
            whole["is_copied_context"] = true.into();
        }
        let mut extra = json!({ "start_ms": step.start_ms });
        if step.source == "agent" {
            whole["llm_call_count"] = 1.into();
            if let Some(reasoning) = &step.reasoning {
                whole["reasoning_content"] = reasoning.clone().into();
            }
            if let Some(reason) = &step.finish_reason {
                extra["finish_reason"] = reason.clone().into();
            }
        }
        if let Some(usage) = &step.usage {
            if usage.model != model {
                whole["model_name"] = usage.model.clone().into();
            }
            let mut metrics = json!({
                "prompt_tokens": usage.prompt,
                "completion_tokens": usage.output,
                "cached_tokens": usage.cached,
                "extra": {"model_ms": usage.model_ms, "reasoning_tokens": usage.reasoning,
                    "attempt": usage.attempt},
            });
            if let Some(cost) = usage.cost_usd {
                metrics["cost_usd"] = cost.into();
            }
            if let Some(sampled) = &usage.sampled {
                for (name, ids) in [
                    ("prompt_token_ids", &sampled.prompt_token_ids),
                    ("completion_token_ids", &sampled.token_ids),
                ] {
                    if !ids.is_empty() {
                        metrics[name] = json!(ids);
                    }
                }
                if !sampled.logprobs.is_empty() {
                    metrics["logprobs"] = json!(sampled.logprobs);
                }
            }
            whole["metrics"] = metrics;
            extra["model_ms"] = usage.model_ms.into();
        }
        if !step.calls.is_empty() {
            extra["tool_ms"] = step.calls.iter().map(|call| call.ms).sum::<u64>().into();
            let calls = step.calls.iter().map(|call| {
                json!({
                    "tool_call_id": call.id,
                    "function_name": call.name,
                    "arguments": call.arguments,
                    "extra": {"start_ms": call.start_ms, "ms": call.ms},
                })
            });
            whole["tool_calls"] = calls.collect();
            let results = step.calls.iter().map(|call| self.result(call));
            whole["observation"] = json!({ "results": results.collect::<Vec<_>>() });
        }
        whole["extra"] = extra;
        whole
    }

    fn result(&self, call: &Call) -> Value {
        let mut extra = json!({ "is_error": call.is_error });
        if let Some(code) = call.exit_code {
            extra["exit_code"] = code.into();
        }
        if call.output.is_none() {
            extra["unfinished"] = true.into();
        }
        let mut result = json!({
            "source_call_id": call.id,
            "content": call.output.as_deref().unwrap_or_default(),
            "extra": extra,
        });
        if let Some(agent) = call.agent {
            result["subagent_trajectory_ref"] = json!([{ "trajectory_id": self.id(agent) }]);
        }
        result
    }
}
