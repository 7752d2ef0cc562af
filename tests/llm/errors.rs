//! Error responses as tables (checklist 35–40): one row per test in
//! `errors/<adapter>.json`.

use hermitcrab::llm::{LlmErrorKind, Names, TransportError, TransportErrorKind, adapter};
use serde_json::{Value, json};

use crate::support::{parse, updating, write};

fn names(adapter: &str) -> Names {
    Names {
        provider: adapter.to_owned(),
        model: match adapter {
            "anthropic" => "claude-x".to_owned(),
            adapter => format!("{adapter}-x"),
        },
        credential: adapter.to_owned(),
        base_url: format!("https://{adapter}.example.com"),
    }
}

fn decode(name: &str, row: &Value) -> Value {
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
    let adapter = adapter(name).expect("the adapter");
    let error = adapter.error(&names(name), status, &headers, body.as_bytes());
    assert_eq!(error.status, Some(status));
    assert_eq!(&*error.provider, name);
    assert!(error.raw.is_some());
    json!({
        "kind": error.kind, "retryable": error.retryable, "code": error.code,
        "message": error.message, "request_id": error.request_id,
        "retry_after_ms": error.retry_after_ms, "retry_at_ms": error.retry_at_ms,
    })
}

fn check(adapter: &str, name: &str) {
    if updating() {
        return;
    }
    let table: Value = parse(&format!("errors/{adapter}.json"));
    let row = &table[name];
    assert_eq!(decode(adapter, row), row["expect"], "{name}");
}

fn check_table(adapter: &str, names: &[&str]) {
    let file = format!("errors/{adapter}.json");
    let mut table: Value = parse(&file);
    let rows = table.as_object_mut().expect("a table");
    if updating() {
        for row in rows.values_mut() {
            row["expect"] = decode(adapter, row);
        }
        return write(&file, &table);
    }
    let found: Vec<&str> = rows.keys().map(String::as_str).collect();
    assert_eq!(found, names);
}

macro_rules! rows {
    ($($adapter:ident: [$($name:ident),* $(,)?])*) => {
        $(mod $adapter {
            $(#[test] fn $name() { super::check(stringify!($adapter), stringify!($name)); })*

            #[test]
            fn every_row_has_a_test() {
                super::check_table(stringify!($adapter), &[$(stringify!($name)),*]);
            }
        })*
    };
}

rows! {
    anthropic: [
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
        page_with_400,
        page_with_418,
        not_modified,
        gateway_timeout,
        overloaded,
        overloaded_but_do_not_retry,
        invalid_but_do_retry,
        redirect,
        teapot,
        empty_body,
        json_of_another_shape,
        message_of_many_lines,
    ]
    openai: [
        invalid_request,
        unprocessable,
        authentication,
        payment,
        permission,
        not_found,
        unstored_item,
        request_timeout,
        conflict,
        too_large,
        precondition,
        header_too_large,
        not_implemented,
        context_length,
        context_length_by_wording,
        content_policy,
        cyber_policy,
        bad_image,
        image_that_cannot_be_fetched,
        wrong_region,
        rate_limit,
        rate_limit_with_header,
        slow_down,
        too_long_in_a_429_is_a_rate_limit,
        quota,
        credit_balance_exhausted,
        organization_spend_limit_exceeded,
        project_spend_limit_exceeded,
        organization_usage_limit_exceeded,
        server,
        overloaded,
        bad_gateway_page,
        page_with_400,
        page_with_418,
        not_modified,
        gateway_timeout,
        overloaded_but_do_not_retry,
        invalid_but_do_retry,
        retry_after_date,
        retry_after_nonsense,
        redirect,
        teapot,
        empty_body,
        json_of_another_shape,
    ]
    gemini: [
        invalid_argument,
        failed_precondition,
        bad_key,
        unauthenticated,
        payment,
        permission,
        not_found,
        request_timeout,
        conflict,
        too_large,
        unprocessable,
        too_long,
        rate_limit,
        rate_limit_in_words,
        rate_limit_in_milliseconds,
        daily_quota,
        no_quota_at_all,
        too_long_in_a_429_is_a_rate_limit,
        internal,
        unavailable,
        deadline,
        list_of_one,
        safety,
        bad_gateway_page,
        page_with_400,
        page_with_418,
        not_modified,
        retry_after_header_wins,
        redirect,
        teapot,
        empty_body,
        json_of_another_shape,
    ]
    chat: [
        ollama_text,
        ollama_object,
        vllm_context_length,
        vllm_new_shape,
        llama_cpp_context_length,
        llama_cpp_loading,
        lm_studio_overflow,
        context_length_in_a_500,
        openrouter_credits,
        openrouter_moderation,
        openrouter_rate_limit,
        reduce_the_messages,
        insufficient_quota,
        fastapi_detail,
        fastapi_text,
        authentication,
        bad_gateway_page,
        page_with_400,
        page_with_418,
        not_modified,
        try_again_in,
        empty_body,
        redirect,
        conflict,
    ]
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
        let error = names("anthropic").transport(&error, streaming);
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

#[test]
fn a_missing_key_is_named_as_such() {
    let names = Names {
        credential: String::new(),
        ..names("chat")
    };
    let body = br#"{"error":{"message":"no key"}}"#;
    let error = adapter("chat")
        .expect("the adapter")
        .error(&names, 401, &[], body);
    assert_eq!(error.kind, LlmErrorKind::Authentication);
    assert_eq!(
        error.message,
        "chat wants a key (401: no key); give the host one and name it"
    );
}
