//! A response outside of 200–299 as an error; what its body says is the
//! adapter's to tell (LLM-client brief §4).

use serde_json::Value;

use super::header;
use crate::llm::error::{LlmError, LlmErrorKind, Names};
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
    let mut error = match serde_json::from_slice::<Value>(body) {
        Ok(body) => of_body(names, Some(status), body),
        Err(_) => {
            let text = String::from_utf8_lossy(body);
            let mut error = names.error(LlmErrorKind::of_status(status), Some(status), None, &text);
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
