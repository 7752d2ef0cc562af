//! Error responses as a table (checklist 35–40, for this provider): one row
//! per test in `errors.json`.

use hermitcrab::llm::{LlmErrorKind, Names, TransportError, TransportErrorKind, adapter};
use serde_json::{Value, json};

use crate::support::{parse, updating, write};

const FILE: &str = "errors.json";

fn names() -> Names {
    Names {
        provider: "anthropic".to_owned(),
        model: "claude-x".to_owned(),
        credential: "anthropic".to_owned(),
        base_url: "https://api.anthropic.com".to_owned(),
    }
}

fn decode(row: &Value) -> Value {
    let headers: Vec<(String, String)> =
        serde_json::from_value(row.get("headers").cloned().unwrap_or(json!([]))).expect("headers");
    let body = match &row["body"] {
        Value::String(text) => text.clone(),
        body => body.to_string(),
    };
    let status = row["status"]
        .as_u64()
        .and_then(|status| u16::try_from(status).ok())
        .expect("a status");
    let adapter = adapter("anthropic").expect("the adapter");
    let error = adapter.error(&names(), status, &headers, body.as_bytes());
    assert_eq!(error.status, Some(status));
    assert_eq!(&*error.provider, "anthropic");
    assert!(error.raw.is_some());
    json!({
        "kind": error.kind, "retryable": error.retryable, "code": error.code,
        "message": error.message, "request_id": error.request_id,
        "retry_after_ms": error.retry_after_ms, "retry_at_ms": error.retry_at_ms,
    })
}

fn check(name: &str) {
    let table: Value = parse(FILE);
    let row = &table[name];
    assert_eq!(decode(row), row["expect"], "{name}");
}

macro_rules! rows {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_row_has_a_test() {
            let mut table: Value = parse(FILE);
            let rows = table.as_object_mut().expect("a table");
            if updating() {
                for row in rows.values_mut() {
                    row["expect"] = decode(row);
                }
                write(FILE, &table);
                return;
            }
            let names: Vec<&str> = rows.keys().map(String::as_str).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

rows! {
    invalid_request,
    unprocessable,
    authentication,
    billing,
    permission,
    not_found,
    not_found_page,
    request_timeout,
    conflict,
    too_large,
    too_large_without_type,
    too_long,
    context_limit,
    too_long_in_a_429_is_a_rate_limit,
    credit_balance,
    rate_limit,
    rate_limit_with_a_date,
    spend_limit,
    contract_spend_limit,
    ramp_limit,
    server,
    bad_gateway_page,
    gateway_timeout,
    overloaded,
    overloaded_but_do_not_retry,
    invalid_but_do_retry,
    redirect,
    teapot,
    empty_body,
    json_of_another_shape,
    message_of_many_lines,
}

#[test]
fn transport_errors_are_typed() {
    let cases = [
        (
            TransportErrorKind::Connect,
            false,
            LlmErrorKind::Network,
            true,
        ),
        (
            TransportErrorKind::Broken,
            false,
            LlmErrorKind::Network,
            true,
        ),
        (TransportErrorKind::Broken, true, LlmErrorKind::Stream, true),
        (
            TransportErrorKind::Timeout,
            false,
            LlmErrorKind::Network,
            true,
        ),
        (
            TransportErrorKind::Timeout,
            true,
            LlmErrorKind::Stream,
            true,
        ),
        (
            TransportErrorKind::Credential,
            false,
            LlmErrorKind::Authentication,
            false,
        ),
        (
            TransportErrorKind::Invalid,
            false,
            LlmErrorKind::Configuration,
            false,
        ),
    ];
    for (kind, streaming, expected, retryable) in cases {
        let error = TransportError {
            kind,
            message: "127.0.0.1:9 refused the connection".to_owned(),
        };
        let error = names().transport(&error, streaming);
        assert_eq!(
            (error.kind, error.retryable),
            (expected, retryable),
            "{kind:?}"
        );
        assert!(
            error.message.contains("127.0.0.1:9 refused the connection"),
            "{error}"
        );
    }
}
