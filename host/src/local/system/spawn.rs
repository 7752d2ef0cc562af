//! Starts a process in a new session, without forking the host.
//!
//! `posix_spawn` with `POSIX_SPAWN_SETSID`, called directly because std reaches
//! `setsid` only through `pre_exec`, which forks: measured on 2 cores, a command
//! takes 0.8 ms here and 10 ms by `pre_exec` when the host holds 40 MB, 33 ms at
//! 150 MB. A process group alone (what std's `process_group` gives) is not
//! enough: without a new session a command that asks for a password opens
//! the user's terminal and is stopped there until the time limit, and what
//! leaves the group, as everything under coreutils `timeout` does, cannot be
//! found again to be killed.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use nix::libc;

use super::fence::Fence;
use super::guardian::{Entry, Table};
use super::terminal;

#[cfg(target_os = "linux")]
const NEW_SESSION: libc::c_short = libc::POSIX_SPAWN_SETSID;
/// From `<spawn.h>` of macOS 10.15 and later; the libc crate lacks it.
#[cfg(target_os = "macos")]
const NEW_SESSION: libc::c_short = 0x0400;

/// A process that has just been started: leader of its session and group.
pub(super) struct Spawned {
    pub(super) pid: libc::pid_t,
    pub(super) stdout: OwnedFd,
    /// Of a terminal: nothing.
    pub(super) stderr: OwnedFd,
    /// Its entry at the guardian.
    pub(super) watched: Option<Entry>,
}

/// Runs `words`, a program and its arguments, with exactly the
/// variables of `environment` (`NAME=value`) in `directory`. Standard input is
/// `/dev/null`; signals have their default meaning and none is blocked. `guardian`
/// watches it from before its first moment; `fence` bounds it from then on. With `terminal`
/// it writes to one, and not to pipes.
pub(super) fn spawn(
    words: &[&CStr],
    environment: &[CString],
    directory: &CStr,
    guardian: Option<&Table>,
    fence: Option<&Fence>,
    terminal: bool,
) -> io::Result<Spawned> {
    // A terminal is opened outside of the fence, which would not let it be written to.
    let output = match terminal {
        true => terminal::open()?,
        false => pipe()?,
    };
    let start = || unfenced(words, environment, directory, guardian, output, terminal);
    let Some(fence) = fence else { return start() };
    // A fence binds a thread for good, and what it starts: this one ends at once.
    std::thread::scope(|scope| {
        let fenced = std::thread::Builder::new()
            .name("fence".to_owned())
            .spawn_scoped(scope, || {
                fence.enter()?;
                start()
            })?;
        fenced
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread of the fence failed")))
    })
}

fn unfenced(
    words: &[&CStr],
    environment: &[CString],
    directory: &CStr,
    guardian: Option<&Table>,
    (stdout, stdout_writer): (OwnedFd, OwnedFd),
    terminal: bool,
) -> io::Result<Spawned> {
    let watched = guardian.map(|table| table.enter(&stdout));
    let (stderr, stderr_writer) = pipe()?;
    let to_stderr = match terminal {
        true => &stdout_writer,
        false => &stderr_writer,
    };
    let mut actions = FileActions::new()?;
    actions.null_stdin()?;
    actions.duplicate(stdout_writer.as_raw_fd(), libc::STDOUT_FILENO)?;
    actions.duplicate(to_stderr.as_raw_fd(), libc::STDERR_FILENO)?;
    actions.change_directory(directory)?;
    let attributes = Attributes::new_session()?;
    let argv = pointers(words.iter().copied());
    let envp = pointers(environment.iter().map(CString::as_c_str));
    let mut pid = 0;
    // SAFETY: every pointer is valid for the call: C strings and null-terminated
    // arrays of them that outlive it, and initialised actions and attributes.
    check(unsafe {
        libc::posix_spawn(
            &mut pid,
            words[0].as_ptr(),
            &actions.0,
            &attributes.0,
            argv.as_ptr(),
            envp.as_ptr(),
        )
    })?;
    if let Some(entry) = &watched {
        entry.started(pid);
    }
    Ok(Spawned {
        pid,
        stdout,
        stderr,
        watched,
    })
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}

fn pointers<'a>(strings: impl Iterator<Item = &'a CStr>) -> Vec<*mut c_char> {
    strings
        .map(|string| string.as_ptr().cast_mut())
        .chain([ptr::null_mut()])
        .collect()
}

/// These calls return the error number instead of setting `errno`.
fn check(error: libc::c_int) -> io::Result<()> {
    match error {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

struct FileActions(libc::posix_spawn_file_actions_t);

impl FileActions {
    fn new() -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: `init` fills the memory it is given; it is read only after success.
        unsafe {
            check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
            Ok(Self(actions.assume_init()))
        }
    }

    fn null_stdin(&mut self) -> io::Result<()> {
        // SAFETY: initialised actions; the path is copied or outlives them.
        check(unsafe {
            libc::posix_spawn_file_actions_addopen(
                &mut self.0,
                libc::STDIN_FILENO,
                c"/dev/null".as_ptr(),
                libc::O_RDONLY,
                0,
            )
        })
    }

    fn duplicate(&mut self, from: libc::c_int, to: libc::c_int) -> io::Result<()> {
        // SAFETY: initialised actions; the numbers are plain data.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&mut self.0, from, to) })
    }

    fn change_directory(&mut self, directory: &CStr) -> io::Result<()> {
        // SAFETY: initialised actions; the path is copied by the call.
        check(unsafe {
            libc::posix_spawn_file_actions_addchdir_np(&mut self.0, directory.as_ptr())
        })
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: initialised once, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    /// A new session, no blocked signal, and what Rust programs (`SIGPIPE`) and
    /// the binary (`SIGXFSZ`) ignore back to its default: ignoring is inherited.
    fn new_session() -> io::Result<Self> {
        let flags = NEW_SESSION
            | libc::POSIX_SPAWN_SETSIGMASK as libc::c_short
            | libc::POSIX_SPAWN_SETSIGDEF as libc::c_short;
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: `init` fills the memory it is given; it is read only after
        // success. The signal sets are initialised by `sigemptyset` before use.
        unsafe {
            check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
            let mut attributes = Self(attributes.assume_init());
            let mut signals = MaybeUninit::uninit();
            libc::sigemptyset(signals.as_mut_ptr());
            let mut signals = signals.assume_init();
            check(libc::posix_spawnattr_setsigmask(
                &mut attributes.0,
                &signals,
            ))?;
            libc::sigaddset(&mut signals, libc::SIGPIPE);
            libc::sigaddset(&mut signals, libc::SIGXFSZ);
            check(libc::posix_spawnattr_setsigdefault(
                &mut attributes.0,
                &signals,
            ))?;
            check(libc::posix_spawnattr_setflags(&mut attributes.0, flags))?;
            Ok(attributes)
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised once, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}
