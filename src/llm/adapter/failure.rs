//! A response outside of 200–299 as an error; what its body says is the
//! adapter's to tell (LLM-client brief §4).

use serde_json::Value;

use crate::llm::error::{LlmError, LlmErrorKind};
use crate::llm::http::header;
use crate::llm::names::Names;
use crate::llm::retry;

/// Characters of a body that is not JSON kept in an error.
const MAX_RAW_CHARS: usize = 2_000;

/// The error that a response tells. `of_body` reads a JSON body; `id_header`
/// names the header with the provider's id of the request.
pub(super) fn of_response(
    names: &Names,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
    id_header: &str,
    of_body: fn(&Names, Option<u16>, Value) -> LlmError,
) -> LlmError {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    let mut error = match std::str::from_utf8(body).ok().and_then(read) {
        Some(body) => of_body(names, Some(status), body),
        None => {
            let text = String::from_utf8_lossy(body);
            let mut error = match LlmErrorKind::of_status(status) {
                // No API answers so: the base URL leads to something else.
                LlmErrorKind::InvalidRequest | LlmErrorKind::Unknown if is_page(&text) => {
                    let said = format!("a web page, which begins with {}", text.trim_start());
                    names.error(LlmErrorKind::Configuration, Some(status), None, &said)
                }
                kind => names.error(kind, Some(status), None, &text),
            };
            let text: String = text.chars().take(MAX_RAW_CHARS).collect();
            error.raw = Some(Box::new(Value::from(text)));
            error
        }
    };
    if let Some(id) = header(headers, id_header) {
        error.request_id = Some(id.into());
    }
    retry::read_headers(&mut error, headers);
    error
}

fn is_page(text: &str) -> bool {
    let text = text.trim_start().as_bytes();
    let begins = |with: &str| {
        let start = text.get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
    };
    begins("<!doctype") || begins("<html")
}
