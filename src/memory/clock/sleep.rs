//! `Sleep`: a sleep in virtual time.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::timeline::Timeline;

/// A virtual sleep; see [`Timeline::sleep`].
#[derive(Debug)]
pub(crate) struct Sleep {
    id: u64,
    timeline: Rc<Timeline>,
    until_us: u64,
}

impl Timeline {
    /// Sleeps for `us` of virtual time, or until the command is stopped.
    pub(crate) fn sleep(self: &Rc<Self>, us: u64) -> Sleep {
        Sleep {
            id: self.runner.next_sleep(),
            until_us: self.now_us().saturating_add(us),
            timeline: self.clone(),
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let timeline = &self.timeline;
        if timeline.now_us() >= self.until_us || timeline.stopped().is_some() {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        timeline.runner.add_sleeper(self.id, self.until_us, waker);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.timeline.runner.remove_sleeper(self.id);
    }
}
