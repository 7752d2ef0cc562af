//! What a command leaves in a shell.
//!
//! bashkit's `restore_shell_state` does not undo all of it: file descriptors, options,
//! tables, history. A shell after such a command is not used again.
//!
//! Seen in bashkit 0.20.2; gone when `leftovers` of `tests/it/bashkit.rs` fails.

use super::script::Script;

/// Words that a command is looked through for. All but the first may leave something.
pub(super) const WORDS: [&str; 27] = [
    "rg", "exec", "set", "shopt", "coproc", "complete", "compgen", "compopt", "bind", "hash",
    "history", "fc", "enable", "ulimit", "umask", "eval", "source", "builtin", "command",
    "declare", "typeset", "readonly", "jobs", "disown", "wait", "getopts", "trap",
];

/// Whether a shell is as good as new after `script`.
pub(in crate::memory) fn are_none(script: &Script) -> bool {
    !script.in_background && script.words.iter().all(|word| *word == "rg")
}

/// Whether `script` may see what others have left: a used shell remembers its
/// commands.
pub(in crate::memory) fn may_be_seen(script: &Script) -> bool {
    script.words.contains("history") || script.words.contains("fc")
}
