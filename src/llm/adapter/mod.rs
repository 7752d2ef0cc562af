//! Adapters: one provider's wire format each, without I/O. A new provider is a
//! new file here and a line in [`ADAPTERS`].

mod anthropic;
mod chat;
mod gemini;
mod openai;

mod body;
mod call;
mod effort;
mod failure;
mod freeform;
mod media;
mod openai_error;
mod provider;
mod reader;
mod sampled;
mod schema;
mod segments;
mod text;

pub(super) use call::raw_object;

use serde_json::Value;

use super::error::{LlmError, Names};
use super::http::HttpRequest;
use super::message::Message;
use super::request::{Endpoint, Request, Warning};
use super::response::RateLimit;
use super::stream::StreamDecoder;

static ADAPTERS: &[&dyn Adapter] = &[
    &openai::OpenAi,
    &anthropic::Anthropic,
    &gemini::Gemini,
    &chat::Chat,
];

/// The adapter of this name: `openai`, `anthropic`, `gemini` or `chat`.
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

/// Environment variables that set a provider up (LLM-client brief §1). The
/// core reads none: a host gives their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderVariables {
    /// Variables that may hold the key, the first one set counts.
    pub keys: &'static [&'static str],
    /// Variable with the base URL.
    pub base_url: &'static str,
    /// Variables that set an option of the [`Endpoint`], with its name.
    pub options: &'static [(&'static str, &'static str)],
    /// Whether a base URL alone is enough: a server that needs no key.
    pub key_optional: bool,
}

impl ProviderVariables {
    /// The endpoint that `variable` describes, with `credential` as the name
    /// of its key; `None` when the provider is not set up. Empty values count
    /// as absent.
    pub fn endpoint(
        &self,
        credential: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<Endpoint> {
        let set = |name: &str| {
            let value = variable(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let has_key = self.keys.iter().any(|key| set(key).is_some());
        let base_url = set(self.base_url);
        let is_set_up = has_key || (self.key_optional && base_url.is_some());
        if !is_set_up {
            return None;
        }
        let credential = if has_key { credential } else { "" };
        let mut endpoint = Endpoint::new(base_url.unwrap_or_default(), credential);
        for (name, option) in self.options {
            if let Some(value) = set(name) {
                endpoint.options[*option] = Value::from(value);
            }
        }
        Some(endpoint)
    }
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

/// The texts for the provider's system field: those of the request, then the
/// leading run of system messages. Later ones stay in their place.
fn system_texts(request: &Request) -> Vec<String> {
    let leading = request.conversation.leading_system().iter();
    request
        .system
        .iter()
        .cloned()
        .chain(leading.map(Message::joined_text))
        .filter(|text| !text.trim().is_empty())
        .collect()
}
