//! The terminal in raw mode, and out of it again whatever happens.

use std::io::{self, Write as _};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// A terminal in raw mode until this is dropped. A panic ends it before it is reported.
pub(super) struct Raw(());

impl Raw {
    pub(super) fn enter() -> io::Result<Self> {
        enter()?;
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            report(panic);
        }));
        Ok(Self(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnableBracketedPaste)
}

fn leave() {
    let mut stdout = io::stdout();
    let _ = execute!(stdout, DisableBracketedPaste, crossterm::cursor::Show);
    let _ = disable_raw_mode();
    let _ = stdout.flush();
}

/// Stops this process as Ctrl-Z does a program that knows nothing of it.
pub(super) fn suspend() {
    #[cfg(unix)]
    {
        leave();
        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGTSTP);
        let _ = enter();
    }
}

/// Whether the terminal is gone, even if no signal has come.
pub(super) fn is_gone() -> bool {
    #[cfg(unix)]
    {
        use nix::libc;
        let mut stdin = libc::pollfd {
            fd: libc::STDIN_FILENO,
            events: 0,
            revents: 0,
        };
        // SAFETY: one entry, which outlives a call that does not wait.
        let ready = unsafe { libc::poll(&raw mut stdin, 1, 0) };
        ready > 0 && stdin.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
    }
    #[cfg(not(unix))]
    false
}

/// Drops what was typed and nobody has read.
pub(super) fn forget_typed() {
    #[cfg(unix)]
    {
        use nix::sys::termios::{FlushArg, tcflush};
        // If it fails, the shell gets it, as from any program.
        let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
    }
}

/// Columns and rows, at least enough to draw anything.
pub(super) fn size() -> (usize, usize) {
    let (columns, rows) = crossterm::terminal::size().unwrap_or((80, 24));
    let or = |size: u16, usual: usize, least: usize| match size {
        0 => usual,
        size => usize::from(size).max(least),
    };
    (or(columns, 80, 12), or(rows, 24, 6))
}

/// Whether to colour.
pub(super) fn has_colors() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    use nix::pty::openpty;
    use nix::sys::termios::{LocalFlags, tcgetattr};

    use super::*;

    /// Set where this test is the one whose stdin is the terminal.
    const FORGETS: &str = "HERMITCRAB_TEST_FORGETS";

    #[test]
    fn what_was_typed_is_forgotten() {
        if std::env::var_os(FORGETS).is_some() {
            forget_typed();
            fcntl(io::stdin(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a flag");
            let read = io::stdin().read(&mut [0; 16]);
            let error = read.expect_err("nothing is there");
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            return;
        }
        let pty = openpty(None, None).expect("a pseudo-terminal");
        let mut keyboard = File::from(pty.master);
        keyboard.write_all(b"rm file\n").expect("typed");
        let name = "chat::terminal::tests::what_was_typed_is_forgotten";
        let status = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", name])
            .env(FORGETS, "1")
            .stdin(Stdio::from(pty.slave))
            .status()
            .expect("this test");
        assert!(status.success());
    }

    /// Set where this test is the one that panics.
    const PANICS: &str = "HERMITCRAB_TEST_PANICS";
    const NAME: &str = "chat::terminal::tests::a_panic_ends_raw_mode_before_it_is_reported";

    #[test]
    fn a_panic_ends_raw_mode_before_it_is_reported() {
        if std::env::var_os(PANICS).is_some() {
            let _raw = Raw::enter().expect("a terminal");
            panic!("on purpose");
        }
        let pty = openpty(None, None).expect("a pseudo-terminal");
        let is_usual = || {
            let usual = LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG;
            let attributes = tcgetattr(&pty.slave).expect("attributes");
            attributes.local_flags.contains(usual)
        };
        assert!(is_usual());
        let end = || Stdio::from(pty.slave.try_clone().expect("a handle"));
        let status = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", NAME, "--nocapture"])
            .env(PANICS, "1")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .status()
            .expect("this test");
        assert!(!status.success());
        assert!(is_usual());
        fcntl(&pty.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a flag");
        let mut shown = Vec::new();
        // Ends with the error that nothing more is there.
        let _ = File::from(pty.master).read_to_end(&mut shown);
        let shown = String::from_utf8_lossy(&shown);
        let places = ["\x1b[?2004h", "\x1b[?2004l", "on purpose"].map(|text| shown.find(text));
        assert!(places.is_sorted() && places[0].is_some(), "{shown:?}");
    }
}
