//! Overlays: copies of a directory in which sessions work. Their changes come back when
//! they are wanted, or not at all.
//!
//! The copy shares its blocks with the directory where the file system can (Btrfs, XFS,
//! APFS). What has changed is found by comparing both trees with how they were, without
//! ignored files and without `.git`.
//!
//! Who works in an overlay holds its lock: it is neither committed nor discarded meanwhile.

mod paths;
mod stamps;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use ignore::WalkBuilder;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Limits, Mark, scan, unsuited};
use crate::store::lock::{Lock, private_dir};
use crate::store::{is_id, new_id};
use crate::tree::{Diff, Kind, Node, Tree, diff};
use stamps::{Stamps, stamps};

const ABOUT: &str = "about.json";
const BASE: &str = "base.json";
/// The copy is below it, under the directory's own name.
const TREE: &str = "tree";
/// Temporary files of commands, where others would reach the directory.
const TEMPORARY: &str = "tmp";
/// Whoever works in the overlay, or removes it, has this.
const LOCK: &str = "lock";
/// How long a look through a tree may take.
const SCAN: Duration = Duration::from_secs(120);

/// What a directory may hold to be copied.
#[derive(Clone, Copy, Debug)]
pub struct OverlayLimits {
    /// Files, links and directories, ignored ones and `.git` included.
    pub files: usize,
    /// Bytes of all files.
    pub bytes: u64,
}

impl Default for OverlayLimits {
    /// 500,000 files, 8 GiB.
    fn default() -> Self {
        Self {
            files: 500_000,
            bytes: 8 << 30,
        }
    }
}

/// The overlays of a user.
#[derive(Clone, Debug)]
pub struct Overlays {
    dir: PathBuf,
    limits: OverlayLimits,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Overlay {
    place: PathBuf,
    about: OverlayInfo,
    /// Of the one that was made here, until its last clone is dropped.
    held: Option<Arc<Lock>>,
}

/// Of which directory an overlay is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayInfo {
    /// Its name.
    pub id: String,
    /// The directory, absolute.
    pub directory: PathBuf,
    /// When it was made, ms since 1970-01-01 UTC.
    pub created_ms: u64,
}

/// Why an overlay could not be made, read or committed.
#[derive(Debug)]
pub enum OverlayError {
    /// The directory cannot have one, and why.
    Unsuited(String),
    /// There is no such overlay.
    Unknown(String),
    /// These paths of the directory have changed since it was copied; nothing was
    /// committed.
    Conflict(Vec<String>),
    /// Somebody works in the overlay of this name.
    Busy(String),
    /// The copy of the overlay of this name was removed.
    Gone(String),
    /// A path could not be read or written.
    Io(PathBuf, io::Error),
}

impl fmt::Display for OverlayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsuited(why) => f.write_str(why),
            Self::Unknown(id) => write!(f, "there is no overlay {id}"),
            Self::Conflict(paths) => write!(
                f,
                "nothing was committed: changed in the directory since it was copied, too: {}",
                paths.join(", ")
            ),
            Self::Busy(id) => write!(
                f,
                "a run works in overlay {id}: wait for its end, or end it"
            ),
            Self::Gone(id) => write!(
                f,
                "the copy of overlay {id} was removed, and what was changed in it is lost: \
                 nothing can be done with it but `hermitcrab overlay discard {id}`"
            ),
            Self::Io(path, error) => write!(f, "{}: {}", path.display(), crate::reason(error)),
        }
    }
}

impl std::error::Error for OverlayError {}

/// How both trees were when the overlay was made, by relative path.
#[derive(Serialize, Deserialize)]
struct Base {
    #[serde(with = "paths")]
    directory: BTreeMap<PathBuf, Mark>,
    #[serde(with = "paths")]
    copy: Stamps,
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> OverlayError {
    let path = path.to_owned();
    move |error| OverlayError::Io(path, error)
}

impl Overlays {
    /// Overlays below `dir`, which becomes private to the user.
    pub fn new(dir: impl Into<PathBuf>, limits: OverlayLimits) -> Self {
        Self {
            dir: dir.into(),
            limits,
        }
    }

