//! What a scripted model is asked and what it answers, as data.

use bytes::Bytes;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

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
    pub(super) fn origin(&self) -> String {
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

impl RecordedRequest {
    /// What is kept of `request`.
    pub(super) fn of(request: &ModelRequest, number: u64, step: Option<usize>) -> Self {
        Self {
            number,
            step,
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
        }
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
