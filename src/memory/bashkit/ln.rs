//! Hard links.
//!
//! The tree has none, and bashkit's `ln` without `-s` makes a symbolic link instead.
//!
//! Seen in bashkit 0.20.2; gone when `ln` of `tests/it/bashkit.rs` fails.

use super::files::operands;

/// Why `ln` with `args` cannot be run.
pub(super) fn refusal(args: &[String]) -> Option<String> {
    let is_forced = |it: &String| it.starts_with('-') && !it.starts_with("--") && it.contains('f');
    if let [target, link] = operands(args)[..]
        && args.iter().any(is_forced)
        && (target == link || matches!(link, "." | "./") && !target.contains('/'))
    {
        return Some(format!("ln: '{target}' and '{link}' are the same file"));
    }
    let is_hard = !args.iter().any(|argument| is_symbolic(argument));
    is_hard.then(|| "ln: hard links are not supported in the sandbox; use ln -s, or cp".to_owned())
}

/// Whether this argument of `ln` asks for a symbolic link, or only for help.
fn is_symbolic(argument: &str) -> bool {
    match argument.strip_prefix("--") {
        Some(long) => ["symbolic", "help", "version"].contains(&long),
        None => argument.starts_with('-') && argument.contains('s'),
    }
}
