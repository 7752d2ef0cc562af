//! MemoryEnvironment: a file tree and a bash-compatible shell inside the core.
//!
//! Tools and commands share one tree. It never touches the machine it runs on:
//! no file, process, socket, clock or random number of the host is read. The
//! shell exists on wasm32 with the feature `sandbox`; elsewhere `exec` answers
//! that it is unsupported. What the shell can and cannot do: `docs/sandbox.md`.

// Only the shell calls most of it, and only wasm32 has the shell; the terminal and the
// containment of commands are for pages.
#![cfg_attr(
    not(all(target_arch = "wasm32", feature = "sandbox", feature = "web")),
    allow(dead_code, unused_imports)
)]

mod archive;
mod bashkit;
pub(crate) mod clock;
pub(crate) mod containment;
mod counter;
pub(crate) mod drive;
mod heap;
mod import;
mod program;
pub(crate) mod random;
mod settings;
pub(crate) mod tree;

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod filesystem;
#[cfg(target_arch = "wasm32")]
mod host;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod local;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod shell;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod terminal;

pub(crate) use archive::Delta;
pub use archive::{export_tar, import_tar};
pub(crate) use clock::{ClockState, STEP_WORK, TimeSource, work};
pub use import::{Import, ImportNode};
pub use settings::MemorySettings;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(crate) use terminal::Terminal;
pub use tree::{Change, ChangeKind, Tree, TreeLimits};

use std::cell::RefCell;
use std::rc::Rc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::environment::{
    DirEntry, Entries, EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
    EnvironmentReply, ExecRequest, ExecStatus, ExecutionEnvironment, Metadata, OutputSink,
    ProgramPort, Scope, absolute_path,
};
use clock::Clock;
use random::{Random, RandomState};
use tree::{Content, LastLink, Node, NodeKind, TreeError};

/// Bytes read that are worth one unit of work.
const BYTES_PER_WORK: u64 = 1_000;

/// Directories that exist from the start, beside the working directory.
const DIRECTORIES: [&str; 4] = ["/home/user", "/tmp", "/usr/local/bin", "/var/tmp"];

/// What a [`MemoryEnvironment`] starts from.
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// Number that lent programs know it by.
    pub id: u32,
    /// Seed of everything random in it.
    pub seed: [u8; 32],
    /// Absolute path that relative paths start at.
    pub working_directory: String,
    /// Minutes east of UTC of the user's clock.
    pub utc_offset_minutes: i32,
    /// Limits.
    pub limits: MemoryLimits,
    /// Names of the programs that the host lends.
    pub programs: Vec<String>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            id: 0,
            seed: [0; 32],
            working_directory: "/workspace".to_owned(),
            utc_offset_minutes: 0,
            limits: MemoryLimits::default(),
            programs: Vec::new(),
        }
    }
}

/// Limits of a [`MemoryEnvironment`]: large, but finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Limits of the file tree.
    pub tree: TreeLimits,
    /// Work that a command may do without yielding, in units of about 1 µs (a
    /// builtin that loops over many lines does them up to ten times faster).
    pub work_bound: u64,
    /// Bytes that a command may write to each of its output streams.
    pub output_bytes: usize,
    /// Shells kept ready between commands.
    pub idle_shells: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            tree: TreeLimits::default(),
            work_bound: 4_000_000,
            output_bytes: 256 << 20,
            idle_shells: 2,
        }
    }
}

/// Why commands end that killed an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// They did not pause.
    Work,
    /// They needed more memory than there is.
    Memory,
    /// They recursed until the stack was full.
    Stack,
    /// They failed in another way.
    Failed,
}

impl From<EndReason> for clock::Stop {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Work => Self::Work,
            EndReason::Memory => Self::Memory,
            EndReason::Stack => Self::Stack,
            EndReason::Failed => Self::Failed,
        }
    }
}

/// Bytes that the core holds: what is allocated, not the memory it lies in. 0
/// where nothing is counted.
pub fn held_bytes() -> usize {
    heap::live()
}

