//! `SqliteStore`: sessions in one SQLite database, for hosts that keep many and ask for
//! them by query. A log is rows of what each flush of its writer brought.

use std::fs;
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::lock::{Lock, private, private_dir};
use super::{About, Kept, SessionStore, StoreError, StoredSession, is_id, ms_of, new_id};

/// How long a process waits for another one that writes.
const BUSY: Duration = Duration::from_secs(10);

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS session (
    id TEXT PRIMARY KEY,
    about TEXT NOT NULL,
    -- Which of its logs counts.
    log INTEGER NOT NULL DEFAULT 0,
    updated_ms INTEGER NOT NULL,
    saved BLOB
);
CREATE TABLE IF NOT EXISTS piece (
    session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    log INTEGER NOT NULL,
    number INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (session, log, number)
) WITHOUT ROWID;
";

/// Keeps sessions in a SQLite database. Clones share its connection.
#[derive(Clone)]
pub struct SqliteStore(Arc<Database>);

struct Database {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SqliteStore").field(&self.0.path).finish()
    }
}

impl SqliteStore {
    /// Opens the database `path`, or makes it, private to the user. The files of its
    /// locks are in a directory beside it, `<path>-locks`.
    ///
    /// # Errors
    /// It cannot be made, or is no such database.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        let place = path.display().to_string();
        let failed = |error| StoreError::Io(place.clone(), error);
        if let Some(parent) = path.parent() {
            private_dir(parent).map_err(failed)?;
        }
        // SQLite would make it readable for others.
        private().truncate(false).open(&path).map_err(failed)?;
        private_dir(&locks(&path)).map_err(failed)?;
        let open = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(&path)?;
            connection.busy_timeout(BUSY)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.pragma_update(None, "foreign_keys", true)?;
            connection.execute_batch(TABLES)?;
            Ok(connection)
        };
        let connection = open().map_err(|error| failed(io::Error::other(error)))?;
        Ok(Self(Arc::new(Database {
            path,
            connection: Mutex::new(connection),
        })))
    }

    fn with<T>(
        &self,
        ask: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.0.with(ask).map_err(|error| self.0.failed(error))
    }

    fn lock(&self, id: &str) -> Result<Lock, StoreError> {
        let path = locks(&self.0.path).join(id);
        match Lock::take(&path).map_err(|error| self.0.failed(error))? {
            Some(lock) => Ok(lock),
            None => Err(StoreError::InUse(id.to_owned())),
        }
    }

    fn about(&self, id: &str) -> Result<About, StoreError> {
        let unknown = || StoreError::Unknown(id.to_owned());
        if !is_id(id) {
            return Err(unknown());
        }
        let about: Option<String> = self.with(|connection| {
            let ask = "SELECT about FROM session WHERE id = ?1";
            connection.query_row(ask, [id], |row| row.get(0)).optional()
        })?;
        let about: About = serde_json::from_str(&about.ok_or_else(unknown)?)
            .map_err(|error| self.0.failed(error.into()))?;
        Ok(About {
            id: id.to_owned(),
            ..about
        })
    }
}

fn locks(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-locks");
    name.into()
}

fn now_ms() -> i64 {
    i64::try_from(ms_of(SystemTime::now())).unwrap_or(i64::MAX)
}

impl Database {
    fn with<T>(&self, ask: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> io::Result<T> {
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        ask(&mut connection).map_err(io::Error::other)
    }

    fn failed(&self, error: io::Error) -> StoreError {
        StoreError::Io(self.path.display().to_string(), error)
    }

    /// The log of a session that counts.
    fn log(&self, id: &str) -> io::Result<Vec<u8>> {
        self.with(|connection| {
            let mut rows = connection.prepare_cached(
                "SELECT bytes FROM piece JOIN session ON session.id = piece.session
                 AND session.log = piece.log WHERE session.id = ?1 ORDER BY number",
            )?;
            let mut log = Vec::new();
            for piece in rows.query_map([id], |row| row.get::<_, Vec<u8>>(0))? {
                log.extend_from_slice(&piece?);
            }
            Ok(log)
        })
    }
}

impl SessionStore for SqliteStore {
    fn create(&self, mut about: About) -> Result<Box<dyn StoredSession>, StoreError> {
        about.id = new_id(about.created_ms)?;
        let lock = self.lock(&about.id)?;
        let text = serde_json::to_string(&about).map_err(|error| self.0.failed(error.into()))?;
        self.with(|connection| {
            let add = "INSERT INTO session (id, about, updated_ms) VALUES (?1, ?2, ?3)";
            connection.execute(add, params![about.id, text, now_ms()])
        })?;
        Ok(Box::new(Session {
            database: self.0.clone(),
            about,
            log: 0,
            _lock: lock,
        }))
    }

    fn open(&self, id: &str) -> Result<Box<dyn StoredSession>, StoreError> {
        self.about(id)?;
        let lock = self.lock(id)?;
        // It may have been removed before the lock was taken.
        let about = self.about(id)?;
        let log = self.with(|connection| {
            let ask = "SELECT log FROM session WHERE id = ?1";
            connection.query_row(ask, [id], |row| row.get(0))
        })?;
        Ok(Box::new(Session {
            database: self.0.clone(),
            about,
            log,
            _lock: lock,
        }))
    }

