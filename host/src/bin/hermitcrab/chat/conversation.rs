//! A conversation and its events: of the session, of the terminal, and of what is done
//! in the background.

mod actions;
mod draw;
mod keys;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossterm::event::EventStream;
use futures_util::StreamExt as _;
use hermitcrab::llm::Content;
use hermitcrab::session::Turn;
use hermitcrab_host::{Continuation, HostError};
use serde_json::Value;
use tokio::sync::mpsc;

use super::after::Resume;
use super::complete::Proposals;
use super::dialog::Dialog;
use super::editor::Editor;
use super::screen::Screen;
use super::status::Status;
use super::transcript::Transcript;
use super::{history, terminal};
use crate::approve::{Question, Questions};
use crate::cli::RunOptions;
use crate::connect::HostSession;
use crate::failure::Failure;
use crate::harmless::harmless;
use crate::session::{Ended, Session as _, interrupted};
use crate::signal::Stops;

/// How often a spinner moves on, and the elapsed time.
const TICK: Duration = Duration::from_millis(100);
/// How often it is asked whether the terminal is still there.
const LOOK: Duration = Duration::from_secs(2);
/// How long what has changed waits at most to be drawn while more comes.
const DRAW: Duration = Duration::from_millis(40);
/// How long another width must stand before it is drawn: tmux, which wraps its lines at
/// once, tells of a further change up to 250 ms later, and what is drawn until then would
/// leave copies.
const SETTLE: Duration = Duration::from_millis(300);
/// Inputs of an earlier process that are shown again.
const EARLIER: usize = 5;

pub(super) struct Conversation<'a> {
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
    /// Messages that were sent while the model works and that the session has not got yet.
    unsent: Vec<String>,
    /// Those that the session has and the model has not, with their numbers.
    pending: Vec<(u64, String)>,
    /// Calls of the session itself that run.
    calls: usize,
    /// Whether what is being done was stopped: then nothing begins by itself.
    stopped: bool,
    /// What comes back from what is done in the background.
    notes: mpsc::UnboundedSender<Note>,
    noted: mpsc::UnboundedReceiver<Note>,
    directory: PathBuf,
    keeps_history: bool,
    shows_reasoning: bool,
    /// Whether the first input goes on with what was cut off.
    first: bool,
    /// Whether an input was sent.
    pub(super) said: bool,
    /// Another session to go on with.
    pub(super) resume: Option<Resume>,
    /// Options of what the person has chosen in the conversation, such as the model.
    chosen: BTreeMap<&'static str, String>,
    /// Whether an error does not end the conversation: another process can go on with it.
    can_go_on: bool,
    /// Whether this goes on with the session of a conversation that an error has closed.
    is_again: bool,
    /// Whether the session is being closed.
    is_leaving: bool,
    /// Whether a signal, or the end of the terminal, closed it.
    signalled: bool,
    last_ctrl_c: Option<Instant>,
    failed: Option<String>,
    columns: usize,
    rows: usize,
    /// When the terminal got another width.
    resized: Option<Instant>,
    ticks: usize,
}

/// Something that was done in the background.
enum Note {
    Text(String),
    Files(Vec<String>),
    Window(u64),
    /// The model from now on.
    Model(String),
    /// The effort from now on.
    Effort(String),
    /// An input was refused, and why.
    Refused(String),
}

