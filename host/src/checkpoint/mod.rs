//! Checkpoints: what a session changed on this machine, round by round, so that it can
//! be undone.
//!
//! [`Checkpointed`] stands around a [`LocalEnvironment`]. What file tools change it sees
//! itself; what commands change it finds by comparing the working directory before and
//! after ([`scan`]). It touches nothing there: contents go to a separate directory
//! ([`Checkpoints`]), and only paths that it saw change are ever restored
//! ([`undo`](Checkpoints::undo)).

mod keep;
mod parent;
mod scan;
mod state;
mod store;
mod undo;

pub(crate) use scan::{Mark, scan};
pub use store::{CheckpointStore, Checkpoints, Limits, RoundChanges};
pub use undo::{NotRestored, Restored, UndoError};

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::environment::{
    Entries, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo, ExecRequest, ExecStatus,
    GlobRequest, GrepRequest, Matches, Metadata,
};

use crate::environment::{ExecIo, HostEnvironment};
use crate::local::LocalEnvironment;
use keep::Keeper;

/// A local environment whose changes can be undone.
pub struct Checkpointed {
    local: LocalEnvironment,
    directory: PathBuf,
    keeper: Arc<Mutex<Keeper>>,
    /// The round of the session.
    round: AtomicU64,
    running: Arc<Running>,
}

/// Commands that run now.
#[derive(Default)]
struct Running {
    count: AtomicUsize,
    /// The round in which one began last, plus one.
    round: AtomicU64,
    /// One ended without being looked after.
    cut_off: AtomicBool,
}

/// A command that runs, until it is dropped.
struct Run {
    running: Arc<Running>,
    looked_after: bool,
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.looked_after {
            self.running.cut_off.store(true, Ordering::SeqCst);
        }
        self.running.count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Checkpointed {
    /// `local` with its changes noted in `checkpoints`.
    pub fn new(local: LocalEnvironment, checkpoints: Checkpoints) -> Self {
        let directory = PathBuf::from(local.info().working_directory);
        // What is noted holds without links.
        let directory = std::fs::canonicalize(&directory).unwrap_or(directory);
        Self {
            round: AtomicU64::new(checkpoints.round),
            keeper: Arc::new(Mutex::new(Keeper::new(checkpoints, directory.clone()))),
            local,
            directory,
            running: Arc::default(),
        }
    }

    /// Does what `keep` says with the keeper, on a thread that may block.
    async fn keep<T: Send + 'static>(
        &self,
        keep: impl FnOnce(&mut Keeper) -> T + Send + 'static,
    ) -> Result<T, EnvironmentError> {
        let keeper = self.keeper.clone();
        let round = self.round.load(Ordering::SeqCst);
        let kept = tokio::task::spawn_blocking(move || {
            let mut keeper = keeper.lock().unwrap_or_else(PoisonError::into_inner);
            keeper.set_round(round);
            keep(&mut keeper)
        });
        kept.await.map_err(|_| {
            EnvironmentError::new(EnvironmentErrorKind::Io, "the checkpoint could not be made")
        })
    }

    /// Does `change` to `paths` and notes what became of them.
    async fn changing<T>(
        &self,
        paths: Vec<PathBuf>,
        change: impl Future<Output = Result<T, EnvironmentError>>,
    ) -> Result<T, EnvironmentError> {
        let before = self.keep(move |keeper| keeper.before(&paths)).await?;
        let result = change.await;
        // Of a change that failed, too: it may have been done in part.
        self.keep(move |keeper| keeper.after(before)).await?;
        result
    }

    /// Undoes what the session has changed so far; see [`Checkpoints::undo`].
    ///
    /// # Errors
    /// As there; or a command runs now.
    pub async fn undo(&self, from: Option<u64>, partly: bool) -> Result<Restored, UndoError> {
        let running = self.running.clone();
        let undone = self.keep(move |keeper| match running.count.load(Ordering::SeqCst) {
            0 => {
                if running.cut_off.swap(false, Ordering::SeqCst) {
                    keeper.after_cut_off();
                }
                keeper.undo(from, partly)
            }
            _ => Err(UndoError::Busy),
        });
        undone.await.unwrap_or(Err(UndoError::Nothing))
    }

    /// The path of an entry, by the directory that it is in.
    fn entry(&self, path: &str) -> PathBuf {
        let path = self.directory.join(path);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return path;
        };
        real(parent).join(name)
    }
}

#[async_trait]
impl HostEnvironment for Checkpointed {
    fn info(&self) -> EnvironmentInfo {
        self.local.info()
    }

