//! The script as JSON (grammar: the table in [`super`]), and the errors of one
//! that is wrong, which name line, column and step.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A script: one step per model request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Script {
    /// The steps; at least one.
    pub steps: Vec<Step>,
    /// Whether the last step answers every further request.
    #[serde(default)]
    pub repeat_last: bool,
    /// What else the model's server has, by path: pages to fetch.
    #[serde(default)]
    pub pages: BTreeMap<String, Page>,
}

/// Stands in a call's arguments for the address of the model's server.
const ORIGIN: &str = "<origin>";

/// A page beside the model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Status, 200 to 599.
    #[serde(default = "ok")]
    pub status: u16,
    /// More headers, such as `location`.
    #[serde(default)]
    pub headers: Map<String, Value>,
    /// Body.
    #[serde(default)]
    pub body: String,
}

fn ok() -> u16 {
    200
}

/// The answer to one request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Text, as one delta.
    pub text: Option<String>,
    /// Text, as several deltas.
    pub texts: Option<Vec<String>>,
    /// Reasoning before the text.
    pub thinking: Option<Thinking>,
    /// Calls after the text.
    pub tool_calls: Vec<ToolCall>,
    /// Token counts.
    pub usage: Usage,
    /// Stop reason in the provider's words.
    pub stop_reason: Option<String>,
    /// Wait before the first byte, in ms.
    pub delay_ms: u64,
    /// Wait before each delta, in ms.
    pub delta_delay_ms: u64,
    /// Length of the body's chunks, in bytes.
    pub chunk_bytes: Option<usize>,
    /// Name to wait for.
    pub hold: Option<String>,
    /// Where to wait for it.
    pub hold_before: HoldBefore,
    /// An HTTP error instead of an answer.
    pub error: Option<HttpError>,
    /// An error event after the content.
    pub stream_error: Option<StreamError>,
    /// Where the connection breaks.
    pub disconnect: Option<Disconnect>,
    /// A body instead of an answer.
    pub garbage: Option<String>,
    /// What the request must meet, else it is answered with HTTP 400.
    pub expect: Option<Condition>,
    /// What a request must meet to get this step.
    pub r#match: Option<Condition>,
}

/// Conditions on a request; all must hold. Each is a string or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    /// Some string in the body contains it.
    #[serde(deserialize_with = "one_or_many")]
    pub contains: Vec<String>,
    /// No string in the body contains it.
    #[serde(deserialize_with = "one_or_many")]
    pub not_contains: Vec<String>,
    /// The last tool result contains it.
    #[serde(deserialize_with = "one_or_many")]
    pub last_tool_result_contains: Vec<String>,
}

/// Reasoning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thinking {
    /// The text; empty is allowed beside a signature.
    pub text: String,
    /// The provider's signature.
    pub signature: Option<String>,
    /// Data of an opaque block that follows.
    pub redacted: Option<String>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Tool to call.
    pub name: String,
    /// Id; by default one that is unique in the run.
    pub id: Option<String>,
    /// Arguments; these or `raw_arguments`.
    pub arguments: Option<Map<String, Value>>,
    /// Arguments as text that is sent as it is.
    pub raw_arguments: Option<String>,
    /// A freeform call, where the provider has those.
    #[serde(default)]
    pub custom: bool,
}

impl ToolCall {
    /// The arguments as the model writes them.
    pub fn arguments_text(&self) -> String {
        match (&self.raw_arguments, &self.arguments) {
            (Some(raw), _) => raw.clone(),
            (None, Some(map)) => serde_json::to_string(map).unwrap_or_default(),
            (None, None) => "{}".to_owned(),
        }
    }
}

/// Token counts of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Input, without what was read from or written to a cache. A constant
    /// by default: a count that followed the body would differ between hosts.
    pub input_tokens: u64,
    /// Output, reasoning included.
    pub output_tokens: u64,
    /// Reasoning within the output.
    pub reasoning_tokens: Option<u64>,
    /// Input read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Input written to a cache.
    pub cache_write_tokens: Option<u64>,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input_tokens: 100,
            output_tokens: 20,
            reasoning_tokens: None,
            cache_read_tokens: None,
            cache_write_tokens: None,
        }
    }
}

/// Where a step waits for its hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldBefore {
    /// Before the status line.
    #[default]
    Start,
    /// Before the text, after the reasoning.
    Text,
    /// Before the tool calls, after the text.
    ToolCalls,
    /// Before the end of the stream, after all content.
    End,
}

/// An HTTP error.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpError {
    /// Status, 400 to 599.
    pub status: u16,
    /// The provider's error type; by default the one that goes with the status.
    pub r#type: Option<String>,
    /// Message.
    #[serde(default = "default_message")]
    pub message: String,
    /// More headers, such as `retry-after`.
    #[serde(default)]
    pub headers: Map<String, Value>,
}

