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

/// What the parser reads in another way than bash, wherever in the text it stands.
pub(super) fn ambiguity(text: &str) -> Option<&'static str> {
    let has = |part: &str| text.contains(part);
    // bashkit 0.20.2 does not see backquotes within quotes within a word.
    if has("`") && (has("\"") || has("$`")) {
        return Some("it has backquotes beside quotes");
    }
    // bashkit 0.20.2 does not know `$'\x{2d}'`, nor `$"…"` behind a quoted part.
    let has_odd_escape = || {
        ["\\x{", "\\u", "\\U", "\\c"]
            .iter()
            .any(|escape| has(escape))
    };
    let begins_quote =
        |rest: &str| rest.starts_with(|c: char| !c.is_whitespace() && !"';|&()<>".contains(c));
    if has("$'") && has_odd_escape()
        || text
            .match_indices("$\"")
            .any(|(at, _)| begins_quote(&text[at + 2..]))
    {
        return Some("it has quotes with `$` that shells read differently");
    }
    if text
        .match_indices('$')
        .any(|(at, _)| is_odd_dollar(&text[at + 1..]))
    {
        return Some("it has a `$` that shells read differently");
    }
    if is_odd_pattern(text) {
        return Some("it has a pattern behind `=~` that shells read differently");
    }
    // In bash `)#` and `>&1#` begin no comment, `1>&1/x` is a file, and what stands
    // behind `>&` is expanded twice.
    if has(")#")
        || text.match_indices('&').any(|(at, _)| is_odd_copy(text, at))
        || text
            .match_indices(">&")
            .any(|(at, _)| is_odd_target(&text[at + 2..]))
    {
        return Some("it has a redirect or a comment that shells read differently");
    }
    if text
        .match_indices("=(")
        .any(|(at, _)| is_odd_array(&text[at + 2..]))
    {
        return Some("it has an array whose elements are not plain");
    }
    let documents = text.match_indices("<<").filter(|(at, _)| {
        let is_longer = |text: &str| text.starts_with('<');
        !is_longer(&text[at + 2..]) && !text[..*at].ends_with('<')
    });
    documents
        .map(|(at, _)| &text[at + 2..])
        .any(|rest| is_odd_document(text, rest))
        .then_some("it has a here-document that shells read differently")
}

/// Whether an array literal that goes on with `rest` has more than plain words, or its
/// word goes on behind it: the parser knows little of comments, subscripts and redirects
/// there, and takes `ls` in `x=(1)ls rm` for the command.
fn is_odd_array(rest: &str) -> bool {
    let Some((elements, after)) = rest.split_once(')') else {
        return true;
    };
    let is_end = |c: char| matches!(c, ' ' | '\t' | '\n' | ';' | '|' | '&' | ')');
    if !after.is_empty() && !after.starts_with(is_end) {
        return true;
    }
    let is_plain =
        |c: char| c.is_alphanumeric() || c.is_whitespace() || "_./:@%+,=-'\"*?~${}".contains(c);
    let is_open = |quote: char| !elements.matches(quote).count().is_multiple_of(2);
    // `$${x` is a number and a text, not the beginning of an expansion.
    let is_odd =
        elements.contains("$$") || elements.matches('{').count() != elements.matches('}').count();
    !elements.chars().all(is_plain) || is_odd || is_open('\'') || is_open('"')
}

/// Whether a `$` with `rest` behind it begins something for the parser and nothing for
/// bash, to which `$\'` is two characters, and `$${x` a number and a text.
fn is_odd_dollar(rest: &str) -> bool {
    let after = rest.trim_start_matches('\\');
    let is_escaped = after.len() < rest.len() && after.starts_with(['\'', '"', '`']);
    let number = rest.strip_prefix('$');
    is_escaped || number.is_some_and(|rest| rest.starts_with(['{', '(', '[', '\'', '`']))
}

/// Whether a pattern behind `=~` has quotes or substitutions: the parser takes it as it
/// stands. It ends before a `]]`, which one may hold: before the last.
fn is_odd_pattern(text: &str) -> bool {
    let pattern = text.find("=~").zip(text.rfind("]]"));
    let pattern = pattern.and_then(|(begin, end)| text.get(begin..end));
    let odd = ["'", "\"", "`", "$(", "<(", ">("];
    pattern.is_some_and(|pattern| odd.iter().any(|part| pattern.contains(part)))
}

/// Whether the `&` at `at` is that of `>&1` with something at once behind the number.
fn is_odd_copy(text: &str, at: usize) -> bool {
    let rest = text[at + 1..].trim_start_matches([' ', '\t']);
    let end = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    text[..at].ends_with(['<', '>'])
        && end.len() < rest.len()
        && end.starts_with(|c: char| !c.is_whitespace() && !";|&()<>".contains(c))
}

/// Whether what stands behind `>&` is neither a descriptor nor a plain name: bash
/// expands such a word again when it has taken its quotes away.
fn is_odd_target(rest: &str) -> bool {
    let word = rest.trim_start_matches([' ', '\t']);
    let is_plain = |c: char| c.is_alphanumeric() || "_./-+,:@%=".contains(c);
    let after = word.trim_start_matches(is_plain);
    let is_end = |c: char| c.is_whitespace() || ";|&()<>".contains(c);
    after.len() == word.len() || !(after.is_empty() || after.starts_with(is_end))
}

/// Whether the here-document whose operator is before `rest` may end elsewhere than
/// where a plain delimiter stands alone on a line.
fn is_odd_document(text: &str, rest: &str) -> bool {
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let rest = rest.trim_start_matches([' ', '\t']);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let (quote, rest) = match rest.chars().next() {
        Some(quote @ ('\'' | '"')) => (Some(quote), &rest[1..]),
        Some('\\') => (None, &rest[1..]),
        _ => (None, rest),
    };
    let after = rest.trim_start_matches(is_plain);
    let delimiter = &rest[..rest.len() - after.len()];
    let after = match quote {
        Some(quote) => after.strip_prefix(quote),
        None => Some(after),
    };
    let ends = after.is_some_and(|after| {
        let next = after.chars().next();
        // What goes on in the next line would take in the document.
        let line = after.lines().next().unwrap_or_default();
        let is_whole = !line.contains(['$', '`', '(', '\'', '"', '\\', '#', '[', '{']);
        is_whole && next.is_none_or(|c| c.is_whitespace() || ";|&<>".contains(c))
    });
    // Within a substitution bash also takes `E)` and `Ex)` for the end.
    let goes_on = |line: &str| {
        let line = line.trim_start_matches('\t');
        line.starts_with(delimiter) && line != delimiter
    };
    delimiter.is_empty() || !ends || text.contains("\\\n") || text.lines().any(goes_on)
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
