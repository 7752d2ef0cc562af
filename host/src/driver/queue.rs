//! `Queue`: the events of one session, or the reports of one job, between driver
//! and consumer.
//!
//! The driver never waits and never drops an item. Back-pressure works the other
//! way round: while more than [`FULL`] items wait, the effects of the session or
//! job hold back what they have streamed, down to the TCP window or the pipe, and
//! a core that has work to do is stepped no further.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

/// Waiting items from which on effects hold back.
const FULL: usize = 1024;

/// Items of one session or job, in order.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    gate: Arc<Gate>,
}

struct State<T> {
    items: VecDeque<T>,
    consumer: Option<Waker>,
    /// No item follows: the session or job has ended.
    ended: bool,
    /// Nobody reads any more.
    abandoned: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                consumer: None,
                ended: false,
                abandoned: false,
            }),
            gate: Arc::default(),
        }
    }
}

/// Whether a queue takes more.
#[derive(Default)]
pub(crate) struct Gate {
    full: AtomicBool,
    opened: Notify,
}

impl Gate {
    /// Whether effects must hold back.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Waits until effects may go on.
    pub(crate) async fn ready(&self) {
        loop {
            let opened = self.opened.notified();
            tokio::pin!(opened);
            // Registered before the look, so that no notice is missed.
            opened.as_mut().enable();
            if !self.is_full() {
                return;
            }
            opened.await;
        }
    }

    fn open(&self) {
        if self.full.swap(false, Ordering::AcqRel) {
            self.opened.notify_waiters();
        }
    }
}

impl<T> Queue<T> {
    /// What those who fill the queue look at.
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Adds items of one step and wakes the consumer once.
    pub(crate) fn push(&self, items: impl IntoIterator<Item = T>) {
        let waker = {
            let mut state = self.lock();
            if state.abandoned {
                return;
            }
            state.items.extend(items);
            if state.items.len() >= FULL && !state.ended {
                self.gate.full.store(true, Ordering::Release);
            }
            state.consumer.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Says that no item follows.
    pub(crate) fn end(&self) {
        let waker = {
            let mut state = self.lock();
            state.ended = true;
            self.gate.open();
            state.consumer.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Says that nobody reads any more.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        state.items.clear();
        self.gate.open();
    }

    /// Takes the next item; `None` after the last one.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.lock();
        match state.items.pop_front() {
            Some(item) => {
                if state.items.len() == FULL / 2 {
                    self.gate.open();
                }
                Poll::Ready(Some(item))
            }
            None if state.ended => Poll::Ready(None),
            None => {
                state.consumer = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_full_queue_holds_effects_back_until_it_is_half_empty() {
        let queue = Arc::new(Queue::default());
        queue.push(0..FULL);
        assert!(queue.gate().is_full());
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.gate().ready().await }
        });
        for number in 0..=FULL / 2 {
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished() || number > FULL / 2 - 1);
            let next = poll_fn(|cx| queue.poll_next(cx)).await;
            assert_eq!(next, Some(number));
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
        let queue = Queue::default();
        queue.push(0..2 * FULL);
        queue.abandon();
        queue.gate().ready().await;
        queue.push(0..2 * FULL);
        assert!(!queue.gate().is_full());
    }
}
