//! Sentences for what the file system refuses.

use std::io;

use hermitcrab::environment::{EnvironmentError, EnvironmentErrorKind as Kind};

/// An [`EnvironmentError`] for `error`, met when doing `verb` (such as `read`)
/// to `path`.
pub(in crate::local) fn failure(verb: &str, path: &str, error: &io::Error) -> EnvironmentError {
    let (kind, reason) = match error.kind() {
        io::ErrorKind::NotFound => (Kind::NotFound, "no such file or directory".to_owned()),
        io::ErrorKind::PermissionDenied => (Kind::PermissionDenied, "permission denied".to_owned()),
        io::ErrorKind::IsADirectory => (Kind::IsDirectory, "it is a directory".to_owned()),
        io::ErrorKind::NotADirectory => (
            Kind::NotDirectory,
            "a part of the path is not a directory".to_owned(),
        ),
        io::ErrorKind::ReadOnlyFilesystem => {
            (Kind::ReadOnly, "the file system is read-only".to_owned())
        }
        io::ErrorKind::StorageFull => (Kind::Io, "no space left on the device".to_owned()),
        io::ErrorKind::FileTooLarge => (
            Kind::TooLarge,
            "the file would be larger than the system allows (see `ulimit -f`)".to_owned(),
        ),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => {
            (Kind::InvalidInput, plain(error))
        }
        _ => (Kind::Io, plain(error)),
    };
    EnvironmentError::new(kind, format!("cannot {verb} `{path}`: {reason}"))
}

/// The system's text in lower case, without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => "no reason given".to_owned(),
    }
}
