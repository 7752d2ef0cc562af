//! Token ids and log probabilities, for those who train on answers. They are read only
//! where a request asks for them by its provider options; each server has its own form:
//!
//! - Chat Completions: `choices[0].logprobs.content[].logprob`; vLLM (`return_token_ids`)
//!   adds `prompt_token_ids` and `choices[0].token_ids`, llama.cpp an `id` to each of
//!   `content`;
//! - OpenAI Responses: `logprobs[].logprob` of the deltas of texts;
//! - Gemini: `candidates[0].logprobsResult.chosenCandidates[]` with `tokenId` and
//!   `logProbability`.

use serde_json::Value;

use crate::llm::request::Request;
use crate::llm::response::Sampled;

/// Whether `request` asks for them.
pub(super) fn are_asked_for(request: &Request) -> bool {
    asks(&request.provider_options)
}

fn asks(options: &Value) -> bool {
    let is_name = |text: &str| text.contains("ogprobs") || text.contains("token_ids");
    match options {
        Value::Object(fields) => fields.iter().any(|(name, value)| match value {
            Value::Null | Value::Bool(false) => false,
            value => is_name(name) || asks(value),
        }),
        Value::Array(items) => items.iter().any(asks),
        Value::String(text) => is_name(text),
        _ => false,
    }
}

/// Adds what one event of an answer tells.
pub(super) fn collect(data: &str, sampled: &mut Sampled) {
    let Ok(event) = serde_json::from_str::<Value>(data) else {
        return;
    };
    let choice = &event["choices"][0];
    // vLLM puts them into the first event, or into the first choice.
    for place in [&event, choice] {
        sampled
            .prompt_token_ids
            .extend(ids(&place["prompt_token_ids"]));
    }
    let named = ids(&choice["token_ids"]);
    let has_ids = !named.is_empty();
    sampled.token_ids.extend(named);
    let lists = [
        &choice["logprobs"]["content"],
        // Only deltas: the event at the end of a text has them once more.
        match event["type"].as_str() {
            Some("response.output_text.delta") => &event["logprobs"],
            _ => &Value::Null,
        },
        &event["candidates"][0]["logprobsResult"]["chosenCandidates"],
    ];
    for token in lists.into_iter().filter_map(Value::as_array).flatten() {
        let id = token["tokenId"].as_u64().or_else(|| token["id"].as_u64());
        sampled.token_ids.extend(id.filter(|_| !has_ids));
        let logprob = token["logprob"].as_f64();
        let logprob = logprob.or_else(|| token["logProbability"].as_f64());
        sampled.logprobs.extend(logprob);
    }
}

fn ids(list: &Value) -> Vec<u64> {
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_u64).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check_asked(options: Value, expected: bool) {
        assert_eq!(asks(&options), expected, "{options}");
    }

    #[test]
    fn options_that_ask() {
        check_asked(json!({"chat": {"logprobs": true}}), true);
        check_asked(json!({"chat": {"return_token_ids": true}}), true);
        check_asked(json!({"chat": {"logprobs": false}}), false);
        let include = json!({"openai": {"include": ["message.output_text.logprobs"]}});
        check_asked(include, true);
        let gemini = json!({"gemini": {"generationConfig": {"responseLogprobs": true}}});
        check_asked(gemini, true);
        check_asked(json!({"chat": {"seed": 1}}), false);
        check_asked(Value::Null, false);
    }

    fn check(events: &[Value], prompt: &[u64], ids: &[u64], logprobs: &[f64]) {
        let mut sampled = Sampled::default();
        for event in events {
            collect(&event.to_string(), &mut sampled);
        }
        let expected = Sampled {
            prompt_token_ids: prompt.into(),
            token_ids: ids.into(),
            logprobs: logprobs.into(),
        };
        assert_eq!(sampled, expected);
    }

    #[test]
    fn every_form() {
        let content = |logprob: f64| json!({"content": [{"token": "a", "logprob": logprob}]});
        check(
            &[
                json!({"prompt_token_ids": [1, 2], "choices": [{"delta": {"role": "assistant"}}]}),
                json!({"choices": [{"token_ids": [3], "logprobs": content(-0.5)}]}),
                json!({"choices": [{"token_ids": [4, 5], "logprobs": null}]}),
                json!({"choices": [], "usage": {}}),
            ],
            &[1, 2],
            &[3, 4, 5],
            &[-0.5],
        );
        let own = json!({"content": [{"id": 7, "token": "a", "logprob": -1}]});
        check(
            &[json!({"choices": [{"logprobs": own}]})],
            &[],
            &[7],
            &[-1.0],
        );
        let text =
            |kind: &str| json!({"type": kind, "logprobs": [{"token": "a", "logprob": -2.0}]});
        let events = ["response.output_text.delta", "response.output_text.done"].map(text);
        check(&events, &[], &[], &[-2.0]);
        let chosen = json!([{"token": "a", "tokenId": 9, "logProbability": -3.0}]);
        let result = json!({"candidates": [{"logprobsResult": {"chosenCandidates": chosen}}]});
        check(&[result], &[], &[9], &[-3.0]);
        check(
            &[json!([]), json!("x"), json!({"choices": 5})],
            &[],
            &[],
            &[],
        );
    }
}
