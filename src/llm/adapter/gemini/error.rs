//! Errors in this provider's words (LLM-client brief §4): a body
//! `{"error": {code, message, status, details}}`, sometimes as the one element
//! of a list.

use serde_json::Value;

use crate::llm::error::{LlmError, LlmErrorKind};
use crate::llm::names::Names;
use crate::llm::retry;

/// The error in `body`, of a response or of a chunk in a stream.
pub(super) fn of_body(names: &Names, status: Option<u16>, body: Value) -> LlmError {
    let body = match body {
        Value::Array(mut list) if list.len() == 1 => list.remove(0),
        body => body,
    };
    let detail = &body["error"];
    let message = match &detail["message"] {
        Value::String(message) => message.clone(),
        _ => body.to_string(),
    };
    let told = || u16::try_from(detail["code"].as_u64()?).ok();
    let code = detail["status"].as_str();
    let kind = kind(detail, status, told(), &message);
    let mut error = names.error(kind, status, code, &message);
    if error.retryable {
        error.retry_after_ms = details(detail)
            .find_map(|detail| retry::duration_ms(detail["retryDelay"].as_str()?))
            .or_else(|| retry::wait_in_words(&message));
    }
    error.raw = Some(Box::new(body));
    error
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error["details"].as_array().into_iter().flatten()
}

/// First the details, then the HTTP status, then the status in the body; the
/// wording counts only where the others say no more than that something is
/// wrong.
fn kind(error: &Value, http: Option<u16>, told: Option<u16>, message: &str) -> LlmErrorKind {
    let reason = |wanted: &str| details(error).any(|detail| detail["reason"] == wanted);
    if reason("API_KEY_INVALID") {
        return LlmErrorKind::Authentication;
    }
    let name = error["status"].as_str().unwrap_or_default();
    let exhausted = name == "RESOURCE_EXHAUSTED" || http.or(told) == Some(429);
    if exhausted && http.is_none_or(|status| status == 429) {
        return if is_daily(error) || message.contains("limit: 0") {
            LlmErrorKind::QuotaExceeded
        } else {
            LlmErrorKind::RateLimit
        };
    }
    let wording = |kind| LlmErrorKind::of_wording(message).unwrap_or(kind);
    match http {
        Some(400 | 422) => wording(LlmErrorKind::InvalidRequest),
        Some(status) => LlmErrorKind::of_status(status),
        None => match name {
            "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" => {
                wording(LlmErrorKind::InvalidRequest)
            }
            "UNAUTHENTICATED" => LlmErrorKind::Authentication,
            "PERMISSION_DENIED" => LlmErrorKind::AccessDenied,
            "NOT_FOUND" => LlmErrorKind::NotFound,
            "DEADLINE_EXCEEDED" => LlmErrorKind::RequestTimeout,
            "UNAVAILABLE" | "INTERNAL" => LlmErrorKind::Server,
            _ => match told {
                Some(status) if status >= 400 => LlmErrorKind::of_status(status),
                _ => wording(LlmErrorKind::Server),
            },
        },
    }
}

/// Whether a quota of the day is used up: waiting a little does not help.
fn is_daily(error: &Value) -> bool {
    details(error)
        .filter_map(|detail| detail["violations"].as_array())
        .flatten()
        .filter_map(|violation| violation["quotaId"].as_str())
        .any(|quota| quota.contains("PerDay") || quota.contains("Daily"))
}
