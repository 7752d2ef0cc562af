//! One step as an HTTP response: waits, holds, cuts and breaks, the same for
//! every wire format.

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value, json};

use super::exchange::{Chunk, Ending, ModelRequest, ScriptedResponse};
use super::format::{Disconnect, HoldBefore, Page, Step, header_text};
use super::wire::{Head, Part, ResponseParts, Wire};
use super::{condition, table};

/// The response of `step` to the request with this number.
pub(super) fn step(
    wire: &dyn Wire,
    step: &Step,
    request: &ModelRequest,
    number: u64,
) -> ScriptedResponse {
    if let Some(expect) = &step.expect
        && let Some(mismatch) = expect.mismatch(wire, &condition::parse(&request.body))
    {
        let message = format!("the script expects something else of request {number}: {mismatch}");
        return refuse(wire, 400, &message);
    }
    let head: Head = serde_json::from_slice(&request.body).unwrap_or_default();
    let path = request.path.split(['?', '#']).next().unwrap_or_default();
    let streams = wire.streams(path, &head);
    let mut response = ScriptedResponse {
        status: 200,
        headers: vec![
            header("content-type", if streams { EVENT_STREAM } else { JSON }),
            header("cache-control", "no-cache"),
            header("request-id", &format!("req_{number}")),
        ],
        chunks: Vec::new(),
        ending: Ending::Complete,
    };
    let mut body = Body::default();
    if let Some(error) = &step.error {
        response.status = error.status;
        response.headers[0] = header("content-type", JSON);
        set_headers(&mut response.headers, &error.headers);
        let error = wire.error(error.status, error.r#type.as_deref(), &error.message);
        body.push(&Bytes::from(error.to_string()));
    } else if let Some(garbage) = &step.garbage {
        body.push(&Bytes::from(garbage.clone()));
    } else if step.disconnect != Some(Disconnect::Before) {
        let answer = ResponseParts {
            number,
            model: wire.model(path, &head),
            step,
        };
        if streams {
            stream(wire, &answer, &mut body);
        } else if let Some(error) = &step.stream_error {
            // Without a stream the error is the whole answer.
            response.status = 500;
            let error = wire.error(500, Some(&error.r#type), &error.message);
            body.push(&Bytes::from(error.to_string()));
        } else {
            whole(&wire.whole(&answer), step.disconnect, &mut body);
        }
    }
    if step.disconnect.is_some() {
        response.ending = Ending::Disconnect;
    }
    response.chunks = body.into_chunks(step.chunk_bytes.unwrap_or(usize::MAX));
    let first = &mut response.chunks[0];
    first.delay_ms = first.delay_ms.saturating_add(step.delay_ms);
    // Where the named part never comes, the hold stands before the start
    // rather than being lost.
    if step.hold.is_some() && response.chunks.iter().all(|chunk| chunk.hold.is_none()) {
        response.chunks[0].hold.clone_from(&step.hold);
    }
    response
}

/// A page beside the model.
pub(super) fn page(page: &Page) -> ScriptedResponse {
    let mut headers = vec![header("content-type", "text/html; charset=utf-8")];
    set_headers(&mut headers, &page.headers);
    ScriptedResponse {
        status: page.status,
        headers,
        chunks: vec![Chunk {
            bytes: Bytes::from(page.body.clone()),
            ..Chunk::default()
        }],
        ending: Ending::Complete,
    }
}

fn set_headers(headers: &mut Vec<(String, String)>, given: &Map<String, Value>) {
    for (name, value) in given {
        let name = name.to_ascii_lowercase();
        headers.retain(|(other, _)| *other != name);
        headers.push((name, header_text(value).unwrap_or_default()));
    }
}

/// An error of the script itself, in the provider's format.
pub(super) fn refuse(wire: &dyn Wire, status: u16, message: &str) -> ScriptedResponse {
    json_response(status, &wire.error(status, None, message))
}

/// The answer to a request that no wire format serves.
pub(super) fn unknown_path(path: &str) -> ScriptedResponse {
    let path = path.split('?').next().unwrap_or(path);
    let message = format!(
        "no model is served at {path}; the scripted model serves {}",
        table::routes()
    );
    json_response(
        404,
        &json!({"type": "error", "error": {"type": "not_found_error", "message": message}}),
    )
}

const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn json_response(status: u16, body: &Value) -> ScriptedResponse {
    ScriptedResponse {
        status,
        headers: vec![header("content-type", JSON)],
        chunks: vec![Chunk {
            bytes: Bytes::from(body.to_string()),
            ..Chunk::default()
        }],
        ending: Ending::Complete,
    }
}

fn stream(wire: &dyn Wire, answer: &ResponseParts<'_>, body: &mut Body) {
    let step = answer.step;
    let hold_part = match step.hold_before {
        HoldBefore::Start => Part::Start,
        HoldBefore::Text => Part::Text,
        HoldBefore::ToolCalls => Part::ToolCalls,
        HoldBefore::End => Part::End,
    };
    let mut hold = step.hold.as_ref();
    for piece in wire.stream(answer) {
        if piece.part >= hold_part
            && let Some(name) = hold.take()
        {
            body.wait(0, Some(name));
        }
        if piece.is_delta && step.delta_delay_ms > 0 {
            body.wait(step.delta_delay_ms, None);
        }
        match step.disconnect {
            Some(Disconnect::AfterText) if piece.part > Part::Text => return,
            Some(Disconnect::MidEvent) if piece.part > Part::Text => {
                body.push(&piece.bytes[..piece.bytes.len() / 2]);
                return;
            }
            Some(Disconnect::BeforeEnd) if piece.part == Part::End => return,
            _ => {}
        }
        if piece.part == Part::End
            && let Some(error) = &step.stream_error
        {
            body.push(&wire.stream_error(&error.r#type, &error.message));
            return;
        }
        body.push(&piece.bytes);
    }
}

fn whole(value: &Value, disconnect: Option<Disconnect>, body: &mut Body) {
    let text = value.to_string();
    let end = match disconnect {
        None => text.len(),
        Some(_) => text.len() / 2,
    };
    body.push(&text.as_bytes()[..end]);
}

/// A body under construction: bytes that no wait separates leave together, so
/// that a fast script costs one write.
#[derive(Default)]
struct Body {
    segments: Vec<(u64, Option<String>, BytesMut)>,
}

impl Body {
    fn wait(&mut self, delay_ms: u64, hold: Option<&String>) {
        match self.segments.last_mut() {
            // Nothing to send between two waits: they are one.
            Some((delay, held, bytes)) if bytes.is_empty() && held.is_none() => {
                *delay = delay.saturating_add(delay_ms);
                *held = hold.cloned();
            }
            _ => self
                .segments
                .push((delay_ms, hold.cloned(), BytesMut::new())),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.segments.is_empty() {
            self.segments.push((0, None, BytesMut::new()));
        }
        if let Some((_, _, segment)) = self.segments.last_mut() {
            segment.extend_from_slice(bytes);
        }
    }

    /// At least one chunk.
    fn into_chunks(self, length: usize) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        for (delay_ms, hold, bytes) in self.segments {
            let mut bytes = bytes.freeze();
            chunks.push(Chunk {
                delay_ms,
                hold,
                bytes: bytes.split_to(length.min(bytes.len())),
            });
            while !bytes.is_empty() {
                chunks.push(Chunk {
                    bytes: bytes.split_to(length.min(bytes.len())),
                    ..Chunk::default()
                });
            }
        }
        if chunks.is_empty() {
            chunks.push(Chunk::default());
        }
        chunks
    }
}
