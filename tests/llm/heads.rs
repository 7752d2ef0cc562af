//! What a conversation keeps of the last request never shows: a request gives
//! what it gives on a conversation that keeps nothing (checklist 3, 20).

use hermitcrab::llm::{
    Conversation, Endpoint, HttpRequest, LlmError, Message, Replay, Request, Role, Warning, adapter,
};
use serde_json::{Value, json};

use crate::support::{ADAPTERS, endpoint, request};

type Encoded = Result<(HttpRequest, Vec<Warning>), LlmError>;

fn encode(name: &str, request: &Request, target: &Endpoint) -> Encoded {
    let encoded = adapter(name).expect("the adapter").encode(request, target);
    encoded.map(|encoded| (encoded.http, encoded.warnings))
}

/// The same on a conversation that keeps no bytes.
fn encode_afresh(name: &str, request: &Request, target: &Endpoint) -> Encoded {
    let saved = serde_json::to_string(&request.conversation).expect("a saved conversation");
    let conversation = serde_json::from_str(&saved).expect("a conversation");
    let request = Request {
        conversation,
        ..request.clone()
    };
    encode(name, &request, target)
}

/// A request that asks for something of everything.
fn base() -> Value {
    json!({
        "model": "m",
        "system": ["Lead"],
        "tools": [{
            "name": "list",
            "description": "Lists",
            "parameters": {"type": "object", "properties": {"a": {}, "b": {}}},
        }],
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be brief"}]},
            {"role": "user", "content": [{"type": "text", "text": "Go"}]},
        ],
        "temperature": 0.0,
        "response_format": {"type": "json_schema", "schema": {"a": 1, "b": 2}, "strict": true},
        "metadata": {"user_id": "me", "more": "left out"},
        "provider_options": {
            "openai": {"x": 0.0, "y": 1}, "anthropic": {"x": 0.0, "y": 1},
            "gemini": {"x": 0.0, "y": 1}, "chat": {"x": 0.0, "y": 1},
            "proxy": {"z": 2},
        },
        "cache_key": "key",
    })
}

/// Asks, asks with `change`, and asks as before. The change must show with
/// some adapter, or nothing would be tested.
fn check(change: impl Fn(&mut Request, &mut Endpoint)) {
    let mut shows = false;
    for name in ADAPTERS {
        let before = (request(name, base()), endpoint(name));
        let mut after = before.clone();
        change(&mut after.0, &mut after.1);
        let asked = encode(name, &before.0, &before.1);
        let expected = encode_afresh(name, &after.0, &after.1);
        assert_eq!(encode(name, &after.0, &after.1), expected, "{name}");
        assert_eq!(encode(name, &before.0, &before.1), asked, "{name}");
        shows |= asked != expected;
    }
    assert!(shows);
}

/// Per field a test for every value that it changes to. A field without one
/// does not compile.
macro_rules! changes {
    ($module:ident $type:ident($read:path, $change:path) except [$($except:ident)?]
     $($field:ident: [$($case:ident $value:tt),* $(,)?])*) => {
        mod $module {
            use hermitcrab::llm::$type;
            use serde_json::json;

            #[test]
            fn every_field_changes() {
                let $type { $($field: _,)* $($except: _)? } = $read(json!({}));
            }

            $(mod $field {
                $(#[test]
                fn $case() {
                    let read = $read(serde_json::json!({ stringify!($field): $value }));
                    $change(|changed| changed.$field = read.$field.clone());
                })*
            })*
        }
    };
}

fn read_request(fields: Value) -> Request {
    request("chat", fields)
}

fn change_request(change: impl Fn(&mut Request)) {
    check(|request, _| change(request));
}

changes! {
    a_request Request(crate::heads::read_request, crate::heads::change_request) except [conversation]
    provider: [named "proxy"]
    model: [other "n"]
    system: [other ["Follow"], more ["Lead", "Follow"], none []]
    tools: [
        described [{
            "name": "list",
            "description": "Lists files",
            "parameters": {"type": "object", "properties": {"a": {}, "b": {}}},
        }],
        in_another_order [{
            "name": "list",
            "description": "Lists",
            "parameters": {"type": "object", "properties": {"b": {}, "a": {}}},
        }],
        strict [{
            "name": "list",
            "description": "Lists",
            "parameters": {"type": "object", "properties": {"a": {}, "b": {}}},
            "strict": true,
        }],
        none [],
    ]
    tool_choice: [none "none", forced "required", named {"named": "list"}, missing {"named": "x"}]
    max_tokens: [some 5_000]
    temperature: [negative_zero (-0.0), none null]
    top_p: [some 0.5]
    stop_sequences: [some ["stop"]]
    reasoning_effort: [low "low"]
    parallel_tool_calls: [one false]
    response_format: [
        text {"type": "text"},
        in_another_order {"type": "json_schema", "schema": {"b": 2, "a": 1}, "strict": true},
        lenient {"type": "json_schema", "schema": {"a": 1, "b": 2}, "strict": false},
    ]
    metadata: [other {"user_id": "you"}]
    provider_options: [
        none null,
        negative_zero {"chat": {"x": (-0.0), "y": 1}},
        in_another_order {
            "openai": {"y": 1, "x": 0.0}, "anthropic": {"y": 1, "x": 0.0},
            "gemini": {"y": 1, "x": 0.0}, "chat": {"y": 1, "x": 0.0},
            "proxy": {"z": 2},
        },
    ]
    cache_key: [other "another", none null]
    auto_cache: [off false]
}

