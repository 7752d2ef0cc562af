//! `Guardian`: ends commands whose host was killed and can no longer do it.
//!
//! A process forked at the very start, which sleeps until a pipe that only the
//! host holds is closed: whatever ends the host, SIGKILL and the out-of-memory
//! killer too, closes it. The leaders of running commands stand in memory that
//! both share, so that a command costs some stores and one `fstat`.
//!
//! A host can be killed before it knows the number of what it has just started: by
//! that command itself, for example. So a command is entered before it starts, by
//! the pipe that it writes to; on Linux the guardian finds whoever holds that.
//!
//! Rejected: `PR_SET_PDEATHSIG`, which ends the shell but none of the processes
//! that it started, exists on Linux only, depends on the thread that spawned,
//! and needs `pre_exec`, which forks the whole host for each command.

use std::io::{self, PipeWriter, Read};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
use nix::sys::signal::Signal;
use nix::sys::stat::fstat;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork, setsid};

use super::kin::{self, Kin};

/// Commands that are watched at once; one more runs unwatched.
const SLOTS: usize = 1024;

/// How often, and how long apart, the guardian looks for survivors: somebody may
/// be born between the look and the signal.
const LOOKS: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(5);

/// A process that kills the commands of [`super::LocalEnvironment`]s when this
/// process dies without having done so. Give it to
/// [`LocalBuilder::guardian`](crate::LocalBuilder::guardian). Dropping it ends it.
///
/// Not covered: what a command left in the background after it had ended by
/// itself, what has deliberately become a daemon (`setsid` and an ended parent),
/// and commands beyond 1,024 at the same time.
#[derive(Debug)]
pub struct Guardian {
    table: Table,
    process: libc::pid_t,
    alive: Option<PipeWriter>,
}

impl Guardian {
    /// Forks the guardian.
    ///
    /// # Errors
    /// The system has no process, pipe or memory left.
    ///
    /// # Safety
    /// No other thread runs in this process yet: the first thing in `main`.
    pub unsafe fn start() -> io::Result<Self> {
        let table = Table::new()?;
        let (mut watched, alive) = io::pipe()?;
        // SAFETY: the caller's promise; both processes go on as if alone.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Self {
                table,
                process: child.as_raw(),
                alive: Some(alive),
            }),
            ForkResult::Child => {
                drop(alive);
                leave_everything(watched.as_raw_fd());
                // Nothing is ever written: this returns when the host is gone.
                let _ = watched.read(&mut [0]);
                table.kill_all();
                // SAFETY: ends the process without running what the host has
                // registered to run at its own exit.
                unsafe { libc::_exit(0) }
            }
        }
    }

    /// Where commands are entered.
    pub(in crate::local) fn table(&self) -> Table {
        self.table.clone()
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.alive = None;
        // Waited for, so that it is no zombie where nobody reaps orphans.
        let _ = waitpid(nix::unistd::Pid::from_raw(self.process), None);
    }
}

/// A new session, so that signals of terminals and groups pass it by, and
/// nothing open but the pipe: whoever reads the host's output sees its end.
fn leave_everything(kept: RawFd) {
    let _ = setsid();
    // SAFETY: plain system calls on this process's own numbers; nothing here
    // uses one of the closed files again.
    unsafe {
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_NAME, c"hc-guardian".as_ptr());
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..=2 {
            if null < 0 || libc::dup2(null, standard) < 0 {
                libc::close(standard);
            }
        }
        close(3, kept - 1);
        close(kept + 1, RawFd::MAX);
        // A directory that is left can be unmounted.
        libc::chdir(c"/".as_ptr());
    }
}

/// Closes all files from `first` to `last`. With one call where the system has
/// it: thousands of them cost as much as a tenth of the host's own start.
///
/// # Safety
/// Nobody uses these files any more.
unsafe fn close(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(target_os = "linux")]
        if libc::syscall(libc::SYS_close_range, first, last, 0) == 0 {
            return;
        }
        let limit = match libc::sysconf(libc::_SC_OPEN_MAX) {
            limit @ 1..=4096 => limit as RawFd,
            _ => 4096,
        };
        for file in first..limit.min(last.saturating_add(1)) {
            libc::close(file);
        }
    }
}

/// A slot whose command is being started.
const STARTING: libc::pid_t = -1;

/// Running commands, in memory shared with the guardian.
#[derive(Clone, Debug)]
pub(in crate::local) struct Table(Arc<Shared>);

#[derive(Debug)]
struct Shared(NonNull<[Slot; SLOTS]>);

/// A command: 0 for none, [`STARTING`], or its leader.
#[derive(Debug)]
struct Slot {
    leader: AtomicI32,
    /// Inode of the pipe that it writes to.
    pipe: AtomicU64,
}

// SAFETY: atomics in memory that lives as long as `Shared`.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Table {
    fn new() -> io::Result<Self> {
        let length = NonZeroUsize::new(size_of::<[Slot; SLOTS]>()).unwrap_or(NonZeroUsize::MIN);
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping overlaps nothing.
        let memory = unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_SHARED)? };
        Ok(Self(Arc::new(Shared(memory.cast()))))
    }

    fn slots(&self) -> &[Slot; SLOTS] {
        // SAFETY: a page-aligned mapping of that size, zero at first, which is
        // a valid value, and unmapped with the last handle.
        unsafe { self.0.0.as_ref() }
    }

    /// Enters a command that is about to be started and writes to `pipe`.
    pub(super) fn enter(&self, pipe: impl AsFd) -> Entry {
        let free = |slot: &&Slot| {
            slot.leader
                .compare_exchange(0, STARTING, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        let entry = Entry {
            slot: self.slots().iter().position(|slot| free(&slot)),
            table: self.clone(),
        };
        if let (Some(slot), Ok(stat)) = (entry.slot(), fstat(pipe)) {
            slot.pipe.store(stat.st_ino, Ordering::Release);
        }
        entry
    }

    /// Ends everybody who is entered and everything that they started.
    fn kill_all(&self) {
        let mut families = Vec::new();
        let mut starting = Vec::new();
        for slot in self.slots() {
            match slot.leader.load(Ordering::Acquire) {
                0 => {}
                STARTING => starting.push(slot.pipe.load(Ordering::Acquire)),
                leader => families.push(Kin::new(leader)),
            }
        }
        starting.retain(|pipe| *pipe != 0);
        for _ in 0..LOOKS {
            // Who is being started has its pipe a moment later.
            starting.retain(|pipe| match kin::holder(*pipe) {
                Some(leader) => {
                    families.push(Kin::new(leader));
                    false
                }
                None => true,
            });
            families.retain_mut(|kin| {
                kin.signal(Signal::SIGKILL);
                kin.any_lives()
            });
            if families.is_empty() && starting.is_empty() {
                return;
            }
            std::thread::sleep(BETWEEN);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped in `Table::new` with this size; nobody refers to it.
        let _ = unsafe { nix::sys::mman::munmap(self.0.cast(), size_of::<[Slot; SLOTS]>()) };
    }
}

/// A watched command; to be dropped before its leader is reaped, when the number
/// still is its own.
#[derive(Debug)]
pub(super) struct Entry {
    table: Table,
    slot: Option<usize>,
}

impl Entry {
    fn slot(&self) -> Option<&Slot> {
        self.table.slots().get(self.slot?)
    }

    /// It has been started.
    pub(super) fn started(&self, leader: libc::pid_t) {
        if let Some(slot) = self.slot() {
            slot.leader.store(leader, Ordering::Release);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(slot) = self.slot() {
            slot.pipe.store(0, Ordering::Release);
            slot.leader.store(0, Ordering::Release);
        }
    }
}
