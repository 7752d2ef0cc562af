//! Arithmetic: bash evaluates the values of its variables as expressions, and
//! a subscript in such a value runs commands, as in `x='a[$(id)]'; ((x))`.

/// The names in a plain expression: numbers, names and operators, nothing
/// that is expanded. `None` if it is not plain.
pub(super) fn names(expression: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut chars = expression.chars().peekable();
    // Whether a number, a name or an expansion ends here: what follows it at once
    // would become a part of it, as in `a$#`.
    let mut is_open = false;
    while let Some(char) = chars.next() {
        let begins = char.is_ascii_alphanumeric() || matches!(char, '$' | '_');
        if begins && is_open {
            return None;
        }
        is_open = begins;
        match char {
            '$' => match chars.peek() {
                // `$?`, `$#`, `$$` and `$!` are numbers.
                Some('?' | '#' | '$' | '!') => {
                    chars.next();
                }
                Some('{') => {
                    chars.next();
                    let mut name = String::new();
                    loop {
                        match chars.next()? {
                            '}' => break,
                            char => name.push(char),
                        }
                    }
                    if !is_name(&name) {
                        return None;
                    }
                    names.push(name);
                }
                // The name is read in the next turn.
                Some(first) if first.is_ascii_alphabetic() || *first == '_' => is_open = false,
                _ => return None,
            },
            _ if char.is_ascii_alphabetic() || char == '_' => {
                let mut name = String::from(char);
                while let Some(more) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(more);
                }
                names.push(name);
            }
            '0'..='9' => {
                // `16#ff` and `0x1f` have letters that are no names.
                while chars
                    .next_if(|c| c.is_ascii_alphanumeric() || matches!(c, '#' | '_' | '@'))
                    .is_some()
                {}
            }
            ' ' | '\t' | '\n' | '+' | '-' | '*' | '/' | '%' | '(' | ')' | '<' | '>' | '=' | '!'
            | '&' | '|' | '^' | '~' | ',' | '?' | ':' => {}
            _ => return None,
        }
    }
    Some(names)
}

/// Whether a statement `((expression))` cannot be taken for two nested
/// subshells: it begins with a name that an operator follows at once.
pub(super) fn is_statement(expression: &str) -> bool {
    let text = expression.trim();
    let name = text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let operator = name.trim_start();
    let starts = |operators: &[&str]| operators.iter().any(|known| operator.starts_with(known));
    name.len() < text.len() && starts(&["++", "--", "+=", "-=", "*=", "=", "<", ">", "!=", "%"])
}

/// Whether `text` is a number.
pub(super) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.len() < 19 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether `text` is the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