/// Makes what the first environment otherwise makes: a shell.
pub fn prepare() {
    #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
    shell::prepare();
}

/// A saved state: files, clock and randomness. Taking one costs O(1).
#[derive(Clone, Debug)]
pub struct Snapshot {
    tree: Tree,
    clock: ClockState,
    random: RandomState,
}

impl Snapshot {
    /// The files.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What its clock showed.
    pub fn clock(&self) -> ClockState {
        self.clock
    }

    /// What changed since `old`, with contents.
    pub fn delta_since(&self, old: &Self) -> Result<Delta, EnvironmentError> {
        archive::delta(&self.tree, &old.tree)
    }

    /// The files below `directory`, absolute, as tar bytes.
    pub fn export_tar(&self, directory: &str) -> Result<Vec<u8>, EnvironmentError> {
        archive::export_tar(&self.tree, directory)
    }
}

/// Files and a shell in memory. Serves parallel calls.
pub struct MemoryEnvironment {
    info: EnvironmentInfo,
    tree: Rc<RefCell<Tree>>,
    clock: Rc<Clock>,
    random: Random,
    #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
    shells: shell::Shells,
}

impl MemoryEnvironment {
    /// An environment with an empty working directory. `now` tells the time of
    /// the current step in ms; lent programs run through `programs`.
    pub fn new(options: MemoryOptions, now: TimeSource, programs: Rc<dyn ProgramPort>) -> Self {
        let clock = Rc::new(Clock::new(now));
        let mut files = Tree::new(options.limits.tree);
        let working_directory = absolute_path("/", &options.working_directory);
        let time = clock.now_us();
        for directory in DIRECTORIES.into_iter().chain([&*working_directory]) {
            // Only limits too small for the skeleton make this fail; the tree
            // then says so at every use.
            let _ = files.make_directories(directory, time);
        }
        let random = Random::new(options.seed);
        #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
        let (tree, shells) = {
            for name in &options.programs {
                program::put_on_path(&mut files, name, time);
            }
            let base = shell::ShellBase::take(options.limits, &working_directory);
            let tree = base.tree.clone();
            tree.replace(files);
            (tree, shell::Shells::new(&options, base, programs))
        };
        #[cfg(not(all(target_arch = "wasm32", feature = "sandbox")))]
        let tree = {
            let _ = programs;
            Rc::new(RefCell::new(files))
        };
        Self {
            info: EnvironmentInfo {
                working_directory,
                platform: "wasm".to_owned(),
                os_version: String::new(),
                utc_offset_minutes: options.utc_offset_minutes,
                bounds: String::new(),
                warning: String::new(),
            },
            tree,
            clock,
            random,
            #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
            shells,
        }
    }

    /// Adds the files of a tar archive below the working directory; all or none.
    pub fn import_tar(&self, archive: &[u8]) -> Result<(), EnvironmentError> {
        clock::charge(archive.len() as u64 / 1_000);
        archive::import_tar(
            &mut self.tree.borrow_mut(),
            &self.info.working_directory,
            archive,
            self.clock.now_us(),
        )
    }

    /// Adds files (path relative to the working directory, content); all or none.
    pub fn import_files(&self, files: Vec<(String, Bytes)>) -> Result<(), EnvironmentError> {
        archive::import_files(
            &mut self.tree.borrow_mut(),
            &self.info.working_directory,
            files,
            self.clock.now_us(),
        )
    }

    /// Collects files for `directory`, which starts at the working directory.
    pub fn import(&self, directory: &str) -> Import {
        let limits = *self.tree.borrow().limits();
        Import::new(&self.absolute(directory), limits)
    }

    /// Takes what was collected; all or nothing.
    pub fn commit(&self, import: Import) -> Result<(), EnvironmentError> {
        import.commit(&mut self.tree.borrow_mut(), self.clock.now_us())
    }

