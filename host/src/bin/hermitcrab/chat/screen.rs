//! The lower end of the terminal: what is drawn again and again there, with the
//! scrollback above it the terminal's own.
//!
//! All motions are relative to where the cursor was left, so the terminal is never
//! asked where it is, and a window that was resized meanwhile is drawn right.

use std::io::{self, Write};

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr as _;

use crate::harmless::harmless;

/// What stands below the scrollback.
#[derive(Default)]
pub(super) struct Live {
    /// Its rows, none wider than the terminal less one column.
    pub(super) rows: Vec<Line<'static>>,
    /// Where the cursor stands in them: row and column.
    pub(super) cursor: Option<(usize, usize)>,
}

/// A terminal in raw mode.
pub(super) struct Screen<W: Write> {
    out: W,
    colors: bool,
    /// Columns of each row that stands there.
    drawn: Vec<usize>,
    /// Where the cursor was left in them.
    cursor: (usize, usize),
}

const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?2026l";
const SHOW_CURSOR: &str = "\x1b[?25h";
/// Clears the cursor's row and all below. tmux keeps what is cleared from the top left
/// corner as scrollback, so the second part begins a column further right.
const CLEAR_BELOW: &str = "\x1b[K\x1b[C\x1b[J\r";
const RESET: &str = "\x1b[0m";

impl<W: Write> Screen<W> {
    pub(super) fn new(out: W, colors: bool) -> Self {
        Self {
            out,
            colors,
            drawn: Vec::new(),
            cursor: (0, 0),
        }
    }

