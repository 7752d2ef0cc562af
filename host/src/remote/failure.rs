//! What the exit codes of the script mean.

use hermitcrab::environment::{EnvironmentError, EnvironmentErrorKind as Kind};

/// The error of a call that ended with `code`, met when doing `verb` (such as `read`) to
/// `path`; `said` is what stood on standard error. None: the code is not the script's.
pub(super) fn of_code(code: i32, verb: &str, path: &str, said: &str) -> Option<EnvironmentError> {
    let (kind, reason) = match code {
        40 => (Kind::NotFound, "no such file or directory"),
        41 => (Kind::IsDirectory, "it is a directory"),
        42 => (
            Kind::NotDirectory,
            "it or a part of the path is not a directory",
        ),
        43 => (Kind::PermissionDenied, "permission denied"),
        44 => (Kind::TooLarge, "it is larger than was asked for"),
        45 => (Kind::InvalidInput, "it is not a regular file"),
        46 => (Kind::Io, "too many levels of symbolic links"),
        47 => (Kind::ReadOnly, "the file system is read-only"),
        48 => (
            Kind::Unsupported,
            "the machine is not a Linux machine with /proc",
        ),
        49 => (Kind::Io, last_line(said)),
        _ => return None,
    };
    let message = format!("cannot {verb} `{path}`: {reason}");
    Some(EnvironmentError::new(kind, message))
}

/// The last line of what a tool said, without its own name and full stop.
fn last_line(said: &str) -> &str {
    let line = said.lines().last().unwrap_or_default();
    let reason = line.rsplit(": ").next().unwrap_or_default();
    match reason.trim_end_matches('.') {
        "" => "no reason given",
        reason => reason,
    }
}
