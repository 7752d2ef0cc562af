//! Markdown that arrives piece by piece, as lines of a terminal.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::highlight::highlighted;
use super::wrap::wrap;
use crate::harmless::harmless;

/// A text that is not complete yet: its blocks are done one after the other.
#[derive(Default)]
pub(super) struct Markdown {
    pending: String,
    /// Of everything that has no other one.
    style: Style,
    /// Whether something stands above it, from which an empty line keeps it apart.
    follows: bool,
}

impl Markdown {
    /// A text in this style.
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            ..Self::default()
        }
    }

    /// Goes on with a piece.
    pub(super) fn push(&mut self, piece: &str) {
        self.pending.push_str(&harmless(piece));
    }

    /// The lines of the blocks that nothing can change any more.
    pub(super) fn take_done(&mut self, columns: usize) -> Vec<Line<'static>> {
        // A line that is not complete may yet belong to what is above it.
        let complete = self.pending.rfind('\n').map_or(0, |at| at + 1);
        let end = last_block(&self.pending[..complete]);
        let done: String = self.pending.drain(..end).collect();
        self.lines_of(&done, columns)
    }

    /// The lines of all that is left.
    pub(super) fn take_rest(&mut self, columns: usize) -> Vec<Line<'static>> {
        let rest = std::mem::take(&mut self.pending);
        let lines = self.lines_of(&rest, columns);
        self.follows = false;
        lines
    }

    /// What is not done, as it looks now.
    pub(super) fn rest(&self, columns: usize) -> Vec<Line<'static>> {
        let lines = rendered(&self.pending, self.style, columns);
        match self.follows && !lines.is_empty() {
            true => std::iter::once(Line::default()).chain(lines).collect(),
            false => lines,
        }
    }

    fn lines_of(&mut self, text: &str, columns: usize) -> Vec<Line<'static>> {
        let mut lines = rendered(text, self.style, columns);
        if lines.is_empty() {
            return lines;
        }
        if self.follows {
            lines.insert(0, Line::default());
        }
        self.follows = true;
        lines
    }
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Where the last block of `text` begins that may still change.
fn last_block(text: &str) -> usize {
    let mut depth = 0;
    let mut start = 0;
    let mut ends_at_empty_line = false;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    start = range.start;
                    ends_at_empty_line = matches!(tag, Tag::Paragraph | Tag::Heading { .. });
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            _ if depth == 0 => (start, ends_at_empty_line) = (range.start, false),
            _ => {}
        }
    }
    match ends_at_empty_line && text.ends_with("\n\n") {
        true => text.len(),
        false => start,
    }
}

/// `text` in lines of `columns` at most; code goes beyond.
pub(super) fn rendered(text: &str, style: Style, columns: usize) -> Vec<Line<'static>> {
    let mut writer = Writer {
        lines: Vec::new(),
        spans: Vec::new(),
        styles: vec![style],
        indents: Vec::new(),
        marker: None,
        lists: Vec::new(),
        code: None,
        table: None,
        links: Vec::new(),
        columns,
        wants_gap: false,
    };
    for event in Parser::new_ext(text, options()) {
        writer.event(event);
    }
    writer.flush();
    writer.lines
}

struct Writer {
    lines: Vec<Line<'static>>,
    /// The paragraph so far.
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    /// What each line begins with, by what it stands in.
    indents: Vec<Span<'static>>,
    /// What the next line begins with instead of the last indent.
    marker: Option<Span<'static>>,
    /// The next number of each list; none: it has bullets.
    lists: Vec<Option<u64>>,
    /// Language and text of the code so far.
    code: Option<(String, String)>,
    table: Option<Table>,
    /// Destinations, with where their text begins in `spans`.
    links: Vec<(String, usize)>,
    columns: usize,
    wants_gap: bool,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<Vec<Span<'static>>>>,
}

impl Writer {
    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn with(&mut self, modifier: Modifier) {
        self.styles.push(self.style().add_modifier(modifier));
    }

    fn text(&mut self, text: &str, style: Style) {
        self.spans.push(Span::styled(text.to_owned(), style));
    }

    /// An empty line between blocks.
    fn gap(&mut self) {
        if std::mem::take(&mut self.wants_gap) && !self.lines.is_empty() {
            let mut indent: String = self.indents.iter().map(|span| &*span.content).collect();
            indent.truncate(indent.trim_end().len());
            let style = self.indents.last().map_or(Style::new(), |span| span.style);
            self.lines.push(Line::from(Span::styled(indent, style)));
        }
    }

