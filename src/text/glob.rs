//! Globs over `/`-separated paths: `*`, `**`, `?`, `[a-z]`, `{a,b}` and `\`, as
//! ripgrep reads them, with the crate that ripgrep has them from.

use globset::{GlobBuilder, GlobSet};

/// Bytes that a pattern may have.
const MAX_LENGTH: usize = 4096;

/// Braces that may be open at once: the crate goes down a level of its stack for each.
const MAX_NESTING: usize = 16;

/// A pattern that whole paths are matched against.
#[derive(Clone, Debug)]
pub(crate) struct Glob(GlobSet);

impl Glob {
    /// Reads `pattern`; the error says what is wrong with it.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_LENGTH {
            return Err(format!("it is longer than {MAX_LENGTH} bytes"));
        }
        if nesting(pattern) > MAX_NESTING {
            return Err(format!("it nests braces deeper than {MAX_NESTING}"));
        }
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| error.kind().to_string())?;
        // A set of one: unlike a matcher, it answers where a pattern is too large.
        let set = GlobSet::builder().add(glob).build();
        set.map(Self).map_err(|error| error.kind().to_string())
    }

    /// Whether the whole of `path` matches.
    pub(crate) fn is_match(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// How many braces are open at once.
fn nesting(pattern: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let mut escaped = false;
    for byte in pattern.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'{' => open += 1,
            b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

/// `text` as a glob that matches it alone.
pub(crate) fn escape_glob(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '*' | '?' | '[' | ']' | '{' | '}' => escaped.extend(['[', character, ']']),
            '\\' => escaped.push_str("\\\\"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
