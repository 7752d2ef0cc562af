//! `FileLocks`: calls that change the same file take turns, in the order in
//! which they asked. Parallel calls of one answer may edit one file; without
//! this, the later write would undo the earlier one.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

#[derive(Debug, Default)]
struct State {
    next_ticket: u64,
    /// Per path: who holds it (the first) and who waits.
    queues: BTreeMap<String, VecDeque<(u64, Option<Waker>)>>,
}

/// The locks of one environment. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct FileLocks(Rc<RefCell<State>>);

impl FileLocks {
    /// Waits for its turn at `path` (absolute) and keeps it until the guard is
    /// dropped.
    pub async fn lock(&self, path: &str) -> FileGuard {
        let guard = {
            let mut state = self.0.borrow_mut();
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            let queue = state.queues.entry(path.to_owned()).or_default();
            queue.push_back((ticket, None));
            FileGuard {
                locks: self.clone(),
                path: path.to_owned(),
                ticket,
            }
        };
        poll_fn(|cx| {
            let mut state = self.0.borrow_mut();
            let queue = state.queues.get_mut(&guard.path);
            let position = queue.map(|queue| {
                let position = queue.iter().position(|(ticket, _)| *ticket == guard.ticket);
                (queue, position)
            });
            match position {
                Some((queue, Some(position))) if position > 0 => {
                    queue[position].1 = Some(cx.waker().clone());
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            }
        })
        .await;
        guard
    }
}

/// A turn at a file, or a place in the queue for it; ends when dropped.
#[derive(Debug)]
#[must_use = "dropping the guard gives the file free"]
pub struct FileGuard {
    locks: FileLocks,
    path: String,
    ticket: u64,
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.locks.0.borrow_mut();
            let Some(queue) = state.queues.get_mut(&self.path) else {
                return;
            };
            queue.retain(|(ticket, _)| *ticket != self.ticket);
            match queue.front_mut() {
                Some((_, waker)) => waker.take(),
                None => {
                    state.queues.remove(&self.path);
                    None
                }
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::effect::Executor;

    use super::*;

    #[test]
    fn turns_are_taken_in_order() {
        let locks = FileLocks::default();
        let log = Rc::new(RefCell::new(Vec::new()));
        let mut executor = Executor::new();
        let gate = crate::environment::Cancel::new();
        for (name, path) in [("a", "/x"), ("b", "/x"), ("c", "/y"), ("d", "/x")] {
            let (locks, log, gate) = (locks.clone(), log.clone(), gate.clone());
            executor.spawner().spawn(async move {
                let _guard = locks.lock(path).await;
                log.borrow_mut().push(format!("{name} in"));
                gate.cancelled().await;
                log.borrow_mut().push(format!("{name} out"));
            });
        }
        assert!(!executor.run(|| false));
        assert_eq!(*log.borrow(), ["a in", "c in"]);
        gate.cancel();
        executor.run(|| false);
        assert_eq!(
            *log.borrow(),
            [
                "a in", "c in", "a out", "c out", "b in", "b out", "d in", "d out"
            ]
        );
        assert!(executor.is_empty());
        assert!(locks.0.borrow().queues.is_empty());
    }

    #[test]
    fn who_gives_up_loses_the_place() {
        let locks = FileLocks::default();
        let mut cx = std::task::Context::from_waker(Waker::noop());
        let mut first = Box::pin(locks.lock("/x"));
        let mut second = Box::pin(locks.lock("/x"));
        let mut third = Box::pin(locks.lock("/x"));
        let guard = first.as_mut().poll(&mut cx);
        assert!(guard.is_ready());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        assert!(third.as_mut().poll(&mut cx).is_pending());
        drop(second);
        drop(guard);
        assert!(third.as_mut().poll(&mut cx).is_ready());
    }
}
