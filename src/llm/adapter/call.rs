//! Calls and results as the text that goes over the wire.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::llm::calls::raw_object;
use crate::llm::message::{Message, ToolCall, ToolResult};

/// What stands in the history for arguments that are not a JSON object: the
/// APIs take only objects, and the model should see what it wrote.
pub(super) fn invalid_input(arguments: &str) -> Value {
    if arguments.trim().is_empty() {
        json!({})
    } else {
        json!({"INVALID_JSON": arguments})
    }
}

/// `arguments` as the one JSON object that the APIs take back.
pub(super) fn object(arguments: &str) -> String {
    match raw_object(arguments) {
        Some(arguments) => arguments.to_owned(),
        None => invalid_input(arguments).to_string(),
    }
}

/// The text of the arguments in `value`, whatever its JSON type: some servers
/// send an object where a text belongs, or a text where an object does.
pub(super) fn arguments_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        value => Cow::Owned(value.to_string()),
    }
}

/// `object` with the raw JSON `value` as its `field`: a number that does not
/// fit a `f64` would change on the way through a [`Value`].
pub(super) fn with_raw(object: &Map<String, Value>, field: &str, value: &str) -> String {
    let mut json = String::from("{");
    for (index, (name, other)) in object.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        json.push_str(&Value::from(name.as_str()).to_string());
        json.push(':');
        if name == field {
            json.push_str(value);
        } else {
            json.push_str(&other.to_string());
        }
    }
    json.push('}');
    json
}

/// What the model reads of an error without a text.
pub(super) const FAILED_SILENTLY: &str = "the tool failed without a message";

/// The text of a result for APIs without a flag for errors.
pub(super) fn result_text(result: &ToolResult) -> Cow<'_, str> {
    let text = result.content.as_str();
    if !result.is_error || text.trim_start().starts_with("Error") {
        Cow::Borrowed(text)
    } else if text.trim().is_empty() {
        Cow::Owned(format!("Error: {FAILED_SILENTLY}"))
    } else {
        Cow::Owned(format!("Error: {text}"))
    }
}

/// The results in `run`, which go first: every API wants them right after the
/// calls that they answer.
pub(super) fn results(run: &[Message]) -> impl Iterator<Item = &ToolResult> {
    use crate::llm::message::ContentPart;
    run.iter()
        .flat_map(|message| &message.content)
        .filter_map(|part| match part {
            ContentPart::ToolResult(result) => Some(result),
            _ => None,
        })
}

/// The latest call `id` in `messages`.
pub(super) fn find_call<'a>(messages: &'a [Message], id: &str) -> Option<&'a ToolCall> {
    messages
        .iter()
        .rev()
        .flat_map(Message::tool_calls)
        .find(|call| call.id == id)
}

/// Longest call id that OpenAI takes, and longest name of a tool anywhere.
const MAX_LENGTH: usize = 64;

/// What every API takes in the names of tools and the ids of calls.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// A character that stands for `c` in a name or an id.
fn plain(c: char) -> char {
    if is_plain(c) { c } else { '_' }
}

/// The name of a tool as it goes back: a model may call one that it made up,
/// and a name that an API refuses would spoil every later request. All take
/// `[A-Za-z_][A-Za-z0-9_-]{0,63}`, which the names of real tools are.
pub(super) fn wire_name(name: &str) -> Cow<'_, str> {
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins_well && name.len() <= MAX_LENGTH && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let begin = (!begins_well).then_some('_').into_iter();
    let rest = name.chars().map(plain);
    Cow::Owned(begin.chain(rest).take(MAX_LENGTH).collect())
}

/// `id`, or a stand-in for one that is longer than OpenAI takes.
pub(super) fn short_id(id: &str) -> Cow<'_, str> {
    if id.len() <= MAX_LENGTH {
        return Cow::Borrowed(id);
    }
    Cow::Owned(stand_in(id))
}

/// `id`, or a stand-in for one with characters that Anthropic refuses.
pub(super) fn plain_id(id: &str) -> Cow<'_, str> {
    if !id.is_empty() && id.chars().all(is_plain) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(stand_in(id))
}

/// The beginning of `id` and a hash, so that call and result still agree and
/// no two calls share an id.
fn stand_in(id: &str) -> String {
    // FNV-1a, 64 bits.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let begin: String = id.chars().map(plain).take(MAX_LENGTH - 17).collect();
    format!("{begin}_{hash:016x}")
}
