//! Who came from one command, in the system's table of processes.

use nix::libc;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// Everybody known to come from `leader`: its session, the descendants of that,
/// and whoever has been seen as such before. The memory matters because a
/// process that left the session (`setsid`) is known by its parents only, and
/// the first signal ends those.
#[derive(Debug)]
pub(super) struct Kin {
    leader: libc::pid_t,
    known: Vec<Process>,
}

impl Kin {
    pub(super) fn new(leader: libc::pid_t) -> Self {
        Self {
            leader,
            known: Vec::new(),
        }
    }

    /// Sends `signal` to the group and to all who left it: `timeout` and
    /// `set -m` make new groups.
    pub(super) fn signal(&mut self, signal: Signal) {
        // Listed first: killing a parent hides the children that left.
        self.look();
        // ESRCH and EPERM (a member changed its user) leave nothing to do.
        let _ = killpg(Pid::from_raw(self.leader), signal);
        for process in self.known.iter().filter(|process| process.runs) {
            let _ = kill(Pid::from_raw(process.pid), signal);
        }
    }

    /// Whether any of them still runs.
    pub(super) fn any_lives(&mut self) -> bool {
        self.look();
        self.known.iter().any(|process| process.runs)
    }

    fn look(&mut self) {
        let mut strangers = running_processes();
        let mut family = Vec::new();
        loop {
            let before = strangers.len();
            strangers.retain(|process| {
                let belongs = process.session == self.leader
                    || process.pid == self.leader
                    || self.known.iter().any(|known| known.is_same(process))
                    || family
                        .iter()
                        .any(|member: &Process| member.pid == process.parent);
                if belongs {
                    family.push(*process);
                }
                !belongs
            });
            if strangers.len() == before {
                self.known = family;
                return;
            }
        }
    }
}

/// One row of the process table.
#[derive(Clone, Copy, Debug)]
struct Process {
    pid: libc::pid_t,
    parent: libc::pid_t,
    session: libc::pid_t,
    /// Tells apart two processes that had the same number.
    started: u64,
    /// Not a zombie.
    runs: bool,
}

impl Process {
    fn is_same(&self, other: &Self) -> bool {
        self.pid == other.pid && self.started == other.started
    }
}

#[cfg(target_os = "linux")]
fn running_processes() -> Vec<Process> {
    let Ok(directory) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    directory
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(read_process)
        .collect()
}

/// Reads `/proc/PID/stat`: `PID (NAME) STATE PARENT GROUP SESSION …`, with the
/// start time in field 22; the name may hold anything, also parentheses.
#[cfg(target_os = "linux")]
fn read_process(pid: libc::pid_t) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&str> = std::str::from_utf8(&stat[name_end + 1..])
        .ok()?
        .split_ascii_whitespace()
        .collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        runs: !matches!(*fields.first()?, "Z" | "X" | "x"),
    })
}

/// The process that leads a session and writes its output to the pipe of this inode.
#[cfg(target_os = "linux")]
pub(super) fn holder(pipe: u64) -> Option<libc::pid_t> {
    let target = format!("pipe:[{pipe}]");
    let writes = |process: &Process| {
        let output = std::fs::read_link(format!("/proc/{}/fd/1", process.pid));
        output.is_ok_and(|output| output.as_os_str() == &*target)
    };
    let mut leaders = running_processes().into_iter();
    leaders
        .find(|process| process.pid == process.session && writes(process))
        .map(|process| process.pid)
}

/// Nothing here tells which files a process has open.
#[cfg(not(target_os = "linux"))]
pub(super) fn holder(_: u64) -> Option<libc::pid_t> {
    None
}

/// macOS tells a process's session only while it runs, so that zombies are left
/// out; parents are not asked for, so that who leaves the session is not found.
#[cfg(target_os = "macos")]
fn running_processes() -> Vec<Process> {
    let mut pids: Vec<libc::pid_t> = vec![0; 32 * 1024];
    let bytes = std::mem::size_of_val(pids.as_slice()) as libc::c_int;
    // SAFETY: the buffer is valid for writes of `bytes` bytes.
    let count = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), bytes) };
    pids.truncate(usize::try_from(count).unwrap_or(0));
    pids.into_iter()
        .map(|pid| Process {
            pid,
            parent: 0,
            // SAFETY: takes a number and fails for unknown ones.
            session: unsafe { libc::getsid(pid) },
            started: 0,
            runs: true,
        })
        .filter(|process| process.session > 0)
        .collect()
}
