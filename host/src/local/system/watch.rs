//! Waiting for the end of a child that nobody else may reap.
//!
//! On Linux by a pidfd: it becomes readable in the same breath as the pipes end,
//! where SIGCHLD takes the way through a handler and tokio's own pipe, interrupts
//! other threads, and wakes everybody who waits for any child (measured: 0.1 ms
//! of a round). SIGCHLD serves macOS and systems that refuse pidfds.

use std::io;

use nix::libc;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Tells when to look whether a child has ended.
pub(super) enum Watch {
    #[cfg(target_os = "linux")]
    PidFd(tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>),
    Child(Signal),
}

impl Watch {
    /// Watches a child that has not been reaped. Its end may have come before:
    /// look once before the first wait.
    pub(super) fn new(pid: libc::pid_t) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(watch) = Self::by_pidfd(pid) {
            return Ok(watch);
        }
        let _ = pid;
        // Tokio reaps only its own children.
        Ok(Self::Child(signal(SignalKind::child())?))
    }

    #[cfg(target_os = "linux")]
    fn by_pidfd(pid: libc::pid_t) -> Option<Self> {
        use std::os::fd::{FromRawFd, OwnedFd, RawFd};
        use tokio::io::Interest;
        use tokio::io::unix::AsyncFd;

        // SAFETY: takes numbers; the result is checked. It closes on exec.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: a new descriptor that is nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: what is registered owns its descriptor, and nothing closes or
        // replaces it.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.ok()?;
        Some(Self::PidFd(fd))
    }

    /// Resolves when it is worth looking again.
    pub(super) async fn changed(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::PidFd(fd) => match fd.readable().await {
                // Read by looking: cleared, so that a mistaken wake-up waits again.
                Ok(mut ready) => ready.clear_ready(),
                // The runtime shuts down.
                Err(_) => std::future::pending().await,
            },
            Self::Child(children) => {
                children.recv().await;
            }
        }
    }
}
