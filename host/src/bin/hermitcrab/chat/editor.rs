//! The line that a person writes on, which may have several.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::harmless::harmless;

/// A text with a cursor, and the texts before it.
#[derive(Default)]
pub(super) struct Editor {
    text: String,
    /// In bytes.
    cursor: usize,
    history: Vec<String>,
    /// Which of them is shown; none: what is being written.
    shown: Option<usize>,
    /// What was being written when an older one was called up.
    draft: String,
}

impl Editor {
    pub(super) fn with_history(history: Vec<String>) -> Self {
        Self {
            history,
            ..Self::default()
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What stands before the cursor.
    pub(super) fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    pub(super) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
    }

    /// Takes the text out, and remembers it.
    pub(super) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.cursor = 0;
        self.shown = None;
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
        }
        text
    }

    pub(super) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text = harmless(&text).replace('\t', "    ");
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    /// Puts `text` in place of the last `bytes` before the cursor.
    pub(super) fn replace_before(&mut self, bytes: usize, text: &str) {
        let start = self.cursor.saturating_sub(bytes);
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
        self.insert(text);
    }

    pub(super) fn backspace(&mut self) {
        self.remove_to(self.previous());
    }

    pub(super) fn delete(&mut self) {
        let end = self.next();
        self.text.replace_range(self.cursor..end, "");
    }

    pub(super) fn delete_word(&mut self) {
        self.remove_to(self.word_start());
    }

    pub(super) fn delete_to_start(&mut self) {
        self.remove_to(self.line_start());
    }

    pub(super) fn delete_to_end(&mut self) {
        let end = self.line_end().max(self.next().min(self.cursor + 1));
        self.text.replace_range(self.cursor..end, "");
    }

    fn remove_to(&mut self, start: usize) {
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    pub(super) fn left(&mut self) {
        self.cursor = self.previous();
    }

    pub(super) fn right(&mut self) {
        self.cursor = self.next();
    }

    pub(super) fn word_left(&mut self) {
        self.cursor = self.word_start();
    }

    pub(super) fn word_right(&mut self) {
        let rest = &self.text[self.cursor..];
        let start = rest
            .find(|c: char| !c.is_whitespace())
            .unwrap_or(rest.len());
        let word = &rest[start..];
        let end = word.find(char::is_whitespace).unwrap_or(word.len());
        self.cursor += start + end;
    }

    pub(super) fn home(&mut self) {
        self.cursor = self.line_start();
    }

    pub(super) fn end(&mut self) {
        self.cursor = self.line_end();
    }

    /// A line up; from the first one, an older text.
    pub(super) fn up(&mut self) {
        let start = self.line_start();
        if start == 0 {
            return self.older();
        }
        let column = self.text[start..self.cursor].graphemes(true).count();
        let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
        self.seek_column(above, column);
    }

    /// A line down; from the last one, a newer text.
    pub(super) fn down(&mut self) {
        let end = self.line_end();
        if end == self.text.len() {
            return self.newer();
        }
        let column = self.text[self.line_start()..self.cursor]
            .graphemes(true)
            .count();
        self.seek_column(end + 1, column);
    }

    fn seek_column(&mut self, start: usize, column: usize) {
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let within = line.grapheme_indices(true).nth(column);
        self.cursor = start + within.map_or(line.len(), |(at, _)| at);
    }

    fn older(&mut self) {
        let older = match self.shown {
            None => self.history.len().checked_sub(1),
            Some(shown) => shown.checked_sub(1),
        };
        let Some(older) = older else { return };
        if self.shown.is_none() {
            self.draft = self.text.clone();
        }
        self.shown = Some(older);
        let text = self.history[older].clone();
        self.set(&text);
    }

    fn newer(&mut self) {
        let Some(shown) = self.shown else { return };
        let text = match self.history.get(shown + 1) {
            Some(text) => {
                self.shown = Some(shown + 1);
                text.clone()
            }
            None => {
                self.shown = None;
                std::mem::take(&mut self.draft)
            }
        };
        self.set(&text);
    }

    fn previous(&self) -> usize {
        let last = self.text[..self.cursor].grapheme_indices(true).next_back();
        last.map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before
            .char_indices()
            .rev()
            .find(|(_, c)| c.is_whitespace())
            .map_or(0, |(at, c)| at + c.len_utf8())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let rest = &self.text[self.cursor..];
        self.cursor + rest.find('\n').unwrap_or(rest.len())
    }

    /// The text in rows of `columns`, and the row and column of the cursor.
    pub(super) fn rows(&self, columns: usize) -> (Vec<String>, (usize, usize)) {
        let columns = columns.max(4);
        let mut rows = Vec::new();
        let mut cursor = (0, 0);
        let mut at = 0;
        for line in self.text.split('\n') {
            let mut row = String::new();
            let mut used = 0;
            for part in line.graphemes(true) {
                let width = part.width();
                if used + width > columns {
                    rows.push(std::mem::take(&mut row));
                    used = 0;
                }
                if at == self.cursor {
                    cursor = (rows.len(), used);
                }
                row.push_str(part);
                used += width;
                at += part.len();
            }
            if at == self.cursor {
                // Behind a full row there is no place for a cursor.
                if used >= columns {
                    rows.push(std::mem::take(&mut row));
                    used = 0;
                }
                cursor = (rows.len(), used);
            }
            rows.push(row);
            // The line end.
            at += 1;
        }
        (rows, cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does `keys` to a new editor and gives the text with `|` for the cursor.
    fn check(keys: impl FnOnce(&mut Editor), expected: &str) {
        let mut editor = Editor::with_history(vec!["old".to_owned(), "newer".to_owned()]);
        keys(&mut editor);
        let mut text = editor.text.clone();
        text.insert(editor.cursor, '|');
        assert_eq!(text, expected);
    }

    #[test]
    fn motions_and_deletions() {
        check(|e| e.insert("a\u{1b}[2Jb\r\nc\td"), "a[2Jb\nc    d|");
        check(
            |e| {
                e.insert("one two");
                e.word_left();
                e.insert("x");
            },
            "one x|two",
        );
        check(
            |e| {
                e.insert("one two ");
                e.delete_word();
            },
            "one |",
        );
        check(
            |e| {
                e.insert("one two");
                e.home();
                e.word_right();
                e.delete_to_end();
            },
            "one|",
        );
        check(
            |e| {
                e.insert("a\nb");
                e.delete_to_start();
                e.backspace();
            },
            "a|",
        );
        check(
            |e| {
                e.insert("a\nb");
                e.up();
                e.delete_to_end();
            },
            "a|b",
        );
        check(
            |e| {
                e.insert("e\u{301}x");
                e.left();
                e.backspace();
            },
            "|x",
        );
        check(
            |e| {
                e.insert("👨‍👩‍👧");
                e.backspace();
            },
            "|",
        );
        check(
            |e| {
                e.insert("ab");
                e.home();
                e.delete();
                e.end();
                e.delete();
            },
            "b|",
        );
        check(
            |e| {
                e.insert("long line\nab\nlonger");
                e.up();
                e.end();
                e.up();
            },
            "lo|ng line\nab\nlonger",
        );
        check(
            |e| {
                e.insert("see @sr");
                e.replace_before(3, "src/a ");
            },
            "see src/a |",
        );
    }

    #[test]
    fn older_texts() {
        check(
            |e| {
                e.insert("draft");
                e.up();
            },
            "newer|",
        );
        check(
            |e| {
                e.insert("draft");
                e.up();
                e.up();
                e.up();
            },
            "old|",
        );
        check(
            |e| {
                e.insert("draft");
                e.up();
                e.up();
                e.down();
                e.down();
                e.down();
            },
            "draft|",
        );
        check(
            |e| {
                e.insert("x");
                e.take();
                e.up();
            },
            "x|",
        );
    }

    #[test]
    fn rows_have_the_cursor() {
        let mut editor = Editor::default();
        editor.insert("abcdef\nx");
        let (rows, cursor) = editor.rows(4);
        assert_eq!(rows, ["abcd", "ef", "x"]);
        assert_eq!(cursor, (2, 1));
        editor.set("abcd");
        assert_eq!(
            editor.rows(4),
            (vec!["abcd".to_owned(), String::new()], (1, 0))
        );
        editor.set("");
        assert_eq!(editor.rows(4), (vec![String::new()], (0, 0)));
    }
}
