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
