//! Consecutive requests share their prefix byte for byte (checklist 3, 16, 20).

use hermitcrab::llm::{
    ContentPart, Conversation, Message, Replay, Request, Role, ToolCall, ToolResult, adapter,
};
use serde_json::json;

use crate::support::endpoint;

const MARKER: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

fn encode(conversation: &Conversation, model: &str) -> String {
    encode_for("anthropic", conversation, model)
}

fn encode_for(name: &str, conversation: &Conversation, model: &str) -> String {
    let mut request = Request::new(model, conversation.clone());
    request.system = vec!["You are a coding agent.".to_owned()];
    let adapter = adapter(name).expect("the adapter");
    let encoded = adapter.encode(&request, &endpoint(name));
    String::from_utf8(encoded.expect("a request").http.body.to_vec()).expect("text")
}

fn text(role: Role, text: &str) -> Message {
    Message::text(role, text)
}

/// An answer of `provider` as the decoder gives it, with reasoning, `calls` calls and
/// the items that it would send.
fn answer_of(provider: &str, round: usize, calls: usize) -> Message {
    let mut message = anthropic_answer(round, calls);
    let Some(replay) = message.replay.as_mut() else {
        return message;
    };
    let thought = format!("Round {round}");
    let ids = (0..calls).map(|call| format!("toolu_{round}_{call}"));
    provider.clone_into(&mut replay.provider);
    match provider {
        "openai" => {
            replay.items = vec![json!({"type": "reasoning", "encrypted_content": thought})];
            replay.items.extend(ids.map(|id| {
                json!({"type": "function_call", "call_id": id, "name": "list", "arguments": "{}"})
            }));
        }
        "gemini" => {
            replay.items = vec![json!({"text": thought, "thought": true})];
            replay.items.extend(
                ids.map(|id| json!({"functionCall": {"id": id, "name": "list", "args": {"n": 1}}})),
            );
        }
        "chat" => {
            let calls: Vec<_> = ids
                .map(|id| json!({"id": id, "type": "function", "function": {"name": "list", "arguments": "{}"}}))
                .collect();
            replay.items = vec![json!({"role": "assistant", "content": null, "tool_calls": calls})];
        }
        _ => {}
    }
    message
}

fn anthropic_answer(round: usize, calls: usize) -> Message {
    let mut content = vec![ContentPart::Thinking {
        text: format!("Round {round}"),
        signature: Some("c2ln".to_owned()),
    }];
    let mut items = vec![
        json!({"type": "thinking", "thinking": format!("Round {round}"), "signature": "c2ln"}),
    ];
    for call in 0..calls {
        let (id, arguments) = (
            format!("toolu_{round}_{call}"),
            format!("{{\"n\": {call}.0}}"),
        );
        items.push(json!({"type": "tool_use", "id": id, "name": "list", "input": {"n": call}}));
        content.push(ContentPart::ToolCall(ToolCall {
            id,
            name: "list".to_owned(),
            arguments,
            custom: false,
        }));
    }
    let replay = Replay {
        provider: "anthropic".to_owned(),
        model: "m".to_owned(),
        items,
    };
    Message {
        role: Role::Assistant,
        content,
        replay: Some(replay),
    }
}

fn result(round: usize, call: usize) -> Message {
    let result = ToolResult {
        tool_call_id: format!("toolu_{round}_{call}"),
        tool_name: "list".to_owned(),
        content: format!("file {round}.{call}"),
        media: Vec::new(),
        is_error: call == 2,
    };
    Message {
        role: Role::Tool,
        content: vec![ContentPart::ToolResult(result)],
        replay: None,
    }
}

fn push_round(conversation: &mut Conversation, round: usize) {
    push_round_of("anthropic", conversation, round);
}

fn push_round_of(provider: &str, conversation: &mut Conversation, round: usize) {
    let calls = 1 + round % 3;
    conversation.push(answer_of(provider, round, calls));
    for call in 0..calls {
        conversation.push(result(round, call));
    }
    if round.is_multiple_of(4) {
        conversation.push(text(Role::User, "Steer left"));
        conversation.push(text(Role::Developer, "Mode: plan"));
    }
}

/// The body without markers and without what closes it.
fn prefix(body: &str) -> String {
    let body = body.replace(MARKER, "");
    body.strip_suffix("]}")
        .expect("the end of a body")
        .to_owned()
}

fn check(adapter: &str, model: &str) {
    let encode =
        |conversation: &Conversation, model: &str| encode_for(adapter, conversation, model);
    let mut conversation: Conversation = [text(Role::System, "Lead"), text(Role::User, "Go")]
        .into_iter()
        .collect();
    let mut last = String::new();
    for round in 0..30 {
        let body = encode(&conversation, model);
        let markers = body.matches(MARKER).count();
        let allowed = if adapter == "anthropic" { 2..=4 } else { 0..=0 };
        assert!(
            allowed.contains(&markers),
            "round {round}: {markers} markers"
        );
        assert_eq!(
            encode(&conversation, model),
            body,
            "a retry sends the same bytes"
        );
        let prefix = prefix(&body);
        assert!(
            prefix.starts_with(&last),
            "round {round} changed what was sent:\n{last}\n{prefix}"
        );
        assert!(prefix.len() > last.len());
        last = prefix;

        let saved = serde_json::to_string(&conversation).expect("a saved conversation");
        let loaded: Conversation = serde_json::from_str(&saved).expect("a conversation");
        assert_eq!(loaded, conversation);
        assert_eq!(loaded.approx_chars(), conversation.approx_chars());
        assert_eq!(encode(&loaded, model), body, "loading changes nothing");
        if round % 7 == 3 {
            // The answer failed and the user says more.
            conversation.push(text(Role::User, "Still there?"));
        } else {
            push_round_of(adapter, &mut conversation, round);
        }
    }
}

