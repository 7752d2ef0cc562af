//! What steers a session: its state, what waits for its task, and what stops it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};

use futures_util::future::select;

use crate::environment::{Cancel, CancelReason};
use crate::event::{CloseReason, EndReason, SessionState};
use crate::llm::Content;

/// Where a session is, and where it is to go.
pub(super) struct Control {
    state: Cell<SessionState>,
    /// Who waits for the session to come to rest.
    resting: RefCell<Vec<Waker>>,
    pub(super) mailbox: Mailbox,
    /// Fires when the session is aborted; every other scope hangs on it.
    pub(super) life: Cancel,
    /// Fires when the current input must end; `stop` says why.
    input: RefCell<Cancel>,
    stop: Cell<Option<EndReason>>,
    closing: Cell<Option<CloseReason>>,
    pub(super) pause: Pause,
}

/// Where the session stands still.
#[derive(Default)]
pub(super) struct Pause {
    /// Number of answers from which on no request is sent.
    at: Cell<Option<u32>>,
    is_on: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// What waits for the session's task.
#[derive(Default)]
pub(super) struct Mailbox {
    pub(super) input: RefCell<Option<Work>>,
    pub(super) follow_ups: RefCell<VecDeque<Content>>,
    pub(super) injected: RefCell<VecDeque<Injected>>,
    steering_ids: Cell<u64>,
    waker: RefCell<Option<Waker>>,
}

/// A message for the next gap between tool rounds.
pub(super) enum Injected {
    Steering { id: u64, content: Content },
    System { content: String },
}

/// What to process.
pub(super) enum Work {
    /// An input.
    Input(Content),
    /// What the history leaves open.
    GoOn,
    /// The history is compacted; then the session is what it was before.
    Compact(SessionState),
}

/// What the session's task does next.
pub(super) enum Command {
    Process(Work),
    Close(CloseReason),
}

impl Default for Control {
    fn default() -> Self {
        Self {
            state: Cell::new(SessionState::Idle),
            resting: RefCell::default(),
            mailbox: Mailbox::default(),
            life: Cancel::new(),
            input: RefCell::default(),
            stop: Cell::new(None),
            closing: Cell::new(None),
            pause: Pause::default(),
        }
    }
}

impl Control {
    pub(super) fn state(&self) -> SessionState {
        self.state.get()
    }

    /// Changes the state; returns the one before.
    pub(super) fn replace_state(&self, to: SessionState) -> SessionState {
        self.state.replace(to)
    }

    /// Wakes who waits for the session to come to rest, if it has.
    pub(super) fn wake_resting(&self) {
        if self.is_at_rest() {
            for waker in self.resting.take() {
                waker.wake();
            }
        }
    }

    /// Whether nothing is being processed, and a session that is closing has
    /// closed.
    pub(super) fn is_at_rest(&self) -> bool {
        match self.state.get() {
            SessionState::Processing => false,
            SessionState::Closed => true,
            SessionState::Idle | SessionState::AwaitingInput => self.closing.get().is_none(),
        }
    }

    /// Resolves when the session is at rest.
    pub(super) async fn at_rest(&self) {
        poll_fn(|cx| {
            if self.is_at_rest() {
                return Poll::Ready(());
            }
            self.resting.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Fires when the current input must end.
    pub(super) fn input_cancel(&self) -> Cancel {
        self.input.borrow().clone()
    }

    /// Why the current input must end, if it must.
    pub(super) fn stopped(&self) -> Option<EndReason> {
        self.stop.get()
    }

    pub(super) fn begin_closing(&self, reason: CloseReason) {
        if self.closing.get().is_none() {
            self.closing.set(Some(reason));
        }
        self.mailbox.wake();
    }

    pub(super) fn closing(&self) -> Option<CloseReason> {
        self.closing.get()
    }

    /// The next thing to do; closing comes before input.
    pub(super) async fn next_command(&self) -> Command {
        poll_fn(|cx| {
            if let Some(reason) = self.closing.get() {
                return Poll::Ready(Command::Close(reason));
            }
            if let Some(input) = self.mailbox.input.take() {
                return Poll::Ready(Command::Process(input));
            }
            *self.mailbox.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// An input begins: nothing stops it yet.
    pub(super) fn begin_input(&self) {
        self.stop.set(None);
        *self.input.borrow_mut() = Cancel::new();
    }

    /// Notes why the current input ends; the first reason stands, except that an abort
    /// overrides everything.
    pub(super) fn stop(&self, reason: EndReason) {
        if self.stop.get().is_none() || reason == EndReason::Aborted {
            self.stop.set(Some(reason));
        }
    }

    pub(super) fn cancel_input(&self, why: CancelReason) {
        self.input_cancel().cancel_for(why);
    }
}

impl Pause {
    /// See [`Session::pause_at`](super::Session::pause_at).
    pub(super) fn set(&self, at: Option<u32>) {
        self.at.set(at);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on.get()
    }

    pub(super) fn is_due(&self, answers: u32) -> bool {
        self.at.get().is_some_and(|at| answers >= at)
    }

    /// Waits while the pause is due, with the number of answers that `answers` gives,
    /// or until `cancel` fires; says whether it had to.
    pub(super) async fn wait(&self, answers: impl Fn() -> u32, cancel: &Cancel) -> bool {
        let due = || self.is_due(answers());
        if !due() {
            return false;
        }
        self.is_on.set(true);
        let released = pin!(poll_fn(|cx| {
            if !due() {
                return Poll::Ready(());
            }
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        }));
        select(released, cancel.cancelled()).await;
        self.is_on.set(false);
        true
    }
}

impl Mailbox {
    pub(super) fn next_follow_up(&self) -> Option<Content> {
        self.follow_ups.borrow_mut().pop_front()
    }

    pub(super) fn next_injected(&self) -> Option<Injected> {
        self.injected.borrow_mut().pop_front()
    }

    /// Gives the task something to process.
    pub(super) fn process(&self, work: Work) {
        *self.input.borrow_mut() = Some(work);
        self.wake();
    }

    /// The number of the next steering message.
    pub(super) fn next_steering_id(&self) -> u64 {
        let id = self.steering_ids.get() + 1;
        self.steering_ids.set(id);
        id
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
