//! What a request must meet: `match` chooses a step by it, `expect` asserts it.

use serde_json::Value;

use super::format::Condition;
use super::wire::Wire;

impl Condition {
    /// Why the request does not meet this; none if it does.
    pub(super) fn mismatch(&self, wire: &dyn Wire, body: &Value) -> Option<String> {
        for text in &self.contains {
            if !any_string(body, text) {
                return Some(format!("the request does not contain {text:?}"));
            }
        }
        for text in &self.not_contains {
            if any_string(body, text) {
                return Some(format!("the request contains {text:?}"));
            }
        }
        if self.last_tool_result_contains.is_empty() {
            return None;
        }
        let Some(result) = wire.last_tool_result(body) else {
            return Some("the request has no tool result".to_owned());
        };
        let missing = self
            .last_tool_result_contains
            .iter()
            .find(|text| !result.contains(*text))?;
        let shown: String = result.chars().take(400).collect();
        Some(format!(
            "the last tool result does not contain {missing:?}, it is {shown:?}"
        ))
    }
}

/// A body to look into; one that is not JSON counts as one string.
pub(super) fn parse(body: &[u8]) -> Value {
    serde_json::from_slice(body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()))
}

fn any_string(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(items) => items.iter().any(|item| any_string(item, text)),
        Value::Object(map) => map
            .iter()
            .any(|(key, item)| key.contains(text) || any_string(item, text)),
        _ => false,
    }
}
