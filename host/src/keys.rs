//! The keys that the host holds, found in what others say: an error that quotes the
//! one it refuses, a file that a model was led to read, a log that is written.
//!
//! A key is found as it stands and as writers of JSON write it. What stays uncovered is
//! a key within a JSON text within a JSON text, and one of which a server sends a piece
//! in each delta of a stream; [`Keys::are_in`] keeps the latter out of logs and files.

use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use bytes::Bytes;

/// What stands in the place of a key.
const REDACTED: &str = "[redacted]";

/// Shortest key that is looked for: names that servers without keys want in the
/// place of one (`ollama`, `lm-studio`, `not-needed`) are words that an answer may
/// hold.
const SHORTEST: usize = 12;
/// The same for one that holds a digit, as those words do not.
const SHORTEST_WITH_DIGIT: usize = 8;

/// Keys that are looked for.
#[derive(Clone, Default)]
pub(crate) struct Keys(Option<Arc<Search>>);

struct Search {
    spellings: Vec<String>,
    longest: usize,
    automaton: AhoCorasick,
}

impl Keys {
    /// Those of `keys` that are distinct enough from other text.
    pub(crate) fn new<'a>(keys: impl Iterator<Item = &'a str>) -> Self {
        let looked_for = keys.filter(|key| is_looked_for(key));
        let spellings: Vec<String> = looked_for.flat_map(spellings).collect();
        let Some(longest) = spellings.iter().map(String::len).max() else {
            return Self::default();
        };
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&spellings);
        // It fails for more states than a number of 31 bits counts.
        Self(automaton.ok().map(|automaton| {
            Arc::new(Search {
                spellings,
                longest,
                automaton,
            })
        }))
    }

    /// Whether `bytes` hold a key.
    pub(crate) fn are_in(&self, bytes: &[u8]) -> bool {
        let search = self.0.as_ref();
        search.is_some_and(|search| search.automaton.is_match(bytes))
    }

    /// `bytes` without keys; the same bytes if they hold none.
    pub(crate) fn replace(&self, bytes: Bytes) -> Bytes {
        match &self.0 {
            Some(search) if search.automaton.is_match(&bytes) => {
                let with = vec![REDACTED; search.spellings.len()];
                search.automaton.replace_all_bytes(&bytes, &with).into()
            }
            _ => bytes,
        }
    }

    /// `text` without keys.
    pub(crate) fn without(&self, text: &str) -> String {
        let bytes = self.replace(Bytes::copy_from_slice(text.as_bytes()));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Where at the end of `bytes` something begins that may become a key.
    pub(crate) fn begun(&self, bytes: &[u8]) -> Option<usize> {
        let search = self.0.as_ref()?;
        let from = bytes.len().saturating_sub(search.longest - 1);
        (from..bytes.len()).find(|start| {
            let end = &bytes[*start..];
            let mut spellings = search.spellings.iter();
            spellings.any(|key| key.len() > end.len() && key.as_bytes().starts_with(end))
        })
    }
}

/// `text` with `[redacted]` in the place of each of `secrets`; of those that are short
/// enough to be a word by chance, nothing is looked for.
pub fn without_secrets<'a>(text: &str, secrets: impl IntoIterator<Item = &'a str>) -> String {
    Keys::new(secrets.into_iter()).without(text)
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

fn is_looked_for(key: &str) -> bool {
    let shortest = match key.bytes().any(|byte| byte.is_ascii_digit()) {
        true => SHORTEST_WITH_DIGIT,
        false => SHORTEST,
    };
    key.len() >= shortest
}

/// How a key may stand in a text or in JSON (RFC 8259, section 7): writers differ in
/// what they escape.
fn spellings(key: &str) -> Vec<String> {
    let with = |escaped: &str, escape: fn(char) -> String| -> String {
        let letters = key.chars();
        letters
            .map(|letter| match letter {
                _ if escaped.contains(letter) => escape(letter),
                '"' | '\\' => format!("\\{letter}"),
                _ => letter.to_string(),
            })
            .collect()
    };
    let lower = |letter: char| format!("\\u{:04x}", u32::from(letter));
    let upper = |letter: char| format!("\\u{:04X}", u32::from(letter));
    let mut spellings = vec![
        key.to_owned(),
        // serde_json, JavaScript, Python.
        with("", lower),
        // PHP.
        with("/", |slash| format!("\\{slash}")),
        // Go, Gson.
        with("<>&", lower),
        with("<>&='", lower),
        // .NET.
        with("<>&'+\"`", upper),
    ];
    spellings.sort();
    spellings.dedup();
    spellings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_writers_of_json_write_it() {
        assert_eq!(spellings("sk-canary_0"), ["sk-canary_0"]);
        let expected = [
            r#"a/"\+="#,
            r#"a/\"\\+="#,
            r#"a/\"\\+\u003d"#,
            r"a/\u0022\\\u002B=",
            r#"a\/\"\\+="#,
        ];
        assert_eq!(spellings(r#"a/"\+="#), expected);
    }
}
