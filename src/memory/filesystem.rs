//! bashkit's `FileSystem` over the shared tree, so that commands and tools see
//! one and the same files.
//!
//! bashkit wraps it in a layer that follows symbolic links, so
//! nothing here does. Changes carry the time of the running command.

use std::cell::RefCell;
use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use bashkit::time::{SystemTime, UNIX_EPOCH};
use bashkit::{
    DirEntry, Error, FileSystem, FileSystemExt, FileType, FsLimits, FsUsage, Metadata, Result,
    async_trait,
};

use super::clock;
use super::local::Local;
use super::tree::{Content, Node, NodeKind, Tree, TreeError};

/// Bytes copied that are worth one unit of work.
const BYTES_PER_WORK: usize = 2_000;

/// The shared tree as bashkit sees it.
pub(crate) struct TreeFileSystem {
    tree: Local<Rc<RefCell<Tree>>>,
}

impl TreeFileSystem {
    pub(crate) fn new(tree: Rc<RefCell<Tree>>) -> Self {
        Self {
            tree: Local::new(tree),
        }
    }

    fn look<R>(
        &self,
        path: &Path,
        look: impl FnOnce(&Tree, &str) -> std::result::Result<R, TreeError>,
    ) -> Result<R> {
        let path = text(path)?;
        look(&self.tree.borrow(), path).map_err(error)
    }

    fn change<R>(
        &self,
        path: &Path,
        change: impl FnOnce(&mut Tree, &str, u64) -> std::result::Result<R, TreeError>,
    ) -> Result<R> {
        let path = text(path)?;
        change(&mut self.tree.borrow_mut(), path, now_us()).map_err(error)
    }
}

/// Devices that exist beside the tree, so that exports stay free of them.
#[derive(Clone, Copy)]
enum Device {
    Null,
    Zero,
    Random,
}

fn device(path: &Path) -> Option<Device> {
    match path.to_str()? {
        "/dev/null" => Some(Device::Null),
        "/dev/zero" => Some(Device::Zero),
        "/dev/urandom" | "/dev/random" => Some(Device::Random),
        _ => None,
    }
}

/// Counts the copying of `bytes`.
fn copied(bytes: &[u8]) {
    clock::spend((bytes.len() / BYTES_PER_WORK) as u64);
}

fn now_us() -> u64 {
    clock::current().map_or(0, |timeline| timeline.now_us())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str()
        .ok_or_else(|| IoError::new(ErrorKind::InvalidInput, "the path is not UTF-8").into())
}

/// The words that bashkit's builtins know how to render like the real tools.
fn error(error: TreeError) -> Error {
    match error {
        TreeError::NotFound => IoError::new(ErrorKind::NotFound, "not found"),
        TreeError::NotDirectory => IoError::new(ErrorKind::NotADirectory, "not a directory"),
        TreeError::IsDirectory => IoError::other("is a directory"),
        TreeError::Exists => IoError::new(ErrorKind::AlreadyExists, "File exists"),
        TreeError::NotEmpty => IoError::other("Directory not empty"),
        TreeError::LinkLoop => IoError::other("Too many levels of symbolic links"),
        TreeError::Invalid(_) => IoError::new(ErrorKind::InvalidInput, error.to_string()),
        TreeError::Limit(..) => IoError::new(
            ErrorKind::PermissionDenied,
            format!("No space left on device ({error})"),
        ),
    }
    .into()
}

fn time(micros: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(micros)
}

fn metadata(node: &Node) -> Metadata {
    let modified = time(node.modified_us);
    Metadata {
        file_type: match node.kind {
            NodeKind::File(_) => FileType::File,
            NodeKind::Directory(_) => FileType::Directory,
            NodeKind::Link(_) => FileType::Symlink,
        },
        size: if node.is_directory() {
            4096
        } else {
            node.size()
        },
        mode: node.mode,
        modified,
        created: modified,
    }
}

fn entry((name, node): (&str, &Node)) -> DirEntry {
    DirEntry {
        name: name.to_owned(),
        metadata: metadata(node),
    }
}

#[async_trait]
impl FileSystemExt for TreeFileSystem {
    fn usage(&self) -> FsUsage {
        let tree = self.tree.borrow();
        FsUsage::new(tree.total_bytes(), tree.total_entries(), 0)
    }

