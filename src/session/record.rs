//! The record of a session: what a host keeps so that a later session, in
//! another process or page, goes on where this one was.
//!
//! It may be taken at any time, also in the middle of a round: results that
//! tools have given are in it, and what was cut off gets a result that says so
//! when the record is opened, so that every call has one. Not in it: the system
//! prompt, which is built anew, and subagents, which end with their session.

use serde::{Deserialize, Serialize};

use super::error::{SessionError, SessionErrorKind};
use super::turn::Turn;
use crate::llm::{Content, ToolCall, ToolResult};
use crate::text::{SortedMap, from_json};

/// Version of the format.
const VERSION: u32 = 1;

/// What becomes of a call whose result never came.
const CUT_OFF: &str = "interrupted before it ended";

/// A session as it was at some moment. As JSON; a bare array of turns, such as
/// `history` gives, is a record, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionRecord {
    /// Version of the format: 1.
    pub version: u32,
    /// The turns, oldest first. The last one may hold the results of some of
    /// the calls only.
    pub turns: Vec<Turn>,
    /// Numbers of turns at which a request was sent, ascending: they decide
    /// which neighbours an adapter may merge, and so the bytes of the prefix
    /// that a provider has cached. Empty: as if each answer had one request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<usize>,
    /// Key under which the provider caches the prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<String>,
    /// Whether the last answer was a question to the user.
    #[serde(default)]
    pub awaiting_input: bool,
    /// What waits for the next gap between tool rounds, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<RecordedMessage>,
    /// Inputs that wait for the current one to be done, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follow_ups: Vec<Content>,
}

/// A message that waits for the next gap between tool rounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RecordedMessage {
    /// The user's.
    Steering {
        /// The message.
        content: Content,
    },
    /// The developer's.
    System {
        /// The instructions.
        content: String,
    },
}

impl Default for SessionRecord {
    fn default() -> Self {
        Self {
            version: VERSION,
            turns: Vec::new(),
            requests: Vec::new(),
            cache_key: None,
            awaiting_input: false,
            injected: Vec::new(),
            follow_ups: Vec::new(),
        }
    }
}

impl SessionRecord {
    /// Reads a record, or an array of turns, from JSON.
    pub fn from_json(json: &str) -> Result<Self, SessionError> {
        let unreadable = |error: serde_json::Error| {
            invalid(format!(
                "the saved session cannot be read: {error}; give what `record` or `history` gave"
            ))
        };
        if json.trim_start().starts_with('[') {
            let turns = from_json(json).map_err(unreadable)?;
            return Ok(Self {
                turns,
                ..Self::default()
            });
        }
        from_json(json).map_err(unreadable)
    }

    /// The record with a result for every call, or what makes it unusable.
    ///
    /// Images and documents are checked as those of an input are.
    pub(super) fn completed(mut self) -> Result<Self, SessionError> {
        if self.version != VERSION {
            return Err(invalid(format!(
                "the saved session has format {}, this version reads format {VERSION}; open it \
                 with the version that saved it",
                self.version
            )));
        }
        for (turn, number) in self.turns.iter_mut().zip(1..) {
            check_media(turn)
                .map_err(|bad| invalid(format!("turn {number} of the saved session: {bad}")))?;
        }
        for message in &mut self.injected {
            if let RecordedMessage::Steering { content } = message {
                check(content).map_err(|bad| invalid(format!("a saved message: {bad}")))?;
            }
        }
        for content in &mut self.follow_ups {
            check(content).map_err(|bad| invalid(format!("a saved follow-up: {bad}")))?;
        }
        let last = self.requests.last().copied().unwrap_or_default();
        if !self.requests.is_sorted_by(|a, b| a < b) || last > self.turns.len() {
            return Err(invalid(
                "the saved session's `requests` must ascend and stay within its turns",
            ));
        }
        let before = self.turns.len();
        let cut_off_at_end = self.turns.last().is_some_and(has_calls);
        self.turns = answered(self.turns)?;
        // Turns put in between would shift the numbers behind them.
        if self.turns.len() != before + usize::from(cut_off_at_end) {
            self.requests.clear();
        }
        Ok(self)
    }
}