    fn list(&self) -> Result<Vec<Kept>, StoreError> {
        let rows = self.with(|connection| {
            let mut rows = connection.prepare_cached(
                "SELECT id, about, updated_ms, coalesce(length(saved), 0) + coalesce(
                     (SELECT sum(length(bytes)) FROM piece WHERE session = id), 0)
                 FROM session ORDER BY updated_ms DESC, id DESC",
            )?;
            let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<(String, String, i64, i64)> {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            };
            rows.query_map([], row)?.collect::<Result<Vec<_>, _>>()
        })?;
        let kept = rows
            .into_iter()
            .filter_map(|(id, about, updated_ms, bytes)| {
                let about: About = serde_json::from_str(&about).ok()?;
                Some(Kept {
                    about: About { id, ..about },
                    updated_ms: u64::try_from(updated_ms).unwrap_or_default(),
                    bytes: u64::try_from(bytes).unwrap_or_default(),
                })
            });
        Ok(kept.collect())
    }

    fn log(&self, id: &str) -> Result<Box<dyn Read + Send>, StoreError> {
        self.about(id)?;
        let log = self.0.log(id).map_err(|error| self.0.failed(error))?;
        Ok(Box::new(Cursor::new(log)))
    }

    fn remove(&self, id: &str) -> Result<(), StoreError> {
        self.about(id)?;
        let lock = self.lock(id)?;
        self.with(|connection| connection.execute("DELETE FROM session WHERE id = ?1", [id]))?;
        let _ = fs::remove_file(locks(&self.0.path).join(id));
        drop(lock);
        Ok(())
    }
}

/// A session that this process holds.
struct Session {
    database: Arc<Database>,
    about: About,
    /// The log that was begun last.
    log: i64,
    _lock: Lock,
}

impl Session {
    fn with<T>(
        &self,
        ask: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let database = &self.database;
        database.with(ask).map_err(|error| database.failed(error))
    }
}

impl StoredSession for Session {
    fn about(&self) -> &About {
        &self.about
    }

    fn set_task(&mut self, task: &str) -> Result<(), StoreError> {
        task.clone_into(&mut self.about.task);
        let text = serde_json::to_string(&self.about);
        let text = text.map_err(|error| self.database.failed(error.into()))?;
        self.with(|connection| {
            let put = "UPDATE session SET about = ?2, updated_ms = ?3 WHERE id = ?1";
            connection.execute(put, params![self.about.id, text, now_ms()])
        })?;
        Ok(())
    }

    fn log(&self) -> Result<Box<dyn Read + Send>, StoreError> {
        let log = self.database.log(&self.about.id);
        Ok(Box::new(Cursor::new(
            log.map_err(|error| self.database.failed(error))?,
        )))
    }

    fn begin_log(&mut self) -> Result<Box<dyn Write + Send>, StoreError> {
        let id = self.about.id.clone();
        self.log = self.with(|connection| {
            let change = connection.transaction()?;
            let ask = "SELECT log, EXISTS (SELECT 1 FROM piece WHERE session = id AND piece.log = \
                       session.log) FROM session WHERE id = ?1";
            let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?));
            let (log, has_pieces) = change.query_row(ask, [&id], row)?;
            let clear = "DELETE FROM piece WHERE session = ?1 AND log <> ?2";
            change.execute(clear, params![id, log])?;
            change.commit()?;
            Ok(if has_pieces { log + 1 } else { log })
        })?;
        Ok(Box::new(Writer {
            database: self.database.clone(),
            session: id,
            log: self.log,
            number: 0,
            bytes: Vec::new(),
        }))
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let (id, log) = (self.about.id.clone(), self.log);
        self.with(|connection| {
            let change = connection.transaction()?;
            change.execute(
                "UPDATE session SET log = ?2, updated_ms = ?3 WHERE id = ?1",
                params![id, log, now_ms()],
            )?;
            let clear = "DELETE FROM piece WHERE session = ?1 AND log <> ?2";
            change.execute(clear, params![id, log])?;
            change.commit()
        })
    }

    fn saved(&self) -> Result<Option<Bytes>, StoreError> {
        let saved: Option<Vec<u8>> = self.with(|connection| {
            let ask = "SELECT saved FROM session WHERE id = ?1";
            connection.query_row(ask, [&self.about.id], |row| row.get(0))
        })?;
        Ok(saved.map(Bytes::from))
    }

    fn set_saved(&mut self, saved: &[u8]) -> Result<(), StoreError> {
        let id = &self.about.id;
        self.with(|connection| {
            let put = "UPDATE session SET saved = ?2, updated_ms = ?3 WHERE id = ?1";
            connection.execute(put, params![id, saved, now_ms()])
        })?;
        Ok(())
    }
}

/// Writes a log, a row with each flush.
struct Writer {
    database: Arc<Database>,
    session: String,
    log: i64,
    number: i64,
    bytes: Vec<u8>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        self.database.with(|connection| {
            let change = connection.transaction()?;
            change
                .prepare_cached(
                    "INSERT INTO piece (session, log, number, bytes) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![self.session, self.log, self.number, self.bytes])?;
            change
                .prepare_cached("UPDATE session SET updated_ms = ?2 WHERE id = ?1")?
                .execute(params![self.session, now_ms()])?;
            change.commit()
        })?;
        self.number += 1;
        self.bytes.clear();
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // What ends a log is not followed by a flush.
        let _ = self.flush();
    }
}
