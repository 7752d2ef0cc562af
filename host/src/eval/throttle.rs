//! How many calls a provider gets at the same time: more and more until it answers
//! 429 or gets slow, then fewer. The rule is TCP's: slow start, additive growth,
//! halving; each server (origin) has a separate count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hermitcrab::effect::OutcomeKind;
use hermitcrab::llm::HttpRequest;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::http::{HttpPerformer, HttpTransport, OutcomeSink};

/// Calls at the same time to begin with.
const START: f64 = 4.0;
/// One burst of refusals counts once.
const CUT_INTERVAL: Duration = Duration::from_secs(1);
/// A server that takes this many times its usual time is overloaded.
const SLOW: f64 = 3.0;
/// Answers from which a usual time is known.
const KNOWN: u32 = 16;

/// A transport that keeps to what each server can take.
pub(super) struct Throttled {
    inner: HttpTransport,
    most: usize,
    servers: Mutex<HashMap<String, Arc<Server>>>,
}

impl Throttled {
    /// At most `most` calls to a server at the same time.
    pub(super) fn new(inner: HttpTransport, most: usize) -> Self {
        Self {
            inner,
            most,
            servers: Mutex::default(),
        }
    }

    fn server(&self, url: &str) -> Arc<Server> {
        let end = url.find("://").map_or(0, |at| at + 3);
        let end = url[end..].find('/').map_or(url.len(), |at| end + at);
        let mut servers = lock(&self.servers);
        let server = servers.entry(url[..end].to_owned());
        server
            .or_insert_with(|| Arc::new(Server::new(self.most)))
            .clone()
    }
}

#[async_trait]
impl HttpPerformer for Throttled {
    async fn perform(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
        sink: &mut dyn OutcomeSink,
    ) {
        let server = self.server(&request.url);
        let turn = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            turn = server.turn() => Some(turn),
        };
        let Some(mut turn) = turn else {
            sink.put(OutcomeKind::Cancelled).await;
            return;
        };
        let mut watched = Watched {
            sink,
            sent: Instant::now(),
            turn: &mut turn,
        };
        self.inner.perform(request, cancel, &mut watched).await;
    }
}

/// Sees the head of a response go by.
struct Watched<'a> {
    sink: &'a mut dyn OutcomeSink,
    sent: Instant,
    turn: &'a mut Turn,
}

#[async_trait]
impl OutcomeSink for Watched<'_> {
    async fn put(&mut self, outcome: OutcomeKind) {
        if let OutcomeKind::HttpHead { status, .. } = &outcome {
            self.turn.head = Some((*status, self.sent.elapsed()));
        }
        self.sink.put(outcome).await;
    }
}

struct Server {
    state: Mutex<State>,
    freed: Notify,
}

struct State {
    limit: f64,
    most: f64,
    active: usize,
    /// Until the first refusal the limit doubles with each round of answers.
    starting: bool,
    last_cut: Option<Instant>,
    /// Usual time to the head, and that of late, in ms.
    usual: f64,
    late: f64,
    seen: u32,
}

/// A call's place; given back when it is dropped.
struct Turn {
    server: Arc<Server>,
    head: Option<(u16, Duration)>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = lock(&self.server.state);
        state.active -= 1;
        if let Some((status, took)) = self.head {
            state.answered(status, took, Instant::now());
        }
        drop(state);
        self.server.freed.notify_waiters();
    }
}

impl Server {
    fn new(most: usize) -> Self {
        Self {
            state: Mutex::new(State::new(most)),
            freed: Notify::new(),
        }
    }

    async fn turn(self: &Arc<Self>) -> Turn {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // Registered before the look, so that no notice is missed.
            freed.as_mut().enable();
            if lock(&self.state).enter() {
                return Turn {
                    server: self.clone(),
                    head: None,
                };
            }
            freed.await;
        }
    }
}

impl State {
    fn new(most: usize) -> Self {
        let most = most.max(1) as f64;
        Self {
            limit: START.min(most),
            most,
            active: 0,
            starting: true,
            last_cut: None,
            usual: 0.0,
            late: 0.0,
            seen: 0,
        }
    }

    fn enter(&mut self) -> bool {
        let free = (self.active as f64) < self.limit.floor().max(1.0);
        self.active += usize::from(free);
        free
    }

    fn answered(&mut self, status: u16, took: Duration, now: Instant) {
        match status {
            429 | 503 | 529 => self.cut(0.5, now),
            200..=299 => {
                let ms = took.as_secs_f64() * 1_000.0;
                self.seen += 1;
                let of = |average: f64, share: f64| match self.seen {
                    1 => ms,
                    _ => average + share * (ms - average),
                };
                (self.usual, self.late) = (of(self.usual, 0.02), of(self.late, 0.2));
                if self.seen > KNOWN && self.late > SLOW * self.usual.max(1.0) {
                    self.cut(0.8, now);
                } else {
                    self.limit += if self.starting { 1.0 } else { 1.0 / self.limit };
                    self.limit = self.limit.min(self.most);
                }
            }
            _ => {}
        }
    }

    fn cut(&mut self, factor: f64, now: Instant) {
        let recent = self
            .last_cut
            .is_some_and(|cut| now.duration_since(cut) < CUT_INTERVAL);
        if !recent {
            self.starting = false;
            self.last_cut = Some(now);
            self.limit = (self.limit * factor).max(1.0);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_millis(10);

    #[test]
    fn it_grows_until_it_is_refused_and_then_halves() {
        let (mut state, now) = (State::new(64), Instant::now());
        for _ in 0..28 {
            state.answered(200, QUICK, now);
        }
        assert_eq!(state.limit, 32.0);
        state.answered(429, QUICK, now);
        // The rest of the burst.
        state.answered(429, QUICK, now);
        assert_eq!(state.limit, 16.0);
        state.answered(200, QUICK, now);
        assert_eq!(state.limit, 16.0 + 1.0 / 16.0);
        let later = now + CUT_INTERVAL * 2;
        for n in 0..20 {
            state.answered(529, QUICK, later + CUT_INTERVAL * n);
        }
        assert_eq!(state.limit, 1.0);
        assert!(state.enter() && !state.enter());
    }

    #[test]
    fn it_shrinks_when_the_server_gets_slow() {
        let (mut state, now) = (State::new(64), Instant::now());
        for _ in 0..30 {
            state.answered(200, QUICK, now);
        }
        let before = state.limit;
        for _ in 0..5 {
            state.answered(200, QUICK * 20, now);
        }
        assert!(state.limit < before, "{} of {before}", state.limit);
    }
}