    /// Replaces all files by those of a tar archive of a whole tree, such as
    /// [`Snapshot::export_tar`] of `/` gives.
    pub fn replace_tree(&self, archive: &[u8]) -> Result<(), EnvironmentError> {
        let now = self.clock.now_us();
        let limits = *self.tree.borrow().limits();
        let mut tree = archive::tree_from_tar(limits, archive, now)?;
        for directory in DIRECTORIES
            .into_iter()
            .chain([&*self.info.working_directory])
        {
            // As in `new`.
            let _ = tree.make_directories(directory, now);
        }
        *self.tree.borrow_mut() = tree;
        Ok(())
    }

    /// Becomes what another sandbox was: its files, as [`Self::replace_tree`] takes
    /// them, and its time. Of its lent programs those named by `programs` are there.
    pub(crate) fn take_over(
        &self,
        tree: &[u8],
        clock: ClockState,
        programs: &[String],
    ) -> Result<(), EnvironmentError> {
        self.clock.restore(clock);
        self.replace_tree(tree)?;
        let mut tree = self.tree.borrow_mut();
        program::take_off_path(&mut tree, programs, self.clock.now_us());
        for name in programs {
            program::put_on_path(&mut tree, name, self.clock.now_us());
        }
        Ok(())
    }

    /// The working directory as tar bytes.
    pub fn export_tar(&self) -> Result<Vec<u8>, EnvironmentError> {
        archive::export_tar(&self.tree.borrow(), &self.info.working_directory)
    }

    /// Content of a file; relative paths start at the working directory.
    pub fn read(&self, path: &str) -> Result<Bytes, EnvironmentError> {
        let absolute = self.absolute(path);
        let tree = self.tree.borrow();
        let resolved = tree
            .resolve(&absolute, LastLink::Follow)
            .map_err(|error| environment_error(path, &error))?;
        tree.read(&resolved)
            .map(Content::to_bytes)
            .map_err(|error| environment_error(path, &error))
    }

    /// Replaces or creates a file, with its parents.
    pub fn write(&self, path: &str, content: Bytes) -> Result<(), EnvironmentError> {
        let absolute = self.absolute(path);
        let mut tree = self.tree.borrow_mut();
        let resolved = tree
            .resolve(&absolute, LastLink::Follow)
            .map_err(|error| environment_error(path, &error))?
            .into_owned();
        tree.write_with_parents(&resolved, Content::from(content), self.clock.now_us())
            .map_err(|error| environment_error(path, &error))
    }

    /// Has the shell call a program of the host's under `name` from now on.
    pub fn lend(&self, name: &str) {
        #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
        self.shells.lend(name);
        let time = self.clock.now_us();
        program::put_on_path(&mut self.tree.borrow_mut(), name, time);
    }

    /// The files as they are now. O(1); shares everything.
    pub fn tree(&self) -> Tree {
        self.tree.borrow().clone()
    }