#[test]
fn thirty_rounds() {
    check("anthropic", "claude-haiku-4-5");
}

#[test]
fn thirty_rounds_with_system_messages_in_place() {
    check("anthropic", "claude-opus-5-5");
}

#[test]
fn thirty_rounds_openai() {
    check("openai", "gpt-6-sol");
}

#[test]
fn thirty_rounds_gemini() {
    check("gemini", "gemini-3.8-flash");
}

#[test]
fn thirty_rounds_gemini_before_3() {
    check("gemini", "gemini-2.5-pro");
}

#[test]
fn thirty_rounds_chat() {
    check("chat", "qwen");
}

/// The provider changes every few rounds (checklist 13): what a provider has
/// been sent since the last change only grows, and changing there and back
/// gives the same bytes again.
#[test]
fn another_provider_and_back() {
    let models = [
        ("openai", "gpt-6-sol"),
        ("anthropic", "claude-opus-5-5"),
        ("gemini", "gemini-3.8-flash"),
        ("chat", "qwen"),
    ];
    let mut conversation: Conversation = [text(Role::User, "Go")].into_iter().collect();
    for round in 0..24 {
        let (provider, model) = models[round / 3 % 4];
        let before = encode_for(provider, &conversation, model);
        push_round_of(provider, &mut conversation, round);
        let after = encode_for(provider, &conversation, model);
        assert!(prefix(&after).starts_with(&prefix(&before)), "{provider}");
        for (other, model) in models {
            let body = encode_for(other, &conversation, model);
            assert!(
                !body.contains(foreign_mark(other, provider)),
                "{other}: {body}"
            );
        }
        assert_eq!(encode_for(provider, &conversation, model), after);
    }
}

/// Something that only `source` writes, and must not reach another provider.
fn foreign_mark(target: &str, source: &str) -> &'static str {
    match source {
        source if source == target => "never written",
        "openai" => "encrypted_content\":",
        "anthropic" => "signature\":\"c2ln",
        "gemini" => "thought\":true",
        _ => "reasoning_content",
    }
}

#[test]
fn another_model_and_back() {
    let mut conversation: Conversation = [text(Role::User, "Go")].into_iter().collect();
    for round in 0..5 {
        encode(&conversation, "claude-haiku-4-5");
        push_round(&mut conversation, round);
    }
    let before = encode(&conversation, "claude-haiku-4-5");
    let other = encode(&conversation, "claude-opus-5-5");
    assert!(other.contains("\"role\":\"system\"") != before.contains("\"role\":\"system\""));
    assert_eq!(encode(&conversation, "claude-haiku-4-5"), before);
}

/// What was sent is not merged with what comes after a failure.
/// Reasoning is kept for the models that take it, and stays away from others.
#[test]
fn a_model_that_does_not_reason_and_back() {
    let mut conversation: Conversation = [text(Role::User, "Go")].into_iter().collect();
    for round in 0..5 {
        encode_for("openai", &conversation, "gpt-6-sol");
        push_round_of("openai", &mut conversation, round);
    }
    let before = encode_for("openai", &conversation, "gpt-6-sol");
    assert!(before.contains("\"type\":\"reasoning\""), "{before}");
    let other = encode_for("openai", &conversation, "gpt-4.1");
    assert!(!other.contains("\"type\":\"reasoning\""), "{other}");
    assert_eq!(encode_for("openai", &conversation, "gpt-6-sol"), before);
}

#[test]
fn messages_merge_only_before_they_are_sent() {
    let mut conversation: Conversation = [text(Role::User, "One"), text(Role::User, "Two")]
        .into_iter()
        .collect();
    let first = prefix(&encode(&conversation, "m"));
    assert_eq!(first.matches("\"role\":\"user\"").count(), 1);
    conversation.push(text(Role::User, "Three"));
    conversation.push(text(Role::User, "Four"));
    let second = prefix(&encode(&conversation, "m"));
    assert_eq!(second.matches("\"role\":\"user\"").count(), 2);
    let saved = serde_json::to_string(&conversation).expect("a saved conversation");
    let loaded: Conversation = serde_json::from_str(&saved).expect("a conversation");
    assert_eq!(prefix(&encode(&loaded, "m")), second);
    assert!(second.starts_with(&first));
}

/// A clone that grows does not change the original.
#[test]
fn clones_part() {
    let mut left: Conversation = [text(Role::User, "One")].into_iter().collect();
    let sent = encode(&left, "m");
    let mut right = left.clone();
    right.push(text(Role::Assistant, "Right"));
    left.push(text(Role::Assistant, "Left"));
    let (left, right) = (encode(&left, "m"), encode(&right, "m"));
    assert!(left.contains("Left") && !left.contains("Right"));
    assert!(right.contains("Right") && !right.contains("Left"));
    assert!(
        prefix(&left).starts_with(&prefix(&sent)) && prefix(&right).starts_with(&prefix(&sent))
    );
}

#[test]
fn characters_are_a_running_sum() {
    let mut conversation = Conversation::new();
    conversation.push(text(Role::User, "größe"));
    assert_eq!(conversation.approx_chars(), 5);
    conversation.push(result(0, 0));
    assert_eq!(conversation.approx_chars(), 5 + "file 0.0".len() as u64);
}

#[test]
fn seals_out_of_order_are_refused() {
    for seals in ["[2,1]", "[1,1]", "[3]"] {
        let saved = format!("{{\"messages\":[],\"seals\":{seals}}}");
        assert!(
            serde_json::from_str::<Conversation>(&saved).is_err(),
            "{seals}"
        );
    }
}
