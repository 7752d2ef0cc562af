//! `Drive`: polls one command on its timeline and decides what a pending poll
//! means: work to go on with, a virtual sleep to skip, or a wait for the world.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::clock::{self, Idle, Stop, Timeline};
use super::containment;

/// A poll that did less work than this made no progress worth the name.
const STALLED_WORK: u64 = 30;
/// Such polls in a row before sleeping is believed to be all that goes on.
const STALLED_POLLS: u32 = 3;
/// Polls that a stopped command gets to end by itself before it is dropped.
const POLLS_TO_STOP: u32 = 64;

/// Wakes of one command, counted while it is polled and passed on otherwise.
struct Wakes {
    polling: AtomicBool,
    count: AtomicU32,
    /// Those of them by reference: bashkit yields so, its pipes do not.
    yields: AtomicU32,
    outer: Mutex<Option<Waker>>,
}

impl Wakes {
    fn woken(&self) {
        if !self.polling.load(Ordering::Relaxed) {
            return self.wake_outer();
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(timeline) = clock::current() {
            timeline.woken();
        }
    }

    fn wake_outer(&self) {
        let outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = outer.as_ref() {
            waker.wake_by_ref();
        }
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.woken();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.yields.fetch_add(1, Ordering::Relaxed);
        self.woken();
    }
}

/// Future of one command: its output, or why it was dropped before its end.
pub(crate) struct Drive<F> {
    future: Option<Pin<Box<F>>>,
    timeline: Rc<Timeline>,
    wakes: Arc<Wakes>,
    own_wakes: u32,
    stalled: u32,
    polls_stopped: u32,
}

impl<F: Future> Drive<F> {
    /// Drives `future`, which wakes itself `own_wakes` times in every pending
    /// poll without meaning it.
    pub(crate) fn new(future: F, timeline: Rc<Timeline>, own_wakes: u32) -> Self {
        Self {
            future: Some(Box::pin(future)),
            timeline,
            wakes: Arc::new(Wakes {
                polling: AtomicBool::new(false),
                count: AtomicU32::new(0),
                yields: AtomicU32::new(0),
                outer: Mutex::new(None),
            }),
            own_wakes,
            stalled: 0,
            polls_stopped: 0,
        }
    }

    /// Cancels the command when called, and has it polled.
    pub(crate) fn canceller(&self) -> impl FnOnce() + 'static + use<F> {
        let timeline = self.timeline.clone();
        let wakes = self.wakes.clone();
        move || {
            timeline.cancel();
            wakes.wake_outer();
        }
    }

    fn pending(&mut self, wakes: u32, work: u64) -> Poll<Result<F::Output, Stop>> {
        if let Some(reason) = self.timeline.stopped() {
            self.polls_stopped += 1;
            if self.polls_stopped > POLLS_TO_STOP {
                self.future = None;
                return Poll::Ready(Err(reason));
            }
            // A lent program ends by its own cancellation, not by being polled.
            if wakes > self.own_wakes || !self.timeline.is_outside() {
                self.wakes.wake_outer();
            }
            return Poll::Pending;
        }
        self.stalled = if work < STALLED_WORK {
            self.stalled + 1
        } else {
            0
        };
        if wakes > self.own_wakes && self.stalled < STALLED_POLLS {
            self.timeline.busy();
            self.wakes.wake_outer();
            return Poll::Pending;
        }
        match self.timeline.idle(|| Waker::from(self.wakes.clone())) {
            Idle::Moved => self.wakes.wake_outer(),
            Idle::Outside if wakes > self.own_wakes => self.wakes.wake_outer(),
            Idle::Behind | Idle::Outside => {}
        }
        Poll::Pending
    }
}

impl<F: Future> Future for Drive<F> {
    type Output = Result<F::Output, Stop>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.future.is_none() {
            return Poll::Pending;
        }
        if let Some(reason) = clock::ending() {
            let future = this.future.take();
            clock::enter(&this.timeline, || drop(future));
            this.timeline.end(reason);
            this.timeline.settle();
            this.timeline.pass_turn();
            return Poll::Ready(Err(this.timeline.stopped().unwrap_or(reason)));
        }
        *this
            .wakes
            .outer
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        this.wakes.count.store(0, Ordering::Relaxed);
        this.wakes.yields.store(0, Ordering::Relaxed);
        this.wakes.polling.store(true, Ordering::Relaxed);
        this.timeline.begin_poll();
        let waker = Waker::from(this.wakes.clone());
        let mut polled = Poll::Pending;
        let contained = containment::run(&mut || {
            clock::enter(&this.timeline, || {
                let Some(future) = this.future.as_mut() else {
                    return;
                };
                polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                if polled.is_ready() {
                    // Dropping a shell reads the clock, too.
                    this.future = None;
                }
            });
        });
        if let Err(left) = contained {
            // In the middle of whatever it did: nothing looks at it again.
            std::mem::forget(this.future.take());
            polled = Poll::Pending;
            clock::abandon();
            this.timeline.leave(left);
        }
        if polled.is_pending() && this.wakes.yields.load(Ordering::Relaxed) > this.own_wakes {
            this.timeline.commands_ran();
        }
        let work = this.timeline.end_poll();
        this.wakes.polling.store(false, Ordering::Relaxed);
        let polled = match polled {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending if this.future.is_none() => {
                Poll::Ready(Err(this.timeline.stopped().unwrap_or(Stop::Work)))
            }
            Poll::Pending => {
                let wakes = this.wakes.count.load(Ordering::Relaxed);
                this.pending(wakes, work)
            }
        };
        if polled.is_ready() {
            this.timeline.settle();
        }
        this.timeline.pass_turn();
        polled
    }
}

impl<F> Drop for Drive<F> {
    fn drop(&mut self) {
        let future = self.future.take();
        clock::enter(&self.timeline, || drop(future));
        self.timeline.settle();
        self.timeline.pass_turn();
    }
}

impl<F> std::fmt::Debug for Drive<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive")
            .field("timeline", &self.timeline)
            .finish_non_exhaustive()
    }
}
