//! A session whole: all that another one needs to go on as this one would have, in
//! this instance or, as a file, in another process or page.
//!
//! The file is a tar archive: `session.json`, and where the session works in a sandbox
//! also `tree.tar`, all files of it. There is no key in it, because no key is in a core,
//! and no address that one could be sent to.
//! Subagents are not in it: they end with their session.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent::Status;
use super::config::SessionConfig;
use super::error::{SessionError, SessionErrorKind};
use super::instance::{Instance, ReadOnly};
use super::record::SessionRecord;
use super::state::Session;
use super::system_prompt::Found;
use crate::environment::{EnvironmentError, EnvironmentErrorKind};
use crate::event::{SessionState, Totals};
use crate::memory::{ClockState, MemorySettings};

/// Version of the format.
const VERSION: u32 = 1;

/// Names of the entries.
const SESSION: &str = "session.json";
const TREE: &str = "tree.tar";

/// Settings that are about one provider's model: another provider does not take them
/// over.
const OF_PROVIDER: [&str; 7] = [
    "model",
    "base_url",
    "credential",
    "reasoning_effort",
    "max_tokens",
    "context_window",
    "base_instructions",
];

/// What another session goes on with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Whole {
    /// The settings in force.
    pub(super) config: SessionConfig,
    /// Turns and queues.
    pub(super) record: SessionRecord,
    /// What the system prompt is built from, so that it stays the same bytes.
    pub(super) found: Found,
    /// What it has used.
    pub(super) used: Totals,
}

/// What a file of a saved session says.
#[derive(Clone, Debug)]
pub struct SavedSession {
    /// The settings that were in force.
    pub config: SessionConfig,
    /// Turns and queues.
    pub record: SessionRecord,
    /// Whether all files of its sandbox are there, too.
    pub has_sandbox: bool,
}

impl SavedSession {
    /// Reads a file.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn read(saved: &[u8]) -> Result<Self, SessionError> {
        let Saved { file, .. } = read(saved)?;
        Ok(Self {
            config: file.session.config,
            record: file.session.record,
            has_sandbox: file.sandbox.is_some(),
        })
    }
}

/// `session.json`.
#[derive(Serialize, Deserialize)]
struct File {
    /// Says what the file is: the version of the format.
    hermitcrab_session: u32,
    session: Whole,
    sandbox: Option<Sandbox>,
}

/// What of a sandbox is not in its tree.
#[derive(Serialize, Deserialize)]
struct Sandbox {
    settings: MemorySettings,
    clock: ClockState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_only: Option<ReadOnly>,
}

/// A file as it was read.
struct Saved<'a> {
    file: File,
    tree: Option<&'a [u8]>,
}

impl Whole {
    /// The settings with those of `changes`, an object, in their places.
    fn changed(&self, changes: &Value) -> Result<SessionConfig, SessionError> {
        let Value::Object(changes) = changes else {
            return Err(SessionError::invalid_config(
                "the settings must be a JSON object",
            ));
        };
        if changes.is_empty() {
            return Ok(self.config.clone());
        }
        let mut settings = serde_json::to_value(&self.config)
            .map_err(|error| SessionError::invalid_config(error.to_string()))?;
        if let Value::Object(settings) = &mut settings {
            let provider = changes.get("provider");
            if provider.is_some_and(|provider| *provider != self.config.provider.as_str()) {
                settings.retain(|name, _| !OF_PROVIDER.contains(&name.as_str()));
            }
            settings.extend(changes.clone());
        }
        SessionConfig::from_json(&settings.to_string())
    }
}

impl Session {
    /// All of it, where it stands still: no model is asked and no tool runs.
    pub(super) fn whole(&self, call: &str) -> Result<Whole, SessionError> {
        match self.state() {
            SessionState::Idle | SessionState::AwaitingInput => {}
            SessionState::Processing if self.is_paused() => {}
            state => {
                let way_out = "wait until it is idle, or interrupt it";
                return Err(SessionError::illegal(call, state, way_out));
            }
        }
        let agents = self.agents();
        if let Some(agent) = agents.iter().find(|agent| agent.status == Status::Running) {
            return Err(SessionError::new(
                SessionErrorKind::IllegalState,
                format!(
                    "{call}: subagent {} is at work; wait for it, or close it",
                    agent.id
                ),
            ));
        }
        Ok(Whole {
            config: self.config(),
            record: self.record(),
            found: self.0.transcript.prompt.borrow().found(),
            used: self.0.meter.totals(),
        })
    }
}

impl Instance {
    /// A file of a session, and of its sandbox if it works in one.
    ///
    /// # Errors
    /// It is at work or over, or there is no memory for the file.
    pub fn save_session(&self, session: &Session) -> Result<Bytes, SessionError> {
        let mut whole = session.whole("save")?;
        whole.config = whole.config.without_address();
        let mut file = File {
            hermitcrab_session: VERSION,
            session: whole,
            sandbox: None,
        };
        let Some((sandbox, settings, read_only)) = self.sandbox_of(session) else {
            return pack(&file, None);
        };
        let snapshot = sandbox.snapshot();
        let tree = snapshot.export_tar("/").map_err(unsaved)?;
        file.sandbox = Some(Sandbox {
            settings: settings.clone(),
            clock: snapshot.clock(),
            read_only,
        });
        pack(&file, Some(&tree))
    }

