//! Words of a script as arguments.

use bashkit::parser::{Word, WordPart};

use super::{Argument, arithmetic};

/// Characters that stand for file names where they are not quoted.
const GLOB: [char; 7] = ['*', '?', '[', '@', '+', '!', '('];

/// What is known of `word`.
pub(super) fn argument(word: &Word) -> Argument {
    let mut text = String::new();
    let mut pattern = None;
    for (index, part) in word.parts.iter().enumerate() {
        let WordPart::Literal(literal) = part else {
            return expanded(word, index, &text);
        };
        let quoted = is_quoted(word, index);
        // In words with a glob or a brace, bashkit 0.20.2 puts backslashes before what
        // is quoted, so what follows one is not known.
        if pattern.is_none() && (!quoted || word.has_unquoted_glob) {
            let at = literal.find(|char| char == '\\' || !quoted && is_glob(literal, char));
            let start = (text.is_empty() && literal.starts_with('~')).then_some(0);
            pattern = start.or(at).map(|at| format!("{text}{}", &literal[..at]));
        }
        text.push_str(literal);
    }
    if has_braces(&text) {
        return Argument::Unknown;
    }
    match pattern {
        // What a variable or the stack of directories says.
        Some(_) if is_remembered(&text) => Argument::Unknown,
        // Names of commands, not patterns.
        _ if matches!(text.as_str(), "[" | "[[") => Argument::Literal(text),
        // A home directory is a path, never an option.
        Some(start) if start.is_empty() && text.starts_with('~') => {
            Argument::Pattern("~".to_owned())
        }
        Some(start) => Argument::Pattern(start.replace('\\', "")),
        None => Argument::Literal(text),
    }
}

/// Whether `text` begins as `~+`, `~-` or `~1` does.
fn is_remembered(text: &str) -> bool {
    let name = text.strip_prefix('~');
    name.is_some_and(|name| name.starts_with(|c: char| "+-0123456789".contains(c)))
}

/// `@(`, `+(` and `!(` are patterns, `a@b` and `a+b` are not.
fn is_glob(literal: &str, char: char) -> bool {
    GLOB.contains(&char) && (!matches!(char, '@' | '+' | '!') || literal.contains('('))
}

/// A word whose part at `index` is expanded at run time, after `start`.
fn expanded(word: &Word, index: usize, start: &str) -> Argument {
    let is_open = |index: usize, literal: &str| {
        let is_escaped = word.has_unquoted_glob && literal.contains('\\');
        is_escaped || !is_quoted(word, index) && literal.contains(GLOB)
    };
    let parts = || word.parts.iter().enumerate();
    let is_whole = parts().all(|(index, part)| match part {
        WordPart::Literal(literal) => !literal.contains('{'),
        // Numbers, whether quoted or not.
        WordPart::Variable(name) if matches!(name.as_str(), "?" | "#" | "$") => true,
        // `"$@"` and `"${a[@]}"` are many words.
        WordPart::Variable(name) => is_quoted(word, index) && name != "@",
        WordPart::ArrayAccess { index: key, .. } => is_quoted(word, index) && key != "@",
        WordPart::ArithmeticExpansion(_) | WordPart::Length(_) | WordPart::ArrayLength(_) => true,
        WordPart::ProcessSubstitution { .. } => true,
        WordPart::CommandSubstitution(_) => is_quoted(word, index),
        _ => false,
    });
    let is_pattern = parts().any(|(index, part)| match part {
        WordPart::Literal(literal) => is_open(index, literal),
        _ => false,
    });
    let starts_known = parts().take(index).all(|(index, part)| match part {
        WordPart::Literal(literal) => {
            !is_open(index, literal) && (is_quoted(word, index) || !literal.contains('{'))
        }
        _ => false,
    });
    match word.parts.get(index) {
        // A file descriptor's path.
        Some(WordPart::ProcessSubstitution { .. }) if index == 0 && is_whole => {
            Argument::Beginning("/dev/fd/".to_owned())
        }
        _ if is_whole && is_pattern && starts_known => Argument::Pattern(start.to_owned()),
        _ if is_whole && is_pattern => Argument::Pattern(String::new()),
        _ if is_whole && starts_known && !start.is_empty() => Argument::Beginning(start.to_owned()),
        _ if is_whole => Argument::Value,
        _ => Argument::Unknown,
    }
}

/// The text of `word` up to the first part that is not literal, and whether
/// there is such a part.
pub(super) fn beginning(word: &Word) -> (String, bool) {
    let mut text = String::new();
    for part in &word.parts {
        match part {
            WordPart::Literal(literal) => text.push_str(literal),
            _ => return (text, true),
        }
    }
    (text, false)
}

/// Whether the part at `index` is surely quoted.
fn is_quoted(word: &Word, index: usize) -> bool {
    if word.parts.len() == 1 {
        return word.quoted && !word.has_unquoted_glob;
    }
    word.part_quoted.get(index) == Some(&true)
}

/// Whether `word` keeps a backslash that may be an escape: in words that begin with a
/// bracket, bashkit 0.20.2 takes it for a character, and ends the word behind it.
pub(super) fn has_literal_escape(word: &Word) -> bool {
    let (start, _) = beginning(word);
    let has_backslash = word
        .parts
        .iter()
        .any(|part| matches!(part, WordPart::Literal(text) if text.contains('\\')));
    let is_quoted = word.parts.len() == 1 && is_quoted(word, 0);
    start.starts_with(['[', ']', '}']) && has_backslash && !is_quoted
}

/// Whether bash may make several words of it. Also of quoted ones: a word
/// with an escape somewhere counts as quoted as a whole.
fn has_braces(text: &str) -> bool {
    let Some(open) = text.find('{') else {
        return false;
    };
    let rest = &text[open..];
    rest.contains('}') && (rest.contains(',') || rest.contains(".."))
}

/// Whether `word` is surely a number, or a sequence of them such as `{1..5}`.
pub(super) fn is_number(word: &Word) -> bool {
    if let [WordPart::ArithmeticExpansion(_) | WordPart::Length(_) | WordPart::ArrayLength(_)] =
        word.parts.as_slice()
    {
        return true;
    }
    let (text, goes_on) = beginning(word);
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    !goes_on
        && match inner {
            Some(sequence) => sequence.split("..").all(arithmetic::is_number),
            None => arithmetic::is_number(&text),
        }
}
