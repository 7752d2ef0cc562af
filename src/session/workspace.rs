//! An environment as its sessions share it: initialized by the first that comes,
//! cleaned up by the last that leaves, with turns at its files.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures_util::future::select;

use crate::environment::{
    DirectoryEnvironment, Environment, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
    ExecutionEnvironment,
};
use crate::tool::FileLocks;

/// Where a session works: an environment and the directory it starts from.
#[derive(Clone)]
pub(super) struct Workspace {
    pub(super) environment: Rc<SharedEnvironment>,
    info: EnvironmentInfo,
}

impl Workspace {
    /// The environment's own working directory.
    pub(super) fn of(environment: Rc<SharedEnvironment>) -> Self {
        Self {
            info: environment.info.clone(),
            environment,
        }
    }

    /// The same environment from another absolute directory.
    pub(super) fn within(&self, directory: String) -> Self {
        Self {
            environment: self.environment.clone(),
            info: EnvironmentInfo {
                working_directory: directory,
                ..self.info.clone()
            },
        }
    }

    pub(super) fn info(&self) -> &EnvironmentInfo {
        &self.info
    }

    pub(super) fn files(&self) -> FileLocks {
        self.environment.files.clone()
    }

    /// What tools work on, with the wrappers that it has now.
    pub(super) fn inner(&self) -> Rc<dyn ExecutionEnvironment> {
        let inner = self.environment.inner();
        let directory = &self.info.working_directory;
        if *directory == inner.info().working_directory {
            return inner;
        }
        Rc::new(DirectoryEnvironment::new(inner, directory.clone()))
    }
}

/// An environment of the instance, with the number of sessions that use it.
pub(super) struct SharedEnvironment {
    inner: RefCell<Rc<dyn ExecutionEnvironment>>,
    info: EnvironmentInfo,
    /// Turns at files among all sessions that work here.
    files: FileLocks,
    users: Cell<usize>,
    phase: Cell<Phase>,
    waiting: RefCell<Vec<Waker>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Not initialized, or cleaned up again.
    Cold,
    /// A session is initializing it or cleaning it up.
    Changing,
    /// Initialized.
    Ready,
}

impl SharedEnvironment {
    pub(super) fn new(inner: Rc<dyn ExecutionEnvironment>) -> Self {
        Self {
            info: inner.info().clone(),
            inner: RefCell::new(inner),
            files: FileLocks::default(),
            users: Cell::new(0),
            phase: Cell::new(Phase::Cold),
            waiting: RefCell::default(),
        }
    }

    pub(super) fn inner(&self) -> Rc<dyn ExecutionEnvironment> {
        self.inner.borrow().clone()
    }

    /// Puts a wrapper around the environment, for all later calls.
    pub(super) fn wrap(
        &self,
        wrap: impl FnOnce(Rc<dyn ExecutionEnvironment>) -> Rc<dyn ExecutionEnvironment>,
    ) {
        let inner = self.inner();
        *self.inner.borrow_mut() = wrap(inner);
    }

    /// Counts a user more and initializes the environment unless another user
    /// has. Where another one failed or gave up, this one tries for itself.
    pub(super) async fn enter(&self, environment: &Environment) -> Result<(), EnvironmentError> {
        self.users.set(self.users.get() + 1);
        let cancelled = environment.scope().cancel.cancelled();
        select(pin!(self.settled()), pin!(cancelled)).await;
        match self.phase.get() {
            Phase::Ready => Ok(()),
            Phase::Cold => {
                let initialized = self.change(environment.initialize()).await;
                if initialized.is_ok() {
                    self.phase.set(Phase::Ready);
                }
                initialized
            }
            Phase::Changing => Err(EnvironmentError::new(
                EnvironmentErrorKind::Cancelled,
                "the session ended before the environment was initialized",
            )),
        }
    }

    /// Counts a user less and cleans up after the last one. A user that comes
    /// meanwhile waits and initializes anew.
    pub(super) async fn leave(&self, environment: &Environment) -> Result<(), EnvironmentError> {
        self.users.set(self.users.get().saturating_sub(1));
        if self.users.get() > 0 || self.phase.get() != Phase::Ready {
            return Ok(());
        }
        self.change(environment.cleanup()).await
    }

    /// Keeps others out while `change` runs; the environment is cold after it.
    async fn change<T>(&self, change: impl Future<Output = T>) -> T {
        self.phase.set(Phase::Changing);
        let result = change.await;
        self.phase.set(Phase::Cold);
        for waker in self.waiting.take() {
            waker.wake();
        }
        result
    }

    /// Waits while another session changes the phase.
    async fn settled(&self) {
        poll_fn(|cx| {
            if self.phase.get() != Phase::Changing {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