/// Gives `turn`'s images and documents the types of their bytes.
fn check_media(turn: &mut Turn) -> Result<(), String> {
    match turn {
        Turn::User { content, .. } | Turn::Steering { content, .. } => check(content)?,
        Turn::ToolResults { results, .. } => {
            for media in results.iter_mut().flat_map(|result| &mut result.media) {
                let found = match media.media_type.starts_with("image/") {
                    true => media.image_type(),
                    false => media.document_type(),
                };
                media.media_type = found?.to_owned();
            }
        }
        Turn::Assistant { .. } | Turn::System { .. } | Turn::Compaction { .. } => {}
    }
    Ok(())
}

fn check(content: &mut Content) -> Result<(), String> {
    let checked = std::mem::take(content).checked();
    *content = checked.map_err(|bad| bad.to_string())?;
    Ok(())
}

/// `turns` with one turn of results behind every turn with calls, one result
/// per call, in call order. Results that came stay as they are.
fn answered(turns: Vec<Turn>) -> Result<Vec<Turn>, SessionError> {
    let mut complete: Vec<Turn> = Vec::with_capacity(turns.len() + 1);
    for (index, turn) in turns.into_iter().enumerate() {
        let Turn::ToolResults {
            results,
            timestamp_ms,
        } = turn
        else {
            close(&mut complete);
            complete.push(turn);
            continue;
        };
        let calls = match complete.last() {
            Some(Turn::Assistant { tool_calls, .. }) => tool_calls.as_slice(),
            _ => &[],
        };
        let results = in_call_order(calls, results).map_err(|id| {
            invalid(format!(
                "turn {} of the saved session holds a result for the call {id}, which the turn \
                 before it did not make or which has one already",
                index + 1
            ))
        })?;
        complete.push(Turn::ToolResults {
            results,
            timestamp_ms,
        });
    }
    close(&mut complete);
    Ok(complete)
}

/// Answers the calls of the last turn, if it has any.
fn close(turns: &mut Vec<Turn>) {
    if let Some(Turn::Assistant {
        tool_calls,
        timestamp_ms,
        ..
    }) = turns.last()
        && !tool_calls.is_empty()
    {
        let results = tool_calls.iter().map(cut_off).collect();
        let timestamp_ms = *timestamp_ms;
        turns.push(Turn::ToolResults {
            results,
            timestamp_ms,
        });
    }
}

/// One result per call; `Err` names a result that belongs to none of them.
fn in_call_order(calls: &[ToolCall], results: Vec<ToolResult>) -> Result<Vec<ToolResult>, String> {
    let mut by_call: SortedMap<String, ToolResult> = SortedMap::new();
    for result in results {
        let id = result.tool_call_id.clone();
        let known = calls.iter().any(|call| call.id == id);
        if !known || by_call.insert(id.clone(), result).is_some() {
            return Err(id);
        }
    }
    let result = |call: &ToolCall| by_call.remove(&call.id).unwrap_or_else(|| cut_off(call));
    Ok(calls.iter().map(result).collect())
}

fn cut_off(call: &ToolCall) -> ToolResult {
    ToolResult {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: format!("Tool error ({}): {CUT_OFF}", call.name),
        media: Vec::new(),
        is_error: true,
    }
}

fn has_calls(turn: &Turn) -> bool {
    matches!(turn, Turn::Assistant { tool_calls, .. } if !tool_calls.is_empty())
}