    fn limits(&self) -> FsLimits {
        let limits = *self.tree.borrow().limits();
        FsLimits::unlimited()
            .max_total_bytes(limits.total_bytes)
            .max_file_size(limits.file_bytes)
            .max_file_count(limits.entries)
    }

    fn backend_kind(&self) -> &'static str {
        "hermitcrab"
    }
}

#[async_trait]
impl FileSystem for TreeFileSystem {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        match device(path) {
            Some(Device::Null) => return Ok(Vec::new()),
            Some(device) => {
                let Some(timeline) = clock::current() else {
                    return Ok(Vec::new());
                };
                let mut bytes = vec![0; timeline.hooks.device_bytes()];
                if matches!(device, Device::Random) {
                    timeline.random().fill(&mut bytes);
                }
                return Ok(bytes);
            }
            None => {}
        }
        let content = self.look(path, |tree, path| tree.read(path).cloned())?;
        copied(content.as_slice());
        Ok(content.as_slice().to_vec())
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        if device(path).is_some() {
            return Ok(());
        }
        copied(content);
        self.change(path, |tree, path, now| {
            tree.write(path, Content::from(content), now)
        })
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        if device(path).is_some() {
            return Ok(());
        }
        copied(content);
        self.change(path, |tree, path, now| tree.append(path, content, now))
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        self.change(path, |tree, path, now| {
            if recursive {
                tree.make_directories(path, now)
            } else {
                tree.make_directory(path, now)
            }
        })
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        self.change(path, |tree, path, now| {
            if recursive {
                tree.remove_all(path, now)
            } else {
                tree.remove(path, now)
            }
        })
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        if device(path).is_some() {
            return Ok(Metadata {
                file_type: FileType::File,
                size: 0,
                mode: 0o666,
                modified: UNIX_EPOCH,
                created: UNIX_EPOCH,
            });
        }
        self.look(path, |tree, path| tree.get(path).map(metadata))
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let timeline = clock::current();
        let narrow = timeline
            .as_ref()
            .and_then(|timeline| timeline.hooks.take_narrow());
        self.look(path, |tree, path| {
            let directory = tree.list(path)?;
            let narrowed = timeline.zip(narrow);
            if let Some((timeline, mut narrow)) = narrowed.filter(|(_, it)| it.is_next(path)) {
                let (kept, looked_at, more) = narrow.list(path, directory);
                timeline.spend((looked_at / BYTES_PER_WORK) as u64);
                if more {
                    timeline.hooks.set_narrow(Some(narrow));
                }
                return Ok(kept.into_iter().map(entry).collect());
            }
            Ok(directory.iter().map(entry).collect())
        })
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        let path_text = text(path)?;
        Ok(device(path).is_some() || self.tree.borrow().get(path_text).is_ok())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let to = text(to)?;
        self.change(from, |tree, from, now| tree.rename(from, to, now))
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let to = text(to)?;
        if let Some(Device::Null) = device(from) {
            return self.change(Path::new(to), |tree, to, now| {
                tree.write(to, Content::from(Vec::new()), now)
            });
        }
        self.change(from, |tree, from, now| {
            let content = tree.read(from)?.clone();
            let mode = tree.get(from)?.mode;
            let is_new = tree.get(to).is_err();
            tree.write(to, content, now)?;
            if is_new {
                tree.set_mode(to, mode)?;
            }
            Ok(())
        })
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        let target = text(target)?;
        self.change(link, |tree, link, now| tree.link(link, target, now))
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        self.look(path, |tree, path| match &tree.get(path)?.kind {
            NodeKind::Link(target) => Ok(PathBuf::from(&**target)),
            _ => Err(TreeError::Invalid("not a symbolic link")),
        })
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        if device(path).is_some() {
            return Ok(());
        }
        self.change(path, |tree, path, _| tree.set_mode(path, mode))
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        let micros = time
            .duration_since(UNIX_EPOCH)
            .map_or(0, |duration| duration.as_micros() as u64);
        self.change(path, |tree, path, _| tree.set_modified(path, micros))
    }
}