    fn answered(&self) {
        self.round.fetch_add(1, Ordering::SeqCst);
    }

    async fn read(&self, path: &str, max_bytes: u64) -> Result<Bytes, EnvironmentError> {
        self.local.read(path, max_bytes).await
    }

    async fn read_part(
        &self,
        path: &str,
        offset: u64,
        max_bytes: u64,
    ) -> Result<Bytes, EnvironmentError> {
        self.local.read_part(path, offset, max_bytes).await
    }

    async fn write(&self, path: &str, content: Bytes) -> Result<(), EnvironmentError> {
        // Through links, to the file that is written.
        let target = real(&self.directory.join(path));
        self.changing(vec![target], self.local.write(path, content))
            .await
    }

    async fn stat(&self, path: &str) -> Result<Metadata, EnvironmentError> {
        self.local.stat(path).await
    }

    async fn real_path(&self, path: &str) -> Result<String, EnvironmentError> {
        self.local.real_path(path).await
    }

    async fn list(&self, path: &str, depth: u32) -> Result<Entries, EnvironmentError> {
        self.local.list(path, depth).await
    }

    async fn remove(&self, path: &str) -> Result<(), EnvironmentError> {
        self.changing(vec![self.entry(path)], self.local.remove(path))
            .await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), EnvironmentError> {
        let paths = vec![self.entry(from), self.entry(to)];
        self.changing(paths, self.local.rename(from, to)).await
    }

    async fn make_dir(&self, path: &str) -> Result<(), EnvironmentError> {
        self.changing(
            vec![real(&self.directory.join(path))],
            self.local.make_dir(path),
        )
        .await
    }

    async fn grep(&self, request: GrepRequest) -> Result<Matches, EnvironmentError> {
        self.local.grep(request).await
    }

    async fn glob(&self, request: GlobRequest) -> Result<Entries, EnvironmentError> {
        self.local.glob(request).await
    }

    async fn initialize(&self) -> Result<(), EnvironmentError> {
        self.local.initialize().await
    }

    async fn cleanup(&self) -> Result<(), EnvironmentError> {
        let cleaned = self.local.cleanup().await;
        let running = self.running.clone();
        // The round is noted, for a session that goes on.
        self.keep(move |keeper| {
            let is_cut_off = running.cut_off.swap(false, Ordering::SeqCst);
            if is_cut_off && running.count.load(Ordering::SeqCst) == 0 {
                keeper.after_cut_off();
            }
        })
        .await?;
        cleaned
    }

    async fn exec(
        &self,
        request: ExecRequest,
        io: ExecIo<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        let running = self.running.clone();
        let began = self.round.load(Ordering::SeqCst);
        if began == 0 {
            // Before the first answer of the model the session only reads facts for the prompt,
            // and its start does not wait for a look through the tree.
            return self.local.exec(request, io).await;
        }
        let command = request.command.clone();
        let began_command = command.clone();
        let mut run = self
            .keep(move |keeper| {
                // While another one of the round runs, what differs may be its doing: it is
                // noted with the first that ends. One of an earlier round goes on in the
                // background, and what differs may as well be the user's.
                let is_alone = running.count.fetch_add(1, Ordering::SeqCst) == 0;
                let is_first = running.round.swap(began + 1, Ordering::SeqCst) != began + 1;
                let looks = is_alone || is_first;
                let cut_off = looks && running.cut_off.swap(false, Ordering::SeqCst);
                keeper.before_command(&began_command, looks, cut_off);
                Run {
                    running,
                    looked_after: false,
                }
            })
            .await?;
        let ran = self.local.exec(request, io).await;
        let is_late = self.round.load(Ordering::SeqCst) != began;
        self.keep(move |keeper| match is_late {
            true => keeper.after_background(&command),
            false => keeper.after_command(&command),
        })
        .await?;
        run.looked_after = true;
        ran
    }
}

/// `path` with every link on it followed, where nothing is, too.
fn real(path: &Path) -> PathBuf {
    crate::local::follow_links(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether checkpoints of `directory` are a bad idea, and why: a home directory or the
/// root holds what no session is about.
pub fn unsuited(directory: &Path) -> Option<&'static str> {
    let home = std::env::home_dir().and_then(|home| std::fs::canonicalize(home).ok());
    if directory.parent().is_none() {
        return Some("it is the root directory");
    }
    home.is_some_and(|home| home.starts_with(directory))
        .then_some("it is or holds your home directory")
}
