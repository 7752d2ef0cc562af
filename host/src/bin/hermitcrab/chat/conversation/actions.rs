//! What the commands of `/help` do.

use hermitcrab_host::Continuation;
use serde_json::{Value, json};

use super::{Conversation, Note};
use crate::chat::after::Resume;
use crate::chat::commands::{self, Command};
use crate::chat::wrap;
use crate::journal;

impl Conversation<'_> {
    pub(super) fn command(&mut self, command: Command) {
        let session = self.session.session.controller();
        match command {
            Command::Help => self.transcript.note(&commands::help()),
            Command::Quit => self.leave(),
            Command::Cost => self.transcript.note(&self.status.cost()),
            Command::Compact => {
                // What was cut off is still to be gone on with.
                self.first &= self.session.continuation == Continuation::Resume;
                match self.status.is_working() {
                    true => self.tell(async move { session.compact().await }),
                    false => self.begin(async move { session.compact().await }),
                }
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
                self.configure(json!({ "model": model }), Note::Model(model));
            }
            Command::Effort(None) => self
                .transcript
                .note("Say how much: /effort low, medium, high, or what else the model takes."),
            Command::Effort(Some(effort)) => {
                self.configure(json!({ "reasoning_effort": effort }), Note::Effort(effort))
            }
            Command::Undo(from) => self.undo(from),
            Command::Resume(None) => self.list_sessions(),
            Command::Resume(Some(id)) => self.resume(id),
        }
    }

    fn configure(&self, patch: Value, done: Note) {
        let session = self.session.session.controller();
        let notes = self.notes.clone();
        self.tell(async move {
            session.configure(patch).await?;
            let _ = notes.send(done);
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
                self.resume = Some(Resume::other(id));
                self.leave();
            }
            Ok(_) => self.transcript.note(&format!(
                "! no other session {id} of this directory: /resume lists them"
            )),
        }
    }
}