    /// Writes `above`, whole lines, into the scrollback and draws `live` below it.
    /// The terminal has `columns` now.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn draw(&mut self, above: &str, live: &Live, columns: usize) -> io::Result<()> {
        let mut text = String::from(BEGIN);
        self.back_to_start(&mut text, columns);
        // The terminal is raw: a line end does not return by itself.
        text.push_str(&above.replace('\n', "\r\n"));
        for (number, row) in live.rows.iter().enumerate() {
            if number > 0 {
                text.push_str("\r\n");
            }
            self.push_row(&mut text, row);
        }
        self.drawn = live.rows.iter().map(Line::width).collect();
        let last = self.drawn.len().saturating_sub(1);
        let (row, column) = live
            .cursor
            .unwrap_or((last, self.drawn.last().copied().unwrap_or(0)));
        if last > row {
            text.push_str(&format!("\x1b[{}A", last - row));
        }
        text.push('\r');
        if column > 0 {
            text.push_str(&format!("\x1b[{column}C"));
        }
        self.cursor = (row, column);
        if live.cursor.is_some() {
            text.push_str(SHOW_CURSOR);
        }
        text.push_str(END);
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Takes the rows away and leaves the cursor where they began.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn clear(&mut self, columns: usize) -> io::Result<()> {
        let mut text = String::from(BEGIN);
        self.back_to_start(&mut text, columns);
        self.drawn.clear();
        self.cursor = (0, 0);
        text.push_str(SHOW_CURSOR);
        text.push_str(END);
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// What stands there is not ours any more: somebody else has written.
    pub(super) fn forget(&mut self) {
        self.drawn.clear();
        self.cursor = (0, 0);
    }

    fn back_to_start(&self, text: &mut String, columns: usize) {
        // A terminal that has become narrower has wrapped the rows.
        let columns = columns.max(1);
        let (row, column) = self.cursor;
        let above = self.drawn.iter().take(row);
        let above: usize = above.map(|width| width.div_ceil(columns).max(1)).sum();
        // Behind the last character of a full row it is still in that row.
        let is_last = self.drawn.get(row) == Some(&column);
        let up = above + column.saturating_sub(usize::from(is_last)) / columns;
        if up > 0 {
            text.push_str(&format!("\x1b[{up}A"));
        }
        text.push('\r');
        text.push_str(CLEAR_BELOW);
    }

    fn push_row(&self, text: &mut String, row: &Line<'_>) {
        for span in &row.spans {
            let style = row.style.patch(span.style);
            push_styled(text, &span.content, style, self.colors);
        }
    }
}

/// A line as it goes into the scrollback.
pub(super) fn push_line(text: &mut String, line: &Line<'_>, colors: bool) {
    for span in &line.spans {
        push_styled(text, &span.content, line.style.patch(span.style), colors);
    }
    text.push('\n');
}

/// Whatever the content was made of, no control character of it reaches the terminal.
fn push_styled(text: &mut String, content: &str, style: Style, colors: bool) {
    let content = &harmless(content).replace(['\n', '\t'], " ");
    let codes = if colors { codes(style) } else { String::new() };
    if codes.is_empty() || content.width() == 0 {
        text.push_str(content);
        return;
    }
    text.push_str(&format!("\x1b[{codes}m{content}{RESET}"));
}

/// The parameters of the sequence that sets `style`.
fn codes(style: Style) -> String {
    let mut codes = Vec::new();
    for (modifier, code) in [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ] {
        if style.add_modifier.contains(modifier) {
            codes.push(code);
        }
    }
    codes.extend(style.fg.and_then(|color| match color {
        Color::Red => Some(31),
        Color::Green => Some(32),
        Color::Yellow => Some(33),
        Color::Blue => Some(34),
        Color::Magenta => Some(35),
        Color::Cyan => Some(36),
        _ => None,
    }));
    let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
    codes.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal of `rows` and `columns` shows after `draw`.
    fn check(draw: impl FnOnce(&mut Screen<&mut vt100::Parser>), size: (u16, u16), shown: &str) {
        let [rows, columns] = [size.0, size.1].map(|count| count.try_into().expect("not 0"));
        let mut terminal = vt100::Parser::new(rows, columns, 100);
        draw(&mut Screen::new(&mut terminal, true));
        let contents = terminal.screen().contents();
        assert_eq!(contents.trim_end(), shown);
    }

    fn live(rows: &[&str], cursor: Option<(usize, usize)>) -> Live {
        Live {
            rows: rows
                .iter()
                .map(|row| Line::from((*row).to_owned()))
                .collect(),
            cursor,
        }
    }

    #[test]
    fn what_is_above_stays() {
        check(
            |screen| {
                screen
                    .draw("", &live(&["> ", "idle"], Some((0, 2))), 20)
                    .expect("drawn");
                screen
                    .draw(
                        "one\ntwo\n",
                        &live(&["running", "> a", "busy"], Some((1, 3))),
                        20,
                    )
                    .expect("drawn");
                screen
                    .draw("three\n", &live(&["> a", "idle"], Some((0, 3))), 20)
                    .expect("drawn");
            },
            (10, 20),
            "one\ntwo\nthree\n> a\nidle",
        );
    }

    /// How far up from the cursor the rows of `widths` begin in a terminal of `columns`.
    fn check_up(widths: &[usize], cursor: (usize, usize), columns: usize, up: usize) {
        let rows: Vec<String> = widths.iter().map(|width| "x".repeat(*width)).collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let mut screen = Screen::new(Vec::new(), false);
        screen
            .draw("", &live(&rows, Some(cursor)), 200)
            .expect("drawn");
        screen.out.clear();
        screen.clear(columns).expect("cleared");
        let text = String::from_utf8(screen.out).expect("UTF-8");
        let motion = match up {
            0 => String::new(),
            up => format!("\x1b[{up}A"),
        };
        assert_eq!(
            text,
            [BEGIN, &motion, "\r", CLEAR_BELOW, SHOW_CURSOR, END].concat()
        );
    }

    #[test]
    fn rows_that_a_narrower_terminal_has_wrapped_count_as_many() {
        let widths = [0, 79, 60, 61, 5];
        check_up(&widths, (4, 3), 80, 4);
        check_up(&widths, (4, 3), 200, 4);
        // 1, 2, 1 and 2 rows.
        check_up(&widths, (4, 3), 60, 6);
        check_up(&widths, (4, 3), 20, 1 + 4 + 3 + 4);
        // Within a row that was wrapped, and behind its end.
        check_up(&widths, (1, 65), 60, 2);
        check_up(&widths, (2, 60), 60, 3);
        check_up(&[5], (0, 2), 80, 0);
    }

    /// tmux keeps what is cleared from there as scrollback, once for each time.
    #[test]
    fn nothing_is_cleared_from_the_top_left_corner() {
        let mut screen = Screen::new(Vec::new(), false);
        for _ in 0..2 {
            screen
                .draw("one\n", &live(&["> ", "idle"], Some((0, 2))), 20)
                .expect("drawn");
        }
        screen.clear(20).expect("cleared");
        let text = String::from_utf8(screen.out).expect("UTF-8");
        let all = text.matches("\x1b[J").count();
        assert_eq!(all, 3);
        assert_eq!(text.matches("\x1b[C\x1b[J").count(), all, "{text:?}");
    }

    #[test]
    fn cleared() {
        check(
            |screen| {
                screen
                    .draw("one\n", &live(&["a", "b", "c"], Some((1, 0))), 20)
                    .expect("drawn");
                screen.clear(20).expect("cleared");
            },
            (10, 20),
            "one",
        );
    }

    #[test]
    fn it_scrolls() {
        check(
            |screen| {
                for number in 0..30 {
                    let above = format!("line {number}\n");
                    screen
                        .draw(&above, &live(&["> ", "status"], Some((0, 2))), 20)
                        .expect("drawn");
                }
            },
            (4, 20),
            "line 28\nline 29\n> \nstatus",
        );
    }
}
