//! The question whether a call may be made.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::editor::Editor;
use super::wrap::{broken, cut, wrap};
use crate::approve::{DECLINED, Decision, Question};
use crate::harmless::harmless;

/// Who types while the question comes up has not read it: keys go on to the editor until
/// so many ticks came without one.
const PAUSE_TICKS: usize = 7;

/// A question on the terminal.
pub(super) struct Dialog {
    question: Question,
    lines: Vec<String>,
    /// All of the lines and, if it is long, the reason, in rows that fit the terminal.
    rows: Vec<Line<'static>>,
    /// The first row that is shown.
    top: usize,
    shown: usize,
    /// Ticks since the last key that was not its own.
    quiet: usize,
    /// The reason of a no, while it is written.
    because: Option<Editor>,
}

/// What a key did to a dialog.
pub(super) enum Reaction {
    /// It belongs to the editor: the person was typing.
    NotMine,
    /// The question stands.
    Open,
    /// It is answered.
    Answered,
    /// What the model does is to end.
    Interrupt,
}

/// Keys that a dialog knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    Backspace,
    Escape,
    Up,
    Down,
    PageUp,
    PageDown,
}

impl Dialog {
    pub(super) fn new(question: Question) -> Self {
        Self {
            lines: question.lines(),
            question,
            rows: Vec::new(),
            top: 0,
            shown: 1,
            quiet: 0,
            because: None,
        }
    }

    /// Whether nobody waits for the answer any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.question.is_given_up()
    }

    fn is_listening(&self) -> bool {
        self.quiet >= PAUSE_TICKS
    }

    /// Some time has passed.
    pub(super) fn tick(&mut self) {
        self.quiet += 1;
    }

    pub(super) fn key(mut self, key: Key) -> (Option<Self>, Reaction) {
        if !self.is_listening() {
            self.quiet = 0;
            return (Some(self), Reaction::NotMine);
        }
        if let Some(because) = &mut self.because {
            match key {
                Key::Char(c) => because.insert(&c.to_string()),
                Key::Backspace => because.backspace(),
                Key::Escape => self.because = None,
                Key::Enter => {
                    let reason = because.text().trim();
                    let no = match reason.is_empty() {
                        true => DECLINED.to_owned(),
                        false => format!("{DECLINED}: {reason}"),
                    };
                    return self.answered(Decision::No(no));
                }
                _ => {}
            }
            return (Some(self), Reaction::Open);
        }
        let last = self.rows.len().saturating_sub(self.shown);
        match key {
            Key::Char('y' | 'Y') => return self.answered(Decision::Once),
            Key::Char('a' | 'A') if self.question.call.always().is_some() => {
                return self.answered(Decision::Always);
            }
            Key::Char('n' | 'N') => return self.answered(Decision::No(DECLINED.to_owned())),
            Key::Escape => return (Some(self), Reaction::Interrupt),
            Key::Char('b' | 'B') => self.because = Some(Editor::default()),
            Key::Up => self.top = self.top.saturating_sub(1),
            Key::Down => self.top = (self.top + 1).min(last),
            Key::PageUp => self.top = self.top.saturating_sub(self.shown),
            Key::PageDown => self.top = (self.top + self.shown).min(last),
            _ => {}
        }
        (Some(self), Reaction::Open)
    }

    fn answered(self, answer: Decision) -> (Option<Self>, Reaction) {
        self.question.answer(answer);
        (None, Reaction::Answered)
    }

    /// The question in `room` rows at most, with the row and column of the cursor.
    pub(super) fn rows(
        &mut self,
        room: usize,
        columns: usize,
    ) -> (Vec<Line<'static>>, (usize, usize)) {
        let strong = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
        let dim = Style::new().add_modifier(Modifier::DIM);
        let reason = harmless(&self.question.call.reason);
        let reason = wrapped(&reason, dim, columns);
        let choices = match self.is_listening() {
            true => wrapped(&self.choices(), strong, columns),
            false => wrapped(&self.choices(), dim, columns),
        };
        self.rows = self
            .lines
            .iter()
            .flat_map(|line| whole(line, columns))
            .collect();
        // The command or the diff needs the room more than a long reason.
        let reason = match reason.len() > (room / 4).max(1) {
            true => {
                self.rows.extend(reason);
                Vec::new()
            }
            false => reason,
        };
        let tool = harmless(&self.question.call.tool);
        let head = cut(&format!("{tool} asks to do this:"), columns);
        let mut rows = vec![Line::from(Span::styled(head, strong))];
        let all = self.rows.len();
        // The head and the line that says how much there is.
        let others = 2 + reason.len() + choices.len();
        self.shown = room.saturating_sub(others).max(1);
        self.top = self.top.min(all.saturating_sub(self.shown));
        let end = (self.top + self.shown).min(all);
        rows.extend_from_slice(&self.rows[self.top..end]);
        if self.shown < all {
            let style = if end < all { strong } else { dim };
            let place = format!(
                "  rows {} to {end} of {all}: ↑ ↓ PageUp PageDown show the others",
                self.top + 1,
            );
            rows.push(Line::from(Span::styled(cut(&place, columns), style)));
        }
        rows.extend(reason);
        if let Some(because) = &self.because {
            let (lines, (row, column)) = because.rows(columns.saturating_sub(14));
            let shown = lines.get(row).cloned().unwrap_or_default();
            rows.push(Line::from(vec![
                Span::styled("no, because: ", strong),
                Span::raw(shown),
            ]));
            let last = rows.len() - 1;
            return (rows, (last, 13 + column));
        }
        let column = choices.last().map_or(0, Line::width);
        rows.extend(choices);
        let last = rows.len() - 1;
        (rows, (last, column))
    }

    /// The keys that answer.
    fn choices(&self) -> String {
        let always = self.question.call.always();
        let always = always.map_or(String::new(), |always| format!("{always}  "));
        format!("[y]es, once  {always}[n]o  no, [b]ecause…")
    }
}