    /// Adds the sandbox of a saved session, with `changes` of its settings and the
    /// programs that they name; returns its number.
    ///
    /// # Errors
    /// The file cannot be used, or its session did not work in a sandbox.
    pub fn add_saved_environment(
        &mut self,
        saved: &[u8],
        changes: MemorySettings,
    ) -> Result<u32, EnvironmentError> {
        let invalid = |message| EnvironmentError::new(EnvironmentErrorKind::InvalidInput, message);
        let Saved { file, tree } = read(saved).map_err(|error| invalid(error.message))?;
        let (Some(sandbox), Some(tree)) = (file.sandbox, tree) else {
            return Err(invalid(
                "the saved session did not work in a sandbox; give it an environment".to_owned(),
            ));
        };
        let settings = sandbox.settings.changed(changes);
        let programs = settings.programs().to_vec();
        let number = self.add_memory_environment(settings);
        let added = self.sandbox_for("add_saved_environment", number);
        let filled = added.and_then(|added| added.take_over(tree, sandbox.clock, &programs));
        if let Err(error) = filled {
            self.forget_environment(number);
            return Err(error);
        }
        self.keep_read_only(number, sandbox.read_only);
        Ok(number)
    }

    /// Opens a saved session, with `changes` of its settings.
    ///
    /// # Errors
    /// The file or the settings cannot be used.
    pub fn open_saved_session(
        &mut self,
        environment: u32,
        saved: &[u8],
        changes: &Value,
    ) -> Result<Session, SessionError> {
        let whole = read(saved)?.file.session;
        self.open_whole(environment, whole, changes)
    }

    /// Opens a session that goes on as `session` would, with `changes` of its settings.
    ///
    /// # Errors
    /// That session is at work or over, or the settings cannot be used.
    pub fn copy_session(
        &mut self,
        session: &Session,
        environment: u32,
        changes: &Value,
    ) -> Result<Session, SessionError> {
        let whole = session.whole("fork")?;
        self.open_whole(environment, whole, changes)
    }

    fn open_whole(
        &mut self,
        environment: u32,
        whole: Whole,
        changes: &Value,
    ) -> Result<Session, SessionError> {
        let config = whole.changed(changes)?;
        // Another provider has other names for documents: it looks for its own.
        let same = config.provider == whole.config.provider;
        let found = if same { whole.found } else { Found::default() };
        let session = self.open_recorded_session(environment, config, whole.record)?;
        session.go_on_with(found, &whole.used);
        Ok(session)
    }
}

/// The settings of a saved session, with `changes`.
///
/// # Errors
/// The file or the changes cannot be used.
pub fn config_of(saved: &[u8], changes: &Value) -> Result<Value, SessionError> {
    let config = read(saved)?.file.session.changed(changes)?;
    serde_json::to_value(config).map_err(|error| SessionError::invalid_config(error.to_string()))
}

fn pack(file: &File, tree: Option<&[u8]>) -> Result<Bytes, SessionError> {
    let session = serde_json::to_vec(file).map_err(unsaved)?;
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, content: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_mode(0o600);
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, name, content)
    };
    add(SESSION, &session).map_err(unsaved)?;
    if let Some(tree) = tree {
        add(TREE, tree).map_err(unsaved)?;
    }
    Ok(archive.into_inner().map_err(unsaved)?.into())
}

fn read(saved: &[u8]) -> Result<Saved<'_>, SessionError> {
    #[derive(Deserialize)]
    struct Version {
        hermitcrab_session: u32,
    }
    let mut entries = entries(saved)
        .map_err(|error| unreadable(&error))?
        .into_iter();
    let Some((_, session)) = entries.next().filter(|(name, _)| name == SESSION) else {
        return Err(unreadable(&format!("it does not begin with {SESSION}")));
    };
    let Version {
        hermitcrab_session: version,
    } = serde_json::from_slice(session).map_err(|error| unreadable(&error))?;
    if version != VERSION {
        return Err(invalid(format!(
            "the saved session has format {version}, this version reads format {VERSION}; open it \
             with the version that saved it"
        )));
    }
    let mut file: File = serde_json::from_slice(session).map_err(|error| unreadable(&error))?;
    // Also of a file that somebody else wrote.
    file.session.config = file.session.config.without_address();
    let tree = entries.find_map(|(name, content)| (name == TREE).then_some(content));
    if file.sandbox.is_some() != tree.is_some() {
        return Err(unreadable(&match tree {
            Some(_) => format!("it has {TREE}, and no settings of a sandbox"),
            None => format!("its {TREE} is missing"),
        }));
    }
    Ok(Saved { file, tree })
}

/// Names and contents of an archive.
fn entries(archive: &[u8]) -> std::io::Result<Vec<(String, &[u8])>> {
    let mut found = Vec::new();
    for entry in tar::Archive::new(archive).entries()? {
        let entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let range = usize::try_from(entry.raw_file_position())
            .ok()
            .zip(usize::try_from(entry.size()).ok());
        let content = range.and_then(|(start, size)| archive.get(start..start.checked_add(size)?));
        let content = content.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        found.push((name, content));
    }
    Ok(found)
}

fn unreadable(why: &impl std::fmt::Display) -> SessionError {
    invalid(format!(
        "this is no saved session, or it is damaged ({why}); give a file that `save` made"
    ))
}

fn invalid(message: String) -> SessionError {
    SessionError::new(SessionErrorKind::InvalidInput, message)
}

fn unsaved(error: impl std::fmt::Display) -> SessionError {
    invalid(format!("the session cannot be saved: {error}"))
}
