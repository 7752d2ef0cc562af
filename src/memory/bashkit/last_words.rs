//! Last words: what a lent program had printed that a time limit or a
//! cancellation ended still comes out.
//!
//! A program's output arrives when the program ends, and it ends because the
//! command's time is over. So the command goes on for as long as the output is on
//! its way: until as many bytes have come out, through the commands that read it
//! from a pipe, and until anything else is about to start. A `timeout` that calls
//! a program looks at the clock when the output has arrived; the clock that
//! commands see is put back before its end until then.
//!
//! Seen in bashkit 0.20.2; `tests/node/sandbox-exec.test.mjs` without this file.

use std::cell::{Cell, RefCell};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// None are awaited.
    #[default]
    None,
    /// The program ends, or so many bytes of its output are on the way.
    Awaited(usize),
    /// Another command was about to start and is refused.
    Over,
}

/// Bytes of output when nobody knows how many there will be.
const UNKNOWN: usize = usize::MAX;

/// When a `timeout` ends the program that it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramLimit {
    /// The time, in µs since 1970-01-01 UTC.
    pub us: u64,
    /// Whether the exit code is the program's own then, not 124.
    pub preserve_status: bool,
}

/// The last words of one command.
#[derive(Default)]
pub(crate) struct LastWords {
    state: Cell<State>,
    /// Commands of the script that stand behind a pipe.
    readers: RefCell<Vec<String>>,
    /// What the `timeout` that was started last calls, and its limit.
    timeout: RefCell<Option<(String, ProgramLimit)>>,
    /// The limit of the command that was started last, if a `timeout` calls it.
    limit: Cell<Option<ProgramLimit>>,
}

impl LastWords {
    /// Names what the pipes of the command lead to: it may still start.
    pub(crate) fn set_readers(&self, readers: Vec<String>) {
        *self.readers.borrow_mut() = readers;
    }

    /// A `timeout` is about to start `command`.
    pub(crate) fn set_timeout(&self, command: &str, own: ProgramLimit) {
        // One that another calls may be ended by that.
        let outer = self.take_limit().filter(|outer| outer.us < own.us);
        *self.timeout.borrow_mut() = Some((command.to_owned(), outer.unwrap_or(own)));
    }

    /// A command is about to start; says whether it must not, because only last
    /// words were awaited.
    pub(in crate::memory) fn refuse(&self, name: &str) -> bool {
        let timeout = self.timeout.take();
        let called = timeout.filter(|(command, _)| command == name);
        self.limit.set(called.map(|(_, limit)| limit));
        if !self.are_awaited() {
            return false;
        }
        let mut readers = self.readers.borrow_mut();
        if let Some(index) = readers.iter().position(|reader| reader == name) {
            readers.swap_remove(index);
            self.state.set(State::Awaited(UNKNOWN));
            return false;
        }
        self.state.set(State::Over);
        true
    }

    /// When a `timeout` ends the command that was just started.
    pub(crate) fn take_limit(&self) -> Option<ProgramLimit> {
        self.limit.take()
    }

    /// A program is ended by the end of the command's time.
    pub(in crate::memory) fn await_them(&self) {
        if self.are_heard() {
            self.state.set(State::Awaited(UNKNOWN));
        }
    }

    /// A program has ended and printed `bytes`.
    pub(crate) fn printed(&self, bytes: usize) {
        self.count(|_| bytes);
    }

    /// So many bytes have come out.
    pub(crate) fn came_out(&self, bytes: usize) {
        self.count(|awaited| match awaited {
            UNKNOWN => UNKNOWN,
            awaited => awaited.saturating_sub(bytes),
        });
    }

    fn count(&self, count: impl FnOnce(usize) -> usize) {
        if let State::Awaited(bytes) = self.state.get() {
            self.state.set(match count(bytes) {
                0 => State::None,
                bytes => State::Awaited(bytes),
            });
        }
    }

    /// Whether they are on their way.
    pub(in crate::memory) fn are_awaited(&self) -> bool {
        matches!(self.state.get(), State::Awaited(_))
    }

    /// Whether no command was refused.
    pub(crate) fn are_heard(&self) -> bool {
        self.state.get() != State::Over
    }
}
