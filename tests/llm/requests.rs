//! Requests as golden bytes (checklist 1–8, 11, 13–19). A fixture holds
//! `request`, perhaps `endpoint`, and what is expected: `http` and `warnings`,
//! or `error`. The body is compared byte for byte; `verbatim` is in it as it is.

use hermitcrab::llm::{Endpoint, adapter};
use serde_json::{Value, json};

use crate::support::{cases, endpoint, parse, request, updating, write};

const DIRECTORY: &str = "requests";

fn check(name: &str) {
    let file = format!("{DIRECTORY}/{name}.json");
    let mut fixture: Value = parse(&file);
    let endpoint: Endpoint = match fixture.get("endpoint") {
        Some(value) => serde_json::from_value(value.clone()).expect("an endpoint"),
        None => endpoint(),
    };
    let adapter = adapter("anthropic").expect("the adapter");
    let encoded = adapter.encode(&request(fixture["request"].clone()), &endpoint);
    let found = match encoded {
        Ok(encoded) => {
            let body: Value = serde_json::from_slice(&encoded.http.body).expect("a JSON body");
            let names: Vec<&String> = body.as_object().expect("an object").keys().collect();
            assert_eq!(names.last().expect("a field").as_str(), "messages");
            let text = String::from_utf8(encoded.http.body.to_vec()).expect("text");
            // What a fixture cannot hold, because parsing it changes it.
            let verbatim = fixture["verbatim"].as_str().unwrap_or("");
            assert!(text.contains(verbatim), "{name}: {text}");
            if verbatim.is_empty() {
                assert_eq!(body.to_string(), text, "{name}");
            }
            let http = &encoded.http;
            json!({
                "http": {
                    "method": http.method, "url": http.url, "headers": http.headers,
                    "auth": http.auth, "body": body,
                },
                "warnings": encoded.warnings,
            })
        }
        Err(error) => json!({"error": error}),
    };
    if updating() {
        fixture["expect"] = found;
        write(&file, &fixture);
    } else {
        assert_eq!(found, fixture["expect"], "{name}");
    }
}

cases! {
    check:
    five_roles,
    late_system_message_stays,
    late_system_message_where_not_allowed,
    same_role_messages_merge,
    images,
    image_path_is_refused,
    media_that_cannot_be_sent,
    tool_definitions,
    tool_choice_none,
    tool_choice_none_omits_tools,
    tool_choice_required,
    tool_choice_named,
    tool_choice_names_a_missing_tool,
    tool_choice_forced_where_not_allowed,
    one_call_at_a_time,
    parallel_results,
    result_of_an_error,
    result_with_an_image,
    replay_of_thinking,
    replay_that_ends_in_thinking,
    replay_keeps_numbers,
    replay_of_invalid_arguments,
    foreign_history,
    history_without_replay,
    effort_none,
    effort_none_where_always_on,
    effort_none_between_tools,
    effort_minimal,
    effort_high_by_budget,
    effort_by_budget_in_few_tokens,
    effort_by_budget_with_a_forced_call,
    effort_high_where_reasoning_is_hidden,
    effort_clamped,
    effort_of_an_unknown_model,
    no_effort_where_on_by_default,
    sampling_dropped,
    sampling_in_an_old_version,
    cache_breakpoints,
    cache_off,
    cache_ttl_and_own_breakpoint,
    beta_headers,
    provider_options_last,
    json_schema,
    metadata,
    stop_sequences,
    browser,
    proxy,
    alias,
    nothing_to_send,
    empty_texts,
    custom_tool,
}