    /// Copies `directory`. Until the overlay and its clones are dropped, nobody else commits
    /// or discards it.
    ///
    /// # Errors
    /// It is a home directory or the root, it is too large, or something cannot be read or
    /// written.
    pub fn create(&self, directory: &Path) -> Result<Overlay, OverlayError> {
        let directory = fs::canonicalize(directory).map_err(at(directory))?;
        let refused = |why: &str| {
            OverlayError::Unsuited(format!("cannot copy {}: {why}", directory.display()))
        };
        if directory.to_str().is_none() {
            return Err(refused("its path is not UTF-8; work in one that is"));
        }
        if let Some(why) = unsuited(&directory) {
            return Err(refused(why));
        }
        if self.dir.starts_with(&directory) {
            return Err(refused("it holds the overlays themselves"));
        }
        private_dir(&self.dir).map_err(at(&self.dir))?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let created_ms = u64::try_from(since.unwrap_or_default().as_millis());
        let created_ms = created_ms.unwrap_or_default();
        let id = new_id(created_ms).map_err(|error| {
            OverlayError::Io(self.dir.clone(), io::Error::other(error.to_string()))
        })?;
        let place = self.dir.join(&id);
        private_dir(&place).map_err(at(&place))?;
        let path = place.join(LOCK);
        let held = Lock::take(&path).map_err(at(&path))?.map(Arc::new);
        let overlay = Overlay {
            about: OverlayInfo {
                id,
                directory,
                created_ms,
            },
            place,
            held,
        };
        let made = overlay.fill(self.limits);
        if made.is_err() {
            drop(overlay.discard());
        }
        made.map(|()| overlay)
    }

    /// The overlay `id`.
    ///
    /// # Errors
    /// There is none.
    pub fn open(&self, id: &str) -> Result<Overlay, OverlayError> {
        let unknown = || OverlayError::Unknown(id.to_owned());
        let place = self.dir.join(id);
        if !is_id(id) || !place.is_dir() {
            return Err(unknown());
        }
        let path = place.join(ABOUT);
        let about = fs::read(&path).map_err(at(&path))?;
        let about = serde_json::from_slice(&about).map_err(|_| unknown())?;
        Ok(Overlay {
            place,
            about,
            held: None,
        })
    }

    /// All overlays, the newest first.
    ///
    /// # Errors
    /// The directory of overlays cannot be read.
    pub fn list(&self) -> Result<Vec<Overlay>, OverlayError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(at(&self.dir)(error)),
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut all: Vec<Overlay> = names.filter_map(|name| self.open(&name).ok()).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.about.created_ms));
        Ok(all)
    }
}

impl Overlay {
    /// What it is of.
    pub fn info(&self) -> &OverlayInfo {
        &self.about
    }

    /// The copy: where a session works.
    pub fn directory(&self) -> PathBuf {
        let name = self.about.directory.file_name().unwrap_or_default();
        self.place.join(TREE).join(name)
    }

