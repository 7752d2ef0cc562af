//! What a conversation shows.

use std::io;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::Conversation;
use crate::chat::dialog::Dialog;
use crate::chat::screen::{Live, Screen};
use crate::chat::wrap;

/// Rows of the editor at most.
const EDITOR_ROWS: usize = 10;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

impl Conversation<'_> {
    pub(super) fn draw(&mut self, screen: &mut Screen<io::Stdout>) {
        self.transcript.set_columns(self.columns - 1);
        if self.dialog.as_ref().is_some_and(Dialog::is_given_up) {
            self.dialog = None;
        }
        while self.dialog.is_none()
            && let Some(question) = self.waiting.pop_front()
        {
            if !question.is_given_up() {
                self.dialog = Some(Dialog::new(question));
            }
        }
        let above = self.transcript.take_above();
        let live = self.live();
        // A terminal that is gone is noticed where keys are read.
        let _ = screen.draw(&above, &live, self.columns);
    }

    /// What stands below the scrollback.
    fn live(&mut self) -> Live {
        let columns = self.columns - 1;
        let dim = Style::new().add_modifier(Modifier::DIM);
        let status = self.status.line(self.dialog.is_some(), columns);
        let mut room = self.rows.saturating_sub(3).max(2);
        let mut below = Vec::new();
        let mut cursor;
        if let Some(dialog) = &mut self.dialog {
            let (rows, place) = dialog.rows(room.saturating_sub(1).max(6), columns);
            (below, cursor) = (rows, place);
        } else {
            let (lines, place) = self.editor.rows(columns.saturating_sub(2));
            let shown = EDITOR_ROWS.min(room);
            let top = place.0.saturating_sub(shown - 1);
            cursor = (place.0 - top, place.1 + 2);
            for (number, line) in lines.iter().enumerate().skip(top).take(shown) {
                let mark = if number == 0 { "› " } else { "  " };
                let mark = Span::styled(mark, Style::new().fg(Color::Cyan));
                let mut row = vec![mark, Span::raw(line.clone())];
                if self.editor.is_empty() {
                    row.push(Span::styled(self.hint(), dim));
                }
                below.push(Line::from(row));
            }
            for (number, (text, about)) in self.proposals.all.iter().enumerate() {
                let style = match number == self.proposals.chosen {
                    true => Style::new().fg(Color::Cyan),
                    false => dim,
                };
                let row = match about.is_empty() {
                    true => format!("  {text}"),
                    false => format!("  {text:<9} {about}"),
                };
                below.push(Line::from(Span::styled(wrap::cut(&row, columns), style)));
            }
        }
        room = room.saturating_sub(below.len());
        let mut rows = self
            .transcript
            .live(room, FRAMES[self.ticks % FRAMES.len()]);
        let pending = self.pending.iter();
        let pending = pending.map(|(_, message)| ("↳ waits for the round", message));
        let unsent = self.unsent.iter().map(|message| ("↳ waits", message));
        for (mark, message) in pending.chain(unsent) {
            let first = message.lines().next().unwrap_or_default();
            let row = wrap::cut(&format!("{mark}: {first}"), columns);
            rows.push(Line::from(Span::styled(row, Style::new().fg(Color::Cyan))));
        }
        if !rows.is_empty() || !below.is_empty() {
            rows.push(Line::default());
        }
        cursor.0 += rows.len();
        rows.extend(below);
        rows.push(status);
        Live {
            rows,
            cursor: Some(cursor),
        }
    }

    fn hint(&self) -> &'static str {
        match (self.columns, self.status.is_working()) {
            (0..50, _) => "",
            (_, true) => "steer it, or Esc to interrupt",
            (_, false) => "say what is to be done, or /help",
        }
    }
}
