//! Models without a session, over loopback against the scripted model in every
//! provider's wire format.

use hermitcrab::llm::{LlmError, LlmErrorKind, Request, RetryPolicy, StreamEvent};
use hermitcrab::script::ScriptedModel;
use hermitcrab_host::ModelClient;
use hermitcrab_host::serve_model::ServeModel;
use serde_json::{Value, json};

const KEY: &str = "sk-loopback-0123456789";

/// A model that plays `steps`, and a client for it through `provider`.
fn serve(provider: &str, steps: Value) -> (ServeModel, ModelClient) {
    let script = json!({ "steps": steps }).to_string();
    let model = ScriptedModel::from_json(&script).expect("a script");
    let server = ServeModel::start(model, 0).expect("a server");
    let client = ModelClient::connect(provider, KEY, Some(&server.url())).expect("a client");
    let quick = RetryPolicy {
        base_delay_ms: 1,
        ..RetryPolicy::default()
    };
    (server, client.with_retry(quick))
}

fn prompt() -> Request {
    Request::prompt("m", "Name a crab.")
}

const PROVIDERS: [&str; 4] = ["anthropic", "openai", "gemini", "chat"];

#[tokio::test]
async fn an_answer_whole() {
    for provider in PROVIDERS {
        let steps = json!([{"error": {"status": 503}}, {"text": "Pagurus."}]);
        let (server, client) = serve(provider, steps);
        let response = client.generate(prompt()).await.expect("an answer");
        assert_eq!(response.text(), "Pagurus.", "{provider}");
        assert_eq!(response.usage.output_tokens, 20, "{provider}");
        // The failure was tried again, the key filled in, the prompt sent.
        let requests = server.requests();
        assert_eq!(requests.len(), 2, "{provider}");
        let shown = format!("{:?}", requests[1]);
        assert!(shown.contains("Name a crab."), "{provider}: {shown}");
    }
}

#[tokio::test]
async fn an_answer_as_it_arrives() {
    for provider in PROVIDERS {
        let (_server, client) = serve(provider, json!([{"texts": ["Pagu", "rus."]}]));
        let mut events = client.stream(prompt()).await.expect("a stream");
        let mut pieces = Vec::new();
        let mut ended = false;
        while let Some(event) = events.next_event().await {
            match event {
                StreamEvent::TextDelta { text, .. } => pieces.push(text),
                StreamEvent::Finish { response } => {
                    ended = response.text() == "Pagurus.";
                }
                StreamEvent::Error { error, .. } => panic!("{provider}: {error}"),
                _ => {}
            }
        }
        assert_eq!(
            (pieces, ended),
            (vec!["Pagu".to_owned(), "rus.".to_owned()], true),
            "{provider}"
        );
    }
}

fn schema() -> Value {
    json!({"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "legs": {"type": "integer"}}})
}

async fn object(provider: &str, text: &str) -> Result<Value, LlmError> {
    let (server, client) = serve(provider, json!([{ "text": text }]));
    let found = client.generate_object(prompt(), &schema()).await;
    let shown = format!("{:?}", server.requests());
    assert!(shown.contains("legs"), "{provider} got no schema: {shown}");
    found.map(|(value, _)| value)
}

#[tokio::test]
async fn an_object_that_follows_its_schema() {
    for provider in ["anthropic", "openai", "gemini", "chat"] {
        let value = object(provider, r#"{"name": "Pagurus", "legs": 10}"#).await;
        assert_eq!(
            value.expect("an object"),
            json!({"name": "Pagurus", "legs": 10})
        );
        for (text, why) in [
            ("Pagurus.", "the answer is not JSON"),
            (r#"{"legs": 10}"#, "name"),
            (r#"{"name": "Pagurus", "legs": "ten"}"#, "legs"),
        ] {
            let error = object(provider, text).await.expect_err(text);
            assert_eq!(
                error.kind,
                LlmErrorKind::NoObjectGenerated,
                "{provider}: {error}"
            );
            assert!(error.message.contains(why), "{provider}: {error}");
        }
    }
}

#[tokio::test]
async fn a_schema_that_cannot_be_checked_is_not_sent() {
    let (server, client) = serve("openai", json!([{"text": "{}"}]));
    let error = client
        .generate_object(prompt(), &json!({"type": "crab"}))
        .await;
    assert_eq!(
        error.expect_err("an error").kind,
        LlmErrorKind::InvalidRequest
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn what_cannot_succeed_is_not_tried_again() {
    let (server, client) = serve(
        "anthropic",
        json!([{"error": {"status": 401}}, {"text": "no"}]),
    );
    let error = client.generate(prompt()).await.expect_err("an error");
    assert_eq!(error.kind, LlmErrorKind::Authentication);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn clients_that_cannot_be() {
    for (provider, key, base_url, why) in [
        ("acme", KEY, None, "there is no provider `acme`"),
        ("openai", " ", None, "the key of `openai` is empty"),
        ("openai", KEY, Some("localhost"), "the base URL of `openai`"),
    ] {
        let error = ModelClient::connect(provider, key, base_url).expect_err(provider);
        assert!(error.to_string().contains(why), "{error}");
    }
}
