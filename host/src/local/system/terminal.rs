//! A terminal for the output of commands: a pseudo-terminal whose other side is read here.
//!
//! It is nobody's controlling terminal: a program that asks there for a password finds
//! none and fails, instead of waiting for somebody who types.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use nix::fcntl::OFlag;
use nix::libc;
use nix::pty::{PtyMaster, grantpt, posix_openpt, unlockpt};
use nix::sys::termios::{LocalFlags, OutputFlags, SetArg, tcgetattr, tcsetattr};

/// The size that programs see.
static SIZE: libc::winsize = libc::winsize {
    ws_row: 24,
    ws_col: 80,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

/// The side that is read, which does not block, and the one that commands write to.
pub(super) fn open() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let reader = posix_openpt(flags)?;
    grantpt(&reader)?;
    unlockpt(&reader)?;
    let writer = other_side(&reader)?;
    let mut settings = tcgetattr(&writer)?;
    // Lines end as they were written.
    settings.output_flags.remove(OutputFlags::OPOST);
    settings.local_flags.remove(LocalFlags::ECHO);
    tcsetattr(&writer, SetArg::TCSANOW, &settings)?;
    // SAFETY: an open terminal, and a valid value that outlives the call.
    if unsafe { libc::ioctl(writer.as_raw_fd(), libc::TIOCSWINSZ, &raw const SIZE) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((reader.into(), writer.into()))
}

fn other_side(reader: &PtyMaster) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    let path = nix::pty::ptsname_r(reader)?;
    // SAFETY: no other thread asks for a name: terminals are opened here only.
    #[cfg(not(target_os = "linux"))]
    let path = unsafe { nix::pty::ptsname(reader) }?;
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY)
        .open(path)
}
