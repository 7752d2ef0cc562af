//! The Gemini API, `streamGenerateContent` (LLM-client brief §10).
//!
//! The key goes into the header `x-goog-api-key`, never into the URL. Keys of
//! `provider_options.gemini` that are not part of the body: `safety_settings`
//! (list, becomes `safetySettings`), `grounding`, `url_context` and
//! `code_execution` (`true` adds the provider's own tool), and `tools` (list,
//! added to the request's). Models before Gemini 3 take no tools of the
//! provider beside functions: there they are left out with a warning.
//! Everything else is merged into the body last; `contents` and
//! `continuationToken` belong to the adapter.

mod adapter;
mod contents;
mod decode;
mod encode;
mod error;
mod thinking;

pub(super) use adapter::Gemini;

use crate::llm::model::ThinkingControl;
use crate::llm::request::Request;

/// Name of the adapter, of its options and of its replays.
pub(super) const NAME: &str = "gemini";

/// Ids that the decoder makes up begin like this; they do not go back.
const OWN_ID: &str = "call_gemini_";

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
