//! `mkdir -m`.
//!
//! bashkit takes the permission bits for the name of another directory, and makes it.
//!
//! Seen in bashkit 0.20.2; gone when `mkdir` of `tests/it/bashkit.rs` fails.

/// Why `mkdir` with `args` cannot be run.
pub(super) fn refusal(args: &[String]) -> Option<String> {
    let has_mode = args.iter().any(|argument| is_mode(argument));
    has_mode.then(|| "mkdir: -m is not supported in the sandbox; use chmod afterwards".to_owned())
}

/// Whether this argument gives permission bits.
fn is_mode(argument: &str) -> bool {
    match argument.strip_prefix("--") {
        Some(long) => long.starts_with("mode"),
        None => argument.starts_with('-') && argument.contains('m'),
    }
}
