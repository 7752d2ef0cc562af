//! Code in colours: sixteen of the terminal's own, so that they fit its background.

use std::sync::OnceLock;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use syntect::parsing::{ParseState, ScopeStack, SyntaxSet};

/// Longer code stays plain, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Code with a longer line, too.
const MAX_LINE_BYTES: usize = 4 << 10;

fn syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAXES.get_or_init(SyntaxSet::load_defaults_newlines)
}

/// The lines of `code` in `language`, a name or an extension as behind ```` ``` ````.
pub(super) fn highlighted(code: &str, language: &str) -> Vec<Line<'static>> {
    let name = language.split([' ', ',', '{']).next().unwrap_or_default();
    let plain = || {
        code.lines()
            .map(|line| Line::from(line.to_owned()))
            .collect()
    };
    let is_long = code.len() > MAX_BYTES || code.lines().any(|line| line.len() > MAX_LINE_BYTES);
    if name.is_empty() || is_long {
        return plain();
    }
    let name = match name {
        // The set that is built in has no grammar for these.
        "typescript" | "ts" | "tsx" | "jsx" => "js",
        "toml" => "ini",
        other => other,
    };
    let Some(syntax) = syntaxes().find_syntax_by_token(name) else {
        return plain();
    };
    let mut state = ParseState::new(syntax);
    let mut scopes = ScopeStack::new();
    let mut lines = Vec::new();
    for ended in code.split_inclusive('\n') {
        let Ok(changes) = state.parse_line(ended, syntaxes()) else {
            return plain();
        };
        let line = ended.trim_end_matches('\n');
        let mut spans = Vec::new();
        let mut start = 0;
        for (at, change) in changes {
            let end = at.min(line.len());
            push(&mut spans, &line[start..end], &scopes);
            start = end;
            if scopes.apply(&change).is_err() {
                return plain();
            }
        }
        push(&mut spans, &line[start..], &scopes);
        lines.push(Line::from(spans));
    }
    lines
}

fn push(spans: &mut Vec<Span<'static>>, text: &str, scopes: &ScopeStack) {
    if text.is_empty() {
        return;
    }
    let style = style(scopes);
    match spans.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push_str(text),
        _ => spans.push(Span::styled(text.to_owned(), style)),
    }
}

/// The innermost scope that has a colour.
fn style(scopes: &ScopeStack) -> Style {
    let color = |name: &str| {
        let begins = |start: &str| name.starts_with(start);
        Some(match () {
            () if begins("comment") => Style::new().add_modifier(Modifier::DIM),
            () if begins("string") => Style::new().fg(Color::Green),
            () if begins("constant") => Style::new().fg(Color::Yellow),
            () if begins("keyword.operator") => return None,
            () if begins("keyword") || begins("storage.modifier") => {
                Style::new().fg(Color::Magenta)
            }
            () if begins("storage") || begins("support.type") => Style::new().fg(Color::Cyan),
            () if begins("entity.name") || begins("support.function") => {
                Style::new().fg(Color::Blue)
            }
            () => return None,
        })
    };
    let mut names = scopes.as_slice().iter().rev();
    names
        .find_map(|scope| color(&scope.build_string()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_what_it_is() {
        let lines = highlighted("// a\nlet x = \"b\";\n", "rust");
        let styled = |line: usize, text: &str| {
            let mut spans = lines[line].spans.iter();
            let span = spans.find(|span| span.content.contains(text));
            span.unwrap_or_else(|| panic!("{text} in {lines:?}")).style
        };
        assert!(styled(0, "a").add_modifier.contains(Modifier::DIM));
        assert_eq!(styled(1, "b").fg, Some(Color::Green));
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["// a", "let x = \"b\";"]);
    }

    #[test]
    fn what_nobody_knows_is_plain() {
        for language in ["", "no-such-language"] {
            let lines = highlighted("a\n\nb", language);
            assert_eq!(lines.len(), 3);
            assert!(lines.iter().all(|line| line.spans.len() <= 1));
        }
    }
}