impl<'a> Conversation<'a> {
    /// A conversation; with a draft where it goes on after an error, and all of it stands
    /// there already.
    pub(super) async fn new(
        session: &'a mut HostSession,
        options: &RunOptions,
        draft: Option<&str>,
    ) -> Self {
        let (columns, rows) = terminal::size();
        let colors = terminal::has_colors();
        let (notes, noted) = mpsc::unbounded_channel();
        let keeps_history = !options.journal.no_journal;
        let history = if keeps_history {
            history::read()
        } else {
            Vec::new()
        };
        let mut transcript = Transcript::new(colors, options, columns - 1);
        let is_kept = session.held.is_some();
        let can_go_on = is_kept && options.record.is_none() && options.save.is_none();
        let mut editor = Editor::with_history(history);
        match draft {
            Some(draft) => {
                editor.insert(draft);
                transcript.note(match session.is_cut_off() {
                    true => {
                        "The session is open again: Enter in an empty line tries again. You may \
                         change the /model, /compact the conversation or say something else."
                    }
                    false => "The session is open again.",
                });
            }
            None => {
                let past = session.session.history().await.unwrap_or_default();
                earlier(&mut transcript, &past);
                if session.is_cut_off() {
                    transcript.note(
                        "The last task was cut off: Enter goes on with it, or say what comes next.",
                    );
                }
            }
        }
        let conversation = Self {
            session,
            transcript,
            status: Status::default(),
            editor,
            proposals: Proposals::default(),
            no_proposals: false,
            // What is elsewhere is not looked through.
            files: options.elsewhere.remote().map(|_| Vec::new()),
            looking: false,
            dialog: None,
            waiting: VecDeque::new(),
            unsent: Vec::new(),
            pending: Vec::new(),
            calls: 0,
            stopped: false,
            notes,
            noted,
            directory: std::fs::canonicalize(&options.dir).unwrap_or_else(|_| options.dir.clone()),
            keeps_history,
            shows_reasoning: true,
            first: true,
            said: false,
            resume: None,
            chosen: BTreeMap::new(),
            can_go_on,
            is_again: draft.is_some(),
            is_leaving: false,
            signalled: false,
            last_ctrl_c: None,
            failed: None,
            columns,
            rows,
            resized: None,
            ticks: 0,
        };
        conversation.learn_window();
        conversation
    }

