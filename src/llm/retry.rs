//! Whether and when to try again, as a pure function (LLM-client brief §5).
//! The caller brings the random number and the clock.

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::error::LlmError;
use super::http::header;

/// How often and how patiently to retry. The defaults are the spec's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// Most retries after the first try; 0 never retries.
    pub max_retries: u32,
    /// First delay in ms.
    pub base_delay_ms: u64,
    /// Factor from one delay to the next.
    pub multiplier: f64,
    /// Longest delay in ms; a longer Retry-After fails at once.
    pub max_delay_ms: u64,
    /// Whether delays are spread over 50 to 150 %.
    pub jitter: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 2,
            base_delay_ms: 1_000,
            multiplier: 2.0,
            max_delay_ms: 60_000,
            jitter: true,
        }
    }
}

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryDecision {
    /// Try again after this many ms.
    Retry {
        /// Delay in ms.
        delay_ms: u64,
    },
    /// Do not try again: waiting does not help.
    NotRetryable,
    /// Do not try again: enough tries.
    Exhausted,
    /// Do not try again: the provider asks for a longer wait than the policy
    /// allows.
    TooLong {
        /// The wait it asks for, in ms.
        retry_after_ms: u64,
    },
}

/// Decides about a retry. `attempt` counts the retries already made, `random`
/// is in 0..1, `now_ms` is ms since 1970-01-01 UTC.
pub fn retry_delay_ms(
    policy: &RetryPolicy,
    attempt: u32,
    error: &LlmError,
    random: f64,
    now_ms: u64,
) -> RetryDecision {
    if !error.retryable {
        return RetryDecision::NotRetryable;
    }
    if attempt >= policy.max_retries {
        return RetryDecision::Exhausted;
    }
    let at = error
        .retry_at_ms
        .map(|at| at.saturating_sub(now_ms))
        .filter(|wait| *wait > 0);
    if let Some(retry_after_ms) = error.retry_after_ms.or(at) {
        return if retry_after_ms > policy.max_delay_ms {
            RetryDecision::TooLong { retry_after_ms }
        } else {
            RetryDecision::Retry {
                delay_ms: retry_after_ms,
            }
        };
    }
    let exponent = i32::try_from(attempt).unwrap_or(i32::MAX);
    let backoff = policy.base_delay_ms as f64 * policy.multiplier.powi(exponent);
    // `min` also turns a NaN into the longest delay.
    let mut delay = backoff.min(policy.max_delay_ms as f64);
    if policy.jitter {
        delay *= 0.5 + random.clamp(0.0, 1.0);
    }
    RetryDecision::Retry {
        delay_ms: delay.max(0.0) as u64,
    }
}

/// Reads what response headers say about retrying: `retry-after-ms`, else
/// `retry-after` in seconds or as an HTTP date, and `x-should-retry`.
pub(crate) fn read_headers(error: &mut LlmError, headers: &[(String, String)]) {
    let number = |name: &str| -> Option<f64> {
        let value: f64 = header(headers, name)?.parse().ok()?;
        (value.is_finite() && value > 0.0).then_some(value)
    };
    let wait = number("retry-after-ms").or_else(|| number("retry-after").map(|s| s * 1000.0));
    // What the body said stands where the headers say nothing.
    if let Some(ms) = wait {
        error.retry_after_ms = Some(ms.ceil() as u64);
    } else if error.retry_after_ms.is_none() {
        error.retry_at_ms = header(headers, "retry-after")
            .and_then(|date| DateTime::parse_from_rfc2822(date).ok())
            .and_then(|date| u64::try_from(date.timestamp_millis()).ok());
    }
    match header(headers, "x-should-retry") {
        Some("true") => error.retryable = true,
        Some("false") => error.retryable = false,
        _ => {}
    }
}

/// The wait that a message asks for in words, in ms: what follows `retry in`
/// or `try again in`, such as `46.5s`, `120ms` or `1m2s`.
pub(crate) fn wait_in_words(message: &str) -> Option<u64> {
    let message = message.to_ascii_lowercase();
    let (_, rest) = ["retry in ", "try again in "]
        .iter()
        .find_map(|phrase| message.split_once(phrase))?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    duration_ms(rest[..end].trim_end_matches([',', '.', ';', ')']))
}

/// A duration such as `46.5s`, `6m0s` or `120ms`, in ms.
pub(crate) fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let letters = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let factor = match unit {
            "ms" => 1.0,
            "s" => 1_000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * factor;
        rest = after;
    }
    (total > 0.0 && total.is_finite()).then(|| total.ceil() as u64)
}
