//! Globs over `/`-separated paths, and the order of what they find.

use std::path::Path;

use crate::environment::{Entries, EnvironmentError, EnvironmentErrorKind};
use crate::text::Glob;

/// A glob with `**`. Without a `/` it is matched against file names.
#[derive(Clone, Debug)]
pub struct PathGlob {
    matcher: Glob,
    against: Against,
    negated: bool,
    names_hidden: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Against {
    Name,
    Relative,
    Absolute,
}

impl PathGlob {
    /// Compiles `pattern`; a leading `!` turns it around.
    ///
    /// # Errors
    ///
    /// It is empty or no glob; the message names it.
    pub fn new(pattern: &str) -> Result<Self, EnvironmentError> {
        let (negated, glob) = match pattern.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        let glob = glob.strip_prefix("./").unwrap_or(glob);
        let against = if glob.starts_with('/') {
            Against::Absolute
        } else if glob.contains('/') {
            Against::Relative
        } else {
            Against::Name
        };
        let invalid = |reason: &str| {
            EnvironmentError::new(
                EnvironmentErrorKind::InvalidInput,
                format!("invalid glob {pattern:?}: {reason}"),
            )
        };
        if glob.is_empty() {
            return Err(invalid("it is empty"));
        }
        let matcher = Glob::new(glob).map_err(|reason| invalid(&reason))?;
        Ok(Self {
            matcher,
            against,
            negated,
            names_hidden: glob.split(['/', '{', ',']).any(|p| p.starts_with('.')),
        })
    }

    /// Whether the pattern asks for names that begin with a dot.
    pub fn names_hidden(&self) -> bool {
        self.names_hidden
    }

    /// Whether a file matches that has these relative paths and this absolute
    /// one.
    pub fn matches_any<P: AsRef<Path>>(
        &self,
        relative: impl IntoIterator<Item = P>,
        absolute: impl AsRef<Path>,
    ) -> bool {
        let absolute = absolute.as_ref();
        let is_match = |path: &Path| self.matcher.is_match(&path.to_string_lossy());
        let hit = match self.against {
            Against::Name => absolute
                .file_name()
                .is_some_and(|name| is_match(name.as_ref())),
            Against::Relative => relative.into_iter().any(|path| is_match(path.as_ref())),
            Against::Absolute => is_match(absolute),
        };
        hit != self.negated
    }
}

/// `absolute` relative to the working directory when below it, else as it is.
pub(crate) fn display_path<'a>(working_directory: &str, absolute: &'a str) -> &'a str {
    let base = working_directory.trim_end_matches('/');
    match absolute
        .strip_prefix(base)
        .and_then(|p| p.strip_prefix('/'))
    {
        Some(relative) if !relative.is_empty() => relative,
        _ => absolute,
    }
}

/// Orders files newest first, ties by path, and keeps `max_results` (0: all).
pub(crate) fn newest_first(files: &mut Entries, max_results: u64) {
    files.entries.sort_unstable_by(|a, b| {
        let newest = b.modified_ms.cmp(&a.modified_ms);
        newest.then_with(|| a.path.cmp(&b.path))
    });
    let max = usize::try_from(max_results).unwrap_or(usize::MAX);
    if max > 0 && files.entries.len() > max {
        files.entries.truncate(max);
        files.truncated = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, relative: &str, expected: bool) {
        let glob = PathGlob::new(pattern).expect("a valid glob");
        let absolute = format!("/work/{relative}");
        let actual = glob.matches_any([relative], &absolute);
        assert_eq!(actual, expected, "{pattern} {relative}");
    }

    #[test]
    fn names_match_at_any_depth() {
        check("*.rs", "lib.rs", true);
        check("*.rs", "a/b/lib.rs", true);
        check("*.{ts,tsx}", "a/b.tsx", true);
        check("lib", "lib/a", false);
    }

    #[test]
    fn paths_match_from_the_root() {
        check("src/*.rs", "src/a.rs", true);
        check("src/*.rs", "src/b/a.rs", false);
        check("src/**/*.rs", "src/a.rs", true);
        check("./src/**/*.rs", "src/b/c/a.rs", true);
        check("**/*.rs", "a.rs", true);
        check("**/test_*.py", "a/test_b.py", true);
        check("/work/src/*.rs", "src/a.rs", true);
        check("!*.rs", "src/a.rs", false);
        check("!*.rs", "src/a.py", true);
    }

    #[test]
    fn hidden_names_must_be_asked_for() {
        for (pattern, expected) in [
            ("**/*.yml", false),
            ("a.b", false),
            (".github/*.yml", true),
            ("**/.env", true),
            ("{.env,x}", true),
        ] {
            let glob = PathGlob::new(pattern).expect("a valid glob");
            assert_eq!(glob.names_hidden(), expected, "{pattern}");
        }
    }

    #[test]
    fn invalid_globs_name_the_pattern() {
        for pattern in ["a[", "{a", ""] {
            let error = PathGlob::new(pattern).expect_err("an invalid glob");
            assert_eq!(error.kind, EnvironmentErrorKind::InvalidInput);
            assert!(error.message.contains(&format!("{pattern:?}")), "{error}");
        }
    }

    #[test]
    fn display_paths() {
        assert_eq!(display_path("/work", "/work/a/b"), "a/b");
        assert_eq!(display_path("/work/", "/work/a"), "a");
        assert_eq!(display_path("/work", "/workshop/a"), "/workshop/a");
        assert_eq!(display_path("/", "/a"), "a");
        assert_eq!(display_path("/work", "/work"), "/work");
    }
}
