//! `EventQueue`: the events of one session between driver and consumer.
//!
//! The driver never waits and never drops an event. Back-pressure works the
//! other way round: while more than [`FULL`] events wait, the effects of the
//! session hold back what they have streamed, down to the TCP window.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use crate::event::Event;

/// Waiting events from which on effects hold back.
const FULL: usize = 1024;

/// Events of one session, in order.
#[derive(Default)]
pub(crate) struct EventQueue {
    state: Mutex<State>,
    drained: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    consumer: Option<Waker>,
    /// No event follows: the session has ended.
    ended: bool,
    /// Nobody reads any more.
    abandoned: bool,
}

impl EventQueue {
    /// Adds events of one step and wakes the consumer once.
    pub(crate) fn push(&self, events: impl IntoIterator<Item = Event>) {
        let waker = {
            let mut state = self.lock();
            if state.abandoned {
                return;
            }
            state.events.extend(events);
            state.consumer.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Says that no event follows.
    pub(crate) fn end(&self) {
        let waker = {
            let mut state = self.lock();
            state.ended = true;
            state.consumer.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        self.drained.notify_waiters();
    }

    /// Says that nobody reads any more.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        state.events.clear();
        drop(state);
        self.drained.notify_waiters();
    }

    /// Takes the next event; `None` after the last one.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut state = self.lock();
        match state.events.pop_front() {
            Some(event) => {
                let drained = state.events.len() == FULL / 2;
                drop(state);
                if drained {
                    self.drained.notify_waiters();
                }
                Poll::Ready(Some(event))
            }
            None if state.ended => Poll::Ready(None),
            None => {
                state.consumer = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether effects must hold back.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.lock();
        state.events.len() >= FULL && !state.ended && !state.abandoned
    }

    /// Waits until effects may go on.
    pub(crate) async fn ready(&self) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            // Registered before the look, so that no notice is missed.
            drained.as_mut().enable();
            if !self.is_full() {
                return;
            }
            drained.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn event(number: usize) -> Event {
        Event::from_json(format!(r#"{{"kind":"WARNING","seq":{number}}}"#).into())
    }

    #[tokio::test]
    async fn a_full_queue_holds_effects_back_until_it_is_half_empty() {
        let queue = Arc::new(EventQueue::default());
        queue.push((0..FULL).map(event));
        assert!(queue.is_full());
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.ready().await }
        });
        for number in 0..=FULL / 2 {
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished() || number > FULL / 2 - 1);
            let next = poll_fn(|cx| queue.poll_next(cx)).await;
            assert_eq!(next, Some(event(number)));
        }
        let guard = Duration::from_secs(10);
        tokio::time::timeout(guard, waiting).await.unwrap().unwrap();
        queue.end();
        let mut rest = 0;
        while poll_fn(|cx| queue.poll_next(cx)).await.is_some() {
            rest += 1;
        }
        assert_eq!(rest, FULL - FULL / 2 - 1);
    }

    #[tokio::test]
    async fn nobody_waits_for_a_consumer_that_is_gone() {
        let queue = EventQueue::default();
        queue.push((0..2 * FULL).map(event));
        queue.abandon();
        queue.ready().await;
    }
}
