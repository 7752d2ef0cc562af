//! Errors and limits in the words of OpenAI, which the servers of the `chat`
//! adapter speak as well (LLM-client brief §4, §7.6).
//!
//! Shapes: `{"error": {message, type, code, param}}`; flat, inside a stream;
//! `{"error": "text"}` (Ollama); `{"detail": …}` (servers made with FastAPI).

use serde_json::Value;

use crate::llm::error::{LlmError, LlmErrorKind};
use crate::llm::http::header;
use crate::llm::names::Names;
use crate::llm::response::RateLimit;
use crate::llm::retry;

/// Header with the provider's id of the request.
pub(super) const ID_HEADER: &str = "x-request-id";

/// The error in `body`, of a response or of an event in a stream.
pub(super) fn of_body(names: &Names, status: Option<u16>, body: Value) -> LlmError {
    let detail = match &body["error"] {
        Value::Null => &body,
        detail => detail,
    };
    let message = [
        detail,
        &detail["message"],
        &body["message"],
        &body["detail"],
    ]
    .into_iter()
    .find_map(Value::as_str)
    .map_or_else(|| body.to_string(), str::to_owned);
    let own_type = detail["type"].as_str().filter(|kind| *kind != "error");
    let number = detail["code"].as_u64();
    let code = detail["code"].as_str().or(own_type);
    // Inside a stream some servers give the HTTP status as the code.
    let told = status.or_else(|| u16::try_from(number?).ok().filter(|status| *status >= 400));
    let kind = kind(code.unwrap_or_default(), own_type, told, &message);
    let mut error = names.error(kind, status, code, &message);
    error.retry_after_ms = detail["retry_after"]
        .as_f64()
        .filter(|seconds| *seconds > 0.0 && seconds.is_finite())
        .map(|seconds| (seconds * 1_000.0).ceil() as u64)
        .or_else(|| retry::wait_in_words(&message))
        .filter(|_| error.retryable);
    error.raw = Some(Box::new(body));
    error
}

/// First the structured code, then the status, then the wording; the wording
/// counts only where the others say no more than that something is wrong.
fn kind(code: &str, kind: Option<&str>, status: Option<u16>, message: &str) -> LlmErrorKind {
    if status == Some(404) && message.starts_with("Item with id") {
        // A replayed item that the provider never stored.
        return LlmErrorKind::InvalidRequest;
    }
    if let Some(kind) = of_code(code).or_else(|| of_code(kind?)) {
        return kind;
    }
    let wording = || LlmErrorKind::of_wording(message);
    match status {
        Some(400 | 422) => wording().unwrap_or(LlmErrorKind::InvalidRequest),
        // Some servers answer everything that goes wrong with a 500.
        Some(500) => match wording() {
            Some(LlmErrorKind::ContextLength) => LlmErrorKind::ContextLength,
            _ => LlmErrorKind::Server,
        },
        Some(status) => LlmErrorKind::of_status(status),
        None if kind == Some("invalid_request_error") => {
            wording().unwrap_or(LlmErrorKind::InvalidRequest)
        }
        None => wording().unwrap_or(LlmErrorKind::Server),
    }
}

fn of_code(code: &str) -> Option<LlmErrorKind> {
    Some(match code {
        "context_length_exceeded" | "exceed_context_size_error" => LlmErrorKind::ContextLength,
        "insufficient_quota"
        | "credit_balance_exhausted"
        | "organization_spend_limit_exceeded"
        | "project_spend_limit_exceeded"
        | "organization_usage_limit_exceeded"
        | "billing_hard_limit_reached" => LlmErrorKind::QuotaExceeded,
        "rate_limit_exceeded" | "slow_down" | "rate_limit_error" => LlmErrorKind::RateLimit,
        "invalid_api_key" | "authentication_error" => LlmErrorKind::Authentication,
        "permission_error" | "unsupported_country_region_territory" => LlmErrorKind::AccessDenied,
        "model_not_found" | "not_found_error" => LlmErrorKind::NotFound,
        "content_filter" | "invalid_prompt" => LlmErrorKind::ContentFilter,
        "server_error" | "server_is_overloaded" | "overloaded_error" | "internal_error" => {
            LlmErrorKind::Server
        }
        _ if code.contains("_policy") => LlmErrorKind::ContentFilter,
        "data_residency_mismatch" => LlmErrorKind::InvalidRequest,
        // Many codes tell what is wrong with an image.
        _ if code.contains("image") => LlmErrorKind::InvalidRequest,
        _ => return None,
    })
}

pub(super) fn rate_limit(headers: &[(String, String)]) -> Option<RateLimit> {
    let value = |name| header(headers, name);
    let number = |name| value(name)?.parse().ok();
    let limit = RateLimit {
        requests_limit: number("x-ratelimit-limit-requests"),
        requests_remaining: number("x-ratelimit-remaining-requests"),
        tokens_limit: number("x-ratelimit-limit-tokens"),
        tokens_remaining: number("x-ratelimit-remaining-tokens"),
        reset_at: value("x-ratelimit-reset-tokens")
            .or_else(|| value("x-ratelimit-reset-requests"))
            .map(str::to_owned),
    };
    (limit != RateLimit::default()).then_some(limit)
}
