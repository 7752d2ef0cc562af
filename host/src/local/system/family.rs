//! All processes that came from one command, to signal and to wait for.
//!
//! The leader stays unreaped (a zombie at most) until [`Family::reap`], so that
//! the system cannot give its number, which names the group and the session, to
//! somebody else while signals are still being sent.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::libc;
use nix::sys::signal::Signal;

use super::guardian::Entry;
use super::kin::Kin;

/// The leader of a session and everything it started. Dropping it before
/// [`Family::reap`] kills them all.
pub(super) struct Family {
    leader: libc::pid_t,
    reaped: bool,
    watched: Option<Entry>,
}

impl Family {
    /// The family of `leader`, watched by a guardian or not.
    pub(super) fn new(leader: libc::pid_t, watched: Option<Entry>) -> Self {
        Self {
            leader,
            reaped: false,
            watched,
        }
    }

    /// Number of the leader, its group and its session.
    pub(super) fn leader(&self) -> libc::pid_t {
        self.leader
    }

    /// Whether the leader has ended; it is not reaped by asking.
    pub(super) fn leader_ended(&self) -> bool {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: `info` is valid for writes, and all-zero is a valid value of it.
        let (result, info) = unsafe {
            let result = libc::waitid(
                libc::P_PID,
                self.leader as libc::id_t,
                info.as_mut_ptr(),
                libc::WEXITED | libc::WNOWAIT | libc::WNOHANG,
            );
            (result, info.assume_init())
        };
        // An error means that somebody else reaped it, or that the embedding
        // program ignores SIGCHLD: it has ended either way.
        // SAFETY: the number is set by `waitid`, and zero when nothing ended.
        result != 0 || unsafe { info.si_pid() } != 0
    }

    /// Takes the exit status of a leader that has ended.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        self.watched = None;
        let status = wait(self.leader, libc::WNOHANG)?;
        self.reaped = true;
        Some(status)
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        Kin::new(self.leader).signal(Signal::SIGKILL);
        self.watched = None;
        // The leader is reaped elsewhere: it may take a moment, or long when it
        // hangs in the kernel, and nobody should wait for that.
        let leader = self.leader;
        let reaper = std::thread::Builder::new().name("reaper".to_owned());
        let _ = reaper.spawn(move || wait(leader, 0));
    }
}

fn wait(pid: libc::pid_t, options: libc::c_int) -> Option<ExitStatus> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid for writes.
        let result = unsafe { libc::waitpid(pid, &mut status, options) };
        if result == pid {
            return Some(ExitStatus::from_raw(status));
        }
        if result == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
}
