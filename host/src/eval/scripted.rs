//! The scripted model in process: it answers the requests of an instance without a
//! socket. Each trial has one, at the start of its script.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hermitcrab::effect::OutcomeKind;
use hermitcrab::llm::{HttpRequest, TransportError, TransportErrorKind};
use hermitcrab::script::{Ending, ModelRequest, ScriptedModel, ScriptedResponse};
use tokio_util::sync::CancellationToken;

use crate::http::{HttpPerformer, OutcomeSink};

/// Plays a script to one instance.
#[derive(Debug)]
pub struct ScriptedTransport(Mutex<ScriptedModel>);

impl ScriptedTransport {
    /// Answers with `model`, from where it stands.
    pub fn new(model: ScriptedModel) -> Self {
        Self(Mutex::new(model))
    }

    fn respond(&self, request: HttpRequest) -> ScriptedResponse {
        let rest = request.url.split_once("://").map_or("", |(_, rest)| rest);
        let (host, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        let mut model = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if request.method == "GET"
            && let Some(page) = model.page(path)
        {
            return page;
        }
        model.respond(&ModelRequest {
            path: path.to_owned(),
            headers: vec![("host".to_owned(), host.to_owned())],
            body: request.body,
        })
    }

    async fn play(&self, request: HttpRequest, sink: &mut dyn OutcomeSink) -> OutcomeKind {
        let mut response = self.respond(request);
        let breaks = response.ending == Ending::Disconnect;
        if let Some(first) = response.chunks.first_mut() {
            // What the first chunk waits for also delays the head.
            if let Some(held) = wait(std::mem::take(&mut first.delay_ms), &mut first.hold).await {
                return held;
            }
        }
        if breaks && response.chunks.iter().all(|chunk| chunk.bytes.is_empty()) {
            return broken("the script breaks the connection");
        }
        sink.put(OutcomeKind::HttpHead {
            status: response.status,
            headers: response.headers,
        })
        .await;
        let mut waiting: Vec<u8> = Vec::new();
        for mut chunk in response.chunks {
            if chunk.delay_ms > 0 || chunk.hold.is_some() {
                send(&mut waiting, sink).await;
                if let Some(held) = wait(chunk.delay_ms, &mut chunk.hold).await {
                    return held;
                }
            }
            // What leaves together arrives together.
            waiting.extend_from_slice(&chunk.bytes);
        }
        send(&mut waiting, sink).await;
        match breaks {
            true => broken("the script breaks the connection"),
            false => OutcomeKind::HttpEnd,
        }
    }
}

async fn send(waiting: &mut Vec<u8>, sink: &mut dyn OutcomeSink) {
    if !waiting.is_empty() {
        let bytes = std::mem::take(waiting).into();
        sink.put(OutcomeKind::HttpChunk(bytes)).await;
    }
}

/// Waits; a hold that nobody can release is a failure.
async fn wait(delay_ms: u64, hold: &mut Option<String>) -> Option<OutcomeKind> {
    if delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
    }
    let name = hold.take()?;
    Some(broken(&format!(
        "the script waits for {name}, which only `hermitcrab serve-model` can release"
    )))
}

fn broken(message: &str) -> OutcomeKind {
    OutcomeKind::HttpFailed(TransportError {
        kind: TransportErrorKind::Broken,
        message: message.to_owned(),
    })
}

#[async_trait]
impl HttpPerformer for ScriptedTransport {
    async fn perform(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
        sink: &mut dyn OutcomeSink,
    ) {
        let last = tokio::select! {
            biased;
            () = cancel.cancelled() => OutcomeKind::Cancelled,
            last = self.play(request, sink) => last,
        };
        sink.put(last).await;
    }
}
