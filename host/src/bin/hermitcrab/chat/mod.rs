//! `hermitcrab` on a terminal: a conversation. What was said and done scrolls away
//! above; below it stands what happens now, with the line that is written on.

mod commands;
mod complete;
mod dialog;
mod editor;
mod highlight;
mod history;
mod markdown;
mod plain;
mod screen;
mod status;
mod terminal;
mod transcript;
mod wrap;

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::Command as Process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossterm::event::{
    Event as Input, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
};
use futures_util::StreamExt as _;
use hermitcrab::llm::Content;
use hermitcrab::session::Turn;
use hermitcrab_host::{Continuation, HostError};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::approve::{Question, Questions};
use crate::cli::RunOptions;
use crate::connect::HostSession;
use crate::failure::{Code, Failure, reason};
use crate::harmless::harmless;
use crate::journal;
use crate::run;
use crate::secrets::Secrets;
use crate::session::{Ended, Session as _};
use crate::signal::Stops;

use commands::Command;
use complete::Proposals;
use dialog::{Dialog, Key, Reaction};
use editor::Editor;
use screen::{Live, Screen};
use status::Status;
use terminal::Raw;
use transcript::Transcript;

/// What a conversation leaves to who began it.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    after: Mutex<After>,
}

#[derive(Clone, Debug, Default)]
struct After {
    /// A session in which nothing was said.
    unused: Option<String>,
    /// Whether something was said.
    said: bool,
    /// A session to go on with.
    resume: Option<String>,
}

impl Chat {
    /// Whether the person wants to know how to go on with it.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        self.after().said
    }

    fn after(&self) -> std::sync::MutexGuard<'_, After> {
        self.after.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converses.
///
/// # Errors
/// There is no terminal, or the session cannot begin or go on.
pub(crate) fn chat(mut options: RunOptions, secrets: &Secrets) -> Result<Code, Failure> {
    if options.json {
        return Err(Failure::usage("--json is for `hermitcrab run`"));
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::usage(
            "a conversation needs a terminal: give the task to `hermitcrab run`",
        ));
    }
    let chat = Arc::new(Chat::default());
    options.chat = Some(chat.clone());
    let mut kept = Vec::new();
    if let Some(url) = &options.base_url {
        kept.extend(["--base-url".to_owned(), url.clone()]);
    }
    let result = run::run(options, secrets);
    let After { unused, resume, .. } = chat.after().clone();
    if let Some(id) = unused
        && let Ok(store) = journal::sessions()
    {
        use hermitcrab_host::store::SessionStore as _;
        // Another process may have taken it; then it is used.
        let _ = store.remove(&id);
    }
    match resume {
        Some(id) => other(&id, &kept, secrets),
        None => result,
    }
}

/// Becomes the conversation with another session. Its guardian has to be started before
/// any thread, so that takes another process.
fn other(id: &str, options: &[String], secrets: &Secrets) -> Result<Code, Failure> {
    let failed = |error: io::Error| {
        Failure::failed(format!(
            "cannot go on with the session {id}: {}",
            reason(&error)
        ))
    };
    let mut process = Process::new(std::env::current_exe().map_err(failed)?);
    process.args(["chat", "--resume", id]).args(options);
    process.envs(secrets.all());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        Err(failed(process.exec()))
    }
    #[cfg(not(unix))]
    {
        let status = process.status().map_err(failed)?;
        match status.success() {
            true => Ok(Code::DONE),
            false => Err(Failure::failed("the other session ended with an error")),
        }
    }
}

/// How often a spinner moves on, and the elapsed time.
const TICK: Duration = Duration::from_millis(100);
/// How long what has changed waits at most to be drawn while more comes.
const DRAW: Duration = Duration::from_millis(40);
/// A second Ctrl-C within this time leaves.
const TWICE: Duration = Duration::from_secs(2);
/// Rows of the editor at most.
const EDITOR_ROWS: usize = 10;
/// Inputs of an earlier process that are shown again.
const EARLIER: usize = 5;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Talks until the person leaves.
pub(crate) async fn converse(
    session: &mut HostSession,
    prompt: Content,
    options: &RunOptions,
    chat: &Chat,
    stops: &mut Stops,
    questions: &mut Questions,
) -> Ended {
    let id = session.held.as_ref().map(journal::Held::id);
    let begins_empty = prompt.is_empty() && session.continuation == Continuation::Input;
    let is_new = options.journal.resume.is_none() && !options.journal.r#continue;
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    if dumb {
        let ended = plain::converse(session, prompt, options.quiet, stops, questions).await;
        chat.after().said = true;
        return ended;
    }
    let raw = match Raw::enter() {
        Ok(raw) => raw,
        Err(error) => {
            return Ended::failed(Failure::failed(format!(
                "cannot use the terminal: {}",
                reason(&error)
            )));
        }
    };
    let mut conversation = Conversation::new(session, options).await;
    if !prompt.is_empty() {
        conversation.send(prompt);
    }
    let ended = conversation.run(stops, questions).await;
    let Conversation { said, resume, .. } = &conversation;
    let (said, resume) = (*said, resume.clone());
    drop(raw);
    let mut after = chat.after();
    after.unused = id.filter(|_| begins_empty && is_new && !said);
    after.said = said && resume.is_none();
    after.resume = resume;
    ended
}

