//! Last words: what a lent program had printed that a time limit or a
//! cancellation ended still comes out.
//!
//! A program's output arrives when the program ends, and it ends because the
//! command's time is over. So the command goes on for as long as the output is on
//! its way: until as many bytes have come out, through the commands that read it
//! from a pipe, and until anything else is about to start. A `timeout` that calls
//! a program looks at the clock when the output has arrived; the clock that
//! commands see is put back before its end until then.

use std::cell::{Cell, RefCell};

use super::Timeline;

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

/// How far from such an end the clock is put back: more than one poll takes.
const PUT_BACK_US: u64 = 1_000_000;

/// When a `timeout` ends the program that it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramLimit {
    /// The time, in µs since 1970-01-01 UTC.
    pub us: u64,
    /// Whether the exit code is the program's own then, not 124.
    pub preserve_status: bool,
}

#[derive(Default)]
pub(super) struct LastWords {
    state: Cell<State>,
    /// Commands of the script that stand behind a pipe.
    readers: RefCell<Vec<String>>,
    /// What the `timeout` that was started last calls, and its limit.
    timeout: RefCell<Option<(String, ProgramLimit)>>,
    /// The limit of the command that was started last, if a `timeout` calls it.
    limit: Cell<Option<ProgramLimit>>,
    /// Ends of the `timeout`s that call a program. Polls begin before the first
    /// of them, as commands see it,
    running: RefCell<Vec<u64>>,
    /// and before that of one whose program has just ended.
    ended_us: Cell<Option<u64>>,
    /// How far the clock that commands see is put back.
    behind_us: Cell<u64>,
}

impl Timeline {
    /// Names the script that runs: what its pipes lead to may still start.
    pub fn set_script(&self, script: &str) {
        *self.last_words.readers.borrow_mut() = readers(script);
    }

    /// A `timeout` is about to start `command`, `us` before its time is over.
    pub fn set_timeout(&self, command: &str, us: u64, preserve_status: bool) {
        self.mark(us);
        let us = self.peek_us().saturating_add(us);
        let own = ProgramLimit {
            us,
            preserve_status,
        };
        // One that another calls may be ended by that.
        let outer = self.take_limit().filter(|outer| outer.us < us);
        *self.last_words.timeout.borrow_mut() = Some((command.to_owned(), outer.unwrap_or(own)));
    }

    /// A command is about to start; says whether it must not, because only last
    /// words were awaited.
    pub fn refuses(&self, name: &str) -> bool {
        let words = &self.last_words;
        self.release_clock();
        let timeout = words.timeout.take();
        let called = timeout.filter(|(command, _)| command == name);
        words.limit.set(called.map(|(_, limit)| limit));
        let State::Awaited(_) = words.state.get() else {
            return false;
        };
        let mut readers = words.readers.borrow_mut();
        if let Some(index) = readers.iter().position(|reader| reader == name) {
            readers.swap_remove(index);
            words.state.set(State::Awaited(UNKNOWN));
            return false;
        }
        words.state.set(State::Over);
        self.judge();
        true
    }

    /// When a `timeout` ends the command that was just started.
    pub fn take_limit(&self) -> Option<ProgramLimit> {
        self.last_words.limit.take()
    }

    /// No poll begins at `us` or later, as commands see it, until
    /// [`Timeline::end_hold`].
    pub fn hold_clock(&self, us: u64) {
        self.last_words.running.borrow_mut().push(us);
    }

    /// Ends a hold; if `us` has passed, only when the next command starts.
    pub fn end_hold(&self, us: u64) {
        let words = &self.last_words;
        let mut running = words.running.borrow_mut();
        if let Some(index) = running.iter().position(|other| *other == us) {
            running.swap_remove(index);
        }
        if self.peek_us() >= us {
            words.ended_us.set(Some(us));
        }
    }

    /// Ends the holds of programs that have ended.
    pub(super) fn release_clock(&self) {
        self.last_words.ended_us.set(None);
        self.put_back_clock();
    }

    /// Puts the clock back that commands see, if it is held.
    pub(super) fn put_back_clock(&self) {
        let words = &self.last_words;
        let now = self.now_us.get();
        let running = words.running.borrow();
        let held = running.iter().copied().chain(words.ended_us.get()).min();
        let held = held.filter(|us| now >= *us);
        let seen = held.map_or(now, |us| us.saturating_sub(PUT_BACK_US));
        words.behind_us.set(now - seen);
    }

    /// The time that commands see, in µs since 1970-01-01 UTC.
    pub(super) fn seen_us(&self) -> u64 {
        let behind = self.last_words.behind_us.get();
        self.now_us.get().saturating_sub(behind)
    }

    /// A program is ended by the end of the command's time.
    pub(super) fn await_last_words(&self) {
        if self.is_heard() {
            self.last_words.state.set(State::Awaited(UNKNOWN));
        }
    }

    /// A program has ended and printed `bytes`.
    pub fn printed(&self, bytes: usize) {
        self.count_words(|_| bytes);
    }

    /// So many bytes have come out.
    pub fn came_out(&self, bytes: usize) {
        self.count_words(|awaited| match awaited {
            UNKNOWN => UNKNOWN,
            awaited => awaited.saturating_sub(bytes),
        });
    }

    fn count_words(&self, count: impl FnOnce(usize) -> usize) {
        let state = &self.last_words.state;
        if let State::Awaited(bytes) = state.get() {
            state.set(match count(bytes) {
                0 => State::None,
                bytes => State::Awaited(bytes),
            });
        }
    }

    /// Whether last words are on their way.
    pub(super) fn awaits_words(&self) -> bool {
        matches!(self.last_words.state.get(), State::Awaited(_))
    }

    /// Whether no command was refused.
    pub fn is_heard(&self) -> bool {
        self.last_words.state.get() != State::Over
    }
}

/// Names of the commands that stand behind a pipe in `script`, outside quotes.
fn readers(script: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut quote = None;
    let mut characters = script.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (None | Some('"'), '\\') => {
                characters.next();
            }
            (Some(open), _) => quote = (open != character).then_some(open),
            (None, '\'' | '"') => quote = Some(character),
            (None, '|') if characters.next_if(|(_, next)| *next == '|').is_none() => {
                let rest = script[at + 1..].trim_start_matches(['&', ' ', '\t', '\n']);
                let end = |c: char| c.is_whitespace() || "|&;()<>'\"$`".contains(c);
                let name = rest.split(end).next().unwrap_or_default();
                names.push(name.to_owned());
            }
            (None, _) => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_stand_behind_pipes() {
        for (script, expected) in [
            ("a | b", &["b"][..]),
            ("a|b|&c;d", &["b", "c"]),
            ("a |\n  b -x | (c)", &["b"]),
            ("a || b", &[]),
            ("a 'x|y' \"x|y\\\"|z\" | b", &["b"]),
            ("a \\| b '|' | c", &["c"]),
            ("a |", &[]),
            ("ä | ö", &["ö"]),
        ] {
            assert_eq!(readers(script), expected, "{script}");
        }
    }
}
