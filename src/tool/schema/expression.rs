//! `pattern`: regular expressions as JSON Schema has them, those of ECMAScript,
//! over the expressions of this crate, which match in linear time.
//!
//! What is written alike and means something else is rewritten: `\d`, `\w` and
//! `\b` are ASCII, `.` stops at every line terminator, `[` in a class is a
//! bracket. Lookaheads right behind a leading `^`, which rules for addresses and
//! passwords use, become expressions that a text must match or must not.
//! Other lookaround and back references are refused: they would need a matcher
//! that backtracks, and a model's arguments could keep it busy for ever.

use regex_syntax::ParserBuilder;

use crate::text::Pattern;

/// An expression that a text can match.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    source: String,
    /// Each with whether it has to match.
    parts: Vec<(Pattern, bool)>,
}

const LOOKAROUND: &str = "lookaround is read only right behind a leading `^`";

impl Expression {
    /// Reads `source`; the error says what stands in the way.
    pub(super) fn new(source: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = source;
        if let Some(behind) = source.strip_prefix('^')
            && let Some(mut behind) = one_branch(behind)
        {
            while let Some((inside, matches, after)) = lookahead(behind) {
                parts.push((compile(&format!("^(?:{inside})"))?, matches));
                behind = after;
            }
            rest = behind;
        }
        let whole = match parts.is_empty() {
            true => source.to_owned(),
            false => format!("^(?:{rest})"),
        };
        parts.push((compile(&whole)?, true));
        Ok(Self {
            source: source.to_owned(),
            parts,
        })
    }

    /// As it was written.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let found = |pattern: &Pattern| pattern.find(text.as_bytes(), 0).is_some();
        self.parts
            .iter()
            .all(|(pattern, matches)| found(pattern) == *matches)
    }
}

/// `source`, if it has no `|` outside of groups.
fn one_branch(source: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (_, token) in tokens(source) {
        match token {
            "(" => depth += 1,
            ")" => depth = depth.checked_sub(1)?,
            "|" if depth == 0 => return None,
            _ => {}
        }
    }
    Some(source)
}

