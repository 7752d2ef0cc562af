//! The retry decision as a table (checklist 41–44): one row per test in
//! `retry.json`, with seeded values for the jitter.

use hermitcrab::llm::{LlmError, LlmErrorKind, RetryPolicy, retry_delay_ms};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::parse;

const FILE: &str = "retry.json";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    #[serde(default)]
    policy: RetryPolicy,
    #[serde(default)]
    attempt: u32,
    kind: LlmErrorKind,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    #[serde(default)]
    retry_at_ms: Option<u64>,
    random: f64,
    expect: Value,
}

fn check(name: &str) {
    let mut table: Value = parse(FILE);
    let row: Row = serde_json::from_value(table[name].take()).expect("a row");
    let error = LlmError {
        retry_after_ms: row.retry_after_ms,
        retry_at_ms: row.retry_at_ms,
        ..LlmError::new(row.kind, "anthropic", "x")
    };
    let decision = retry_delay_ms(&row.policy, row.attempt, &error, row.random, 1_000_000);
    assert_eq!(json!(decision), row.expect, "{name}");
}

macro_rules! rows {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_row_has_a_test() {
            let table: Value = parse(FILE);
            let names: Vec<&str> = table.as_object().expect("a table").keys().map(String::as_str).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

rows! {
    first_retry_shortest,
    first_retry_middle,
    second_retry,
    no_jitter,
    capped,
    far_attempts_do_not_overflow,
    retry_after,
    retry_after_at_the_limit,
    retry_after_too_long,
    retry_at,
    retry_at_in_the_past,
    retry_at_too_late,
    exhausted,
    never,
    not_retryable,
    random_out_of_range,
}

/// Every delay stays within 50 to 150 % of the backoff.
#[test]
fn delays_stay_within_bounds() {
    let policy = RetryPolicy {
        max_retries: 10,
        ..RetryPolicy::default()
    };
    let error = LlmError::new(LlmErrorKind::Server, "anthropic", "x");
    let mut state: u64 = 7;
    for step in 0..1_000_u32 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let random = (state >> 11) as f64 / (1_u64 << 53) as f64;
        let attempt = step % 10;
        let backoff = (1_000 * 2_u64.pow(attempt)).min(60_000);
        let decision = json!(retry_delay_ms(&policy, attempt, &error, random, 0));
        let delay = decision["retry"]["delay_ms"].as_u64().expect("a delay");
        assert!(
            (backoff / 2..=backoff * 3 / 2).contains(&delay),
            "{attempt}: {delay}"
        );
    }
}
