//! One HTTP exchange as data. Keys never appear here: a request names a
//! credential, and the host adds its key when the request leaves.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A request for the transport to perform. The response body is streamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// `GET` or `POST`.
    pub method: String,
    /// Absolute URL.
    pub url: String,
    /// Names in lower case, with values; never a credential.
    pub headers: Vec<(String, String)>,
    /// Body bytes.
    #[serde(with = "crate::text::blob")]
    pub body: Bytes,
    /// Header that the host fills from a credential it holds.
    pub auth: Option<Auth>,
    /// Time limit for connecting, in ms.
    pub connect_timeout_ms: u64,
}

/// Which credential goes into which header. The host fills it only if the
/// URL's origin is the one configured for that credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Auth {
    /// Name under which the host holds the key, such as `anthropic`.
    pub credential: String,
    /// Header name in lower case.
    pub header: String,
    /// Text before the key, such as `Bearer `.
    pub prefix: String,
}

/// Why there was no (complete) response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransportError {
    /// What kind of failure.
    pub kind: TransportErrorKind,
    /// One sentence that names the host or URL; lower case, no full stop.
    pub message: String,
}

/// Kinds of [`TransportError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// No connection, name not found, TLS failure, refused by CORS.
    Connect,
    /// The connection broke before the response was complete.
    Broken,
    /// A time limit of the transport.
    Timeout,
    /// The host holds no such credential, or not for this origin.
    Credential,
    /// The request cannot be sent (bad URL, redirect of an authenticated request).
    Invalid,
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TransportError {}

/// Value of the header `name`, which is in lower case.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}