/// What a lookahead at the start of `source` holds, whether it must match, and
/// what follows it.
fn lookahead(source: &str) -> Option<(&str, bool, &str)> {
    let (inside, matches) = match source.strip_prefix("(?=") {
        Some(inside) => (inside, true),
        None => (source.strip_prefix("(?!")?, false),
    };
    let mut depth = 0_usize;
    for (at, token) in tokens(inside) {
        match token {
            "(" => depth += 1,
            ")" if depth == 0 => return Some((&inside[..at], matches, &inside[at + 1..])),
            ")" => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Escapes, classes and single characters of `source`, with where they stand.
fn tokens(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &source[at..];
        let first = rest.chars().next()?;
        let length = match first {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => class_length(rest),
            other => other.len_utf8(),
        };
        let start = at;
        at += length;
        Some((start, &rest[..length]))
    })
}

/// Bytes of the class at the start of `rest`, or all when it does not end.
fn class_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn compile(source: &str) -> Result<Pattern, String> {
    let hir = ParserBuilder::new()
        .utf8(false)
        .build()
        .parse(&translated(source)?)
        .map_err(|error| {
            // The lines before the last one draw the expression.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        })?;
    Pattern::new(&hir).map_err(str::to_owned)
}

/// Writes an escape of UTF-16. Two of them can stand for one character: the first
/// waits in `high`.
fn push_unit(regex: &mut String, high: &mut Option<u32>, unit: u32) {
    match (high.take(), unit) {
        (None, 0xD800..=0xDBFF) => *high = Some(unit),
        (Some(high), 0xDC00..=0xDFFF) => {
            let code = 0x1_0000 + ((high - 0xD800) << 10) + (unit - 0xDC00);
            regex.push_str(&format!("\\x{{{code:x}}}"));
        }
        _ => regex.push_str(&format!("\\x{{{unit:x}}}")),
    }
}

/// `source` in the syntax of the `regex` crate.
fn translated(source: &str) -> Result<String, String> {
    let mut regex = String::with_capacity(source.len() + 16);
    let mut high = None;
    let mut skip_to = 0;
    for (at, token) in tokens(source) {
        if at < skip_to {
            continue;
        }
        let rest = &source[at..];
        if let Some(unit) = unit(rest) {
            skip_to = at + 6;
            push_unit(&mut regex, &mut high, unit);
            continue;
        }
        match token {
            "\\d" => regex.push_str("[0-9]"),
            "\\D" => regex.push_str("[^0-9]"),
            "\\w" => regex.push_str("[0-9A-Za-z_]"),
            "\\W" => regex.push_str("[^0-9A-Za-z_]"),
            "\\s" => regex.push_str("[\\s\\x{feff}]"),
            "\\S" => regex.push_str("[^\\s\\x{feff}]"),
            "\\b" => regex.push_str("(?-u:\\b)"),
            "\\B" => regex.push_str("(?-u:\\B)"),
            "." => regex.push_str("[^\\n\\r\\x{2028}\\x{2029}]"),
            "(" if ["(?=", "(?!", "(?<=", "(?<!"]
                .iter()
                .any(|look| rest.starts_with(look)) =>
            {
                return Err(LOOKAROUND.to_owned());
            }
            "{" if !is_count(rest) && !regex.ends_with("\\p") && !regex.ends_with("\\P") => {
                regex.push_str("\\{");
            }
            class if class.starts_with('[') => translate_class(class, &mut regex),
            other => escape(other, &mut regex),
        }
    }
    Ok(regex)
}

/// The code unit of an escape such as `\u00e9` at the start of `rest`.
fn unit(rest: &str) -> Option<u32> {
    let digits = rest.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok())?
}

/// Whether the brace at the start of `rest` opens `{2}`, `{2,}` or `{2,5}`.
fn is_count(rest: &str) -> bool {
    let Some((inside, _)) = rest[1..].split_once('}') else {
        return false;
    };
    let (from, to) = inside.split_once(',').unwrap_or((inside, ""));
    let is_number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    !from.is_empty() && is_number(from) && is_number(to)
}

/// An escape or a character outside of classes, or an escape in one.
fn escape(token: &str, regex: &mut String) {
    match token {
        "\\0" => regex.push_str("\\x00"),
        // Ends of words there.
        "\\<" => regex.push('<'),
        "\\>" => regex.push('>'),
        other => regex.push_str(other),
    }
}

fn translate_class(class: &str, regex: &mut String) {
    match class {
        "[]" => return regex.push_str("[^\\x00-\\x{10ffff}]"),
        "[^]" => return regex.push_str("[\\x00-\\x{10ffff}]"),
        _ => {}
    }
    let inside = class.strip_prefix('[').unwrap_or(class);
    let (inside, end) = match inside.strip_suffix(']') {
        Some(inside) => (inside, "]"),
        None => (inside, ""),
    };
    regex.push('[');
    let inside = match inside.strip_prefix('^') {
        Some(inside) => {
            regex.push('^');
            inside
        }
        None => inside,
    };
    let mut last = "";
    let mut skip_to = 0;
    let mut high = None;
    let mut at = 0;
    while at < inside.len() {
        let rest = &inside[at..];
        let length = match rest.strip_prefix('\\') {
            Some(escaped) => 1 + escaped.chars().next().map_or(0, char::len_utf8),
            None => rest.chars().next().map_or(1, char::len_utf8),
        };
        let token = &rest[..length];
        at += length;
        if at <= skip_to {
            continue;
        }
        if let Some(unit) = unit(rest) {
            skip_to = at + 4;
            push_unit(regex, &mut high, unit);
            continue;
        }
        match token {
            "\\d" => regex.push_str("0-9"),
            "\\D" => regex.push_str("[^0-9]"),
            "\\w" => regex.push_str("0-9A-Za-z_"),
            "\\W" => regex.push_str("[^0-9A-Za-z_]"),
            "\\s" => regex.push_str("\\s\\x{feff}"),
            "\\S" => regex.push_str("[^\\s\\x{feff}]"),
            "\\b" => regex.push_str("\\x08"),
            // Sets within sets, and their differences, there.
            "[" | "&" | "~" => {
                regex.push('\\');
                regex.push_str(token);
            }
            "-" if last == "-" => regex.push_str("\\-"),
            other => escape(other, regex),
        }
        last = token;
    }
    regex.push_str(end);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Compares with the `jsonschema` crate, which reads ECMAScript, too.
    fn check(source: &str, fitting: &[&str], others: &[&str]) {
        let ours = Expression::new(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        let theirs = jsonschema::draft202012::new(&json!({"pattern": source})).expect("a schema");
        for (texts, expected) in [(fitting, true), (others, false)] {
            for text in texts {
                assert_eq!(ours.matches(text), expected, "{source} in {text:?}");
                assert_eq!(theirs.is_valid(&json!(text)), expected, "peer: {text:?}");
            }
        }
    }

    #[test]
    fn anywhere_in_the_text() {
        check("b", &["abc", "a\nb"], &["ac", ""]);
        check("^b$", &["b"], &["a\nb", "b\n", "b\nc"]);
        check("a|^b", &["xa", "b"], &["cb"]);
    }

    #[test]
    fn classes_are_ascii() {
        check(r"^\d+$", &["12"], &["١٢", ""]);
        check(r"^\w+$", &["a_1"], &["ä", "a-b"]);
        check(r"^[\w.-]+$", &["a.b-c"], &["ä"]);
        check(r"^[^\d]$", &["x", "١"], &["1"]);
        check(r"^[\D]$", &["x", "١"], &["1"]);
    }

    #[test]
    fn what_is_written_alike() {
        check(r"^[[a]$", &["[", "a"], &["b"]);
        check(r"^[a&&b]+$", &["a&b"], &["c"]);
        check(r"^[a~~b]+$", &["a~b"], &["c"]);
        check(r"^\/a\-b$", &["/a-b"], &["ab"]);
        check(r"^a{2}$", &["aa"], &["a"]);
        let brace = Expression::new(r"^a{2}b{,1}$").expect("read");
        assert!(brace.matches("aab{,1}") && !brace.matches("aab"));
        check(r"^\{\}$", &["{}"], &[""]);
        check(r"^[+--]$", &["+", ",", "-"], &["a"]);
        check("^a.b$", &["a\u{e4}b"], &["a\nb"]);
        assert!(!Expression::new("^a.b$").expect("read").matches("a\rb"));
    }

    #[test]
    fn escapes_of_utf_16() {
        check(r"^[\u00e9-\u00ea]\u00e9$", &["éé", "êé"], &["ee"]);
        let grin = Expression::new(r"^\ud83d\ude00[\ud83d\ude00-\ud83d\ude02]$").expect("read");
        assert!(grin.matches("😀😁") && !grin.matches("😀x"));
    }

    #[test]
    fn lookaheads_behind_the_start() {
        let email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
        check(
            email,
            &["ada@example.org", "a.b+c@d.e.fg"],
            &["a..b@example.org", ".a@example.org", "a@b", ""],
        );
        check(
            r"^(?=.*[A-Z])(?=.*\d)[^)(]{8,}$",
            &["Abcdefg1"],
            &["abcdefg1", "Abcdefgh", "Ab1", "Abcdefg1)"],
        );
        check(r"^(?!x|y)", &["a", ""], &["x1", "y"]);
        check(r"^(?=[)(]a\))", &["(a)", ")a)"], &["a)"]);
    }

    fn check_refused(source: &str, expected: &str) {
        let error = Expression::new(source).err();
        assert_eq!(error.as_deref(), Some(expected), "{source}");
    }

    #[test]
    fn what_needs_to_go_back_is_refused() {
        check_refused("a(?=b)", LOOKAROUND);
        check_refused("(?<!a)b", LOOKAROUND);
        check_refused("^(?=a)b|c", LOOKAROUND);
        check_refused(r"(a)\1", "backreferences are not supported");
        check_refused("a(", "unclosed group");
        check_refused("[a", "unclosed character class");
        check_refused("(a{900}){900}", "it is too large once compiled");
    }
}
