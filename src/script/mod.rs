//! `ScriptedModel`: a model that plays a JSON script in a provider's own wire
//! format and records what it was asked. Tests, the README and `hermitcrab
//! demo` run on it, without a key. It is pure: waiting is data ([`Chunk`]) that
//! a host performs, `hermitcrab serve-model` over loopback HTTP for one.
//!
//! docs/script.md says what a script is.

mod anthropic;
mod chat;
mod condition;
mod format;
mod gemini;
mod openai;
mod play;
mod wire;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

pub use condition::Condition;
pub use format::{
    Disconnect, HoldBefore, HttpError, Page, Script, ScriptError, Step, StreamError, Thinking,
    ToolCall, Usage,
};

/// A request as the model's server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRequest {
    /// Path with query, such as `/v1/messages`; its end chooses the wire format.
    pub path: String,
    /// Headers as they came.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Bytes,
}

impl ModelRequest {
    /// Where it came to, as its `host` header says.
    fn origin(&self) -> String {
        let mut headers = self.headers.iter();
        let host = headers.find(|(name, _)| name.eq_ignore_ascii_case("host"));
        format!("http://{}", host.map_or("localhost", |(_, host)| host))
    }
}

/// A request that was answered, kept for assertions. Serialises as
/// `{number, step, path, headers, body}`, the body as the JSON that it was, byte
/// for byte, or as a string if it was not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// Counted from 1.
    pub number: u64,
    /// Step that answered, counted from 1; none if no step was left.
    pub step: Option<usize>,
    /// Path, without the value of a `key` parameter.
    pub path: String,
    /// Names in lower case. Of a header that carries a credential only
    /// `(present)` is kept, never the key.
    pub headers: Vec<(String, String)>,
    /// Body as it came.
    pub body: Bytes,
}

/// The answer to a request, for a host to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedResponse {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body in order; never empty. What the first chunk waits for also
    /// delays the status line.
    pub chunks: Vec<Chunk>,
    /// What happens after the last chunk.
    pub ending: Ending,
}

/// Bytes of a body, and what to wait for before sending them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Wait this long, in ms.
    pub delay_ms: u64,
    /// Then wait until this name is released.
    pub hold: Option<String>,
    /// Then send this; empty only where the body is.
    pub bytes: Bytes,
}

/// How a response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As HTTP says.
    Complete,
    /// The connection breaks; with no body bytes, before the status line.
    Disconnect,
}

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
        wire::for_path(path).is_some()
    }

    /// How the paths of models end, for people.
    pub fn routes() -> String {
        wire::routes()
    }

    /// Answers one request with the step that is its turn, and records it. What
    /// no provider would take (another path, a body that is no JSON object) is
    /// refused and uses up nothing.
    pub fn respond(&mut self, request: &ModelRequest) -> ScriptedResponse {
        let Some(wire) = wire::for_path(&request.path) else {
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
        self.requests.push_back(RecordedRequest {
            number: self.count,
            step: step.map(|index| index + 1),
            path: without_key(&request.path),
            headers: request
                .headers
                .iter()
                .map(|(name, value)| {
                    let name = name.to_ascii_lowercase();
                    let value = match SECRET_HEADERS.contains(&name.as_str()) {
                        true => "(present)".to_owned(),
                        false => value.clone(),
                    };
                    (name, value)
                })
                .collect(),
            body: request.body.clone(),
        });
    }
}

/// Headers whose values are credentials.
const SECRET_HEADERS: [&str; 6] = [
    "x-api-key",
    "authorization",
    "proxy-authorization",
    "x-goog-api-key",
    "api-key",
    "cookie",
];

/// Gemini clients may carry the key in the query.
fn without_key(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let query: Vec<&str> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some(("key" | "access_token", _)) => "key=(present)",
            _ => pair,
        })
        .collect();
    format!("{path}?{}", query.join("&"))
}

impl Serialize for RecordedRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Headers<'a>(&'a [(String, String)]);
        impl Serialize for Headers<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
            }
        }
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("number", &self.number)?;
        map.serialize_entry("step", &self.step)?;
        map.serialize_entry("path", &self.path)?;
        map.serialize_entry("headers", &Headers(&self.headers))?;
        match serde_json::from_slice::<&RawValue>(&self.body) {
            Ok(body) => map.serialize_entry("body", body)?,
            Err(_) => map.serialize_entry("body", &String::from_utf8_lossy(&self.body))?,
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