fn default_message() -> String {
    "scripted error".to_owned()
}

/// An error inside a stream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamError {
    /// The provider's error type, such as `overloaded_error`.
    pub r#type: String,
    /// Message.
    #[serde(default = "default_message")]
    pub message: String,
}

/// Where the connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disconnect {
    /// Before any byte of the response.
    Before,
    /// After the text, between two events.
    AfterText,
    /// Inside the event that follows the text.
    MidEvent,
    /// After all content, before the end of the stream.
    BeforeEnd,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The text is not JSON, or not a script.
    pub fn parse(json: &str) -> Result<Self, ScriptError> {
        let json = json.strip_prefix('\u{feff}').unwrap_or(json);
        if json.trim_start().starts_with('[') {
            // Serde would take a list for the fields in their order.
            return Err(ScriptError {
                message:
                    r#"a script is an object such as {"steps": [{"text": "hello"}]}, not a list"#
                        .to_owned(),
                step: None,
                line: 1,
                column: 1,
            });
        }
        let script: Self =
            serde_json::from_str(json).map_err(|error| ScriptError::of_json(json, &error))?;
        let wrong_page = || {
            let mut pages = script.pages.iter();
            pages.find_map(|(path, page)| page.check(path).err())
        };
        let wrong = match script.steps.is_empty() {
            true => Some("steps is empty, a script needs at least one".to_owned()),
            false => wrong_page(),
        };
        if let Some(message) = wrong {
            return Err(ScriptError {
                message,
                step: None,
                line: 1,
                column: 1,
            });
        }
        for (index, step) in script.steps.iter().enumerate() {
            if let Err(message) = step.check() {
                return Err(ScriptError::of_step(json, index, message));
            }
        }
        Ok(script)
    }
}

impl Step {
    /// The deltas of the text; none where the answer has no text.
    pub fn deltas(&self) -> &[String] {
        match (&self.text, &self.texts) {
            (Some(text), _) if text.is_empty() => &[],
            (Some(text), _) => std::slice::from_ref(text),
            (None, Some(texts)) => texts,
            (None, None) => &[],
        }
    }

    /// This step for a request that came to `origin`: [`ORIGIN`] in arguments
    /// replaced.
    pub(super) fn at<'a>(&'a self, origin: &str) -> Cow<'a, Self> {
        let named = |call: &ToolCall| call.arguments_text().contains(ORIGIN);
        if !self.tool_calls.iter().any(named) {
            return Cow::Borrowed(self);
        }
        let mut step = self.clone();
        for call in &mut step.tool_calls {
            call.raw_arguments = Some(call.arguments_text().replace(ORIGIN, origin));
            call.arguments = None;
        }
        Cow::Owned(step)
    }

    /// What the type cannot say.
    fn check(&self) -> Result<(), String> {
        let speaks = self.text.is_some()
            || self.texts.is_some()
            || self.thinking.is_some()
            || !self.tool_calls.is_empty();
        let instead = [
            ("error", self.error.is_some()),
            ("garbage", self.garbage.is_some()),
            (
                "disconnect \"before\"",
                self.disconnect == Some(Disconnect::Before),
            ),
        ];
        let instead: Vec<&str> = instead
            .iter()
            .filter_map(|(name, given)| given.then_some(*name))
            .collect();
        if self.text.is_some() && self.texts.is_some() {
            return Err("text and texts exclude each other".to_owned());
        }
        if let [first, second, ..] = instead[..] {
            return Err(format!("{first} and {second} exclude each other"));
        }
        if let ([name], true) = (&instead[..], speaks || self.stream_error.is_some()) {
            return Err(format!(
                "{name} replaces the answer, so the step can have no content"
            ));
        }
        if instead.is_empty() && !speaks && self.stream_error.is_none() && self.disconnect.is_none()
        {
            return Err(
                "the step says nothing: give it text, texts, thinking, tool_calls, error, stream_error, disconnect or garbage"
                    .to_owned(),
            );
        }
        if self.disconnect.is_some() && self.stream_error.is_some() {
            return Err("disconnect and stream_error exclude each other".to_owned());
        }
        if self.chunk_bytes == Some(0) {
            return Err("chunk_bytes is 0, it must be at least 1".to_owned());
        }
        if let Some(name) = &self.hold
            && (name.is_empty()
                || !name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)))
        {
            return Err(format!(
                "hold {name:?} is not a name of letters, digits, `_`, `-`, `.`"
            ));
        }
        if self.hold.is_none() && self.hold_before != HoldBefore::Start {
            return Err("hold_before needs a hold".to_owned());
        }
        if let Some(error) = &self.error {
            error.check()?;
        }
        for (index, call) in self.tool_calls.iter().enumerate() {
            let wrong = match (&call.arguments, &call.raw_arguments) {
                (Some(_), Some(_)) => "arguments and raw_arguments exclude each other",
                (None, None) => "there are neither arguments nor raw_arguments; {} is for none",
                _ => continue,
            };
            return Err(format!("tool_calls[{index}] ({}): {wrong}", call.name));
        }
        Ok(())
    }
}