/// Why a conversation is leaving.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Not,
    /// The session is being closed.
    Asked,
}

struct Conversation<'a> {
    session: &'a mut HostSession,
    transcript: Transcript,
    status: Status,
    editor: Editor,
    proposals: Proposals,
    /// Whether the person has put the proposals away.
    no_proposals: bool,
    files: Option<Vec<String>>,
    looking: bool,
    dialog: Option<Dialog>,
    waiting: VecDeque<Question>,
    /// Messages that the model has not got yet, with their numbers.
    pending: Vec<(u64, String)>,
    /// What comes back from what is done in the background.
    notes: mpsc::UnboundedSender<Note>,
    noted: mpsc::UnboundedReceiver<Note>,
    directory: PathBuf,
    keeps_history: bool,
    shows_reasoning: bool,
    /// Whether the first input goes on with what was cut off.
    first: bool,
    said: bool,
    resume: Option<String>,
    leaving: Leaving,
    last_ctrl_c: Option<Instant>,
    failed: Option<String>,
    columns: usize,
    rows: usize,
    ticks: usize,
}

/// Something that was done in the background.
enum Note {
    Text(String),
    Files(Vec<String>),
    Window(u64),
}

impl<'a> Conversation<'a> {
    async fn new(session: &'a mut HostSession, options: &RunOptions) -> Self {
        let (columns, rows) = terminal::size();
        let colors = terminal::has_colors();
        let (notes, noted) = mpsc::unbounded_channel();
        let keeps_history = !options.journal.no_journal;
        let history = if keeps_history {
            history::read()
        } else {
            Vec::new()
        };
        let mut transcript = Transcript::new(colors, options.quiet, columns - 1);
        let past = session.session.history().await.unwrap_or_default();
        earlier(&mut transcript, &past);
        if session.is_cut_off() {
            transcript
                .note("The last task was cut off: Enter goes on with it, or say what comes next.");
        }
        let conversation = Self {
            session,
            transcript,
            status: Status::default(),
            editor: Editor::with_history(history),
            proposals: Proposals::default(),
            no_proposals: false,
            files: None,
            looking: false,
            dialog: None,
            waiting: VecDeque::new(),
            pending: Vec::new(),
            notes,
            noted,
            directory: std::fs::canonicalize(&options.dir).unwrap_or_else(|_| options.dir.clone()),
            keeps_history,
            shows_reasoning: true,
            first: true,
            said: false,
            resume: None,
            leaving: Leaving::Not,
            last_ctrl_c: None,
            failed: None,
            columns,
            rows,
            ticks: 0,
        };
        conversation.learn_window();
        conversation
    }

    /// Asks how much fits the model.
    fn learn_window(&self) {
        let session = self.session.session.controller();
        let notes = self.notes.clone();
        tokio::spawn(async move {
            let Ok(config) = session.config().await else {
                return;
            };
            let usual = config.profile_of(&config.provider).ok().map(|profile| {
                let model = match config.model.as_str() {
                    "" => profile.default_model.as_str(),
                    model => model,
                };
                profile.capabilities(model).context_window
            });
            let window = config.context_window.or(usual).unwrap_or(0);
            let _ = notes.send(Note::Window(window));
        });
    }

    async fn run(&mut self, stops: &mut Stops, questions: &mut Questions) -> Ended {
        let mut screen = Screen::new(io::stdout(), terminal::has_colors());
        let mut keys = EventStream::new();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut dirty = true;
        let mut drawn = Instant::now();
        let killed = loop {
            if dirty && drawn.elapsed() >= DRAW {
                self.draw(&mut screen);
                (dirty, drawn) = (false, Instant::now());
            }
            tokio::select! {
                biased;
                () = stops.next() => {
                    if self.leaving == Leaving::Asked {
                        break true;
                    }
                    self.leave();
                }
                input = keys.next() => match input {
                    Some(Ok(input)) => {
                        if self.input(input, &mut screen) {
                            break true;
                        }
                        drawn = drawn.checked_sub(DRAW).unwrap_or(drawn);
                    }
                    // The terminal is gone.
                    Some(Err(_)) | None => self.leave(),
                },
                event = self.session.session.next_event() => {
                    let Some(event) = event else { break false };
                    self.event(event.value());
                }
                question = questions.next() => self.waiting.push_back(question),
                note = self.noted.recv() => {
                    if let Some(note) = note {
                        self.note(note);
                    }
                }
                _ = ticks.tick(), if self.moves() => {
                    self.ticks += 1;
                    if let Some(dialog) = &mut self.dialog {
                        dialog.tick();
                    }
                }
                // Nothing is waiting: what there is, is drawn.
                () = std::future::ready(()), if dirty => {
                    self.draw(&mut screen);
                    (dirty, drawn) = (false, Instant::now());
                    continue;
                }
            }
            dirty = true;
        };
        self.draw(&mut screen);
        let _ = screen.clear(self.columns);
        match self.failed.take() {
            _ if killed => Ended {
                killed,
                ..Ended::failed(Failure {
                    code: Code::INTERRUPTED,
                    message: "killed: what it was doing has been cut off".to_owned(),
                })
            },
            Some(why) => Ended::failed(Failure::failed(why)),
            None => Ended::well(),
        }
    }

