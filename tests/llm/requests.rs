//! Requests as golden bytes (checklist 1–20). A fixture holds `request`,
//! perhaps `endpoint`, and what is expected: `http` and `warnings`, or `error`.
//! A shared fixture says it for every adapter, and may name a `model` for each.
//! The body is compared byte for byte; `verbatim` is in it as it is.

use hermitcrab::llm::{Endpoint, adapter};
use serde_json::{Value, json};

use crate::support::{UPDATING, cases, endpoint, parse, request, updating, write};

const DIRECTORY: &str = "requests";
const SHARED: &str = "requests/shared";

/// What the adapter makes of the fixture's request.
fn encode(name: &str, adapter_name: &str, fixture: &Value) -> Value {
    let endpoint: Endpoint = match fixture.get("endpoint") {
        Some(value) => serde_json::from_value(value.clone()).expect("an endpoint"),
        None => endpoint(adapter_name),
    };
    let mut wanted = fixture["request"].clone();
    if let Some(model) = fixture["models"].get(adapter_name) {
        wanted["model"] = model.clone();
    }
    let adapter = adapter(adapter_name).expect("the adapter");
    let encoded = match adapter.encode(&request(adapter_name, wanted), &endpoint) {
        Ok(encoded) => encoded,
        Err(error) => return json!({"error": error}),
    };
    let body: Value = serde_json::from_slice(&encoded.http.body).expect("a JSON body");
    let names: Vec<&String> = body.as_object().expect("an object").keys().collect();
    let history = match adapter_name {
        "openai" => "input",
        "gemini" => "contents",
        _ => "messages",
    };
    assert_eq!(names.last().expect("a field").as_str(), history);
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

fn check(adapter: &str, name: &str) {
    let file = format!("{DIRECTORY}/{adapter}/{name}.json");
    let mut fixture: Value = parse(&file);
    let found = encode(name, adapter, &fixture);
    if updating() {
        fixture["expect"] = found;
        write(&file, &fixture);
    } else {
        assert_eq!(found, fixture["expect"], "{name}");
    }
}

fn check_shared(adapter: &str, name: &str) {
    let file = format!("{SHARED}/{name}.json");
    let _guard = UPDATING.lock().unwrap_or_else(|error| error.into_inner());
    let mut fixture: Value = parse(&file);
    let found = encode(name, adapter, &fixture);
    if updating() {
        fixture["expect"][adapter] = found;
        write(&file, &fixture);
    } else {
        assert_eq!(found, fixture["expect"][adapter], "{name}");
    }
}

cases! {
    super::check, super::DIRECTORY;
    anthropic: [
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
        effort_of_an_older_model,
        effort_max_of_an_older_model,
        effort_none_of_an_older_model,
        effort_of_a_model_before_reasoning,
        no_effort_where_on_by_default,
        sampling_dropped,
        sampling_in_an_old_version,
        cache_breakpoints,
        cache_off,
        cache_ttl_and_own_breakpoint,
        beta_headers,
        provider_options_last,
        thinking_of_another_type,
        thinking_of_another_type_by_budget,
        thinking_of_the_same_type,
        json_schema,
        metadata,
        stop_sequences,
        browser,
        proxy,
        alias,
        nothing_to_send,
        empty_texts,
        custom_tool,
        replay_of_made_up_calls,
    ]
    openai: [
        replay_of_reasoning_and_calls,
        replay_that_ends_in_reasoning,
        replay_for_a_model_that_does_not_reason,
        long_call_ids_are_shortened,
        organization_and_project,
        effort_of_a_model_that_does_not_reason,
        effort_of_an_unknown_model_that_does_not_reason,
        one_call_at_a_time_where_always_so,
        metadata_that_does_not_fit,
        result_for_a_call_of_an_earlier_request,
        replay_of_made_up_calls,
    ]
    gemini: [
        signatures_stay_on_their_parts,
        replay_without_signature_gets_a_stand_in,
        synthetic_ids_stay_here,
        result_without_a_name,
        replay_keeps_numbers,
        continuation,
        after_a_continuation,
        budget_cannot_be_off,
        budget_off,
        budget_high,
        level_clamped,
        model_name_is_escaped,
        version_in_the_base_url,
        replay_of_made_up_calls,
        own_tools_beside_functions,
        own_tools_beside_functions_before_3,
        own_tools_alone_before_3,
        tools_in_the_options,
        tools_taken_out,
        safety_settings,
    ]
    chat: [
        replay_of_reasoning_beside_calls,
        system_messages_in_place,
        fields_under_other_names,
        replay_of_made_up_calls,
    ]
}

mod shared {
    crate::support::shared_cases! {
        super::super::check_shared, super::SHARED;
        made_up_calls,
        five_roles,
        late_developer_message_stays,
        images,
        images_unseen,
        image_path_is_refused,
        documents_and_audio,
        text_documents,
        tool_definitions,
        custom_tool,
        tool_choice_auto,
        tool_choice_none,
        tool_choice_required,
        tool_choice_named,
        tool_choice_names_a_freeform_tool,
        tool_choice_names_a_missing_tool,
        tool_choice_forced_without_tools,
        one_call_at_a_time,
        parallel_results,
        error_results,
        result_with_media_it_cannot_take,
        invalid_arguments_in_the_history,
        history_of_every_provider,
        history_of_every_provider_for_known_models,
        effort_none,
        effort_minimal,
        effort_medium,
        effort_max,
        effort_of_unknown_models,
        no_effort_of_known_models,
        limits_and_sampling,
        limits_and_sampling_of_known_models,
        json,
        json_schema,
        metadata,
        provider_options_last,
        provider_options_by_provider_name,
        browser,
        base_url_of_a_host,
        base_url_with_a_path,
        alias,
        snapshot_of_a_known_model,
        nothing_to_send,
        empty_texts,
    }
}
