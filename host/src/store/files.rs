//! `FileStore`: each session is a directory with its log, what is said about it, a saved
//! session and a lock. What appears there appears whole: it is written aside and renamed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::lock::{Lock, private, private_dir};
use super::{About, Kept, SessionStore, StoreError, StoredSession, is_id, ms_of, new_id};

const ABOUT: &str = "about.json";
const LOG: &str = "log.gz";
const NEXT_LOG: &str = "next-log.gz";
const SAVED: &str = "saved";
const LOCK: &str = "lock";
/// What the name of a directory begins with that is not a session yet.
const UNBORN: &str = ".new-";
/// How old such a directory is if whoever made it was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Keeps sessions as files in a directory.
#[derive(Clone, Debug)]
pub struct FileStore {
    dir: PathBuf,
}

impl FileStore {
    /// Keeps sessions in `dir`, which is made with the first one and becomes private to
    /// the user.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The directory of a session that exists.
    fn path(&self, id: &str) -> Result<PathBuf, StoreError> {
        let path = self.dir.join(id);
        match is_id(id) && path.join(ABOUT).exists() {
            true => Ok(path),
            false => Err(StoreError::Unknown(id.to_owned())),
        }
    }

    /// What is in the directory `path` of a session; none: it is no session, or gone.
    fn kept(path: &Path) -> Option<Kept> {
        let about = fs::read(path.join(ABOUT)).ok()?;
        let mut about: About = serde_json::from_slice(&about).ok()?;
        path.file_name()?.to_str()?.clone_into(&mut about.id);
        let mut kept = Kept {
            updated_ms: about.created_ms,
            about,
            bytes: 0,
        };
        for entry in fs::read_dir(path).ok()?.flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            kept.bytes += metadata.len();
            if entry.file_name() != LOCK
                && let Ok(time) = metadata.modified()
            {
                kept.updated_ms = kept.updated_ms.max(ms_of(time));
            }
        }
        Some(kept)
    }

    /// Removes directories whose makers were killed before they were sessions.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let is_unborn = entry
                .file_name()
                .to_str()
                .is_some_and(|n| n.starts_with(UNBORN));
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let is_old = modified.is_ok_and(|time| {
                SystemTime::now().duration_since(time).unwrap_or_default() > ABANDONED
            });
            if is_unborn && is_old {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let place = path.display().to_string();
    |error| StoreError::Io(place, error)
}

/// Writes `content` to `path`, all or nothing.
fn write(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let aside = path.with_extension("new");
    let written = private()
        .truncate(true)
        .open(&aside)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written.map_err(failed(path))
}

impl SessionStore for FileStore {
    fn create(&self, mut about: About) -> Result<Box<dyn StoredSession>, StoreError> {
        private_dir(&self.dir).map_err(failed(&self.dir))?;
        self.sweep();
        about.id = new_id(about.created_ms)?;
        let unborn = self.dir.join(format!("{UNBORN}{}", about.id));
        let path = self.dir.join(&about.id);
        private_dir(&unborn).map_err(failed(&unborn))?;
        let begin = || -> Result<Lock, StoreError> {
            let lock = Lock::take(&unborn.join(LOCK)).map_err(failed(&unborn))?;
            let lock = lock.ok_or_else(|| StoreError::InUse(about.id.clone()))?;
            let text = serde_json::to_vec(&about).map_err(io::Error::from);
            write(&unborn.join(ABOUT), &text.map_err(failed(&path))?)?;
            fs::rename(&unborn, &path).map_err(failed(&path))?;
            Ok(lock)
        };
        match begin() {
            Ok(lock) => Ok(Box::new(Session {
                path,
                about,
                _lock: lock,
            })),
            Err(error) => {
                let _ = fs::remove_dir_all(&unborn);
                Err(error)
            }
        }
    }

    fn open(&self, id: &str) -> Result<Box<dyn StoredSession>, StoreError> {
        let path = self.path(id)?;
        let lock = Lock::take(&path.join(LOCK)).map_err(failed(&path))?;
        let lock = lock.ok_or_else(|| StoreError::InUse(id.to_owned()))?;
        // It may have been removed before the lock was taken.
        let kept = Self::kept(&path).ok_or_else(|| StoreError::Unknown(id.to_owned()))?;
        Ok(Box::new(Session {
            path,
            about: kept.about,
            _lock: lock,
        }))
    }

    fn list(&self) -> Result<Vec<Kept>, StoreError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&self.dir)(error)),
        };
        let is_session = |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(is_id);
        let sessions = entries.flatten().filter(is_session);
        let mut kept: Vec<Kept> = sessions.filter_map(|one| Self::kept(&one.path())).collect();
        kept.sort_by(|a, b| {
            let key = |one: &Kept| (one.updated_ms, one.about.id.clone());
            key(b).cmp(&key(a))
        });
        Ok(kept)
    }

    fn log(&self, id: &str) -> Result<Box<dyn Read + Send>, StoreError> {
        read(&self.path(id)?)
    }

    fn remove(&self, id: &str) -> Result<(), StoreError> {
        let path = self.path(id)?;
        let lock = Lock::take(&path.join(LOCK)).map_err(failed(&path))?;
        let _lock = lock.ok_or_else(|| StoreError::InUse(id.to_owned()))?;
        // First what makes it a session: half of one is none.
        fs::remove_file(path.join(ABOUT)).map_err(failed(&path))?;
        fs::remove_dir_all(&path).map_err(failed(&path))
    }
}

fn read(path: &Path) -> Result<Box<dyn Read + Send>, StoreError> {
    let log = path.join(LOG);
    match File::open(&log) {
        Ok(file) => Ok(Box::new(file)),
        // It was killed before it began.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Box::new(io::empty())),
        Err(error) => Err(failed(&log)(error)),
    }
}

/// A session that this process holds.
struct Session {
    path: PathBuf,
    about: About,
    _lock: Lock,
}

impl StoredSession for Session {
    fn about(&self) -> &About {
        &self.about
    }

    fn set_task(&mut self, task: &str) -> Result<(), StoreError> {
        task.clone_into(&mut self.about.task);
        let path = self.path.join(ABOUT);
        let text = serde_json::to_vec(&self.about).map_err(io::Error::from);
        write(&path, &text.map_err(failed(&path))?)
    }

    fn log(&self) -> Result<Box<dyn Read + Send>, StoreError> {
        read(&self.path)
    }

    fn begin_log(&mut self) -> Result<Box<dyn Write + Send>, StoreError> {
        let log = self.path.join(LOG);
        let path = match log.exists() {
            true => self.path.join(NEXT_LOG),
            false => log,
        };
        let file = private().truncate(true).open(&path);
        Ok(Box::new(file.map_err(failed(&path))?))
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let next = self.path.join(NEXT_LOG);
        match fs::rename(&next, self.path.join(LOG)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            renamed => renamed.map_err(failed(&next)),
        }
    }

    fn saved(&self) -> Result<Option<Bytes>, StoreError> {
        let path = self.path.join(SAVED);
        match fs::read(&path) {
            Ok(saved) => Ok(Some(saved.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path)(error)),
        }
    }

    fn set_saved(&mut self, saved: &[u8]) -> Result<(), StoreError> {
        write(&self.path.join(SAVED), saved)
    }
}
