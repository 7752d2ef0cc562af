//! The executor: polls the core's own futures, single-threaded, in the order
//! in which they became ready. It never waits: when nothing is ready, the step
//! is over and the host's outcomes make something ready again.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::text::SortedMap;

type Task = Pin<Box<dyn Future<Output = ()>>>;
type ReadyQueue = Arc<Mutex<VecDeque<u64>>>;

/// Wakers must be `Send + Sync` by type, though nothing here crosses threads.
struct TaskWaker {
    task: u64,
    ready: ReadyQueue,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if !ready.contains(&self.task) {
            ready.push_back(self.task);
        }
    }
}

#[derive(Default)]
struct Spawned {
    next: u64,
    new: Vec<(u64, Task)>,
}

/// Starts tasks, also from inside a running task.
#[derive(Clone)]
pub struct Spawner {
    spawned: Rc<RefCell<Spawned>>,
    ready: ReadyQueue,
}

impl Spawner {
    /// Starts `future`; it is polled first in the current or next run.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let mut spawned = self.spawned.borrow_mut();
        let id = spawned.next;
        spawned.next += 1;
        spawned.new.push((id, Box::pin(future)));
        self.ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(id);
    }
}

impl std::fmt::Debug for Spawner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spawner").finish_non_exhaustive()
    }
}

/// Owns the tasks of one instance.
pub struct Executor {
    tasks: SortedMap<u64, (Task, Waker)>,
    spawner: Spawner,
}

impl Default for Executor {
    fn default() -> Self {
        Self::new()
    }
}

impl Executor {
    /// An executor without tasks.
    pub fn new() -> Self {
        Self {
            tasks: SortedMap::new(),
            spawner: Spawner {
                spawned: Rc::default(),
                ready: ReadyQueue::default(),
            },
        }
    }

    /// A handle that starts tasks.
    pub fn spawner(&self) -> Spawner {
        self.spawner.clone()
    }

    /// Polls ready tasks until none is ready, or until `exhausted` says that
    /// the step has done enough work. Returns whether ready tasks remain.
    pub fn run(&mut self, mut exhausted: impl FnMut() -> bool) -> bool {
        loop {
            self.adopt();
            let Some(id) = self.next_ready() else {
                return false;
            };
            let Some((task, waker)) = self.tasks.get_mut(&id) else {
                continue;
            };
            let waker = waker.clone();
            if task.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()) {
                self.tasks.remove(&id);
            }
            if exhausted() {
                self.adopt();
                return self.has_ready();
            }
        }
    }

    /// Number of tasks that have not ended.
    pub fn len(&self) -> usize {
        self.tasks.len() + self.spawner.spawned.borrow().new.len()
    }

    /// Whether every task has ended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn adopt(&mut self) {
        let new = std::mem::take(&mut self.spawner.spawned.borrow_mut().new);
        for (id, task) in new {
            let waker = Waker::from(Arc::new(TaskWaker {
                task: id,
                ready: self.spawner.ready.clone(),
            }));
            self.tasks.insert(id, (task, waker));
        }
    }

    fn next_ready(&self) -> Option<u64> {
        self.spawner
            .ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }

    fn has_ready(&self) -> bool {
        !self
            .spawner
            .ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor")
            .field("tasks", &self.len())
            .finish()
    }
}