fn read_endpoint(fields: Value) -> Endpoint {
    serde_json::from_value(fields).expect("an endpoint")
}

fn change_endpoint(change: impl Fn(&mut Endpoint)) {
    check(|_, endpoint| change(endpoint));
}

changes! {
    an_endpoint Endpoint(crate::heads::read_endpoint, crate::heads::change_endpoint) except []
    base_url: [other "https://localhost:1"]
    credential: [none "", other "spare"]
    browser: [yes true]
    connect_timeout_ms: [other 1]
    options: [
        some {"version": "2023-06-01", "organization": "o", "system_in_messages": true},
        caching {"prompt_caching_beta": false},
    ]
}

fn text(role: Role, text: &str) -> Message {
    Message::text(role, text)
}

/// Encodes the conversation as it is now, which must not differ from afresh.
fn ask(name: &str, conversation: &Conversation) -> Encoded {
    let mut request = request(name, base());
    request.conversation = conversation.clone();
    // The same for all providers, so that only the adapter tells them apart.
    let target = Endpoint::new("", "key");
    let encoded = encode(name, &request, &target);
    let afresh = encode_afresh(name, &request, &target);
    assert_eq!(encoded, afresh, "{name}");
    encoded
}

/// The run of system messages that leads is part of the head, and may grow
/// after a request that had nothing else.
#[test]
fn leading_messages_grow() {
    for name in ADAPTERS {
        let mut conversation = Conversation::new();
        conversation.push(text(Role::System, "Lead"));
        ask(name, &conversation).expect_err("nothing to send");
        conversation.push(text(Role::System, "Follow"));
        conversation.push(text(Role::User, "Go"));
        let (http, _) = ask(name, &conversation).expect("a request");
        let body = String::from_utf8(http.body.to_vec()).expect("text");
        assert!(body.contains("Lead") && body.contains("Follow"), "{body}");
    }
}

/// All providers in turns, on one conversation that grows.
#[test]
fn providers_take_turns() {
    let mut conversation = Conversation::new();
    for turn in 0..12 {
        conversation.push(text(Role::User, &format!("Question {turn}")));
        for name in [ADAPTERS[turn % 4], ADAPTERS[turn % 3], ADAPTERS[turn % 4]] {
            ask(name, &conversation).expect("a request");
        }
        conversation.push(text(Role::Assistant, &format!("Answer {turn}")));
    }
}

/// A pause of Gemini's asks for more until something else is said, wherever
/// the requests were in between.
#[test]
fn a_pause_ends() {
    let pause = |token: &str| Message {
        replay: Some(Replay {
            provider: "gemini".to_owned(),
            model: "m".to_owned(),
            items: vec![json!({"text": "Part"}), json!({"continuationToken": token})],
        }),
        ..text(Role::Assistant, "Part")
    };
    let steps = [
        (text(Role::User, "Go"), None),
        (pause("one"), Some("one")),
        (pause("two"), Some("two")),
        (text(Role::User, "Stop"), None),
        (pause("three"), Some("three")),
        (text(Role::Assistant, "Whole"), None),
    ];
    // Every subset of the steps asks, and the last one.
    for asks in 0..1_u32 << (steps.len() - 1) {
        let mut conversation = Conversation::new();
        for (step, (message, token)) in steps.iter().enumerate() {
            conversation.push(message.clone());
            if asks >> step & 1 == 0 && step + 1 < steps.len() {
                continue;
            }
            let (http, _) = ask("gemini", &conversation).expect("a request");
            let body: Value = serde_json::from_slice(&http.body).expect("JSON");
            assert_eq!(body["continuationToken"].as_str(), *token, "{asks:b}");
        }
    }
}
