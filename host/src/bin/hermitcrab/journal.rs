//! Kept sessions: a local run writes its log to the state directory of the user, and
//! another one goes on with it.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use hermitcrab::llm::Content;
use hermitcrab::session::SessionConfig;
use hermitcrab_host::store::{self, About, FileStore, Kept, Quota, SessionStore, StoredSession};
use hermitcrab_host::{Controller, STATE_DIR, state_dir, without_secrets};

use crate::cli::{EnvironmentKind, FenceOptions, JournalOptions, RunOptions};
use crate::failure::Failure;
use crate::harmless::harmless;

/// The sessions of the user.
///
/// # Errors
/// There is no place for them.
pub(crate) fn sessions() -> Result<FileStore, Failure> {
    let dir = state_dir().ok_or_else(|| {
        Failure::usage(format!(
            "there is no home directory to keep sessions in; set {STATE_DIR}"
        ))
    })?;
    Ok(FileStore::new(dir.join("sessions")))
}

/// The newest session of `directory`.
///
/// # Errors
/// There is none.
pub(crate) fn newest(directory: &Path) -> Result<Kept, Failure> {
    let kept = sessions()?.list().map_err(failed)?;
    let here = directory.to_str();
    let newest = kept
        .into_iter()
        .find(|one| Some(&*one.about.directory) == here);
    newest.ok_or_else(|| {
        Failure::usage(format!(
            "no session has worked in {}: `hermitcrab sessions` lists those that there are",
            directory.display()
        ))
    })
}

pub(crate) fn failed(error: store::StoreError) -> Failure {
    use store::StoreError::{InUse, Unknown};
    match error {
        Unknown(_) | InUse(_) => Failure::usage(error.to_string()),
        error => Failure::failed(error.to_string()),
    }
}

/// How a run is to be kept.
pub(crate) struct Keep {
    about: About,
    prompt: String,
    quota: Quota,
}

impl Keep {
    /// As the options say; none: it is not kept.
    pub(crate) fn of(options: &RunOptions, directory: &Path, prompt: &Content) -> Option<Self> {
        // What a sandbox holds is in --record and --save; a session elsewhere has no
        // directory here by which it would be found.
        if options.journal.no_journal || options.environment_kind() != EnvironmentKind::Local {
            return None;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_millis();
        Some(Self {
            about: About {
                id: String::new(),
                directory: directory.to_str()?.to_owned(),
                provider: String::new(),
                model: String::new(),
                task: String::new(),
                created_ms: u64::try_from(now).unwrap_or_default(),
                host: serde_json::to_value(&options.fence).unwrap_or_default(),
            },
            prompt: prompt.text(),
            quota: quota(&options.journal),
        })
    }

    /// Begins the session with these settings. A run goes on without, where there is no
    /// place for it.
    pub(crate) fn begin(mut self, config: &SessionConfig, secrets: &[&str]) -> Option<Held> {
        let prompt = without_secrets(&self.prompt, secrets.iter().copied());
        self.about.task = About::task_of(&prompt);
        self.about.provider.clone_from(&config.provider);
        self.about.model.clone_from(&config.model);
        let begun = sessions()
            .map_err(|failure| failure.message)
            .and_then(|store| {
                let session = store
                    .create(self.about)
                    .map_err(|error| error.to_string())?;
                let secrets = secrets.iter().map(|it| (*it).to_owned()).collect();
                Ok(Held {
                    secrets,
                    ..Held::new(store, session, self.quota)
                })
            });
        begun.map_err(|why| not_kept(&why)).ok()
    }
}

fn quota(options: &JournalOptions) -> Quota {
    let quota = Quota::default();
    Quota {
        bytes: options
            .journal_quota
            .map_or(quota.bytes, |mib| mib.saturating_mul(1 << 20)),
        ..quota
    }
}

fn not_kept(why: &str) {
    eprintln!(
        "hermitcrab: this run is not kept: {}; --no-journal keeps none",
        harmless(why)
    );
}

/// A session that this process keeps.
#[derive(Clone)]
pub(crate) struct Held {
    store: FileStore,
    session: Arc<Mutex<Box<dyn StoredSession>>>,
    quota: Quota,
    /// What is not to be kept.
    secrets: Arc<[String]>,
}

impl Held {
    fn new(store: FileStore, session: Box<dyn StoredSession>, quota: Quota) -> Self {
        Self {
            store,
            session: Arc::new(Mutex::new(session)),
            quota,
            secrets: Arc::default(),
        }
    }

    /// Takes the session over.
    ///
    /// # Errors
    /// There is none, or another process has it.
    pub(crate) fn open(id: &str, options: &JournalOptions) -> Result<Self, Failure> {
        let store = sessions()?;
        let session = store.open(id).map_err(failed)?;
        Ok(Self::new(store, session, quota(options)))
    }

    pub(crate) fn session(&self) -> MutexGuard<'_, Box<dyn StoredSession>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what it is about, if that was not known when it began.
    pub(crate) fn name(&self, prompt: &str) {
        let mut session = self.session();
        if session.about().task.is_empty()
            && let Err(error) = session.set_task(&About::task_of(&without_secrets(
                prompt,
                self.secrets.iter().map(|it| &**it),
            )))
        {
            not_kept(&error.to_string());
        }
    }

    /// What its tools may do, as it was begun.
    ///
    /// # Errors
    /// This program does not understand it.
    pub(crate) fn fence(&self) -> Result<FenceOptions, Failure> {
        match &self.session().about().host {
            serde_json::Value::Null => Ok(FenceOptions::default()),
            kept => serde_json::from_value(kept.clone()).map_err(|error| {
                Failure::usage(format!(
                    "a newer hermitcrab began this session, with another sandbox: {error}"
                ))
            }),
        }
    }

    pub(crate) fn id(&self) -> String {
        self.session().about().id.clone()
    }

    /// Where its log goes from now on, if there is room.
    pub(crate) fn log(&self) -> Option<Box<dyn Write + Send>> {
        let begun = self.session().begin_log();
        begun.map_err(|error| not_kept(&error.to_string())).ok()
    }

    /// The log that was begun holds all that the one before does.
    pub(crate) fn commit(&self) {
        if let Err(error) = self.session().commit() {
            not_kept(&error.to_string());
        }
    }

    /// Keeps what a core of another version can go on with.
    pub(crate) async fn save(&self, session: &Controller) {
        // A session that holds a key is not written; its log has ended before.
        if let Ok(saved) = session.save().await
            && let Err(error) = self.session().set_saved(&saved)
        {
            not_kept(&error.to_string());
        }
    }

    /// Makes room for others.
    pub(crate) fn end(&self) {
        match store::evict(&self.store, self.quota) {
            Ok(evicted) if evicted.is_empty() => {}
            Ok(evicted) => {
                let ids: Vec<&str> = evicted.iter().map(|one| &*one.about.id).collect();
                eprintln!(
                    "hermitcrab: to make room, the oldest kept sessions were removed: {}; \
                     --journal-quota says how much they may take",
                    ids.join(", ")
                );
            }
            Err(error) => eprintln!("hermitcrab: {}", harmless(&error.to_string())),
        }
        // This one stays, however large it is.
        let kept = self.store.list().unwrap_or_default();
        let bytes: u64 = kept.iter().map(|one| one.bytes).sum();
        if bytes > self.quota.bytes {
            eprintln!(
                "hermitcrab: kept sessions take {} MiB, more than the {} of --journal-quota, because \
                 of those that are in use; `hermitcrab sessions delete` removes some",
                bytes.div_ceil(1 << 20),
                self.quota.bytes >> 20
            );
        }
    }
}
