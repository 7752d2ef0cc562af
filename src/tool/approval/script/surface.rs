//! Texts that bash and a parser of bash may read differently, found before
//! either reads them.

/// Longest command that is read, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// Why `text` should not be trusted to mean what it seems to.
pub(super) fn concern(text: &str) -> Option<&'static str> {
    if text.len() > MAX_BYTES {
        return Some("the command is too long to be read");
    }
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let next = chars.peek().copied();
        match (char, next) {
            ('\\', Some('\n')) if !matches!(before, ' ' | '\t') => {
                return Some("a word goes on in the next line");
            }
            ('$', Some('[')) => return Some("it has arithmetic of the form `$[…]`"),
            _ if char.is_control() && !matches!(char, '\n' | '\t') => {
                return Some("it has control characters");
            }
            _ if is_invisible(char) => return Some("it has invisible characters"),
            _ => {}
        }
        before = char;
    }
    None
}

/// White space beyond ASCII, and characters that are not seen or that turn
/// the order of what is seen around.
fn is_invisible(char: char) -> bool {
    !char.is_ascii() && char.is_whitespace()
        || matches!(
            char,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}
