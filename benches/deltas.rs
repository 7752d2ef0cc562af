//! `cargo xtask bench deltas`: time per streamed delta inside the core, for
//! each provider: the decoder alone, and a whole session from a chunk of the
//! body to the encoded event. Measures and prints; never judges.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use hermitcrab::effect::{Effect, EffectKind, Outcome, OutcomeKind};
use hermitcrab::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo, EnvironmentReply,
    ExecStatus,
};
use hermitcrab::llm::{Conversation, Endpoint, Request, StreamEvent, adapter};
use hermitcrab::script::{ModelRequest, ScriptedModel};
use hermitcrab::session::{Instance, SessionConfig};
use serde_json::json;

/// Text deltas in one answer: so few that one repetition fits a slice of a busy
/// machine's time.
const DELTAS: usize = 1_000;

const REPEATS: usize = 300;

/// Bytes of the body that arrive together: some 60 deltas of a model on the
/// same machine, or one of a model far away.
const CHUNKS: [(&str, usize); 2] = [("together", 8_192), ("one by one", 0)];

/// A provider and the path of its requests.
const PROVIDERS: [(&str, &str); 4] = [
    ("openai", "/v1/responses"),
    ("anthropic", "/v1/messages"),
    ("gemini", "/v1beta/models/m:streamGenerateContent"),
    ("chat", "/v1/chat/completions"),
];

fn main() {
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    println!(
        "time per streamed text delta inside the core, native, µs; the fastest of {REPEATS}\n"
    );
    println!(
        "| provider | decoder | session, {} | session, {} |",
        CHUNKS[0].0, CHUNKS[1].0
    );
    println!("|---|---|---|---|");
    for (provider, path) in PROVIDERS {
        if only.as_deref().is_some_and(|only| only != provider) {
            continue;
        }
        let pieces = answer(path);
        let together = cut(&pieces, CHUNKS[0].1);
        let mut rows = [vec![], vec![], vec![]];
        for _ in 0..REPEATS {
            rows[0].push(decode(provider, &together));
            rows[1].push(session(provider, &together));
            rows[2].push(session(provider, &pieces));
        }
        let [decoder, together, single] = rows.map(fastest);
        println!("| {provider} | {decoder:.2} | {together:.2} | {single:.2} |");
    }
}

/// The body of an answer of [`DELTAS`] deltas, event by event.
fn answer(path: &str) -> Vec<Bytes> {
    let words = ["The ", "quick ", "brown ", "fox's ", "tail\n"];
    let texts: Vec<&str> = words.iter().copied().cycle().take(DELTAS).collect();
    let script = json!({"steps": [{"texts": texts}]});
    let mut model = ScriptedModel::from_json(&script.to_string()).expect("script");
    let response = model.respond(&ModelRequest {
        path: path.to_owned(),
        headers: Vec::new(),
        body: Bytes::from_static(b"{\"model\": \"m\", \"stream\": true}"),
    });
    assert_eq!(response.status, 200, "{path}");
    let body = response.chunks.into_iter().map(|chunk| chunk.bytes);
    let whole = body.fold(BytesMut::new(), |mut whole, bytes| {
        whole.extend_from_slice(&bytes);
        whole
    });
    let mut rest = whole.freeze();
    let mut pieces = Vec::new();
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
        pieces.push(rest.split_to(end + 2));
    }
    pieces
}

/// The same body in chunks of `size` bytes.
fn cut(pieces: &[Bytes], size: usize) -> Vec<Bytes> {
    let whole = Bytes::from(pieces.concat());
    (0..whole.len())
        .step_by(size)
        .map(|start| whole.slice(start..whole.len().min(start + size)))
        .collect()
}

fn decode(provider: &str, chunks: &[Bytes]) -> f64 {
    let adapter = adapter(provider).expect("adapter");
    let request = Request::new("m", Conversation::default());
    let mut decoder = adapter.decoder(&request, &Endpoint::new("", ""));
    let mut deltas = 0;
    let started = Instant::now();
    for chunk in chunks {
        let mut events = Vec::new();
        decoder.feed(chunk, &mut events);
        let is_delta = |event: &&StreamEvent| matches!(event, StreamEvent::TextDelta { .. });
        deltas += events.iter().filter(is_delta).count();
    }
    let elapsed = started.elapsed();
    assert_eq!(deltas, DELTAS);
    elapsed.as_secs_f64() * 1e6 / DELTAS as f64
}

fn session(provider: &str, chunks: &[Bytes]) -> f64 {
    let mut instance = Instance::new([7; 32]);
    let environment = instance.add_remote_environment(EnvironmentInfo {
        working_directory: "/work".to_owned(),
        platform: "linux".to_owned(),
        os_version: String::new(),
        utc_offset_minutes: 0,
        bounds: String::new(),
        warning: String::new(),
    });
    let config = json!({"provider": provider, "model": "m"});
    let config = SessionConfig::from_json(&config.to_string()).expect("configuration");
    let session = instance.open_session(environment, config).expect("session");
    session.submit("go").expect("submit");
    let http = until_http(&mut instance);
    let mut deliver = |kind| instance.step(1_000, [Outcome { id: http, kind }]).events;
    deliver(OutcomeKind::HttpHead {
        status: 200,
        headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
    });
    let mut deltas = 0;
    let started = Instant::now();
    for chunk in chunks {
        deltas += deliver(OutcomeKind::HttpChunk(chunk.clone())).len();
    }
    let elapsed = started.elapsed();
    deliver(OutcomeKind::HttpEnd);
    assert!(deltas >= DELTAS, "{provider}: {deltas} events");
    elapsed.as_secs_f64() * 1e6 / DELTAS as f64
}

/// Steps up to the request to the model and returns its id.
fn until_http(instance: &mut Instance) -> u64 {
    let mut outcomes = Vec::new();
    loop {
        let step = instance.step(1_000, std::mem::take(&mut outcomes));
        for Effect { id, kind, .. } in step.effects {
            let kind = match kind {
                EffectKind::Http(_) => return id,
                EffectKind::Exec { .. } => OutcomeKind::ExecEnd(ExecStatus {
                    exit_code: 1,
                    ..ExecStatus::default()
                }),
                EffectKind::Environment { call, .. } => OutcomeKind::Environment(match call {
                    EnvironmentCall::Initialize => Ok(EnvironmentReply::Done),
                    _ => Err(EnvironmentError::new(
                        EnvironmentErrorKind::NotFound,
                        "nothing is here",
                    )),
                }),
                _ => continue,
            };
            outcomes.push(Outcome { id, kind });
        }
        assert!(!outcomes.is_empty() || step.busy, "no request to the model");
    }
}

fn fastest(values: Vec<f64>) -> f64 {
    values.into_iter().fold(f64::INFINITY, f64::min)
}