/// A line of a command or a diff in rows, with a mark where one goes on.
fn whole(line: &str, columns: usize) -> Vec<Line<'static>> {
    let style = match line.as_bytes().first() {
        Some(b'+') => Style::new().fg(Color::Green),
        Some(b'-') => Style::new().fg(Color::Red),
        Some(b'@') => Style::new().fg(Color::Cyan),
        _ => Style::new(),
    };
    let rows = broken(line, columns.saturating_sub(2)).into_iter();
    let rows = rows.enumerate().map(|(number, row)| {
        let mark = if number == 0 { "  " } else { "↪ " };
        let dim = Style::new().add_modifier(Modifier::DIM);
        Line::from(vec![Span::styled(mark, dim), Span::styled(row, style)])
    });
    rows.collect()
}

/// `text` broken at words.
fn wrapped(text: &str, style: Style, columns: usize) -> Vec<Line<'static>> {
    let none = Span::raw("");
    wrap(
        &[Span::styled(text.to_owned(), style)],
        &none,
        &none,
        columns,
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hermitcrab::effect::Approval;
    use serde_json::json;

    use super::*;

    /// A key; none: a tick.
    fn check(keys: &[Option<Key>], typed: usize, expected: Option<Approval>) {
        let (question, mut reply) = Question::of("shell", json!({"command": "rm x"}));
        let mut dialog = Some(Dialog::new(question));
        let mut not_mine = 0;
        for key in keys {
            let Some(mut open) = dialog.take() else { break };
            dialog = match key {
                None => {
                    open.tick();
                    Some(open)
                }
                Some(key) => {
                    let (open, reaction) = open.key(*key);
                    not_mine += usize::from(matches!(reaction, Reaction::NotMine));
                    open
                }
            };
        }
        assert_eq!(not_mine, typed);
        assert_eq!(reply.try_recv().ok(), expected);
    }

    fn deny(reason: &str) -> Option<Approval> {
        let reason = reason.to_owned();
        Some(Approval::Deny { reason })
    }

    /// The rows of a command that a dialog of `room` rows and 40 columns shows while `key`
    /// goes down.
    fn scrolled(command: &str, reason: &str, room: usize, key: Key) -> String {
        let (mut question, _reply) = Question::of("shell", json!({ "command": command }));
        reason.clone_into(&mut question.call.reason);
        let mut dialog = Dialog::new(question);
        (0..PAUSE_TICKS).for_each(|_| dialog.tick());
        let mut seen = BTreeMap::new();
        loop {
            let (rows, _) = dialog.rows(room, 40);
            assert!(rows.len() <= room, "{rows:?}");
            let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
            assert!(rows.iter().all(|row| row.chars().count() <= 40), "{rows:?}");
            let before = seen.len();
            let shown = dialog.shown.min(dialog.rows.len());
            seen.extend((dialog.top..).zip(rows[1..=shown].iter().cloned()));
            if seen.len() == before {
                assert_eq!(seen.len(), dialog.rows.len());
                return seen.into_values().collect::<Vec<_>>().join("\n");
            }
            dialog = dialog.key(key).0.expect("it stands");
        }
    }

    #[test]
    fn keys_reach_the_end_of_a_long_line() {
        let words: Vec<String> = (0..100).map(|number| format!("word-{number}")).collect();
        let command = format!("echo {}; touch evil", words.join(" "));
        for key in [Key::Down, Key::PageDown] {
            let seen = scrolled(&command, "because", 10, key);
            assert_eq!(seen.replace("\n↪ ", ""), format!("  {command}"));
        }
    }

    #[test]
    fn blanks_hide_nothing() {
        let command = format!("make test{}; touch evil", " ".repeat(260));
        let seen = scrolled(&command, "", 10, Key::Down);
        assert_eq!(seen, "  make test⟨260 spaces⟩; touch evil");
    }

    #[test]
    fn a_long_reason_is_reached() {
        let names: Vec<String> = (0..60).map(|number| format!("name-{number}")).collect();
        let seen = scrolled("a", &names.join(", "), 10, Key::Down);
        for name in names {
            assert!(seen.contains(&name), "no {name}: {seen}");
        }
    }

    const Y: Option<Key> = Some(Key::Char('y'));

    #[test]
    fn who_types_does_not_answer() {
        let pause = [None; PAUSE_TICKS];
        let short = [None; PAUSE_TICKS - 1];
        check(&[Y, Y, Y], 3, None);
        check(&[&short[..], &[Y], &short[..], &[Y]].concat(), 2, None);
        check(&[&[Y][..], &pause, &[Y]].concat(), 1, Some(Approval::Allow));
    }

    #[test]
    fn answers() {
        let after = |keys: &[Key]| {
            let mut all = vec![None; PAUSE_TICKS];
            all.extend(keys.iter().copied().map(Some));
            all
        };
        check(&after(&[Key::Char('a')]), 0, Some(Approval::Allow));
        check(&after(&[Key::Char('n')]), 0, deny(DECLINED));
        check(&after(&[Key::Enter, Key::Char(' '), Key::Down]), 0, None);
        let because = [Key::Char('b'), Key::Char('y'), Key::Char('n'), Key::Enter];
        check(&after(&because), 0, deny("the user declined: yn"));
    }
}
