//! `cargo xtask bench requests`: time per request that the core writes late in
//! a session, for each provider with its own tools and instructions: once more
//! the same, and with something changed. Measures and prints; never judges.

use std::time::Instant;

use hermitcrab::llm::{
    ContentPart, Conversation, Endpoint, Message, Request, Role, ToolCall, ToolResult, adapter,
};
use hermitcrab::profile::{Profile, Toolset};
use hermitcrab::tool::Offers;

/// Rounds of the session so far, two messages each.
const ROUNDS: usize = 50;

/// So few requests that one repetition fits a slice of a busy machine's time.
const REQUESTS: usize = 20;

const REPEATS: usize = 500;

fn main() {
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    println!(
        "time per request after {ROUNDS} rounds inside the core, native, µs; the fastest of {REPEATS}\n"
    );
    println!("| provider | body, bytes | the same again | something changed |");
    println!("|---|---|---|---|");
    for provider in Profile::names() {
        if only.as_deref().is_some_and(|only| only != provider) {
            continue;
        }
        let request = request(provider);
        let same = Endpoint::new("", provider);
        let other = Endpoint {
            connect_timeout_ms: 1,
            ..same.clone()
        };
        let bytes = encode(provider, &request, &same);
        let mut times = [f64::INFINITY; 2];
        for _ in 0..REPEATS {
            for (time, targets) in times.iter_mut().zip([[&same, &same], [&same, &other]]) {
                *time = time.min(measure(provider, &request, targets));
            }
        }
        println!(
            "| {provider} | {bytes} | {:.2} | {:.2} |",
            times[0], times[1]
        );
    }
}

fn encode(provider: &str, request: &Request, target: &Endpoint) -> usize {
    let adapter = adapter(provider).expect("adapter");
    let encoded = adapter.encode(request, target).expect("request");
    encoded.http.body.len()
}

fn measure(provider: &str, request: &Request, targets: [&Endpoint; 2]) -> f64 {
    let started = Instant::now();
    for target in targets.into_iter().cycle().take(REQUESTS) {
        encode(provider, request, target);
    }
    started.elapsed().as_secs_f64() * 1e6 / REQUESTS as f64
}

/// What a session of `provider` asks for after many rounds.
fn request(provider: &str) -> Request {
    let profile = Profile::of(provider).expect("profile");
    let registry = profile.registry(Toolset::Spec, &Offers::default());
    let registry = registry.expect("tools");
    let model = match profile.default_model.as_str() {
        "" => "m",
        model => model,
    };
    Request {
        system: vec![profile.base_instructions(registry.vocabulary())],
        tools: registry.definitions(),
        provider_options: profile.provider_options(&serde_json::Value::Null),
        cache_key: Some("session".to_owned()),
        ..Request::new(model, conversation())
    }
}

/// A question, then rounds of one call and its result.
fn conversation() -> Conversation {
    let mut conversation = Conversation::new();
    conversation.push(Message::text(Role::User, "go"));
    for round in 0..ROUNDS {
        conversation.seal();
        let call = ToolCall {
            id: format!("call_{round}"),
            name: "shell".to_owned(),
            arguments: r#"{"command": "ls -l src"}"#.to_owned(),
            custom: false,
        };
        let result = ToolResult {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: "-rw-r--r-- 1 me me 4096 main.rs\n".repeat(10),
            media: Vec::new(),
            is_error: false,
        };
        for (role, part) in [
            (Role::Assistant, ContentPart::ToolCall(call)),
            (Role::Tool, ContentPart::ToolResult(result)),
        ] {
            conversation.push(Message {
                role,
                content: vec![part],
                replay: None,
            });
        }
    }
    conversation
}
