//! Adapters: one provider's wire format each, without I/O. A new provider is a
//! new folder here and a line in the table, `table.rs`.

mod anthropic;
mod chat;
mod gemini;
mod openai;

mod body;
mod call;
mod effort;
mod encode;
mod failure;
mod freeform;
mod media;
mod openai_error;
mod reader;
mod sampled;
mod schema;
mod segments;
mod table;
mod text;

pub(crate) use table::unbound;
pub use table::{adapter, adapter_names};

use super::endpoint::{Endpoint, ProviderVariables};
use super::error::LlmError;
use super::http::HttpRequest;
use super::message::Replay;
use super::names::Names;
use super::request::Request;
use super::response::RateLimit;
use super::stream::StreamDecoder;
use super::warning::Warning;

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

    /// The environment variables that set it up.
    fn variables(&self) -> ProviderVariables;

    /// Encodes `request`, which seals its conversation.
    ///
    /// # Errors
    ///
    /// When the request cannot be expressed; nothing was sent then.
    fn encode(&self, request: &Request, target: &Endpoint) -> Result<Encoded, LlmError>;

    /// A decoder for the answer to `request`.
    fn decoder(&self, request: &Request, target: &Endpoint) -> Box<dyn StreamDecoder>;

    /// Takes out of `replay` what is bound to all that stood before it, and which the
    /// provider refuses behind anything else.
    fn unbind(&self, replay: &mut Replay) {
        let _ = replay;
    }

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
