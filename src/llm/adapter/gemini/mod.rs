//! The Gemini API, `streamGenerateContent` (LLM-client brief §10).
//!
//! The key goes into the header `x-goog-api-key`, never into the URL. Keys of
//! `provider_options.gemini` that are not part of the body: `safety_settings`
//! (list, becomes `safetySettings`), `grounding`, `url_context` and
//! `code_execution` (`true` adds the provider's own tool to the list, which a
//! merge of `tools` would replace). Everything else is merged into the body
//! last; `contents` belongs to the adapter.

mod contents;
mod decode;
mod encode;
mod error;
mod thinking;

use super::reader::Reader;
use super::{Adapter, Encoded, ProviderVariables, failure};
use crate::llm::error::{LlmError, Names};
use crate::llm::model::ThinkingControl;
use crate::llm::request::{Endpoint, Request};
use crate::llm::stream::StreamDecoder;

/// Name of the adapter, of its options and of its replays.
pub(super) const NAME: &str = "gemini";

/// Ids that the decoder makes up begin like this; they do not go back.
const OWN_ID: &str = "call_gemini_";

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gemini;

impl Adapter for Gemini {
    fn name(&self) -> &'static str {
        NAME
    }

    fn default_base_url(&self) -> &'static str {
        "https://generativelanguage.googleapis.com"
    }

    fn variables(&self) -> ProviderVariables {
        ProviderVariables {
            keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            base_url: "GEMINI_BASE_URL",
            options: &[],
            key_optional: false,
        }
    }

    fn encode(&self, request: &Request, target: &Endpoint) -> Result<Encoded, LlmError> {
        encode::encode(request, target, self.default_base_url())
    }

    fn decoder(&self, request: &Request, target: &Endpoint) -> Box<dyn StreamDecoder> {
        Box::new(Reader::new(decode::Events::new(
            request,
            Names::of(NAME, request, target),
        )))
    }

    fn error(
        &self,
        names: &Names,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
    ) -> LlmError {
        failure::of_response(names, status, headers, body, "x-request-id", error::of_body)
    }
}

/// Whether the model belongs to the generations before 3, which measure
/// reasoning in tokens and know neither levels nor media in results. A model
/// that nobody knows is newer than the catalogue.
fn is_old(request: &Request) -> bool {
    let id = request
        .model
        .strip_prefix("models/")
        .unwrap_or(&request.model);
    match super::body::known_model(NAME, request).and_then(|info| info.thinking_control) {
        Some(control) => control == ThinkingControl::Budget,
        None => id.starts_with("gemini-1") || id.starts_with("gemini-2"),
    }
}
