//! Absolute, normalised paths as text.

/// Whether a lookup follows a link in the last component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLink {
    /// Follow it, as `open` and `stat` do.
    Follow,
    /// Keep it, as `lstat`, `unlink` and `rename` do.
    Keep,
}

/// The names on a path, empty ones and `.` left out.
pub(crate) fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/')
        .filter(|name| !name.is_empty() && *name != ".")
}

/// The path of the directory that holds `path`.
pub(crate) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(end) => &path[..end],
    }
}

/// The last name of `path`; none for the root.
pub(crate) fn file_name(path: &str) -> Option<&str> {
    components(path).next_back()
}

/// Whether `path` lies below `directory` (and is not `directory` itself).
pub(crate) fn is_below(path: &str, directory: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}