    /// A directory for temporary files, which goes with the overlay.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn temporary(&self) -> Result<PathBuf, OverlayError> {
        let path = self.place.join(TEMPORARY);
        private_dir(&path).map_err(at(&path))?;
        Ok(path)
    }

    fn fill(&self, limits: OverlayLimits) -> Result<(), OverlayError> {
        let copy = self.directory();
        fs::create_dir_all(&copy).map_err(at(&copy))?;
        let directory = marks(&self.about.directory)?;
        copy_tree(&self.about.directory, &copy, limits)?;
        let base = Base {
            directory,
            copy: stamps(&copy, &self.about.directory).map_err(at(&copy))?,
        };
        self.put(BASE, &base)?;
        // Whoever lists overlays sees whole ones.
        self.put(ABOUT, &self.about)
    }

    fn put(&self, name: &str, value: &impl Serialize) -> Result<(), OverlayError> {
        let path = self.place.join(name);
        let json = serde_json::to_vec(value).map_err(|error| at(&path)(error.into()))?;
        fs::write(&path, json).map_err(at(&path))
    }

    /// Its lock, for as long as something is done with it; none: it is held here anyway.
    fn lock(&self) -> Result<Option<Lock>, OverlayError> {
        if self.held.is_some() {
            return Ok(None);
        }
        let path = self.place.join(LOCK);
        match Lock::take(&path).map_err(at(&path))? {
            Some(lock) => Ok(Some(lock)),
            None => Err(OverlayError::Busy(self.about.id.clone())),
        }
    }

    fn gone(&self) -> OverlayError {
        OverlayError::Gone(self.about.id.clone())
    }

    /// Relative paths that differ from how they were copied.
    fn changed(&self, base: &Base) -> Result<BTreeSet<PathBuf>, OverlayError> {
        let copy = self.directory();
        let now = stamps(&copy, &self.about.directory).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.gone(),
            _ => at(&copy)(error),
        })?;
        let all: BTreeSet<&PathBuf> = now.keys().chain(base.copy.keys()).collect();
        let changed = all
            .into_iter()
            .filter(|path| base.copy.get(*path) != now.get(*path));
        Ok(changed.cloned().collect())
    }

    fn base(&self) -> Result<Base, OverlayError> {
        let path = self.place.join(BASE);
        let base = fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.gone(),
            _ => at(&path)(error),
        })?;
        serde_json::from_slice(&base).map_err(|error| at(&path)(error.into()))
    }

    /// The paths that a commit would change, relative: permission bits count, too.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn changes(&self) -> Result<Vec<PathBuf>, OverlayError> {
        let mut changes = Vec::new();
        for path in self.changed(&self.base()?)? {
            let root = &self.about.directory;
            if node(&root.join(&path))? != node(&self.directory().join(&path))? {
                changes.push(path);
            }
        }
        Ok(changes)
    }

    /// What a commit would change, as a patch, which has no permission bits but the
    /// owner's to run a file. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn diff(&self) -> Result<Diff, OverlayError> {
        let base = self.base()?;
        let (mut before, mut after) = (Tree::new(), Tree::new());
        let mut unnamed = Vec::new();
        for path in self.changed(&base)? {
            let Some(shown) = path.to_str() else {
                unnamed.push(path.to_string_lossy().into_owned());
                continue;
            };
            for (root, tree) in [
                (&self.about.directory, &mut before),
                (&self.directory(), &mut after),
            ] {
                if let Some(node) = node(&root.join(&path))? {
                    tree.insert(shown.to_owned(), node);
                }
            }
        }
        let mut diff = diff(&before, &after);
        diff.left_out.extend(unnamed);
        Ok(diff)
    }

    /// Brings the changes to the directory and removes the overlay; returns the paths that
    /// it changed there. A commit that was cut off can be repeated.
    ///
    /// # Errors
    /// Somebody works in it, or paths have changed in both trees: nothing was committed. Or
    /// something cannot be read or written: what was committed so far stays, and so does the
    /// overlay.
    pub fn commit(self) -> Result<Vec<PathBuf>, OverlayError> {
        let _lock = self.lock()?;
        let base = self.base()?;
        let target = &self.about.directory;
        let now = marks(target)?;
        let mut wanted = Vec::new();
        let mut conflicts = Vec::new();
        for path in self.changed(&base)? {
            let new = node(&self.directory().join(&path))?;
            let old = node(&target.join(&path))?;
            if new == old {
                continue;
            }
            let is_same = match (base.directory.get(&path), now.get(&path)) {
                (Some(before), Some(now)) => before.is_alike(now),
                // It was ignored in the directory, or is now.
                _ => match fs::symlink_metadata(target.join(&path)) {
                    Ok(metadata) => changed_ms(&metadata) < i128::from(self.about.created_ms),
                    Err(_) => !base.copy.contains_key(&path),
                },
            };
            match is_same {
                true => wanted.push((path, new)),
                false => conflicts.push(path.to_string_lossy().into_owned()),
            }
        }
        if !conflicts.is_empty() {
            return Err(OverlayError::Conflict(conflicts));
        }
        // What goes, deepest first; then what comes, directories before what is in them.
        for (path, new) in wanted.iter().rev() {
            let full = target.join(path);
            let kind = fs::symlink_metadata(&full).map(|metadata| metadata.is_dir());
            let is_dir = new.as_ref().is_some_and(|new| new.kind == Kind::Directory);
            let gone = match (kind, new) {
                (Ok(true), None) => fs::remove_dir(&full).or_else(|error| match error.kind() {
                    // Ignored files are in it, which nobody has seen.
                    io::ErrorKind::DirectoryNotEmpty => Ok(()),
                    _ => Err(error),
                }),
                (Ok(true), Some(_)) if !is_dir => fs::remove_dir(&full),
                (Ok(false), None) => fs::remove_file(&full),
                (Ok(false), Some(_)) if is_dir => fs::remove_file(&full),
                _ => Ok(()),
            };
            gone.map_err(at(&full))?;
        }
        for (path, new) in &wanted {
            if let Some(new) = new {
                let full = target.join(path);
                place(target, path, new).map_err(at(&full))?;
            }
        }
        self.remove()?;
        Ok(wanted.into_iter().map(|(path, _)| path).collect())
    }

    /// Removes it with its changes.
    ///
    /// # Errors
    /// Somebody works in it, or something cannot be removed.
    pub fn discard(&self) -> Result<(), OverlayError> {
        let _lock = self.lock()?;
        self.remove()
    }

    fn remove(&self) -> Result<(), OverlayError> {
        open_up(&self.place);
        fs::remove_dir_all(&self.place).map_err(at(&self.place))
    }
}

/// When the content, mode or name of a file last changed, ms since 1970-01-01 UTC.
fn changed_ms(metadata: &fs::Metadata) -> i128 {
    i128::from(metadata.ctime()) * 1_000 + i128::from(metadata.ctime_nsec()) / 1_000_000
}