    /// Saves files, clock and randomness. O(1). Running commands are not saved.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            tree: self.tree(),
            clock: self.clock.state(),
            random: self.random.state(),
        }
    }

    /// What is left of a sandbox whose instance has failed: what it was before
    /// the commands that ran then, or what it is now if there were none. `None`:
    /// it failed in the middle of a change. In the web face only: the host of a
    /// component has its journal.
    #[cfg(all(target_arch = "wasm32", feature = "sandbox", feature = "web"))]
    pub fn rescue(&self) -> Option<Snapshot> {
        clock::abandon();
        let tree = self.tree.try_borrow().ok()?.clone();
        let now = || Snapshot {
            tree,
            clock: self.clock.state(),
            random: self.random.state(),
        };
        Some(self.clock.before().unwrap_or_else(now))
    }

    /// Goes back to `snapshot`. The clock goes on, it never goes back.
    pub fn restore(&self, snapshot: &Snapshot) {
        *self.tree.borrow_mut() = snapshot.tree.clone();
        self.clock.restore(snapshot.clock);
        self.random.restore(&snapshot.random);
    }

    /// What changed since `snapshot`, sorted by path.
    pub fn changes_since(&self, snapshot: &Snapshot) -> Vec<Change> {
        self.tree.borrow().changes_since(&snapshot.tree)
    }

    /// What leads from `snapshot` to the files as they are now, to be kept
    /// outside the instance.
    pub fn delta_since(&self, snapshot: &Snapshot) -> Result<Delta, EnvironmentError> {
        archive::delta(&self.tree.borrow(), &snapshot.tree)
    }

    /// Applies what [`Self::delta_since`] gave to the files that it started from.
    pub fn apply(&self, delta: &Delta) -> Result<(), EnvironmentError> {
        archive::apply(&mut self.tree.borrow_mut(), delta, self.clock.now_us())
    }

    fn absolute(&self, path: &str) -> String {
        absolute_path(&self.info.working_directory, path)
    }

    fn answer(&self, call: EnvironmentCall) -> Result<EnvironmentReply, EnvironmentError> {
        let now = self.clock.now_us();
        match call {
            EnvironmentCall::Initialize | EnvironmentCall::Cleanup => Ok(EnvironmentReply::Done),
            EnvironmentCall::Read { path, max_bytes } => {
                let bytes = self.read(&path)?;
                if bytes.len() as u64 > max_bytes {
                    return Err(EnvironmentError::new(
                        EnvironmentErrorKind::TooLarge,
                        format!("{path} has {} bytes, more than {max_bytes}", bytes.len()),
                    ));
                }
                // Whoever reads a file looks at all of it.
                clock::charge(1 + bytes.len() as u64 / BYTES_PER_WORK);
                Ok(EnvironmentReply::Bytes(bytes))
            }
            EnvironmentCall::ReadPart {
                path,
                offset,
                max_bytes,
            } => {
                let bytes = self.read(&path)?;
                let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let part = bytes.slice(place(offset)..place(offset.saturating_add(max_bytes)));
                clock::charge(1 + part.len() as u64 / BYTES_PER_WORK);
                Ok(EnvironmentReply::Bytes(part))
            }
            EnvironmentCall::Write { path, content } => {
                self.write(&path, content)?;
                Ok(EnvironmentReply::Done)
            }
            EnvironmentCall::Stat { path } => {
                let tree = self.tree.borrow();
                let node = tree
                    .get_followed(&self.absolute(&path))
                    .map_err(|error| environment_error(&path, &error))?;
                Ok(EnvironmentReply::Stat(Metadata {
                    is_dir: node.is_directory(),
                    size: node.size(),
                    modified_ms: Some(node.modified_us / 1_000),
                }))
            }
            EnvironmentCall::RealPath { path } => self
                .tree
                .borrow()
                .resolve(&self.absolute(&path), LastLink::Follow)
                .map(|real| EnvironmentReply::Path(real.into_owned()))
                .map_err(|error| environment_error(&path, &error)),
            EnvironmentCall::List { path, depth } => {
                self.list(&path, depth).map(EnvironmentReply::Entries)
            }
            EnvironmentCall::Remove { path } => {
                self.change(&path, |tree, path| tree.remove_all(path, now))
            }
            EnvironmentCall::Rename { from, to } => {
                let target = self.parent_resolved(&to)?;
                self.change(&from, |tree, from| {
                    tree.rename_with_parents(from, &target, now)
                })
            }
            EnvironmentCall::MakeDir { path } => {
                let absolute = self.absolute(&path);
                let mut tree = self.tree.borrow_mut();
                tree.resolve(&absolute, LastLink::Follow)
                    .map(|path| path.into_owned())
                    .and_then(|path| tree.make_directories(&path, now))
                    .map_err(|error| environment_error(&path, &error))?;
                Ok(EnvironmentReply::Done)
            }
            // The search on top of `List` and `Read` is as fast here and has
            // one meaning everywhere.
            EnvironmentCall::Grep(_) | EnvironmentCall::Glob(_) => Err(EnvironmentError::new(
                EnvironmentErrorKind::Unsupported,
                "the sandbox leaves search to its caller",
            )),
        }
    }

    fn list(&self, path: &str, depth: u32) -> Result<Entries, EnvironmentError> {
        let tree = self.tree.borrow();
        let absolute = self.absolute(path);
        let mut entries = Vec::new();
        tree.resolve(&absolute, LastLink::Follow)
            .and_then(|directory| {
                tree.walk(&directory, depth.max(1), &mut |path, node| {
                    // A link has the facts of what it leads to, but counts as
                    // a file; no size says that it leads to none.
                    let followed = match node.kind {
                        NodeKind::Link(_) => tree.get_followed(&format!("{directory}/{path}")).ok(),
                        NodeKind::File(_) | NodeKind::Directory(_) => Some(node),
                    };
                    entries.push(DirEntry {
                        path: path.to_owned(),
                        is_dir: node.is_directory(),
                        size: followed.filter(|node| !node.is_directory()).map(Node::size),
                        modified_ms: followed.map(|node| node.modified_us / 1_000),
                    });
                    true
                })
            })
            .map_err(|error| environment_error(path, &error))?;
        clock::charge(entries.len() as u64);
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Entries {
            entries,
            truncated: false,
        })
    }

    /// Changes what `path` names itself, links on the way to it followed.
    fn change(
        &self,
        path: &str,
        change: impl FnOnce(&mut Tree, &str) -> Result<(), TreeError>,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        let resolved = self.parent_resolved(path)?;
        change(&mut self.tree.borrow_mut(), &resolved)
            .map_err(|error| environment_error(path, &error))?;
        Ok(EnvironmentReply::Done)
    }

    fn parent_resolved(&self, path: &str) -> Result<String, EnvironmentError> {
        let absolute = self.absolute(path);
        self.tree
            .borrow()
            .resolve(&absolute, LastLink::Keep)
            .map(|path| path.into_owned())
            .map_err(|error| environment_error(path, &error))
    }
}