    /// Whether something is shown that changes with time.
    fn moves(&self) -> bool {
        self.status.is_working() || self.dialog.is_some()
    }

    fn draw(&mut self, screen: &mut Screen<io::Stdout>) {
        let (columns, rows) = terminal::size();
        (self.columns, self.rows) = (columns, rows);
        self.transcript.set_columns(columns - 1);
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
        let _ = screen.draw(&above, &live, columns);
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
        for (_, message) in &self.pending {
            let first = message.lines().next().unwrap_or_default();
            let row = wrap::cut(&format!("↳ waits for the round: {first}"), columns);
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

    /// Takes an event of the session.
    fn event(&mut self, event: &Value) {
        let data = &event["data"];
        let own = event["agent_id"].is_null();
        let number = || data["id"].as_u64().unwrap_or(0);
        match event["kind"].as_str().unwrap_or_default() {
            "STEERING_QUEUED" if own => {
                let text = data["content"].as_str().unwrap_or_default();
                self.pending.push((number(), harmless(text)));
            }
            "STEERING_INJECTED" if own => {
                let id = number();
                self.pending.retain(|(pending, _)| *pending != id);
            }
            "STEERING_DROPPED" if own => {
                let id = number();
                self.pending.retain(|(pending, _)| *pending != id);
                let text = data["content"].as_str().unwrap_or_default();
                self.transcript
                    .note(&format!("! never reached the model: {text}"));
            }
            "SESSION_END" if data["reason"] == "error" => {
                let why = self.status.last_error.clone();
                self.failed = Some(why.unwrap_or_else(|| "the session ended with an error".into()));
            }
            "REASONING_DELTA" if !self.shows_reasoning => {
                self.status.event(event);
                return;
            }
            _ => {}
        }
        self.status.event(event);
        self.transcript.event(event);
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Text(text) => self.transcript.note(&text),
            Note::Window(window) => self.status.window = window,
            Note::Files(files) => {
                self.looking = false;
                self.files = Some(files);
                self.propose();
            }
        }
    }

    /// Does something with the session without waiting for it.
    fn tell<F>(&self, what: F)
    where
        F: Future<Output = Result<(), HostError>> + Send + 'static,
    {
        let notes = self.notes.clone();
        tokio::spawn(async move {
            if let Err(error) = what.await {
                let _ = notes.send(Note::Text(format!("! {error}")));
            }
        });
    }

    /// Gives the session an input.
    fn send(&mut self, input: Content) {
        self.said = true;
        let session = self.session.session.controller();
        if std::mem::take(&mut self.first) {
            if let Some(held) = &self.session.held {
                held.name(&input.text());
            }
            let continuation = self.session.continuation;
            self.status.begin();
            return self.tell(async move { continuation.begin(&session, input).await });
        }
        match self.status.is_working() {
            true => self.tell(async move { session.steer(input).await.map(drop) }),
            false => {
                self.status.begin();
                self.tell(async move { session.submit(input).await });
            }
        }
    }

    /// Ends the session; what comes of it are events.
    fn leave(&mut self) {
        self.leaving = Leaving::Asked;
        match self.status.is_working() {
            true => self.session.abort(),
            false => self.session.close(),
        }
    }

    fn interrupt(&mut self) {
        let session = self.session.session.controller();
        self.tell(async move { session.interrupt().await });
    }

    /// Takes what came from the terminal. True: leave at once.
    fn input(&mut self, input: Input, screen: &mut Screen<io::Stdout>) -> bool {
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
        if self.leaving == Leaving::Asked {
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

    fn propose(&mut self) {
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
        if self.leaving == Leaving::Asked {
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
                self.send(text.into());
            }
        }
    }

    fn command(&mut self, command: Command) {
        let session = self.session.session.controller();
        match command {
            Command::Help => self.transcript.note(&commands::help()),
            Command::Quit => self.leave(),
            Command::Cost => self.transcript.note(&self.status.cost()),
            Command::Compact => {
                self.first = false;
                self.tell(async move { session.compact().await });
            }
            Command::Verbose => {
                self.shows_reasoning = !self.shows_reasoning;
                let shown = if self.shows_reasoning {
                    "shown"
                } else {
                    "left out"
                };
                self.transcript
                    .note(&format!("Reasoning is {shown} from now on."));
            }
            Command::Model(None) => {
                let models = hermitcrab::llm::list_models(Some(&self.status.provider));
                let ids: Vec<&str> = models.iter().map(|model| &*model.id).collect();
                self.transcript.note(&format!(
                    "{} is in use. Known: {}. Others work, too.",
                    self.status.model,
                    ids.join(", ")
                ));
            }
            Command::Model(Some(model)) => {
                self.status.model.clone_from(&model);
                self.configure(json!({ "model": model }), format!("{model} from now on."));
                self.learn_window();
            }
            Command::Effort(None) => self
                .transcript
                .note("Say how much: /effort low, medium, high, or what else the model takes."),
            Command::Effort(Some(effort)) => self.configure(
                json!({ "reasoning_effort": effort }),
                format!("Effort {effort} from now on."),
            ),
            Command::Undo(from) => self.undo(from),
            Command::Resume(None) => self.list_sessions(),
            Command::Resume(Some(id)) => self.resume(id),
        }
    }

    fn configure(&self, patch: Value, done: String) {
        let session = self.session.session.controller();
        let notes = self.notes.clone();
        self.tell(async move {
            session.configure(patch).await?;
            let _ = notes.send(Note::Text(done));
            Ok(())
        });
    }

    fn undo(&mut self, from: Option<u64>) {
        if self.status.is_working() {
            return self
                .transcript
                .note("! /undo while the model works: interrupt it first, with Esc");
        }
        let (undo, directory) = (self.session.undo.clone(), self.directory.clone());
        let session = self.session.session.controller();
        let notes = self.notes.clone();
        self.tell(async move {
            let undone = undo.undo(from, &directory).await;
            let _ = notes.send(Note::Text(undone.told));
            match undone.paths.is_empty() {
                true => Ok(()),
                false => {
                    let paths = undone.paths.join(", ");
                    session
                        .add_system_turn(format!(
                            "The user has undone your changes to these files, which are now as \
                             they were before: {paths}"
                        ))
                        .await
                }
            }
        });
    }

    fn own_sessions(&self) -> Result<Vec<hermitcrab_host::store::Kept>, String> {
        use hermitcrab_host::store::SessionStore as _;
        let own = self.session.held.as_ref().map(journal::Held::id);
        let store = journal::sessions().map_err(|failure| failure.message)?;
        let mut kept = store.list().map_err(|error| error.to_string())?;
        let here = self.directory.to_str();
        kept.retain(|one| {
            Some(&*one.about.directory) == here && Some(&one.about.id) != own.as_ref()
        });
        Ok(kept)
    }

    fn list_sessions(&mut self) {
        let text = match self.own_sessions() {
            Err(why) => format!("! {why}"),
            Ok(kept) if kept.is_empty() => "There is no other session of this directory.".into(),
            Ok(kept) => {
                let lines = kept.iter().take(15).map(|one| {
                    let room = self.columns.saturating_sub(one.about.id.len() + 4);
                    format!("{}  {}", one.about.id, wrap::cut(&one.about.task, room))
                });
                let lines: Vec<String> = lines.collect();
                format!("{}\n/resume ID goes on with one.", lines.join("\n"))
            }
        };
        self.transcript.note(&text);
    }

    fn resume(&mut self, id: String) {
        match self.own_sessions() {
            Err(why) => self.transcript.note(&format!("! {why}")),
            Ok(kept) if kept.iter().any(|one| one.about.id == id) => {
                self.resume = Some(id);
                self.leave();
            }
            Ok(_) => self.transcript.note(&format!(
                "! no other session {id} of this directory: /resume lists them"
            )),
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

/// Shows the end of a conversation that another process had.
fn earlier(transcript: &mut Transcript, turns: &[Turn]) {
    let inputs = turns.iter().enumerate().rev();
    let mut inputs = inputs.filter(|(_, turn)| matches!(turn, Turn::User { .. }));
    let start = inputs.by_ref().take(EARLIER).last().map(|(at, _)| at);
    let Some(start) = start else { return };
    if inputs.next().is_some() {
        transcript.note("…");
    }
    for turn in &turns[start..] {
        match turn {
            Turn::User { content, .. } | Turn::Steering { content, .. } => {
                transcript.input(&content.text());
            }
            Turn::Assistant { content, .. } if !content.trim().is_empty() => {
                transcript.earlier_answer(content);
            }
            _ => {}
        }
    }
}
