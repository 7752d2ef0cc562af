//! Usage sums and the model catalogue (checklist 51, 52).

use hermitcrab::llm::{Capability, Prices, Usage, latest_model, list_models, model_info};
use serde_json::json;

#[test]
fn models_by_id_alias_and_snapshot() {
    let ids = [
        ("claude-opus-5-5", Some("claude-opus-5-5")),
        ("sonnet", Some("claude-sonnet-5-5")),
        ("claude-haiku-4-5-20251001", Some("claude-haiku-4-5")),
        ("claude-haiku-4-5@20251001", Some("claude-haiku-4-5")),
        ("claude-haiku-4-5-2025", None),
        ("claude-unknown", None),
        ("gpt-5.2-2025-12-11", Some("gpt-5.2")),
        ("gpt-5.6", Some("gpt-5.6-sol")),
        ("gpt-5.2-2025-12", None),
        ("models/gemini-2.5-pro", Some("gemini-2.5-pro")),
        ("gemini-pro", Some("gemini-3.1-pro-preview")),
        ("", None),
    ];
    for (id, expected) in ids {
        assert_eq!(
            model_info(id).map(|model| model.id.as_str()),
            expected,
            "{id}"
        );
    }
}

#[test]
fn models_of_a_provider() {
    let ids: Vec<&str> = list_models(Some("anthropic"))
        .iter()
        .map(|model| model.id.as_str())
        .collect();
    assert!(ids.len() >= 6 && ids[0] == "claude-opus-5-5", "{ids:?}");
    assert!(list_models(Some("nobody")).is_empty());
    assert!(list_models(None).len() >= ids.len());
    let latest = latest_model("anthropic", Some(Capability::Vision)).map(|model| model.id.as_str());
    assert_eq!(latest, Some("claude-opus-5-5"));
    for (provider, id) in [("openai", "gpt-6.2-sol"), ("gemini", "gemini-3.8-flash")] {
        for capability in [None, Some(Capability::Tools), Some(Capability::Reasoning)] {
            let latest = latest_model(provider, capability).map(|model| model.id.as_str());
            assert_eq!(latest, Some(id));
        }
    }
    let one_call: Vec<&str> = list_models(None)
        .iter()
        .filter(|model| !model.parallel_tool_calls)
        .map(|model| model.id.as_str())
        .collect();
    assert_eq!(one_call, ["o4-mini", "o3"]);
    assert_eq!(latest_model("nobody", None), None);
}

/// The catalogue is read line by line; an entry that is not one line is lost.
#[test]
fn every_entry_of_the_file_is_a_model() {
    let file = include_str!("../../src/llm/models.json");
    let entries: Vec<serde_json::Value> = serde_json::from_str(file).unwrap();
    let ids: Vec<&str> = list_models(None)
        .iter()
        .map(|model| model.id.as_str())
        .collect();
    let expected: Vec<&str> = entries
        .iter()
        .map(|entry| entry["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, expected);
    for id in expected {
        assert_eq!(model_info(id).map(|model| model.id.as_str()), Some(id));
    }
}

#[test]
fn names_are_unique_and_numbers_sane() {
    let mut names: Vec<&str> = Vec::new();
    for model in list_models(None) {
        names.push(&model.id);
        names.extend(model.aliases.iter().map(String::as_str));
        let most = model.max_output.expect("a limit");
        assert!(
            model.default_max_tokens.unwrap_or(1) <= most,
            "{}",
            model.id
        );
        assert!(most < model.context_window, "{}", model.id);
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn usage_adds_up() {
    let left = Usage {
        input_tokens: 1,
        output_tokens: 2,
        total_tokens: 3,
        reasoning_tokens: None,
        cache_read_tokens: Some(4),
        cache_write_tokens: None,
        uncounted_input_tokens: 4,
        raw: Some(json!({"x": 1})),
    };
    let right = Usage {
        input_tokens: u64::MAX,
        cache_write_tokens: Some(5),
        ..Usage::default()
    };
    let sum = left + right;
    let expected = Usage {
        input_tokens: u64::MAX,
        output_tokens: 2,
        total_tokens: 3,
        reasoning_tokens: None,
        cache_read_tokens: Some(4),
        cache_write_tokens: Some(5),
        uncounted_input_tokens: 4,
        raw: None,
    };
    assert_eq!(sum, expected);
    assert_eq!(sum.prompt_tokens_total(), u64::MAX);
}

/// What an answer of `model` costs: prompt as the provider counts it.
#[track_caller]
fn check_cost(model: &str, usage: serde_json::Value, expected: f64) {
    let usage: Usage = serde_json::from_value(usage).expect("usage");
    let prices = Prices::of(model_info(model).expect("a model")).expect("prices");
    assert_eq!(prices.cost(&usage).usd(), expected, "{model}");
}

#[test]
fn answers_have_their_price() {
    // Anthropic counts cached tokens apart: 1,000 at $4, 10,000 read at $0.2,
    // 2,000 written at $5, 500 of output at $20.
    check_cost(
        "claude-opus-5-5",
        json!({"input_tokens": 1_000, "output_tokens": 500, "cache_read_tokens": 10_000,
            "cache_write_tokens": 2_000, "uncounted_input_tokens": 12_000}),
        0.026,
    );
    // OpenAI within the input: 3,000 at $2, 6,000 read at $0.1, 1,000 written at $2.5.
    check_cost(
        "gpt-6.2-sol",
        json!({"input_tokens": 10_000, "output_tokens": 100, "cache_read_tokens": 6_000,
            "cache_write_tokens": 1_000}),
        0.0101,
    );
    // Above 272,000 tokens all input costs twice, output half as much again.
    check_cost(
        "gpt-6.2-sol",
        json!({"input_tokens": 272_000, "output_tokens": 1_000}),
        0.554,
    );
    check_cost(
        "gpt-6.2-sol",
        json!({"input_tokens": 272_001, "output_tokens": 1_000}),
        1.103004,
    );
    // No price for the cache: as other input.
    check_cost(
        "gpt-6.2-astra",
        json!({"input_tokens": 1_000, "output_tokens": 0, "cache_read_tokens": 1_000}),
        0.008,
    );
    check_cost(
        "gemini-2.5-flash-lite",
        json!({"input_tokens": 0, "output_tokens": 0}),
        0.0,
    );
}

/// Models whose makers have not said when their knowledge ends.
const UNKNOWN_CUTOFF: [&str; 6] = [
    "gpt-6.2-astra",
    "gpt-6.1-sol",
    "claude-opus-4-8",
    "gemini-3.7-flash",
    "gemini-3.6-flash",
    "gemini-3.5-flash-lite",
];

#[test]
fn every_model_has_prices_and_a_cutoff() {
    for model in list_models(None) {
        let id = model.id.as_str();
        assert!(Prices::of(model).is_some(), "{id} has no prices");
        let known = model.knowledge_cutoff.as_deref();
        assert_eq!(
            known.is_none(),
            UNKNOWN_CUTOFF.contains(&id),
            "{id}: {known:?}"
        );
        if let Some((year, month)) = known.and_then(|date| date.split_once('-')) {
            let number = |text: &str| text.parse::<u32>().expect("a number");
            assert!(
                (2023..=2026).contains(&number(year)) && (1..=12).contains(&number(month)),
                "{id}"
            );
        }
        let input = model.input_cost.expect("a price");
        assert!(
            model.cache_read_cost.is_none_or(|cost| cost < input),
            "{id}"
        );
        assert!(
            model.cache_write_cost.is_none_or(|cost| cost > input),
            "{id}"
        );
    }
}