impl HttpError {
    fn check(&self) -> Result<(), String> {
        if !(400..600).contains(&self.status) {
            return Err(format!(
                "error status {} is not one of 400 to 599",
                self.status
            ));
        }
        check_headers("error", &self.headers)
    }
}

impl Page {
    fn check(&self, path: &str) -> Result<(), String> {
        if !path.starts_with('/') {
            return Err(format!("page {path:?} is not a path: begin it with /"));
        }
        if !(200..600).contains(&self.status) {
            let status = self.status;
            return Err(format!(
                "page {path} has status {status}, it must be one of 200 to 599"
            ));
        }
        check_headers(&format!("page {path}:"), &self.headers)
    }
}

fn check_headers(whose: &str, headers: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in headers {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if name.is_empty() || !name.bytes().all(token) {
            return Err(format!("{whose} header {name:?} is not a header name"));
        }
        match header_text(value) {
            Some(text) if text.bytes().all(|b| (b' '..=b'~').contains(&b)) => {}
            _ => {
                return Err(format!(
                    "{whose} header {name} is {value}, it must be printable ASCII text or a number"
                ));
            }
        }
    }
    Ok(())
}

/// A header's value; `"retry-after": 1` is as good as `"1"`.
pub(super) fn header_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Reads a string or a list of strings, without buffering, so that an error
/// keeps its position.
fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    struct OneOrMany;
    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a list of strings")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(vec![text.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut texts = Vec::new();
            while let Some(text) = seq.next_element()? {
                texts.push(text);
            }
            Ok(texts)
        }
    }
    from.deserialize_any(OneOrMany)
}

/// Why a text is not a script.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptError {
    /// What is wrong.
    pub message: String,
    /// In which step, counted from 1; none outside the steps.
    pub step: Option<usize>,
    /// Line, counted from 1.
    pub line: usize,
    /// Column, counted from 1, in bytes.
    pub column: usize,
}

impl ScriptError {
    fn of_json(json: &str, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let message = error.to_string();
        let suffix = format!(" at line {line} column {column}");
        let offset: usize = json
            .split_inclusive('\n')
            .take(line.saturating_sub(1))
            .map(str::len)
            .sum::<usize>()
            + column.saturating_sub(1);
        let starts = step_spans(json);
        Self {
            message: message.strip_suffix(&suffix).unwrap_or(&message).to_owned(),
            step: starts
                .iter()
                .position(|span| span.0 <= offset && offset <= span.1)
                .map(|index| index + 1),
            line: line.max(1),
            column: column.max(1),
        }
    }

    fn of_step(json: &str, index: usize, message: String) -> Self {
        let offset = step_spans(json).get(index).map_or(0, |span| span.0);
        let before = &json.as_bytes()[..offset.min(json.len())];
        let line_start = before
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        Self {
            message,
            step: Some(index + 1),
            line: before.iter().filter(|b| **b == b'\n').count() + 1,
            column: offset - line_start + 1,
        }
    }
}

/// First and last byte of each element of a list inside the root object, as far
/// as the text can be followed: serde names a position, people a step.
fn step_spans(json: &str) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    let (mut depth, mut in_string, mut escaped, mut inside) = (0_usize, false, false, false);
    for (at, byte) in json.bytes().enumerate() {
        let element = |inside: &mut bool, spans: &mut Vec<(usize, usize)>| {
            if !std::mem::replace(inside, true) {
                spans.push((at, json.len()));
            }
        };
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'{' | b'[' => {
                if depth == 2 {
                    element(&mut inside, &mut spans);
                }
                depth += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 2
                    && inside
                    && let Some(span) = spans.last_mut()
                {
                    span.1 = at;
                }
                if depth < 2 {
                    inside = false;
                }
            }
            b',' if depth == 2 => inside = false,
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                if depth == 2 {
                    element(&mut inside, &mut spans);
                }
                in_string = byte == b'"';
            }
        }
    }
    spans
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = self.step {
            write!(f, "step {step}, ")?;
        }
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.message
        )
    }
}

impl std::error::Error for ScriptError {}
