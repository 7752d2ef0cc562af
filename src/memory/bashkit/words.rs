//! The text of words, for whatever looks at a command's syntax tree.

use bashkit::parser::{Word, WordPart};

/// The text of a word that is nothing but text.
pub(super) fn literal(word: &Word) -> Option<String> {
    let texts = word.parts.iter().map(|part| match part {
        WordPart::Literal(text) => Some(&**text),
        _ => None,
    });
    texts.collect()
}