fn invalid(message: impl Into<String>) -> SessionError {
    SessionError::new(SessionErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The turns of a record after completion, in short, or why there are none.
    #[track_caller]
    fn check(turns: Value, expected: Result<&[&str], &str>) {
        let record = SessionRecord::from_json(&turns.to_string()).unwrap();
        let actual = record.completed().map(|record| {
            let short = |turn: &Turn| match turn {
                Turn::User { content, .. } => format!("user {}", content.text()),
                Turn::Assistant { tool_calls, .. } => {
                    let ids: Vec<_> = tool_calls.iter().map(|call| call.id.as_str()).collect();
                    format!("calls {}", ids.join(" "))
                }
                Turn::ToolResults { results, .. } => {
                    let result =
                        |result: &ToolResult| format!("{}={}", result.tool_call_id, result.content);
                    results.iter().map(result).collect::<Vec<_>>().join(", ")
                }
                other => format!("{other:?}"),
            };
            record.turns.iter().map(short).collect::<Vec<_>>()
        });
        let expected = expected.map(|turns| turns.iter().map(|t| (*t).to_owned()).collect());
        assert_eq!(
            actual.map_err(|error| error.message),
            expected.map_err(str::to_owned)
        );
    }

    fn user(content: &str) -> Value {
        json!({"turn": "user", "content": content, "timestamp_ms": 1})
    }

    fn calls(ids: &[&str]) -> Value {
        let call = |id: &&str| json!({"id": id, "name": "shell", "arguments": "{}"});
        json!({"turn": "assistant", "content": "", "reasoning": null, "usage": {},
               "tool_calls": ids.iter().map(call).collect::<Vec<_>>(),
               "response_id": null, "timestamp_ms": 2})
    }

    fn results(ids: &[&str]) -> Value {
        let result = |id: &&str| {
            json!({"tool_call_id": id, "tool_name": "shell", "content": "ok",
                   "is_error": false})
        };
        json!({"turn": "tool_results", "timestamp_ms": 3,
               "results": ids.iter().map(result).collect::<Vec<_>>()})
    }

    #[test]
    fn a_whole_conversation_stays_as_it_is() {
        check(
            json!([
                user("a"),
                calls(&["1", "2"]),
                results(&["1", "2"]),
                calls(&[])
            ]),
            Ok(&["user a", "calls 1 2", "1=ok, 2=ok", "calls "]),
        );
    }

    #[test]
    fn a_round_cut_off_gets_the_results_that_never_came() {
        check(
            json!([user("a"), calls(&["1", "2", "3"]), results(&["2"])]),
            Ok(&[
                "user a",
                "calls 1 2 3",
                "1=Tool error (shell): interrupted before it ended, 2=ok, \
                 3=Tool error (shell): interrupted before it ended",
            ]),
        );
    }

    #[test]
    fn calls_without_any_result_get_them() {
        let cut = "1=Tool error (shell): interrupted before it ended";
        check(
            json!([user("a"), calls(&["1"])]),
            Ok(&["user a", "calls 1", cut]),
        );
        check(
            json!([user("a"), calls(&["1"]), user("b")]),
            Ok(&["user a", "calls 1", cut, "user b"]),
        );
    }

    #[test]
    fn results_of_no_call_are_refused_by_name() {
        for turns in [
            json!([results(&["9"])]),
            json!([calls(&["1"]), results(&["9"])]),
            json!([calls(&["9"]), results(&["9", "9"])]),
            json!([calls(&["9"]), user("a"), results(&["9"])]),
        ] {
            let number = turns.as_array().unwrap().len();
            let message = format!(
                "turn {number} of the saved session holds a result for the call 9, which the \
                 turn before it did not make or which has one already"
            );
            check(turns, Err(&message));
        }
    }

    #[test]
    fn images_that_no_model_can_have_are_refused() {
        let media = || json!({"source": {"data": "bm8="}, "media_type": "image/png"});
        let mut image = media();
        image["type"] = json!("image");
        let mut said = user("");
        said["content"] = json!([image]);
        check(
            json!([said]),
            Err(
                "turn 1 of the saved session: part 1: image: not a PNG, JPEG, GIF or WebP \
                 image",
            ),
        );
        let mut found = results(&["1"]);
        found["results"][0]["media"] = json!([media()]);
        check(
            json!([calls(&["1"]), found]),
            Err("turn 2 of the saved session: image: not a PNG, JPEG, GIF or WebP image"),
        );
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for (json, sentence) in [
            ("{", "the saved session cannot be read: "),
            ("[{}]", "the saved session cannot be read: "),
            (
                r#"{"version": 1, "turns": [], "x": 1}"#,
                "unknown field `x`",
            ),
            (r#"{"version": 2, "turns": []}"#, "has format 2"),
            (
                r#"{"version": 1, "turns": [], "requests": [1]}"#,
                "must ascend",
            ),
        ] {
            let error = SessionRecord::from_json(json).and_then(SessionRecord::completed);
            let message = error.expect_err(json).message;
            assert!(message.contains(sentence), "{message}");
        }
    }
}
