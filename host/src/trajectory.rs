//! Trajectories of any harness as histories to go on from: ATIF (Harbor's Agent
//! Trajectory Interchange Format), versions 1.x. What [`crate::eval`] writes is one.
//!
//! A trajectory holds what a model read and wrote, no files. A round is a step of the
//! agent with the results of its calls.

mod parts;

use std::collections::BTreeSet;
use std::fmt;

use hermitcrab::llm::{Content, Part, ToolCall, ToolResult};
use hermitcrab::session::{SessionRecord, Turn};
use hermitcrab::text::{TruncationMode, truncate_output};
use serde::Deserialize;
use serde_json::Value;

use parts::{LeftOut, Text};

/// What a session can go on from.
#[derive(Clone, Debug)]
pub struct History {
    /// The conversation, for [`SessionOptions::record`](crate::SessionOptions::record).
    /// Its turns have no times.
    pub record: SessionRecord,
    /// What the trajectory has beside that, each a few words such as `2 images`.
    pub left_out: Vec<String>,
}

/// A trajectory that cannot be used: one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrajectoryError(String);

impl fmt::Display for TrajectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TrajectoryError {}

fn wrong<T>(message: impl Into<String>) -> Result<T, TrajectoryError> {
    Err(TrajectoryError(message.into()))
}

/// Characters of one result that are kept, as of a tool's output in a session.
const RESULT: usize = 30_000;

/// The history of the trajectory `json` up to the end of `round`; round 0 is before the
/// agent's first step.
///
/// # Errors
/// It is no trajectory in ATIF 1.x, contradicts itself, or has fewer rounds.
pub fn history(json: &[u8], round: u32) -> Result<History, TrajectoryError> {
    let whole: Value = match serde_json::from_slice(json) {
        Ok(whole) => whole,
        Err(error) => return wrong(format!("it is not JSON: {error}")),
    };
    check_version(&whole["schema_version"])?;
    let Some(steps) = whole["steps"].as_array().filter(|steps| !steps.is_empty()) else {
        return wrong("it is not a trajectory in ATIF: it has no `steps`");
    };
    let steps: Vec<Step> = steps
        .iter()
        .zip(1..)
        .map(|(step, number)| Step::read(step, number))
        .collect::<Result<_, _>>()?;
    let rounds = steps.iter().filter(|step| step.source == Source::Agent);
    let rounds = rounds.count();
    if usize::try_from(round).map_or(true, |round| round > rounds) {
        return wrong(match rounds {
            0 => "the agent has done nothing in this trajectory: name round 0".to_owned(),
            1 => "the trajectory has 1 round: name 0 or 1".to_owned(),
            _ => format!("the trajectory has {rounds} rounds: name one of 0 to {rounds}"),
        });
    }
    let mut reader = Reader {
        is_own: whole["agent"]["name"] == "hermitcrab",
        ..Reader::default()
    };
    for (step, number) in steps.into_iter().zip(1..) {
        let is_at_round = reader.rounds == round;
        match step.source {
            Source::Agent if is_at_round => break,
            // What follows an input that is done is the next one.
            _ if is_at_round && reader.is_done && round > 0 => break,
            _ => reader.take(step, number)?,
        }
    }
    if whole["subagent_trajectories"]
        .as_array()
        .is_some_and(|all| !all.is_empty())
    {
        reader.left_out.note("the trajectories of subagents");
    }
    Ok(History {
        record: SessionRecord {
            turns: reader.turns,
            ..SessionRecord::default()
        },
        left_out: reader.left_out.list(),
    })
}

