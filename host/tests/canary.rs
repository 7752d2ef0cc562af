//! The key stays outside the core: a canary key given to the host reaches
//! the model's server in its header, and nothing else: no event, no history, no
//! file, no command's environment, no byte of the guest's memory. What the binary
//! prints, and what the system shows of its process, `run.rs` looks at.

mod glass;
mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use glass::Glass;
use hermitcrab::script::ScriptedModel;
use hermitcrab_host::serve_model::ServeModel;
use serde_json::json;
use support::case::Tree;
use support::face::{Face, NoTools, SessionCall};
use support::hosted::{CoreKind, Hosted, World};

/// In no other place than this file and where it must be.
const CANARY: &str = "sk-canary-7d41f0c9e2b86a35";

#[test]
fn key_reaches_the_server_and_nothing_else() {
    for name in ["ANTHROPIC_API_KEY", "HC_UNSUSPICIOUS_NAME", "MY_TOKEN"] {
        // SAFETY: this test is alone in its process, and no thread runs yet.
        unsafe { std::env::set_var(name, CANARY) };
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        check(
            "native",
            &Hosted::new(CoreKind::Native, World::Local),
            &|| Vec::new(),
        )
        .await;
        for (name, world) in [("component", World::Local), ("sandbox", World::Memory)] {
            let memory = Arc::new(Glass::default());
            let face = Hosted {
                memory: Some(memory.clone()),
                ..Hosted::new(CoreKind::Component, world)
            };
            check(name, &face, &|| memory.contents()).await;
            // Looking at nothing would prove nothing.
            assert!(
                holds(&memory.contents(), QUESTION.as_bytes()),
                "{name}: the guest's memory was not seen"
            );
        }
    });
}

const QUESTION: &str = "Where is the key, 3f9a?";

async fn check(name: &str, face: &dyn Face, memory: &dyn Fn() -> Vec<u8>) {
    let model = ScriptedModel::from_json(&script()).expect("a script");
    let model = ServeModel::start(model, 0).expect("a model");
    let wire = Wiretap::start(&model.url());
    let files = Tree::from([("a.txt".to_owned(), Bytes::from("a\n"))]);
    let place = face.place(&files).await.expect("a place");
    let config = json!({
        "base_url": wire.url, "credential": "anthropic", "awaiting_input": "never",
        "retry": {"jitter": false, "base_delay_ms": 1},
    });
    let mut opened = place
        .open(config, &wire.url, CANARY, Arc::new(NoTools))
        .await
        .expect("a session");
    let session = opened.session.clone();
    session
        .call(SessionCall::Submit(QUESTION.into()))
        .await
        .expect("submit");
    let mut events = Vec::new();
    while let Some(event) = opened.events.recv().await {
        if event.starts_with(b"{\"kind\":\"PROCESSING_END\"") {
            session.call(SessionCall::Abort).await.expect("abort");
        }
        // While the session runs, and not only when it is over.
        assert!(
            !holds(&memory(), CANARY.as_bytes()),
            "{name}: the key is in the guest's memory"
        );
        events.push(event);
    }

    // The suite would prove nothing if the run had not happened.
    let text = events
        .iter()
        .map(|event| String::from_utf8_lossy(event))
        .collect::<Vec<_>>()
        .join("\n");
    for part in [
        "environment begins",
        "environment ends",
        "\"kind\":\"RETRY\"",
        "\"kind\":\"ERROR\"",
        "SESSION_END",
    ] {
        assert!(text.contains(part), "{name}: no {part} in {text}");
    }
    let sent = wire.sent();
    assert!(
        holds(&sent, format!("x-api-key: {CANARY}").as_bytes()),
        "{name}: the server got no key"
    );
    let bodies: Vec<Bytes> = model
        .requests()
        .into_iter()
        .map(|request| request.body)
        .collect();
    assert_eq!(
        sent.windows(CANARY.len())
            .filter(|w| *w == CANARY.as_bytes())
            .count(),
        bodies.len()
    );

    let clean = |what: &str, bytes: &[u8]| {
        assert!(
            !holds(bytes, CANARY.as_bytes()),
            "{name}: the key is in {what}"
        );
    };
    clean("an event", text.as_bytes());
    clean("the guest's memory", &memory());
    for body in &bodies {
        clean("a request's body", body);
    }
    for (path, content) in place.tree().await.expect("a tree") {
        clean(&path, &content);
    }
}

fn script() -> String {
    let command = "echo environment begins; env; cat /proc/self/environ 2>/dev/null | tr '\\0' '\\n'; \
                   echo \"$ANTHROPIC_API_KEY$HC_UNSUSPICIOUS_NAME$MY_TOKEN\"; env > env.txt; echo environment ends";
    json!({"steps": [
        {"tool_calls": [{"name": "shell", "arguments": {"command": command}}]},
        {"tool_calls": [{"name": "read_file", "arguments": {"file_path": "env.txt"}}]},
        {"error": {"status": 500, "message": "try again"}},
        {"text": "Half", "disconnect": "after_text"},
        {"error": {"status": 401, "message": "invalid x-api-key"}},
    ]})
    .to_string()
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

/// Passes connections on to a server and keeps what clients send: the scripted
/// model itself never keeps a key.
struct Wiretap {
    url: String,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Wiretap {
    fn start(server: &str) -> Self {
        let server = server
            .strip_prefix("http://")
            .expect("a loopback URL")
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let sent = Arc::new(Mutex::new(Vec::new()));
        let tap = sent.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.expect("a connection");
                let server = TcpStream::connect(&server).expect("the model");
                let (client2, server2) = (
                    client.try_clone().expect("a clone"),
                    server.try_clone().expect("a clone"),
                );
                let tap = tap.clone();
                std::thread::spawn(move || {
                    pass(client, server, |bytes| {
                        tap.lock()
                            .expect("no panic while tapping")
                            .extend_from_slice(bytes);
                    })
                });
                std::thread::spawn(move || pass(server2, client2, |_| {}));
            }
        });
        Self { url, sent }
    }

    fn sent(&self) -> Vec<u8> {
        self.sent.lock().expect("no panic while tapping").clone()
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, seen: impl Fn(&[u8])) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        seen(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