/// Marks of a tree by relative path.
fn marks(root: &Path) -> Result<BTreeMap<PathBuf, Mark>, OverlayError> {
    let limits = Limits {
        files: usize::MAX,
        scan: SCAN,
        ..Limits::default()
    };
    let found = scan(root, &limits, Instant::now() + SCAN).map_err(|why| {
        OverlayError::Unsuited(format!("cannot look through {}: {why}", root.display()))
    })?;
    let relative = found.into_iter().map(|(path, mark)| {
        let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
        (relative, mark)
    });
    Ok(relative.collect())
}

/// What is at `path`; none: nothing that a tree holds.
fn node(path: &Path) -> Result<Option<Node>, OverlayError> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(at(path)(error)),
    };
    let mode = metadata.permissions().mode() & 0o7777;
    Ok(if metadata.is_dir() {
        Some(Node {
            mode,
            ..Node::directory()
        })
    } else if metadata.is_symlink() {
        let target = fs::read_link(path).map_err(at(path))?;
        Some(Node::link(target.as_os_str().as_bytes().to_vec()))
    } else if metadata.is_file() {
        let content = fs::read(path).map_err(at(path))?;
        Some(Node {
            content: Bytes::from(content),
            kind: Kind::of_file(Some(mode)),
            mode,
            modified: None,
        })
    } else {
        None
    })
}

/// Puts `new` at `path` below `root`, all at once.
fn place(root: &Path, path: &Path, new: &Node) -> io::Result<()> {
    let full = root.join(path);
    let above = full.parent().unwrap_or(root);
    // A link on the way would lead out of the directory.
    let mut way = root.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        way.push(part);
        if fs::symlink_metadata(&way).is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(io::Error::other("a link leads away from the directory"));
        }
    }
    fs::create_dir_all(above)?;
    match new.kind {
        Kind::Directory => {
            fs::create_dir_all(&full)?;
            fs::set_permissions(&full, Permissions::from_mode(new.mode))
        }
        Kind::Link => {
            let target = OsStr::from_bytes(&new.content);
            let aside = tempfile::Builder::new().make_in(above, |path| symlink(target, path))?;
            aside
                .into_temp_path()
                .persist(&full)
                .map_err(|error| error.error)
        }
        Kind::Plain | Kind::Executable => {
            let mut aside = tempfile::NamedTempFile::new_in(above)?;
            io::Write::write_all(&mut aside, &new.content)?;
            let permissions = Permissions::from_mode(new.mode);
            aside.as_file().set_permissions(permissions)?;
            aside.persist(&full).map_err(|error| error.error)?;
            Ok(())
        }
    }
}

/// Copies a tree with modes, links and times; pipes, sockets and devices stay behind.
fn copy_tree(from: &Path, to: &Path, limits: OverlayLimits) -> Result<(), OverlayError> {
    let (mut files, mut bytes) = (0, 0);
    // Closed once they are filled.
    let mut directories = Vec::new();
    for entry in WalkBuilder::new(from).standard_filters(false).build() {
        let entry = entry.map_err(|error| {
            OverlayError::Unsuited(format!("cannot copy {}: {error}", from.display()))
        })?;
        let source = entry.path();
        let target = to.join(source.strip_prefix(from).unwrap_or(source));
        let metadata = fs::symlink_metadata(source).map_err(at(source))?;
        files += 1;
        bytes += if metadata.is_file() {
            metadata.len()
        } else {
            0
        };
        if files > limits.files || bytes > limits.bytes {
            return Err(OverlayError::Unsuited(format!(
                "cannot copy {}: it holds more than {} files or {} MiB; choose a smaller \
                 directory, or work in a worktree of git",
                from.display(),
                limits.files,
                limits.bytes >> 20
            )));
        }
        if metadata.is_dir() {
            if entry.depth() > 0 {
                fs::create_dir(&target).map_err(at(&target))?;
            }
            directories.push((target, metadata));
        } else if metadata.is_symlink() {
            let link = fs::read_link(source).map_err(at(source))?;
            symlink(link, &target).map_err(at(&target))?;
        } else if metadata.is_file() {
            fs::copy(source, &target).map_err(at(source))?;
            keep_times(&target, &metadata).map_err(at(&target))?;
        }
    }
    for (target, metadata) in directories.iter().rev() {
        keep_times(target, metadata)
            .and_then(|()| fs::set_permissions(target, metadata.permissions()))
            .map_err(at(target))?;
    }
    Ok(())
}

/// Gives `path` the time of last change that `metadata` has.
fn keep_times(path: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    let times = FileTimes::new().set_modified(metadata.modified()?);
    // One that may not be written may still be opened for reading.
    File::open(path)?.set_times(times)
}

/// Lets the user remove what is in directories that are closed.
fn open_up(directory: &Path) {
    drop(fs::set_permissions(
        directory,
        Permissions::from_mode(0o700),
    ));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
