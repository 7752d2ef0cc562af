//! Lines of a log. The same bytes come of the same run, so a replay compares them.

use std::io::Write as _;

use bytes::Bytes;
use serde::Serialize;

use super::Output;
use crate::effect::{EffectKind, Outcome};
use crate::session::InstanceCall;

/// Makes lines, in order.
#[derive(Default)]
pub(super) struct Encoder {
    /// The last body of a request.
    body: Bytes,
}

/// The inputs of a step.
#[derive(Serialize)]
struct Inputs<'a> {
    now_ms: u64,
    outcomes: &'a [Outcome],
}

/// An effect; the body of a request is `null` here and stands in `body`.
#[derive(Serialize)]
struct EffectLine<'a> {
    id: u64,
    owner: &'a str,
    kind: &'a EffectKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Body<'a>>,
}

#[derive(Serialize)]
struct Report<'a, K> {
    job: &'a str,
    kind: &'a K,
}

/// What of a body the last one does not have.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Body<'a> {
    Text {
        keep: usize,
        then: &'a str,
        keep_end: usize,
    },
    Bytes {
        bytes: &'a [u8],
    },
}

/// The line of a call, without its end.
pub(super) fn call(line: &mut Vec<u8>, call: &InstanceCall) {
    line.extend_from_slice(br#"{"call":"#);
    json(line, call);
}

impl Encoder {
    /// The line of a step, without its end.
    pub(super) fn step(
        &mut self,
        line: &mut Vec<u8>,
        now_ms: u64,
        outcomes: &[Outcome],
        output: &Output<'_>,
    ) {
        line.extend_from_slice(br#"{"step":"#);
        json(line, &Inputs { now_ms, outcomes });
        line.extend_from_slice(br#","output":"#);
        self.output(line, output);
    }

    /// What a step output.
    pub(super) fn output(&mut self, line: &mut Vec<u8>, output: &Output<'_>) {
        line.extend_from_slice(br#"{"events":"#);
        // They are JSON already.
        list(line, &output.events, |line, (_, json)| {
            line.extend_from_slice(json);
        });
        line.extend_from_slice(br#","effects":"#);
        list(line, &output.effects, |line, (id, owner, kind)| {
            self.effect(line, *id, owner, kind);
        });
        line.extend_from_slice(br#","reports":"#);
        list(line, &output.reports, |line, (job, kind)| {
            json(line, &Report { job, kind: *kind });
        });
        line.extend_from_slice(br#","log":"#);
        json(line, output.log);
        // Into memory: it is always written.
        let _ = write!(line, r#","busy":{}}}"#, output.busy);
    }

    fn effect(&mut self, line: &mut Vec<u8>, id: u64, owner: &str, kind: &EffectKind) {
        let EffectKind::Http(request) = kind else {
            let body = None;
            return json(
                line,
                &EffectLine {
                    id,
                    owner,
                    kind,
                    body,
                },
            );
        };
        let mut request = request.clone();
        let body = std::mem::take(&mut request.body);
        let last = std::mem::replace(&mut self.body, body.clone());
        let kind = &EffectKind::Http(request);
        let body = Some(new_of(&last, &body));
        json(
            line,
            &EffectLine {
                id,
                owner,
                kind,
                body,
            },
        );
    }
}

fn new_of<'a>(last: &[u8], body: &'a [u8]) -> Body<'a> {
    let Ok(text) = std::str::from_utf8(body) else {
        return Body::Bytes { bytes: body };
    };
    let mut keep = same_beginning(last, body);
    while !text.is_char_boundary(keep) {
        keep -= 1;
    }
    let mut keep_end = same_end(&last[keep..], &body[keep..]);
    while !text.is_char_boundary(text.len() - keep_end) {
        keep_end -= 1;
    }
    Body::Text {
        keep,
        then: &text[keep..text.len() - keep_end],
        keep_end,
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

fn list<T>(line: &mut Vec<u8>, items: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    line.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            line.push(b',');
        }
        put(line, item);
    }
    line.push(b']');
}

/// Calls, outcomes and effects are strings, numbers and JSON values, and memory takes
/// everything: they always serialise.
fn json(line: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let _ = serde_json::to_writer(line, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(last: &str, body: &str, (keep, then, keep_end): (usize, &str, usize)) {
        let expected = Body::Text {
            keep,
            then,
            keep_end,
        };
        assert_eq!(new_of(last.as_bytes(), body.as_bytes()), expected);
    }

    #[test]
    fn of_a_body_what_is_new_is_written() {
        let long = "x".repeat(3 * BLOCK);
        check("", "a", (0, "a", 0));
        check("a", "a", (1, "", 0));
        check("[1]", "[1,2]", (2, ",2", 1));
        check(
            &format!("{long}]{long}"),
            &format!("{long},é]{long}"),
            (3 * BLOCK, ",é", 3 * BLOCK + 1),
        );
        // Both begin with the same byte of another character.
        check("é", "è", (0, "è", 0));
        check("aa", "aaa", (2, "a", 0));
    }
}
