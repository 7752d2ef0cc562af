//! Globs over paths, as the core's own search understands them.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use hermitcrab::environment::{EnvironmentError, EnvironmentErrorKind as Kind};

/// A glob that matches names at any depth, or, with a `/`, whole paths; a
/// leading `!` turns it around.
pub(super) struct PathGlob {
    matcher: GlobMatcher,
    against: Against,
    negated: bool,
    /// Asks for names that begin with a dot.
    pub(super) names_hidden: bool,
}

#[derive(Clone, Copy)]
enum Against {
    Name,
    Relative,
    Absolute,
}

impl PathGlob {
    pub(super) fn new(pattern: &str) -> Result<Self, EnvironmentError> {
        let (negated, glob) = match pattern.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        let glob = glob.strip_prefix("./").unwrap_or(glob);
        let against = match glob {
            absolute if absolute.starts_with('/') => Against::Absolute,
            relative if relative.contains('/') => Against::Relative,
            _ => Against::Name,
        };
        let invalid = |reason: &str| {
            EnvironmentError::new(
                Kind::InvalidInput,
                format!("invalid glob {pattern:?}: {reason}"),
            )
        };
        if glob.is_empty() {
            return Err(invalid("it is empty"));
        }
        let matcher = GlobBuilder::new(glob)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| invalid(&error.kind().to_string()))?
            .compile_matcher();
        Ok(Self {
            matcher,
            against,
            negated,
            names_hidden: glob.split(['/', '{', ',']).any(|p| p.starts_with('.')),
        })
    }

    /// Whether `path` (absolute) matches, seen from one of `roots`.
    pub(super) fn matches(&self, path: &Path, roots: &[&Path]) -> bool {
        let hit = match self.against {
            Against::Absolute => self.matcher.is_match(path),
            Against::Relative => roots.iter().any(|root| {
                path.strip_prefix(root)
                    .is_ok_and(|path| self.matcher.is_match(path))
            }),
            Against::Name => path
                .file_name()
                .is_some_and(|name| self.matcher.is_match(name)),
        };
        hit != self.negated
    }
}
