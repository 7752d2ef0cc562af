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
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// The leader of a session and everything it started. Dropping it before
/// [`Family::reap`] kills them all.
pub(super) struct Family {
    leader: libc::pid_t,
    reaped: bool,
}

impl Family {
    pub(super) fn new(leader: libc::pid_t) -> Self {
        Self {
            leader,
            reaped: false,
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
        signal_all(self.leader, Signal::SIGKILL);
        // The leader is reaped elsewhere: it may take a moment, or long when it
        // hangs in the kernel, and nobody should wait for that.
        let leader = self.leader;
        let reaper = std::thread::Builder::new().name("reaper".to_owned());
        let _ = reaper.spawn(move || wait(leader, 0));
    }
}

/// Sends `signal` to the session of `leader`. Members may have left the group
/// (`timeout`, `set -m`) or, while their parents live, the session (`setsid`).
pub(super) fn signal_all(leader: libc::pid_t, signal: Signal) {
    // Listed first: killing a parent hides the children that left the session.
    let members = live_members(leader);
    // ESRCH and EPERM (a member changed its user) leave nothing to do.
    let _ = killpg(Pid::from_raw(leader), signal);
    for member in members {
        let _ = kill(Pid::from_raw(member), signal);
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

/// Processes of the session of `leader`, and their descendants, that still run.
#[cfg(target_os = "linux")]
pub(super) fn live_members(leader: libc::pid_t) -> Vec<libc::pid_t> {
    let Ok(directory) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut outside: Vec<Process> = directory
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(read_process)
        .collect();
    let mut family = vec![leader];
    let mut members = Vec::new();
    loop {
        let before = outside.len();
        outside.retain(|process| {
            let belongs = process.session == leader
                || family.contains(&process.pid)
                || family.contains(&process.parent);
            if belongs {
                family.push(process.pid);
                if process.runs {
                    members.push(process.pid);
                }
            }
            !belongs
        });
        if outside.len() == before {
            return members;
        }
    }
}

#[cfg(target_os = "linux")]
struct Process {
    pid: libc::pid_t,
    parent: libc::pid_t,
    session: libc::pid_t,
    runs: bool,
}

/// Reads `/proc/PID/stat`: `PID (NAME) STATE PARENT GROUP SESSION …`, where the
/// name may hold anything, also parentheses.
#[cfg(target_os = "linux")]
fn read_process(pid: libc::pid_t) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[name_end + 1..])
        .ok()?
        .split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some(Process {
        pid,
        parent,
        session,
        runs: !matches!(state, "Z" | "X" | "x"),
    })
}

/// Processes of the session of `leader` that still run. macOS tells a process's
/// session only while it runs, so that zombies are left out.
#[cfg(target_os = "macos")]
pub(super) fn live_members(leader: libc::pid_t) -> Vec<libc::pid_t> {
    let mut pids: Vec<libc::pid_t> = vec![0; 32 * 1024];
    let bytes = std::mem::size_of_val(pids.as_slice()) as libc::c_int;
    // SAFETY: the buffer is valid for writes of `bytes` bytes.
    let count = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), bytes) };
    pids.truncate(usize::try_from(count).unwrap_or(0));
    // SAFETY: `getsid` takes a number and fails for unknown ones.
    pids.retain(|pid| unsafe { libc::getsid(*pid) } == leader);
    pids
}