/// The format may leave its version out.
fn check_version(version: &Value) -> Result<(), TrajectoryError> {
    match version {
        Value::Null => Ok(()),
        Value::String(name) if name == "ATIF-v1" || name.starts_with("ATIF-v1.") => Ok(()),
        Value::String(name) if name.starts_with("ATIF-") => wrong(format!(
            "it is in {name:.40}, and this version reads ATIF-v1.0 to ATIF-v1.8: convert it"
        )),
        _ => wrong("it is not a trajectory in ATIF: its `schema_version` names another format"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    System,
    User,
    Agent,
}

#[derive(Debug, Deserialize)]
struct Step {
    source: Source,
    #[serde(default)]
    message: Text,
    reasoning_content: Option<String>,
    tool_calls: Option<Vec<Call>>,
    observation: Option<Observation>,
}

#[derive(Debug, Deserialize)]
struct Call {
    tool_call_id: String,
    function_name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Debug, Deserialize)]
struct Observation {
    results: Vec<Found>,
}

#[derive(Debug, Deserialize)]
struct Found {
    source_call_id: Option<String>,
    #[serde(default)]
    content: Text,
    #[serde(default)]
    extra: Value,
}

impl Step {
    fn read(step: &Value, number: usize) -> Result<Self, TrajectoryError> {
        serde_json::from_value(step.clone()).map_err(|error| {
            TrajectoryError(format!("step {number} is not as ATIF has it: {error}"))
        })
    }
}

/// The conversation as it grows.
#[derive(Default)]
struct Reader {
    /// Whether Hermitcrab has written it.
    is_own: bool,
    turns: Vec<Turn>,
    rounds: u32,
    /// Whether the last step of the agent ended its input.
    is_done: bool,
    /// Ids of calls so far.
    ids: BTreeSet<String>,
    left_out: LeftOut,
}

impl Reader {
    fn take(&mut self, step: Step, number: usize) -> Result<(), TrajectoryError> {
        let text = step.message.joined(&mut self.left_out);
        let results = step.observation.map(|it| it.results).unwrap_or_default();
        if step.source == Source::Agent {
            self.rounds += 1;
            if step.reasoning_content.is_some() {
                self.left_out
                    .note("reasoning, which no provider takes without its signature");
            }
            let calls = step.tool_calls.unwrap_or_default();
            self.answer(text, step.reasoning_content, calls, results, number)?;
            return Ok(());
        }
        if let Some(id) = results.iter().find_map(|it| it.source_call_id.as_ref()) {
            return wrong(no_call(number, id));
        }
        match step.source {
            Source::System if self.turns.is_empty() => {
                self.left_out.note("its system prompt");
                return Ok(());
            }
            // Of ours, the model read it as the user's.
            Source::System if !self.is_own => self.turns.push(Turn::System {
                content: text,
                timestamp_ms: 0,
            }),
            Source::User if self.rounds == 0 || self.is_done => self.turns.push(Turn::User {
                content: content(text),
                timestamp_ms: 0,
            }),
            _ => self.steering(text),
        }
        for result in results {
            let text = result.content.joined(&mut self.left_out);
            self.steering(text);
        }
        Ok(())
    }

    fn steering(&mut self, text: String) {
        self.turns.push(Turn::Steering {
            content: content(text),
            timestamp_ms: 0,
        });
    }

    fn answer(
        &mut self,
        content: String,
        reasoning: Option<String>,
        calls: Vec<Call>,
        results: Vec<Found>,
        number: usize,
    ) -> Result<(), TrajectoryError> {
        let names: Vec<String> = calls.iter().map(|it| it.tool_call_id.clone()).collect();
        let tool_calls: Vec<ToolCall> = calls.into_iter().map(|call| self.call(call)).collect();
        let (answered, seen) = self.results(&names, results, number)?;
        let results: Vec<ToolResult> = tool_calls
            .iter()
            .zip(answered)
            .filter_map(|(call, answer)| answer.result_of(call))
            .collect();
        self.is_done = tool_calls.is_empty() && seen.is_empty();
        self.turns.push(Turn::Assistant {
            content,
            tool_calls,
            reasoning,
            usage: Box::default(),
            response_id: None,
            replay: None,
            timestamp_ms: 0,
        });
        // A call without a result gets one when the record is opened.
        if !results.is_empty() {
            self.turns.push(Turn::ToolResults {
                results,
                timestamp_ms: 0,
            });
        }
        for text in seen {
            self.steering(text);
        }
        Ok(())
    }

    /// A call, under an id that no other has.
    fn call(&mut self, call: Call) -> ToolCall {
        let mut id = call.tool_call_id;
        if id.is_empty() {
            id = "call".to_owned();
        }
        if self.ids.contains(&id) {
            let free = (2..).map(|n: u64| format!("{id}_{n}"));
            id = free
                .into_iter()
                .find(|id| !self.ids.contains(id))
                .unwrap_or(id);
        }
        self.ids.insert(id.clone());
        // So ours writes arguments that are no object.
        let raw = call
            .arguments
            .as_object()
            .filter(|it| self.is_own && it.len() == 1);
        let raw = raw.and_then(|it| it.get("raw")?.as_str());
        let (arguments, custom) = match (raw, &call.arguments) {
            (Some(text), _) => (text.to_owned(), true),
            (None, Value::String(text)) => (text.clone(), false),
            (None, Value::Null) => ("{}".to_owned(), false),
            (None, other) => (other.to_string(), false),
        };
        ToolCall {
            id,
            name: call.function_name,
            arguments,
            custom,
        }
    }

    /// What each call got, and what the agent saw beside that. A result that names no
    /// call belongs to the first call without one.
    fn results(
        &mut self,
        names: &[String],
        results: Vec<Found>,
        number: usize,
    ) -> Result<(Vec<ToolResults>, Vec<String>), TrajectoryError> {
        let mut answers: Vec<ToolResults> = names.iter().map(|_| ToolResults::default()).collect();
        let (named, unnamed): (Vec<_>, Vec<_>) = results
            .into_iter()
            .partition(|result| result.source_call_id.is_some());
        for result in named {
            let id = result.source_call_id.as_deref().unwrap_or_default();
            let own = || (0..names.len()).filter(|at| names[*at] == id);
            let free = own()
                .find(|at| answers[*at].is_open())
                .or(own().next_back());
            let Some(at) = free else {
                return wrong(no_call(number, id));
            };
            answers[at].add(result, &mut self.left_out);
        }
        let mut seen = Vec::new();
        for result in unnamed {
            let free = answers.iter().position(ToolResults::is_open);
            match free.or(answers.len().checked_sub(1)) {
                Some(at) => answers[at].add(result, &mut self.left_out),
                None => seen.push(cut(result.content.joined(&mut self.left_out))),
            }
        }
        Ok((answers, seen))
    }
}

/// What a call got.
#[derive(Default)]
struct ToolResults {
    text: Option<String>,
    is_error: bool,
    /// Its command did not end.
    is_cut_off: bool,
}

impl ToolResults {
    fn is_open(&self) -> bool {
        self.text.is_none() && !self.is_cut_off
    }

    fn add(&mut self, result: Found, left_out: &mut LeftOut) {
        let is = |name: &str| result.extra[name].as_bool().unwrap_or(false);
        self.is_error |= is("is_error");
        self.is_cut_off |= is("unfinished");
        let text = result.content.joined(left_out);
        self.text = Some(match self.text.take() {
            None => text,
            Some(before) => format!("{before}\n{text}"),
        });
    }

    fn result_of(self, call: &ToolCall) -> Option<ToolResult> {
        if self.is_cut_off {
            return None;
        }
        let text = self
            .text
            .unwrap_or_else(|| "(no result is recorded)".to_owned());
        Some(ToolResult {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: cut(text),
            media: Vec::new(),
            is_error: self.is_error,
        })
    }
}

fn content(text: String) -> Content {
    vec![Part::text(text)].into()
}

fn cut(text: String) -> String {
    truncate_output(&text, RESULT, TruncationMode::HeadTail).into_owned()
}

fn no_call(number: usize, id: &str) -> String {
    format!("step {number} has a result for the call {id:?}, which it does not make")
}

#[cfg(test)]
mod tests;
