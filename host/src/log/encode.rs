//! Lines of a log. The same bytes come of the same run, so a replay compares them.

use bytes::Bytes;
use hermitcrab::effect::{EffectKind, Outcome};
use hermitcrab::session::InstanceCall;
use serde::Serialize;
use serde_json::{Value, json};

use crate::core::{CoreEffect, CoreStep};

/// Makes lines, in order.
#[derive(Default)]
pub(super) struct Encoder {
    /// The last body of a request.
    body: Bytes,
}

/// The inputs of a step.
#[derive(Serialize)]
struct Step<'a> {
    now_ms: u64,
    outcomes: &'a [Outcome],
}

pub(super) fn call(call: &InstanceCall) -> String {
    format!(r#"{{"call":{}"#, json(call))
}

pub(super) fn step(now_ms: u64, outcomes: &[Outcome], output: &str) -> String {
    let input = json(&Step { now_ms, outcomes });
    format!(r#"{{"step":{input},"output":{output}"#)
}

impl Encoder {
    /// What a step output.
    pub(super) fn output(&mut self, step: &CoreStep) -> String {
        let events = listed(step.events.iter().map(|event| {
            // They are JSON already.
            String::from_utf8_lossy(&event.json).into_owned()
        }));
        let effects = listed(step.effects.iter().map(|effect| self.effect(effect)));
        let reports = listed(
            step.reports
                .iter()
                .map(|report| json(&json!({"job": &*report.job, "kind": report.kind}))),
        );
        let log = json(&step.log);
        let busy = step.busy;
        format!(
            r#"{{"events":{events},"effects":{effects},"reports":{reports},"log":{log},"busy":{busy}}}"#
        )
    }

    fn effect(&mut self, effect: &CoreEffect) -> String {
        let CoreEffect { id, owner, kind } = effect;
        let mut kind = kind.clone();
        let body = match &mut kind {
            EffectKind::Http(request) => self.new_of(std::mem::take(&mut request.body)),
            _ => Value::Null,
        };
        let mut line = json!({"id": id, "owner": &**owner, "kind": kind});
        if !body.is_null() {
            line["kind"]["http"]["body"] = body;
        }
        json(&line)
    }

    /// What of `body` the last one does not have.
    fn new_of(&mut self, body: Bytes) -> Value {
        let last = std::mem::replace(&mut self.body, body.clone());
        let Ok(text) = std::str::from_utf8(&body) else {
            return json!({ "bytes": &body[..] });
        };
        let mut keep = same_beginning(&last, &body);
        while !text.is_char_boundary(keep) {
            keep -= 1;
        }
        let mut keep_end = same_end(&last[keep..], &body[keep..]);
        while !text.is_char_boundary(text.len() - keep_end) {
            keep_end -= 1;
        }
        let then = &text[keep..text.len() - keep_end];
        json!({"keep": keep, "then": then, "keep_end": keep_end})
    }
}

/// Bytes that are compared at once.
const BLOCK: usize = 256;

/// Bytes that both begin with.
fn same_beginning(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let bytes = a[same..].iter().zip(&b[same..]);
    same + bytes.take_while(|(a, b)| a == b).count()
}

/// Bytes that both end with.
fn same_end(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - same], &b[..b.len() - same]);
    let bytes = a.iter().rev().zip(b.iter().rev());
    same + bytes.take_while(|(a, b)| a == b).count()
}

fn listed(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// Calls, outcomes and effects are strings, numbers and JSON values: they always
/// serialise.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(last: &str, body: &str, expected: &Value) {
        let mut encoder = Encoder::default();
        encoder.new_of(last.to_owned().into());
        assert_eq!(&encoder.new_of(body.to_owned().into()), expected);
    }

    #[test]
    fn of_a_body_what_is_new_is_written() {
        let long = "x".repeat(3 * BLOCK);
        check("", "a", &json!({"keep": 0, "then": "a", "keep_end": 0}));
        check("a", "a", &json!({"keep": 1, "then": "", "keep_end": 0}));
        check(
            "[1]",
            "[1,2]",
            &json!({"keep": 2, "then": ",2", "keep_end": 1}),
        );
        check(
            &format!("{long}]{long}"),
            &format!("{long},é]{long}"),
            &json!({"keep": 3 * BLOCK, "then": ",é", "keep_end": 3 * BLOCK + 1}),
        );
        // Both begin with the same byte of another character.
        check("é", "è", &json!({"keep": 0, "then": "è", "keep_end": 0}));
        check("aa", "aaa", &json!({"keep": 2, "then": "a", "keep_end": 0}));
    }
}
