//! Adapters: one provider's wire format each, without I/O. A new provider is a
//! new file here and a line in [`ADAPTERS`].

mod anthropic;

use super::error::{LlmError, Names};
use super::http::HttpRequest;
use super::request::{Endpoint, Request, Warning};
use super::response::RateLimit;
use super::stream::StreamDecoder;

static ADAPTERS: &[&dyn Adapter] = &[&anthropic::Anthropic];

/// The adapter of this name: `anthropic`.
pub fn adapter(name: &str) -> Option<&'static dyn Adapter> {
    ADAPTERS
        .iter()
        .copied()
        .find(|adapter| adapter.name() == name)
}

/// Names of all adapters, in the order in which a default is chosen.
pub fn adapter_names() -> impl Iterator<Item = &'static str> {
    ADAPTERS.iter().map(|adapter| adapter.name())
}

/// A request ready to send.
#[derive(Debug)]
pub struct Encoded {
    /// What to send.
    pub http: HttpRequest,
    /// What was left out or changed.
    pub warnings: Vec<Warning>,
}

/// Translates between the neutral types and one provider's API.
pub trait Adapter: Sync {
    /// Name of the wire format; also the key in `provider_options` and in replays.
    fn name(&self) -> &'static str;

    /// Base URL of the provider itself.
    fn default_base_url(&self) -> &'static str;

    /// Encodes `request`, which seals its conversation.
    ///
    /// # Errors
    ///
    /// When the request cannot be expressed; nothing was sent then.
    fn encode(&self, request: &Request, target: &Endpoint) -> Result<Encoded, LlmError>;

    /// A decoder for the answer to `request`.
    fn decoder(&self, request: &Request, target: &Endpoint) -> Box<dyn StreamDecoder>;

    /// The error that a response outside of 200–299 tells. Header names are in
    /// lower case.
    fn error(
        &self,
        names: &Names,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
    ) -> LlmError;

    /// The state of the rate limits in the headers of a response.
    fn rate_limit(&self, headers: &[(String, String)]) -> Option<RateLimit> {
        let _ = headers;
        None
    }
}

/// Value of the header `name`, which is in lower case.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}
