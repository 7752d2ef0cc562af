//! Where sessions are kept, so that they survive their process: a log of each, written as
//! it goes, and what is said about it. Two stores follow one contract: files, and SQLite.
//!
//! A kept session holds what its log holds: what was said, what tools read and wrote, and
//! no key ([`hermitcrab::log`]).

mod files;
pub(crate) mod lock;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use files::FileStore;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

use std::fmt;
use std::io::{self, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::reason;

/// Characters of [`About::task`] at most.
pub const TASK_CHARACTERS: usize = 200;

/// What is said about a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its name in the store; empty in [`SessionStore::create`], which gives it one.
    #[serde(default)]
    pub id: String,
    /// Working directory, absolute.
    pub directory: String,
    /// Provider of its model.
    pub provider: String,
    /// Id of its model.
    pub model: String,
    /// How its first prompt begins, in one line.
    pub task: String,
    /// When it was begun, in ms since 1970-01-01 UTC.
    pub created_ms: u64,
    /// What the host wants to find again; no store looks at it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub host: Value,
}

impl About {
    /// A prompt as [`About::task`] has it.
    pub fn task_of(prompt: &str) -> String {
        let mut words = prompt.split_whitespace();
        let mut task = words.next().unwrap_or_default().to_owned();
        for word in words {
            if task.len() > 4 * TASK_CHARACTERS {
                break;
            }
            task.push(' ');
            task.push_str(word);
        }
        match task.char_indices().nth(TASK_CHARACTERS) {
            Some((end, _)) => task[..end].to_owned() + "…",
            None => task,
        }
    }
}

/// A session in the list of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What is said about it.
    pub about: About,
    /// When it was last written to, in ms since 1970-01-01 UTC.
    pub updated_ms: u64,
    /// Bytes that it takes.
    pub bytes: u64,
}

/// Why a store cannot do something.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no session of this id.
    Unknown(String),
    /// Another process works on the session.
    InUse(String),
    /// The place of the store, and what is wrong with it.
    Io(String, io::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(
                f,
                "there is no session {id}: `hermitcrab sessions` lists those that there are"
            ),
            Self::InUse(id) => write!(
                f,
                "another process works on the session {id}: end it first, or go on with \
                 another session"
            ),
            Self::Io(place, error) => write!(f, "{place}: {}", reason(error)),
        }
    }
}

impl std::error::Error for StoreError {}

/// Keeps sessions. What one process has written with [`StoredSession::begin_log`] is there
/// for others as soon as the writer was flushed, and stays when the process is killed.
pub trait SessionStore: Send + Sync + fmt::Debug {
    /// Begins a session, which the caller holds until it is dropped.
    ///
    /// # Errors
    /// The store cannot be written.
    fn create(&self, about: About) -> Result<Box<dyn StoredSession>, StoreError>;

    /// Takes a session over, which the caller holds until it is dropped.
    ///
    /// # Errors
    /// There is none of this id, or another process holds it.
    fn open(&self, id: &str) -> Result<Box<dyn StoredSession>, StoreError>;

    /// All sessions, the one that was written to last first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn list(&self) -> Result<Vec<Kept>, StoreError>;

    /// The log of a session, as far as it is written.
    ///
    /// # Errors
    /// There is none of this id.
    fn log(&self, id: &str) -> Result<Box<dyn Read + Send>, StoreError>;

    /// Removes a session.
    ///
    /// # Errors
    /// There is none of this id, or a process holds it.
    fn remove(&self, id: &str) -> Result<(), StoreError>;
}

/// A session that this process holds.
pub trait StoredSession: Send {
    /// What is said about it.
    fn about(&self) -> &About;

    /// Says what it is about: [`About::task`].
    ///
    /// # Errors
    /// The store cannot be written.
    fn set_task(&mut self, task: &str) -> Result<(), StoreError>;

    /// Its log, as far as it is written.
    ///
    /// # Errors
    /// It cannot be read.
    fn log(&self) -> Result<Box<dyn Read + Send>, StoreError>;