    /// The beginnings of the first and of all other lines of what comes now.
    fn beginnings(&mut self) -> (Span<'static>, Span<'static>) {
        let joined = |spans: &[Span<'static>]| {
            let text: String = spans.iter().map(|span| &*span.content).collect();
            let style = spans.last().map_or(Style::new(), |span| span.style);
            Span::styled(text, style)
        };
        let rest = joined(&self.indents);
        let first = match self.marker.take() {
            Some(marker) => {
                let outer = self.indents.len().saturating_sub(1);
                let mut spans = self.indents[..outer].to_vec();
                spans.push(marker);
                joined(&spans)
            }
            None => rest.clone(),
        };
        (first, rest)
    }

    /// Ends the paragraph.
    fn flush(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        if spans.is_empty() && self.marker.is_none() {
            return;
        }
        self.gap();
        let (first, rest) = self.beginnings();
        self.lines.extend(wrap(&spans, &first, &rest, self.columns));
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text, self.style()),
            },
            Event::Code(code) => {
                let style = self.style().fg(Color::Cyan);
                self.text(&code, style);
            }
            Event::InlineHtml(html) | Event::Html(html) => {
                let style = self.style().add_modifier(Modifier::DIM);
                self.text(&html, style);
            }
            Event::SoftBreak => self.text(" ", self.style()),
            Event::HardBreak => self.text("\n", self.style()),
            Event::Rule => {
                self.flush();
                self.gap();
                let rule = "─".repeat(self.columns.min(40));
                let style = self.style().add_modifier(Modifier::DIM);
                self.lines.push(Line::from(Span::styled(rule, style)));
                self.wants_gap = true;
            }
            Event::TaskListMarker(done) => {
                let mark = if done { "[x] " } else { "[ ] " };
                self.text(mark, self.style());
            }
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text, self.style());
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => {
                self.flush();
                let style = self.style().fg(Color::Cyan).add_modifier(Modifier::BOLD);
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.gap();
                let style = Style::new().add_modifier(Modifier::DIM);
                self.indents.push(Span::styled("▌ ", style));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                // One in an item stands close to it.
                self.wants_gap &= self.lists.is_empty();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.indents.push(Span::raw(" ".repeat(marker.width())));
                self.marker = Some(Span::raw(marker));
            }
            Tag::Table(_) => {
                self.flush();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.with(Modifier::ITALIC),
            Tag::Strong => self.with(Modifier::BOLD),
            Tag::Strikethrough => self.with(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.spans.len()));
                self.with(Modifier::UNDERLINED);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                self.wants_gap = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.wants_gap = true;
            }
            TagEnd::HtmlBlock => {
                self.flush();
                self.wants_gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.indents.pop();
                self.wants_gap = true;
            }
            TagEnd::CodeBlock => {
                let (language, code) = self.code.take().unwrap_or_default();
                self.gap();
                let (first, rest) = self.beginnings();
                if !first.content.trim().is_empty() && first != rest {
                    self.lines.push(Line::from(first));
                }
                let dim = Style::new().add_modifier(Modifier::DIM);
                let fence = |name: &str| {
                    let text = format!("```{name}");
                    Line::from(vec![rest.clone(), Span::styled(text, dim)])
                };
                self.lines.push(fence(&language));
                for mut line in highlighted(&code.replace('\t', "    "), &language) {
                    line.spans.insert(0, rest.clone());
                    self.lines.push(line);
                }
                self.lines.push(fence(""));
                self.wants_gap = true;
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.wants_gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                self.indents.pop();
                self.wants_gap = false;
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.gap();
                    self.push_table(&table);
                    self.wants_gap = true;
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let Some((to, start)) = self.links.pop() else {
                    return;
                };
                let shown: String = self.spans[start.min(self.spans.len())..]
                    .iter()
                    .map(|span| &*span.content)
                    .collect();
                if shown != to && !to.is_empty() {
                    let style = self.style().add_modifier(Modifier::DIM);
                    self.text(&format!(" ({})", harmless(&to)), style);
                }
            }
            _ => {}
        }
    }

    /// A table as wide as it is; where that is too wide, a row is a paragraph.
    fn push_table(&mut self, table: &Table) {
        let width = |cell: &Vec<Span<'_>>| cell.iter().map(Span::width).sum::<usize>();
        let count = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..count)
            .map(|column| {
                let cells = table.rows.iter().filter_map(|row| row.get(column));
                cells.map(width).max().unwrap_or(0)
            })
            .collect();
        let (first, rest) = self.beginnings();
        let whole = widths.iter().sum::<usize>() + 2 * count.saturating_sub(1);
        let fits = whole + rest.width() <= self.columns;
        for (number, row) in table.rows.iter().enumerate() {
            let mut spans = Vec::new();
            for (column, cell) in row.iter().enumerate() {
                spans.extend(cell.iter().cloned().map(|span| match number {
                    0 => span.add_modifier(Modifier::BOLD),
                    _ => span,
                }));
                if column + 1 < count {
                    let gap = match fits {
                        true => " ".repeat(widths[column] - width(cell) + 2),
                        false => " | ".to_owned(),
                    };
                    spans.push(Span::raw(gap));
                }
            }
            let first = if number == 0 { &first } else { &rest };
            match fits {
                true => {
                    spans.insert(0, first.clone());
                    self.lines.push(Line::from(spans));
                }
                false => self.lines.extend(wrap(&spans, first, &rest, self.columns)),
            }
        }
    }
}