    /// How to go on with this session after an error has closed it, if that can be.
    pub(super) fn again(&mut self) -> Option<Resume> {
        let held = self.session.held.as_ref();
        // Where nothing was sent, the same error would come again and again.
        let id = held.filter(|_| self.can_go_on && self.said)?.id();
        self.take_back();
        let options = std::mem::take(&mut self.chosen).into_iter();
        Some(Resume {
            id,
            draft: Some(self.editor.text().to_owned()),
            options: options
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        })
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

    pub(super) async fn run(&mut self, stops: &mut Stops, questions: &mut Questions) -> Ended {
        let mut screen = Screen::new(io::stdout(), terminal::has_colors());
        let mut keys = EventStream::new();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut dirty = true;
        let mut drawn = Instant::now();
        let killed = loop {
            let settled = self.is_settled();
            if dirty && settled && drawn.elapsed() >= DRAW {
                self.draw(&mut screen);
                (dirty, drawn) = (false, Instant::now());
            }
            tokio::select! {
                biased;
                () = stops.next() => {
                    if self.is_leaving {
                        break true;
                    }
                    self.signalled = true;
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
                    Some(Err(_)) | None => {
                        self.signalled = true;
                        self.leave();
                    }
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
                _ = looks.tick() => {
                    if !terminal::is_gone() {
                        continue;
                    }
                    if self.is_leaving {
                        break true;
                    }
                    self.signalled = true;
                    self.leave();
                }
                _ = ticks.tick(), if self.moves() || !settled => {
                    self.ticks += 1;
                    if let Some(dialog) = &mut self.dialog {
                        dialog.tick();
                    }
                }
                // Nothing is waiting: what there is, is drawn.
                () = std::future::ready(()), if dirty && settled => {
                    self.draw(&mut screen);
                    (dirty, drawn) = (false, Instant::now());
                    continue;
                }
            }
            dirty = true;
        };
        self.is_settled();
        self.draw(&mut screen);
        let _ = screen.clear(self.columns);
        match self.failed.take() {
            _ if killed => Ended {
                killed,
                ..Ended::failed(interrupted("killed: what it was doing has been cut off"))
            },
            Some(why) => Ended::failed(Failure::failed(why)),
            None if self.signalled => Ended::failed(interrupted("interrupted")),
            None => Ended::well(),
        }
    }

    /// Whether the terminal has kept its width for some time.
    fn is_settled(&mut self) -> bool {
        let (columns, rows) = terminal::size();
        if columns != self.columns {
            self.resized = Some(Instant::now());
        }
        (self.columns, self.rows) = (columns, rows);
        self.resized.is_none_or(|at| at.elapsed() >= SETTLE)
    }

    /// Whether something is shown that changes with time.
    fn moves(&self) -> bool {
        self.status.is_working() || self.dialog.is_some()
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
                match self.can_go_on && !self.is_leaving {
                    true => self.unsent.push(harmless(text)),
                    false => self.transcript.never_read(text),
                }
            }
            "TOOL_CALL_START" if own => {
                self.calls += 1;
                self.steer();
            }
            "TOOL_CALL_END" if own => self.calls = self.calls.saturating_sub(1),
            "PROCESSING_END" if own => {
                let reason = data["reason"].as_str();
                self.stopped |= matches!(reason, Some("interrupted" | "aborted" | "error"));
            }
            "SESSION_END" if data["reason"] == "error" => {
                if !self.can_go_on {
                    self.drop_unsent();
                }
                let why = self.status.last_error.clone();
                self.failed = Some(why.unwrap_or_else(|| "the session ended with an error".into()));
            }
            "SESSION_START" if self.is_again => {
                self.status.event(event);
                return;
            }
            "REASONING_DELTA" if !self.shows_reasoning => {
                self.status.event(event);
                return;
            }
            _ => {}
        }
        self.status.event(event);
        self.transcript.event(event);
        let is_at_rest = matches!(data["to"].as_str(), Some("IDLE" | "AWAITING_INPUT"));
        if own && event["kind"] == "STATE_CHANGED" && is_at_rest {
            self.rest();
        }
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Text(text) => self.transcript.note(&text),
            Note::Window(window) => self.status.window = window,
            Note::Model(model) => {
                self.chosen.insert("--model", model.clone());
                self.transcript.note(&format!("{model} from now on."));
                self.status.model = model;
                self.learn_window();
            }
            Note::Effort(effort) => {
                self.transcript
                    .note(&format!("Effort {effort} from now on."));
                self.chosen.insert("--reasoning-effort", effort);
            }
            Note::Refused(why) => {
                self.status.idle();
                self.transcript.note(&why);
            }
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

    /// Begins something with the session that it may refuse.
    fn begin<F>(&mut self, what: F)
    where
        F: Future<Output = Result<(), HostError>> + Send + 'static,
    {
        self.status.begin();
        self.stopped = false;
        let notes = self.notes.clone();
        tokio::spawn(async move {
            if let Err(error) = what.await {
                let _ = notes.send(Note::Refused(format!("! {error}")));
            }
        });
    }

    /// Takes what a person says to the model.
    fn say(&mut self, text: String) {
        if !self.status.is_working() {
            return self.send(text.into());
        }
        self.unsent.push(text);
        self.steer();
    }

    /// Steers with what is unsent while calls run: the model reads it with their results.
    /// At another time no round may follow, and the session would keep it for the next
    /// input and put it behind that.
    fn steer(&mut self) {
        if self.calls == 0 || self.unsent.is_empty() {
            return;
        }
        let messages = std::mem::take(&mut self.unsent);
        let session = self.session.session.controller();
        self.tell(async move {
            for message in messages {
                session.steer(message).await?;
            }
            Ok(())
        });
    }

    /// The session has done what it was to do.
    fn rest(&mut self) {
        self.calls = 0;
        let stopped = std::mem::take(&mut self.stopped);
        if self.unsent.is_empty() || self.is_leaving {
            return;
        }
        match stopped {
            // The person decides what becomes of it.
            true => self.take_back(),
            false => {
                let message = std::mem::take(&mut self.unsent).join("\n");
                self.send(message.into());
            }
        }
    }

    /// Puts what is unsent before what is being written.
    fn take_back(&mut self) {
        let mut lines = std::mem::take(&mut self.unsent);
        if !self.editor.is_empty() {
            lines.push(self.editor.text().to_owned());
        }
        self.editor.set(&lines.join("\n"));
    }

    /// Gives the session an input when it rests.
    pub(super) fn send(&mut self, input: Content) {
        self.said = true;
        let session = self.session.session.controller();
        if std::mem::take(&mut self.first) {
            if let Some(held) = &self.session.held {
                held.name(&input.text());
            }
            let continuation = self.session.continuation;
            return self.begin(async move { continuation.begin(&session, input).await });
        }
        if self.pending.is_empty() {
            return self.begin(async move { session.submit(input).await });
        }
        // What was interrupted has left messages to the session, which come first.
        self.begin(async move {
            let record = session.record().await?;
            Continuation::of(&record).begin(&session, input).await
        });
    }

    fn drop_unsent(&mut self) {
        for message in std::mem::take(&mut self.unsent) {
            self.transcript.never_read(&message);
        }
    }

    /// Ends the session; what comes of it are events.
    fn leave(&mut self) {
        self.is_leaving = true;
        self.drop_unsent();
        match self.status.is_working() {
            true => self.session.abort(),
            false => self.session.close(),
        }
    }

    fn interrupt(&mut self) {
        self.stopped = true;
        let session = self.session.session.controller();
        self.tell(async move { session.interrupt().await });
    }
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