    /// Begins another log. The one before stays until [`StoredSession::commit`]; a first
    /// log needs none.
    ///
    /// # Errors
    /// The store cannot be written.
    fn begin_log(&mut self) -> Result<Box<dyn Write + Send>, StoreError>;

    /// Puts the log that was begun last in the place of the one before, at once.
    ///
    /// # Errors
    /// The store cannot be written.
    fn commit(&mut self) -> Result<(), StoreError>;

    /// The session as it was [saved](crate::Controller::save) last, for cores that do not
    /// repeat its log.
    ///
    /// # Errors
    /// It cannot be read.
    fn saved(&self) -> Result<Option<Bytes>, StoreError>;

    /// Keeps the session as it was saved.
    ///
    /// # Errors
    /// The store cannot be written.
    fn set_saved(&mut self, saved: &[u8]) -> Result<(), StoreError>;
}

/// What all sessions of a store together may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Bytes.
    pub bytes: u64,
    /// Sessions.
    pub sessions: usize,
}

impl Default for Quota {
    /// 1 GiB and 1,000 sessions.
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            sessions: 1000,
        }
    }
}

/// Removes the sessions that were written to longest ago until the rest is within `quota`;
/// returns them. Sessions that a process holds stay.
///
/// # Errors
/// The store cannot be read.
pub fn evict(store: &dyn SessionStore, quota: Quota) -> Result<Vec<Kept>, StoreError> {
    let kept = store.list()?;
    let mut bytes: u64 = kept.iter().map(|one| one.bytes).sum();
    let mut sessions = kept.len();
    let mut evicted = Vec::new();
    for oldest in kept.into_iter().rev() {
        if bytes <= quota.bytes && sessions <= quota.sessions {
            break;
        }
        let removed = match store.remove(&oldest.about.id) {
            Ok(()) => true,
            // Somebody else was faster.
            Err(StoreError::Unknown(_)) => false,
            Err(StoreError::InUse(_)) => continue,
            Err(error) => return Err(error),
        };
        bytes -= oldest.bytes;
        sessions -= 1;
        if removed {
            evicted.push(oldest);
        }
    }
    Ok(evicted)
}

/// A name for a new session: when it began, in UTC, and a random number.
pub(crate) fn new_id(created_ms: u64) -> Result<String, StoreError> {
    let mut random = [0; 4];
    getrandom::fill(&mut random)
        .map_err(|error| StoreError::Io("a new id".to_owned(), io::Error::other(error)))?;
    let seconds = created_ms / 1000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let random = u32::from_le_bytes(random);
    Ok(format!(
        "{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{random:08x}"
    ))
}

/// Year, month and day of the Gregorian calendar, so many days after 1970-01-01.
/// Counts in years that begin with March, as Howard Hinnant's `civil_from_days`.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// Whether it is an id that [`new_id`] could have made: no path leads out by it.
pub(crate) fn is_id(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !id.is_empty() && id.len() <= 64 && !id.starts_with('-') && id.bytes().all(allowed)
}

pub(crate) fn ms_of(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{About, TASK_CHARACTERS, date, is_id, new_id};

    #[test]
    fn ids_tell_when_a_session_began() {
        let id = new_id(1_774_972_812_345).expect("random numbers");
        assert!(id.starts_with("20260331-160012-"), "{id}");
        assert!(is_id(&id));
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(19_782), (2024, 2, 29));
        for not in ["", "..", "a/b", "-x", "a.b", &"x".repeat(65)] {
            assert!(!is_id(not), "{not}");
        }
    }

    #[test]
    fn a_task_is_one_line() {
        assert_eq!(About::task_of("  fix\n\tthe   test \n"), "fix the test");
        let long = About::task_of(&"ü ".repeat(10_000));
        assert_eq!(long.chars().count(), TASK_CHARACTERS + 1);
        assert_eq!(
            About::task_of(&"x".repeat(100_000)).len(),
            TASK_CHARACTERS + 3
        );
        assert_eq!(About::task_of(""), "");
    }
}