use ratatui::style::Stylize as _;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[Line<'_>]) -> String {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| line.to_string().trim_end().to_owned())
            .collect();
        lines.join("\n")
    }

    fn check(text: &str, columns: usize, expected: &str) {
        assert_eq!(shown(&rendered(text, Style::new(), columns)), expected);
    }

    #[test]
    fn blocks() {
        check("one\ntwo", 80, "one two");
        check("one\n\ntwo", 80, "one\n\ntwo");
        check("# Head\ntext", 80, "Head\n\ntext");
        check("a  \nb", 80, "a\nb");
        check(
            "> quoted text\n> goes on\n\nafter",
            12,
            "▌ quoted\n▌ text goes\n▌ on\n\nafter",
        );
        check("a\n\n---\n\nb", 4, "a\n\n────\n\nb");
        check("a `b` **c** *d* ~~e~~ <b>f</b>", 80, "a b c d e <b>f</b>");
    }

    #[test]
    fn lists() {
        check("- one two three\n- four", 11, "• one two\n  three\n• four");
        check(
            "1. one\n2. two\n   - in it\n3. three",
            80,
            "1. one\n2. two\n   • in it\n3. three",
        );
        check("- [x] done\n- [ ] not", 80, "• [x] done\n• [ ] not");
        check(
            "text\n\n- one\n\n  two\n- three",
            80,
            "text\n\n• one\n\n  two\n• three",
        );
    }

    #[test]
    fn code() {
        check(
            "a\n\n```rust\nfn main() {\n}\n```\nb",
            80,
            "a\n\n```rust\nfn main() {\n}\n```\n\nb",
        );
        check("- a\n  ```\n  x\n  ```", 80, "• a\n  ```\n  x\n  ```");
    }

    #[test]
    fn links_say_where_they_lead() {
        check("[a](https://b)", 80, "a (https://b)");
        check("<https://b>", 80, "https://b");
    }

    #[test]
    fn tables() {
        let text = "| a | long |\n|---|---|\n| 123 | b |";
        check(text, 80, "a    long\n123  b");
        check(text, 6, "a |\nlong\n123 |\nb");
    }

    /// However a text is cut into pieces, the same lines come of it.
    #[test]
    fn pieces_make_the_same_lines() {
        let text = "# Head\n\nSome *text* here\nand there.\n\n- one\n- two\n\n  more\n\n```rust\nlet a = \
                    1;\n\nlet b = 2;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend\n";
        let whole = shown(&rendered(text, Style::new(), 30));
        for size in 1..12 {
            let mut markdown = Markdown::default();
            let mut lines = Vec::new();
            let characters: Vec<char> = text.chars().collect();
            for piece in characters.chunks(size) {
                markdown.push(&piece.iter().collect::<String>());
                lines.extend(markdown.take_done(30));
            }
            lines.extend(markdown.take_rest(30));
            assert_eq!(shown(&lines), whole, "{size}");
        }
    }

    #[test]
    fn an_empty_line_ends_a_paragraph_and_a_heading() {
        let check = |text: &str, done: &str| {
            let mut markdown = Markdown::default();
            markdown.push(text);
            assert_eq!(shown(&markdown.take_done(30)), done, "{text:?}");
        };
        check("# Head\n", "");
        check("# Head\n\nte", "Head");
        check("text\n", "");
        check("text\n\nmo", "text");
        check("text\n\n- one\n\n", "text");
        check("```\na\n\n", "");
    }

    #[test]
    fn nothing_of_it_moves_the_cursor() {
        let mut markdown = Markdown::default();
        markdown.push("a\u{1b}]0;title\u{7}\u{1b}[2Jb [c](https://d\u{1b}[1A) `\u{9b}1A`");
        let text = shown(&markdown.take_rest(80));
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n'),
            "{text:?}"
        );
        // An entity makes the character after the filter has seen the text.
        let mut text = String::new();
        for line in rendered("a&#27;[2J&#x9b;b\n\n```\n\u{1b}[2J", Style::new(), 80) {
            super::super::screen::push_line(&mut text, &line, false);
        }
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n'),
            "{text:?}"
        );
    }
}
