//! `--save`: the session as a file, once its task is done.

use std::io::{self, Error, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermitcrab_host::Controller;
use tempfile::NamedTempFile;

use crate::failure::{Failure, reason};
use crate::session::Ended;

/// The file to be. A temporary file beside it is made before the run, so that what is
/// wrong with the place is known then; only its user reads it.
#[derive(Clone)]
pub(crate) struct File(Arc<Begun>);

struct Begun {
    path: PathBuf,
    temporary: Mutex<Option<NamedTempFile>>,
    /// What became of it; nothing yet.
    written: Mutex<Option<Result<(), String>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl File {
    /// Makes the temporary file.
    ///
    /// # Errors
    /// The file exists, or cannot be made.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let refused = |error: Error| {
            let shown = path.display();
            let way_out = match error.kind() {
                ErrorKind::AlreadyExists => "; name another file, or remove it",
                _ => "",
            };
            Failure::usage(format!("--save {shown}: {}{way_out}", reason(&error)))
        };
        match path.symlink_metadata() {
            Ok(_) => return Err(refused(Error::new(ErrorKind::AlreadyExists, "file exists"))),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(refused(error)),
        }
        if path.file_name().is_none() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(refused(Error::other("that is not the name of a file")));
        }
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let temporary = NamedTempFile::new_in(directory).map_err(refused)?;
        Ok(Self(Arc::new(Begun {
            path: path.to_owned(),
            temporary: Mutex::new(Some(temporary)),
            written: Mutex::default(),
        })))
    }

    /// Writes `session`, which has done its task.
    pub(crate) async fn write(&self, session: &Controller) {
        let written = match session.save().await {
            Ok(saved) => self.place(&saved).map_err(|error| reason(&error)),
            Err(error) => Err(error.to_string()),
        };
        *locked(&self.0.written) = Some(written);
    }

    /// All or nothing; a file that somebody else has made there meanwhile stays.
    fn place(&self, saved: &[u8]) -> io::Result<()> {
        let Some(mut file) = locked(&self.0.temporary).take() else {
            return Ok(());
        };
        file.write_all(saved)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(&self.0.path)
            .map_err(|error| error.error)?;
        Ok(())
    }

    /// How the run ended, now that it is known whether the session was saved.
    pub(crate) fn end(&self, mut ended: Ended) -> Ended {
        let written = locked(&self.0.written).clone();
        let written =
            written.unwrap_or_else(|| Err("it was stopped before its task was done".to_owned()));
        if let Err(why) = written {
            let told = format!(
                "the session is not saved to {}: {why}",
                self.0.path.display()
            );
            match ended.result {
                Ok(_) => ended.result = Err(Failure::failed(told)),
                Err(_) => eprintln!("hermitcrab: {told}"),
            }
        }
        ended
    }
}
