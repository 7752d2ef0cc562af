//! `ScriptedModel`: a model that plays a JSON script in a provider's own wire
//! format and records what it was asked. Tests, the README and `hermitcrab
//! demo` run on it, without a key. It is pure: waiting is data ([`Chunk`]) that
//! a host performs, `hermitcrab serve-model` over loopback HTTP for one.
//!
//! docs/script.md says what a script is.

mod anthropic;
mod chat;
mod condition;
mod exchange;
mod format;
mod gemini;
mod openai;
mod play;
mod table;
mod wire;

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

pub use exchange::{Chunk, Ending, ModelRequest, RecordedRequest, ScriptedResponse};
pub use format::{
    Condition, Disconnect, HoldBefore, HttpError, Page, Script, ScriptError, Step, StreamError,
    Thinking, ToolCall, Usage,
};

/// A model that plays a script. See the module for the format.
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    script: Arc<Script>,
    used: Vec<bool>,
    looping: bool,
    keep: usize,
    count: u64,
    requests: VecDeque<RecordedRequest>,
}

impl ScriptedModel {
    /// A model at the start of `script`.
    pub fn new(script: Script) -> Self {
        Self {
            used: vec![false; script.steps.len()],
            script: Arc::new(script),
            looping: false,
            keep: usize::MAX,
            count: 0,
            requests: VecDeque::new(),
        }
    }

    /// A model that plays the script in `json`.
    ///
    /// # Errors
    /// The text is not a script; the error names line, column and step.
    pub fn from_json(json: &str) -> Result<Self, ScriptError> {
        Script::parse(json).map(Self::new)
    }

    /// Starts the script over when it ends.
    pub fn looping(mut self) -> Self {
        self.looping = true;
        self
    }

    /// Keeps only the last `count` requests; all by default.
    pub fn keep_requests(mut self, count: usize) -> Self {
        self.keep = count;
        self
    }

    /// Whether a request to `path` is for a model.
    pub fn serves(path: &str) -> bool {
        table::for_path(path).is_some()
    }

    /// How the paths of models end, for people.
    pub fn routes() -> String {
        table::routes()
    }

    /// Answers one request with the step that is its turn, and records it. What
    /// no provider would take (another path, a body that is no JSON object) is
    /// refused and uses up nothing.
    pub fn respond(&mut self, request: &ModelRequest) -> ScriptedResponse {
        let Some(wire) = table::for_path(&request.path) else {
            return play::unknown_path(&request.path);
        };
        if !wire::is_object(&request.body) {
            let message = "the request's body is not a JSON object";
            return play::refuse(wire, 400, message);
        }
        self.count += 1;
        let step = self.take_step(wire, &request.body);
        self.record(request, step);
        match step {
            Some(index) => {
                let step = self.script.steps[index].at(&request.origin());
                play::step(wire, &step, request, self.count)
            }
            None => play::refuse(wire, 400, &self.no_step_message()),
        }
    }

    /// The page at a path, if the script has one; a query is not looked at.
    pub fn page(&self, path: &str) -> Option<ScriptedResponse> {
        let path = path.split('?').next().unwrap_or(path);
        self.script.pages.get(path).map(play::page)
    }

    /// The requests so far, oldest first, those to unknown paths left out.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = &RecordedRequest> {
        self.requests.iter()
    }

    /// Whether every step has been played.
    pub fn finished(&self) -> bool {
        self.used.iter().all(|used| *used)
    }

    /// Goes back to the start and forgets the requests.
    pub fn reset(&mut self) {
        self.used.fill(false);
        self.count = 0;
        self.requests.clear();
    }

    fn take_step(&mut self, wire: &dyn wire::Wire, body: &[u8]) -> Option<usize> {
        // Parsed only when a step asks: a plain script costs nothing per byte
        // of history.
        let mut parsed: Option<Value> = None;
        let mut holds = |step: &Step| match &step.r#match {
            None => true,
            Some(condition) => {
                let body = parsed.get_or_insert_with(|| condition::parse(body));
                condition.mismatch(wire, body).is_none()
            }
        };
        let steps = &self.script.steps;
        let mut found = (0..steps.len()).find(|&i| !self.used[i] && holds(&steps[i]));
        if found.is_none() && self.looping {
            found = (0..steps.len()).find(|&i| holds(&steps[i]));
            if found.is_some() {
                self.used.fill(false);
            }
        }
        if found.is_none() && self.script.repeat_last {
            found = steps.len().checked_sub(1);
        }
        if let Some(index) = found {
            self.used[index] = true;
        }
        found
    }

    fn no_step_message(&self) -> String {
        let (count, steps) = (self.count, self.script.steps.len());
        match self.used.iter().position(|used| !used) {
            None => {
                format!("the script has no step for request {count}: all {steps} steps are played")
            }
            Some(index) => format!(
                "the script has no step for request {count}: it meets no match of the unused steps (the first is step {})",
                index + 1
            ),
        }
    }

    fn record(&mut self, request: &ModelRequest, step: Option<usize>) {
        if self.keep == 0 {
            return;
        }
        while self.requests.len() >= self.keep {
            self.requests.pop_front();
        }
        let number = self.count;
        let step = step.map(|index| index + 1);
        self.requests
            .push_back(RecordedRequest::of(request, number, step));
    }
}

#[cfg(test)]
mod tests;
