//! Text that goes on in the next line of a terminal.
//!
//! bashkit says so by sentences alone, and takes the end of the text for the end of a
//! here-document that lacks it.
//!
//! Seen in bashkit 0.20.2; gone when `incomplete` of `tests/it/bashkit.rs` fails.

use bashkit::Bash;

/// Parts of bashkit's sentences about text that more lines could complete.
const INCOMPLETE: [&str; 8] = [
    "unterminated",
    "unexpected end of input",
    "unexpected eof",
    "unexpected end of file",
    "expected 'fi'",
    "expected 'done'",
    "expected 'esac'",
    "expected '}' to close brace group",
];

/// Whether `text` is the beginning of a command of `bash`.
pub(in crate::memory) fn is_incomplete(text: &str, bash: Option<&Bash>) -> bool {
    let backslashes = text.bytes().rev().take_while(|byte| *byte == b'\\').count();
    if backslashes % 2 == 1 || heredoc_is_open(text) {
        return true;
    }
    let Some(Err(error)) = bash.map(|bash| bash.analyze(text)) else {
        return false;
    };
    let sentence = error.to_string().to_lowercase();
    INCOMPLETE.iter().any(|part| sentence.contains(part))
}

/// Whether the last here-document of `text` lacks its end: bashkit takes the
/// end of the text for it.
fn heredoc_is_open(text: &str) -> bool {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((strips, end)) = heredoc_end(line) else {
            continue;
        };
        let is_end = |line: &str| {
            let line = if strips {
                line.trim_start_matches('\t')
            } else {
                line
            };
            line == end
        };
        if !lines.by_ref().any(is_end) {
            return true;
        }
    }
    false
}

/// The delimiter of the here-document that `line` begins, and whether it is
/// one of `<<-`.
fn heredoc_end(line: &str) -> Option<(bool, String)> {
    let mut quote = None;
    let mut characters = line.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (None, '\\') => drop(characters.next()),
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, '#') if line[..at].ends_with(|c: char| c.is_whitespace()) || at == 0 => {
                return None;
            }
            (None, '<') if line[at..].starts_with("<<<") => {
                characters.next();
                characters.next();
            }
            // Inside `$((…))` it shifts.
            (None, '<') if line[at..].starts_with("<<") && !line[..at].contains("((") => {
                let rest = &line[at + 2..];
                let strips = rest.starts_with('-');
                let rest = rest.trim_start_matches('-').trim_start();
                let word = rest.split(|c: char| c.is_whitespace() || ";|&<>()".contains(c));
                let word: String = word.take(1).collect();
                let end = word.replace(['\'', '"', '\\'], "");
                return (!end.is_empty()).then_some((strips, end));
            }
            _ => {}
        }
    }
    None
}
