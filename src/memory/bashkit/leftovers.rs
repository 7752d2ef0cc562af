//! What a command leaves in a shell.
//!
//! bashkit's `restore_shell_state` does not undo all of it: file descriptors, options,
//! tables, history. A shell after such a command is not used again.
//!
//! Seen in bashkit 0.20.2; gone when `leftovers` of `tests/it/bashkit.rs` fails.

use std::collections::BTreeSet;

/// Words that a command is looked through for. All but the first may leave something.
const WORDS: [&str; 27] = [
    "rg", "exec", "set", "shopt", "coproc", "complete", "compgen", "compopt", "bind", "hash",
    "history", "fc", "enable", "ulimit", "umask", "eval", "source", "builtin", "command",
    "declare", "typeset", "readonly", "jobs", "disown", "wait", "getopts", "trap",
];

/// What tells of a script whether it leaves something.
#[derive(Debug, Default)]
pub(in crate::memory) struct Leftovers {
    /// Whether something may go on in the background.
    pub(super) in_background: bool,
    /// The words of [`WORDS`] that it says.
    words: BTreeSet<&'static str>,
}

impl Leftovers {
    /// Notes the words of `text`.
    pub(super) fn say(&mut self, text: &str) {
        let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-';
        for word in text.split(is_end) {
            if let Some(known) = WORDS.iter().find(|known| **known == word) {
                self.words.insert(known);
            }
        }
    }

    /// Whether the script says `word` of [`WORDS`].
    pub(super) fn names(&self, word: &str) -> bool {
        self.words.contains(word)
    }

    /// Whether a shell is as good as new after the script.
    pub(in crate::memory) fn are_none(&self) -> bool {
        !self.in_background && self.words.iter().all(|word| *word == "rg")
    }

    /// Whether the script may see what others have left: a used shell remembers its
    /// commands.
    pub(in crate::memory) fn may_be_seen(&self) -> bool {
        self.names("history") || self.names("fc")
    }
}
