//! Errors and limits in this provider's words (LLM-client brief §4, §7.6).

use serde_json::Value;

use crate::llm::error::{LlmError, LlmErrorKind};
use crate::llm::http::header;
use crate::llm::names::Names;
use crate::llm::response::RateLimit;

/// The error in `body`, of a response or of an event in a stream.
pub(super) fn of_body(names: &Names, status: Option<u16>, body: Value) -> LlmError {
    let detail = &body["error"];
    let code = detail["details"]["error_code"]
        .as_str()
        .or(detail["type"].as_str());
    let message = match &detail["message"] {
        Value::String(message) => message.clone(),
        _ => body.to_string(),
    };
    let kind = kind(
        code.unwrap_or_default(),
        detail["type"].as_str(),
        status,
        &message,
    );
    let mut error = names.error(kind, status, code, &message);
    error.request_id = body["request_id"].as_str().map(Box::from);
    error.raw = Some(Box::new(body));
    error
}

/// First the structured code, then the status, then the wording; the wording
/// counts only where the others say no more than that something is wrong.
fn kind(code: &str, kind: Option<&str>, status: Option<u16>, message: &str) -> LlmErrorKind {
    let of_code = |code: &str| {
        Some(match code {
            "enforced_spend_limit_reached" | "contract_spend_limit_reached" | "billing_error" => {
                LlmErrorKind::QuotaExceeded
            }
            "ramp_limit_exceeded" | "rate_limit_error" => LlmErrorKind::RateLimit,
            "authentication_error" => LlmErrorKind::Authentication,
            "permission_error" => LlmErrorKind::AccessDenied,
            "not_found_error" => LlmErrorKind::NotFound,
            "request_too_large" => LlmErrorKind::ContextLength,
            "conflict_error" => LlmErrorKind::Unknown,
            "api_error" | "timeout_error" | "overloaded_error" => LlmErrorKind::Server,
            _ => return None,
        })
    };
    if let Some(kind) = of_code(code).or_else(|| kind.and_then(of_code)) {
        return kind;
    }
    let wording = || LlmErrorKind::of_wording(message);
    match status {
        Some(400 | 422) => wording().unwrap_or(LlmErrorKind::InvalidRequest),
        Some(status) => LlmErrorKind::of_status(status),
        None if kind == Some("invalid_request_error") => {
            wording().unwrap_or(LlmErrorKind::InvalidRequest)
        }
        None => wording().unwrap_or(LlmErrorKind::Server),
    }
}

pub(super) fn rate_limit(headers: &[(String, String)]) -> Option<RateLimit> {
    let value = |name| header(headers, name);
    let number = |name| value(name)?.parse().ok();
    let limit = RateLimit {
        requests_limit: number("anthropic-ratelimit-requests-limit"),
        requests_remaining: number("anthropic-ratelimit-requests-remaining"),
        tokens_limit: number("anthropic-ratelimit-tokens-limit")
            .or_else(|| number("anthropic-ratelimit-input-tokens-limit")),
        tokens_remaining: number("anthropic-ratelimit-tokens-remaining")
            .or_else(|| number("anthropic-ratelimit-input-tokens-remaining")),
        reset_at: value("anthropic-ratelimit-tokens-reset")
            .or_else(|| value("anthropic-ratelimit-input-tokens-reset"))
            .or_else(|| value("anthropic-ratelimit-requests-reset"))
            .map(str::to_owned),
    };
    (limit != RateLimit::default()).then_some(limit)
}