#[async_trait(?Send)]
impl ExecutionEnvironment for MemoryEnvironment {
    fn info(&self) -> &EnvironmentInfo {
        &self.info
    }

    async fn call(
        &self,
        _scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        self.answer(call)
    }

    async fn exec(
        &self,
        scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        if request.command.contains('\0') {
            let shown = request.command.replace('\0', "\\0");
            return Err(EnvironmentError::new(
                EnvironmentErrorKind::InvalidInput,
                format!("the command `{shown}` holds a NUL byte"),
            ));
        }
        let directory = self.absolute(request.working_dir.as_deref().unwrap_or_default());
        match self.tree.borrow().get_followed(&directory) {
            Ok(node) if matches!(node.kind, NodeKind::Directory(_)) => {}
            Ok(_) => return Err(environment_error(&directory, &TreeError::NotDirectory)),
            Err(error) => return Err(environment_error(&directory, &error)),
        }
        #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
        {
            self.shells
                .exec(&self.clock, &self.random, scope, directory, request, output)
                .await
        }
        #[cfg(not(all(target_arch = "wasm32", feature = "sandbox")))]
        {
            let _ = (scope, output);
            Err(EnvironmentError::new(
                EnvironmentErrorKind::Unsupported,
                format!(
                    "this build has no shell, so it cannot run {}",
                    request.command
                ),
            ))
        }
    }
}

impl Drop for MemoryEnvironment {
    fn drop(&mut self) {
        // A command that was left has them for good.
        if let Ok(mut tree) = self.tree.try_borrow_mut() {
            *tree = Tree::new(*tree.limits());
        }
    }
}

impl std::fmt::Debug for MemoryEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryEnvironment")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

/// `error` about `path`, as tools report it.
fn environment_error(path: &str, error: &TreeError) -> EnvironmentError {
    let kind = match error {
        TreeError::NotFound => EnvironmentErrorKind::NotFound,
        TreeError::NotDirectory => EnvironmentErrorKind::NotDirectory,
        TreeError::IsDirectory => EnvironmentErrorKind::IsDirectory,
        TreeError::Exists | TreeError::NotEmpty | TreeError::Invalid(_) => {
            EnvironmentErrorKind::InvalidInput
        }
        TreeError::LinkLoop => EnvironmentErrorKind::Io,
        TreeError::Limit(..) => EnvironmentErrorKind::TooLarge,
    };
    EnvironmentError::new(kind, format!("{path}: {error}"))
}
