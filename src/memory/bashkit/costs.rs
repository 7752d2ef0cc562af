//! What bashkit's builtins cost beside what they can be seen to do.
//!
//! bashkit counts nothing that all builtins have in common: they read the clock for every
//! byte, for every line or hardly at all, and the loops of `awk` count no work. Without
//! this a command's own time, by which `timeout` ends it, would be far from the real one,
//! and a cancellation that came while `awk` worked would be lost.
//!
//! Seen in bashkit 0.20.2.

/// What a builtin costs, see [`of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::memory) struct Cost {
    /// Units that its start is worth, beside what it reads.
    pub(in crate::memory) start: u64,
    /// Units that a tick is worth (see [`crate::memory::clock`]): most builtins have
    /// turns that are shorter than those of interpreters.
    pub(in crate::memory) tick: u64,
    /// Bytes of small pieces by which the memory grew between two ticks that are worth a
    /// unit: they are new to the processor, and whoever fills a table moves it.
    pub(in crate::memory) bytes_grown: usize,
    /// Sixteenths of a unit that a reading of the clock is worth.
    pub(in crate::memory) reading: u64,
    /// It takes a pipe in pieces of 4 KiB, looks at each byte for long, and reads the
    /// clock so seldom that it does not count (see [`super::watcher`]).
    pub(in crate::memory) takes_pieces: bool,
    /// It computes next to nothing, whatever it is given.
    pub(in crate::memory) is_short: bool,
    /// The shell hands it all the input that is left, several times over.
    pub(in crate::memory) reads_rest: bool,
}

/// Commands after which bashkit yields.
pub(in crate::memory) const COMMANDS_IN_A_POLL: u64 = 64;

/// The cost of the builtin `name`.
pub(in crate::memory) fn of(name: &str) -> Cost {
    Cost {
        // What a pattern takes until it is ready, and what a pipe takes, is the most.
        start: match name {
            "sed" | "grep" | "egrep" | "fgrep" | "rg" | "find" => 60,
            "cat" | "sort" | "uniq" | "tr" | "cut" | "wc" => 40,
            name if is_awk(name) => 40,
            "[" | "test" => 20,
            _ => 12,
        },
        tick: match name {
            "jq" => 600,
            "gzip" => 500,
            name if is_awk(name) => 500,
            "wc" => 240,
            _ => 320,
        },
        bytes_grown: if is_awk(name) { 64 } else { 128 },
        // Most check their limits for every byte or line, `awk` for every statement.
        reading: match is_awk(name) {
            true => 4,
            false => 1,
        },
        takes_pieces: matches!(name, "tr" | "grep" | "egrep" | "fgrep"),
        is_short: matches!(
            name,
            "read" | ":" | "true" | "[" | "test" | "echo" | "printf" | "export"
        ),
        reads_rest: name == "read",
    }
}

/// Whether `command` may have worked without any work being counted: loops of `awk`.
pub(in crate::memory) fn may_be_uncounted(command: &str) -> bool {
    command.contains("awk")
}

/// Whether `name` is an `awk`.
pub(super) fn is_awk(name: &str) -> bool {
    matches!(name, "awk" | "gawk" | "mawk" | "nawk")
}
