//! Lines that fit the terminal: broken at words, broken anywhere, or cut.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// `spans` in lines of `columns` at most: the first begins with `first`, all others
/// with `rest`. A word that is longer than a line is cut.
pub(super) fn wrap(
    spans: &[Span<'_>],
    first: &Span<'static>,
    rest: &Span<'static>,
    columns: usize,
) -> Vec<Line<'static>> {
    let mut rows = Rows {
        done: Vec::new(),
        row: vec![first.clone()],
        used: first.width(),
        rest: rest.clone(),
        columns: columns.max(rest.width() + 4).max(first.width() + 4),
        is_empty: true,
    };
    // A word may go over several spans: `**a**b`.
    let mut word: Vec<(String, Style)> = Vec::new();
    for span in spans {
        let mut part = String::new();
        for c in span.content.chars() {
            if c != ' ' && c != '\n' {
                part.push(c);
                continue;
            }
            word.push((std::mem::take(&mut part), span.style));
            rows.word(std::mem::take(&mut word));
            match c {
                '\n' => rows.end(),
                _ => rows.space(span.style),
            }
        }
        word.push((part, span.style));
    }
    rows.word(word);
    rows.end();
    rows.done
}

struct Rows {
    done: Vec<Line<'static>>,
    row: Vec<Span<'static>>,
    used: usize,
    rest: Span<'static>,
    columns: usize,
    is_empty: bool,
}

impl Rows {
    fn end(&mut self) {
        let next = vec![self.rest.clone()];
        let mut row = std::mem::replace(&mut self.row, next);
        // The space before a break is nobody's.
        if !self.is_empty
            && let Some(last) = row.last_mut()
        {
            last.content = last.content.trim_end().to_owned().into();
        }
        self.done.push(Line::from(row));
        self.used = self.rest.width();
        self.is_empty = true;
    }

    fn space(&mut self, style: Style) {
        if self.used < self.columns && !self.is_empty {
            self.push(" ", style);
        }
    }

    fn word(&mut self, word: Vec<(String, Style)>) {
        let width: usize = word.iter().map(|(part, _)| part.width()).sum();
        if width == 0 {
            return;
        }
        if self.used + width > self.columns && !self.is_empty {
            self.end();
        }
        for (part, style) in word {
            let mut rest = part.as_str();
            while self.used + rest.width() > self.columns {
                let cut = fitting(rest, self.columns - self.used);
                self.push(&rest[..cut], style);
                rest = &rest[cut..];
                self.end();
            }
            self.push(rest, style);
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        self.used += text.width();
        self.is_empty = false;
        // The first span is the beginning of the line.
        match self.row[1..].last_mut() {
            Some(last) if last.style == style => {
                last.content.to_mut().push_str(text);
            }
            _ => self.row.push(Span::styled(text.to_owned(), style)),
        }
    }
}

/// Blanks in a row beyond this many are shown as their number.
const MAX_BLANKS: usize = 40;

/// All of `text` in rows of `columns` at most, broken wherever a row is full, so that a
/// command is shown as it is. What follows a long run of blanks must not be overlooked.
pub(super) fn broken(text: &str, columns: usize) -> Vec<String> {
    let text = counted_blanks(&text.replace('\t', "    "));
    let mut rows = Vec::new();
    let mut rest = text.as_str();
    loop {
        let (row, after) = rest.split_at(fitting(rest, columns.max(1)));
        rows.push(row.to_owned());
        if after.is_empty() {
            return rows;
        }
        rest = after;
    }
}

fn counted_blanks(text: &str) -> String {
    // These look like spaces and do not count as them: braille and Hangul fillers.
    let is_blank = |c: char| c.is_whitespace() || matches!(c, '\u{2800}' | '\u{3164}' | '\u{ffa0}');
    let mut counted = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_blank) {
        let (before, after) = rest.split_at(start);
        let end = after.find(|c| !is_blank(c)).unwrap_or(after.len());
        let (run, after) = after.split_at(end);
        counted.push_str(before);
        match run.chars().count() {
            0..=MAX_BLANKS => counted.push_str(run),
            count => counted.push_str(&format!("⟨{count} spaces⟩")),
        }
        rest = after;
    }
    counted + rest
}

/// Bytes of `text` that fit into `columns`; at least one character.
pub(super) fn fitting(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns && at > 0 {
            return at;
        }
    }
    text.len()
}

/// `text` in one row of `columns` at most, with a sign where it is cut.
pub(super) fn cut(text: &str, columns: usize) -> String {
    let text = text.replace('\t', "    ");
    if text.width() <= columns {
        return text;
    }
    let end = fitting(&text, columns.saturating_sub(1));
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, first: &str, rest: &str, columns: usize, expected: &[&str]) {
        let spans = [Span::raw(text.to_owned())];
        let own = |text: &str| Span::raw(text.to_owned());
        let lines = wrap(&spans, &own(first), &own(rest), columns);
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn words() {
        check("one two three", "", "", 8, &["one two", "three"]);
        check("one two three", "- ", "  ", 9, &["- one two", "  three"]);
        check("abcdefghijk", "", "", 5, &["abcde", "fghij", "k"]);
        check("a\nb", "", "", 5, &["a", "b"]);
        check("", "", "", 5, &[""]);
        check("漢字漢字漢字", "", "", 5, &["漢字", "漢字", "漢字"]);
    }

    #[test]
    fn broken_rows_leave_nothing_out() {
        assert_eq!(broken("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(broken("a  b\tc", 3), ["a  ", "b  ", "  c"]);
        assert_eq!(broken("", 3), [""]);
        assert_eq!(broken("漢字x", 3), ["漢", "字x"]);
        let hidden = format!("make test{}; touch evil", " ".repeat(260));
        assert_eq!(
            broken(&hidden, 30),
            ["make test⟨260 spaces⟩; touch e", "vil"]
        );
        let other = format!("a{}b", "\u{3000}\u{2800}".repeat(30));
        assert_eq!(broken(&other, 30), ["a⟨60 spaces⟩b"]);
        let indented = format!("{}x", " ".repeat(MAX_BLANKS));
        assert_eq!(broken(&indented, 80), [indented]);
    }

    #[test]
    fn a_word_of_two_styles_stays_together() {
        let bold = Style::new().add_modifier(ratatui::style::Modifier::BOLD);
        let spans = [
            Span::raw("one tw"),
            Span::styled("o", bold),
            Span::raw("x y"),
        ];
        let lines = wrap(&spans, &Span::raw(""), &Span::raw(""), 5);
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["one", "twox", "y"]);
    }
}
