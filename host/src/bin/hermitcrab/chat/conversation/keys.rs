//! What a person types.

use std::io;
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use hermitcrab::llm::Content;

use super::{Conversation, Note};
use crate::chat::complete::{self, Proposals};
use crate::chat::dialog::{Key, Reaction};
use crate::chat::screen::Screen;
use crate::chat::{commands, history, terminal};
use crate::failure::reason;

/// A second Ctrl-C within this time leaves.
const TWICE: Duration = Duration::from_secs(2);

impl Conversation<'_> {
    /// Takes what came from the terminal. True: leave at once.
    pub(super) fn input(&mut self, input: Input, screen: &mut Screen<io::Stdout>) -> bool {
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => return self.key(key, screen),
            Input::Paste(text) if self.dialog.is_none() => {
                self.editor.insert(&text);
                self.propose();
            }
            _ => {}
        }
        false
    }

    fn key(&mut self, key: KeyEvent, screen: &mut Screen<io::Stdout>) -> bool {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        if ctrl && key.code == KeyCode::Char('c') {
            return self.ctrl_c();
        }
        if ctrl && key.code == KeyCode::Char('z') {
            let _ = screen.clear(self.columns);
            terminal::suspend();
            screen.forget();
            return false;
        }
        if let Some(dialog) = self.dialog.take() {
            match dialog_key(&key, ctrl || alt) {
                None => self.dialog = Some(dialog),
                Some(key) => {
                    let (dialog, reaction) = dialog.key(key);
                    self.dialog = dialog;
                    match reaction {
                        Reaction::NotMine => {}
                        Reaction::Interrupt => {
                            self.interrupt();
                            return false;
                        }
                        Reaction::Open | Reaction::Answered => return false,
                    }
                }
            }
        }
        let has_proposals = !self.proposals.all.is_empty();
        match key.code {
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => {
                self.editor.insert("\n");
            }
            KeyCode::Char('j') if ctrl => self.editor.insert("\n"),
            KeyCode::Tab if has_proposals => self.accept(),
            KeyCode::Enter if has_proposals && self.completes() => self.accept(),
            KeyCode::Enter => self.enter(),
            KeyCode::Esc if has_proposals => {
                self.proposals = Proposals::default();
                self.no_proposals = true;
                return false;
            }
            KeyCode::Esc if self.status.is_working() => self.interrupt(),
            KeyCode::Up if has_proposals => {
                self.proposals.choose(false);
                return false;
            }
            KeyCode::Down if has_proposals => {
                self.proposals.choose(true);
                return false;
            }
            KeyCode::Up => self.editor.up(),
            KeyCode::Down => self.editor.down(),
            KeyCode::Left if ctrl || alt => self.editor.word_left(),
            KeyCode::Right if ctrl || alt => self.editor.word_right(),
            KeyCode::Left => self.editor.left(),
            KeyCode::Right => self.editor.right(),
            KeyCode::Home => self.editor.home(),
            KeyCode::End => self.editor.end(),
            KeyCode::Backspace if ctrl || alt => self.editor.delete_word(),
            KeyCode::Backspace => self.editor.backspace(),
            KeyCode::Delete => self.editor.delete(),
            KeyCode::Char(c) if ctrl => match c {
                'a' => self.editor.home(),
                'b' => self.editor.left(),
                'd' if self.editor.is_empty() => self.leave(),
                'd' => self.editor.delete(),
                'e' => self.editor.end(),
                'f' => self.editor.right(),
                'h' => self.editor.backspace(),
                'k' => self.editor.delete_to_end(),
                'n' => self.editor.down(),
                'p' => self.editor.up(),
                'u' => self.editor.delete_to_start(),
                'w' => self.editor.delete_word(),
                _ => {}
            },
            KeyCode::Char('b') if alt => self.editor.word_left(),
            KeyCode::Char('f') if alt => self.editor.word_right(),
            KeyCode::Char(c) if !alt => {
                self.editor.insert(&c.to_string());
                self.no_proposals = false;
            }
            _ => {}
        }
        self.propose();
        false
    }

    /// Ctrl-C: what is written goes, then what is done is interrupted; twice leaves.
    fn ctrl_c(&mut self) -> bool {
        let again = self.last_ctrl_c.is_some_and(|last| last.elapsed() < TWICE);
        self.last_ctrl_c = Some(Instant::now());
        if self.is_leaving {
            return true;
        }
        if again {
            self.leave();
        } else if self.status.is_working() {
            self.interrupt();
        } else if !self.editor.is_empty() {
            self.editor.set("");
            self.propose();
        }
        self.status.hint = "Ctrl+C again leaves";
        false
    }

    /// Whether Enter takes the proposal rather than sending what is written.
    fn completes(&self) -> bool {
        let chosen = self.proposals.text().unwrap_or_default();
        let before = self.editor.before();
        let written = &before[before.len().saturating_sub(self.proposals.replaced)..];
        chosen.trim_end() != written
    }

    fn accept(&mut self) {
        if let Some(text) = self.proposals.text() {
            self.editor.replace_before(self.proposals.replaced, &text);
        }
    }

    pub(super) fn propose(&mut self) {
        self.proposals = Proposals::default();
        let before = self.editor.before();
        if self.no_proposals || self.dialog.is_some() {
            return;
        }
        if complete::file_word(before).is_some() && self.files.is_none() && !self.looking {
            self.looking = true;
            let (directory, notes) = (self.directory.clone(), self.notes.clone());
            tokio::task::spawn_blocking(move || {
                let _ = notes.send(Note::Files(complete::files(&directory)));
            });
        }
        self.proposals = Proposals::at(before, self.files.as_deref());
    }

    /// Enter: sends what is written.
    fn enter(&mut self) {
        if self.is_leaving {
            return;
        }
        if self.editor.before().ends_with('\\') {
            self.editor.backspace();
            self.editor.insert("\n");
            return;
        }
        let goes_on = self.first && self.session.is_cut_off();
        if self.editor.text().trim().is_empty() {
            if goes_on {
                self.editor.take();
                self.send(Content::from(String::new()));
            }
            return;
        }
        let command = match commands::parse(self.editor.text()) {
            None => None,
            Some(Ok(command)) => Some(command),
            Some(Err(why)) => return self.transcript.note(&format!("! {why}")),
        };
        let text = self.editor.take();
        // Files may come and go while the model works.
        self.files = None;
        match command {
            Some(command) => self.command(command),
            None => {
                if self.keeps_history
                    && let Err(error) = history::add(&text)
                {
                    self.keeps_history = false;
                    let why = reason(&error);
                    self.transcript
                        .note(&format!("! what you send is not kept for ↑: {why}"));
                }
                self.say(text);
            }
        }
    }
}

fn dialog_key(key: &KeyEvent, modified: bool) -> Option<Key> {
    Some(match key.code {
        KeyCode::Char(c) if !modified => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Esc => Key::Escape,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        _ => return None,
    })
}
