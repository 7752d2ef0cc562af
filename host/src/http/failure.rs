//! Sentences for what goes wrong on the wire.
//!
//! Each names the host and the way out. They are built from the origin and the
//! innermost cause only: a URL may carry a key in its query, and the texts of
//! the HTTP client quote URLs.

use std::error::Error;
use std::io;

use hermitcrab::llm::{TransportError, TransportErrorKind};
use reqwest::Url;

use crate::credential::origin_text;

/// A request that cannot be sent.
pub(super) fn invalid(message: impl Into<String>) -> TransportError {
    TransportError {
        kind: TransportErrorKind::Invalid,
        message: message.into(),
    }
}

/// No response head arrived.
pub(super) fn connect_failure(
    url: &Url,
    connect_timeout_ms: u64,
    error: &reqwest::Error,
) -> TransportError {
    let host = origin_text(url);
    let (kind, message) = if error.is_connect() && error.is_timeout() {
        (
            TransportErrorKind::Timeout,
            format!("no connection to {host} within {connect_timeout_ms} ms"),
        )
    } else if error.is_connect() {
        // The model client adds what to check; only TLS has more to say.
        let way_out = match tls_error(error) {
            // What came back is no TLS at all.
            Some(rustls::Error::InvalidMessage(_)) => {
                "; this server does not speak TLS: use http:// in the base URL"
            }
            Some(_) => {
                "; check the server's certificate and the system's root certificates (a file of \
                 more can be named in SSL_CERT_FILE)"
            }
            None => "",
        };
        (
            TransportErrorKind::Connect,
            format!("cannot connect to {host}: {}{way_out}", cause(error)),
        )
    } else if error.is_builder() {
        (
            TransportErrorKind::Invalid,
            format!("cannot send the request to {host}: {}", cause(error)),
        )
    } else {
        (
            TransportErrorKind::Broken,
            format!(
                "the connection to {host} broke before a response arrived: {}",
                cause(error)
            ),
        )
    };
    TransportError { kind, message }
}

/// The body broke off.
pub(super) fn broken(url: &Url, error: &reqwest::Error) -> TransportError {
    TransportError {
        kind: TransportErrorKind::Broken,
        message: format!(
            "the connection to {} broke before the response was complete: {}",
            origin_text(url),
            cause(error)
        ),
    }
}

fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    sources(error).find_map(held_tls)
}

/// An I/O error may wrap another, and hides what it wraps from `source`.
fn held_tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    match error.downcast_ref::<rustls::Error>() {
        Some(error) => Some(error),
        None => held_tls(error.downcast_ref::<io::Error>()?.get_ref()?),
    }
}

/// The innermost cause: its I/O kind where there is one, else its text.
fn cause(error: &reqwest::Error) -> String {
    let mut text = String::from("no cause given");
    for source in sources(error) {
        text = match source.downcast_ref::<io::Error>() {
            Some(io) if io.get_ref().is_none() && io.raw_os_error().is_some() => {
                io.kind().to_string()
            }
            _ => source.to_string(),
        };
    }
    let text = match text.rsplit_once(" (os error ") {
        Some((before, _)) => before.to_owned(),
        None => text,
    };
    text.replace(['\r', '\n'], " ")
}

fn sources<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |source| (*source).source())
}
