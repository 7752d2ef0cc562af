//! The root of the sandbox: the shared tree, and bashkit's synthetic files for
//! what the tree does not hold in `/etc`, `/proc`, `/bin` and their like.
//!
//! bashkit would ask its synthetic layer about every path, which is half of the
//! cost of a `find`. Here only paths in the places where that layer has
//! something reach it, and it is made when the first of them is named.
//!
//! Seen in bashkit 0.20.2; a matter of time: `cargo xtask bench sandbox`.

use std::borrow::Cow;
use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bashkit::time::SystemTime;
use bashkit::{
    DirEntry, FileSystem, FileSystemExt, FsLimits, FsUsage, Metadata, Result, async_trait,
};

use super::{bytes, jq, long_lines, script};
use crate::memory::clock;
use crate::memory::filesystem::TreeFileSystem;

/// First names of the paths that bashkit's layer knows.
const PLACES: [&str; 6] = ["bin", "dev", "etc", "proc", "root", "usr"];

/// Makes bashkit's layer over the tree.
type Layers = Box<dyn Fn(Arc<dyn FileSystem>) -> Arc<dyn FileSystem> + Send + Sync>;

/// Files as the shells of an environment see them, links not followed.
pub(crate) struct RootFileSystem {
    tree: Arc<TreeFileSystem>,
    layered: OnceLock<Arc<dyn FileSystem>>,
    layers: Layers,
}

impl RootFileSystem {
    pub(crate) fn new(tree: TreeFileSystem, layers: Layers) -> Self {
        Self {
            tree: Arc::new(tree),
            layered: OnceLock::new(),
            layers,
        }
    }

    /// Who answers for `path`, which bashkit has normalised.
    fn of(&self, path: &Path) -> &dyn FileSystem {
        let text = path.as_os_str().as_encoded_bytes();
        let first = text.strip_prefix(b"/").unwrap_or(text);
        let first = first.split(|byte| *byte == b'/').next().unwrap_or(first);
        let known = first.is_empty() || PLACES.iter().any(|place| place.as_bytes() == first);
        if !known || text == b"/dev/null" {
            return &*self.tree;
        }
        let layered = self
            .layered
            .get_or_init(|| (self.layers)(self.tree.clone()));
        &**layered
    }

    /// Who answers for two paths of one call.
    fn of_both(&self, one: &Path, other: &Path) -> &dyn FileSystem {
        let first = self.of(one);
        if std::ptr::addr_eq(first, &raw const *self.tree) {
            self.of(other)
        } else {
            first
        }
    }
}

/// Refuses names with characters that stand for bytes.
fn named_in_text(path: &Path) -> Result<()> {
    let name = path.as_os_str().as_encoded_bytes();
    match to_bytes(name) {
        Cow::Borrowed(_) => Ok(()),
        Cow::Owned(_) => {
            let problem = "the name of the file is not UTF-8";
            Err(IoError::new(ErrorKind::InvalidInput, problem).into())
        }
    }
}

/// What a builtin writes that prints `content`.
fn to_bytes(content: &[u8]) -> Cow<'_, [u8]> {
    match clock::current() {
        Some(timeline) if timeline.hooks.carries_bytes() => bytes::to_bytes(content),
        _ => Cow::Borrowed(content),
    }
}

#[async_trait]
impl FileSystemExt for RootFileSystem {
    fn usage(&self) -> FsUsage {
        self.tree.usage()
    }

    fn limits(&self) -> FsLimits {
        self.tree.limits()
    }

    fn backend_kind(&self) -> &'static str {
        self.tree.backend_kind()
    }

    async fn mkfifo(&self, path: &Path, mode: u32) -> Result<()> {
        self.of(path).mkfifo(path, mode).await
    }
}

#[async_trait]
impl FileSystem for RootFileSystem {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        let mut content = self.of(path).read_file(path).await?;
        let timeline = clock::current().zip(path.to_str());
        if let Some((timeline, path)) = timeline {
            if timeline.hooks.is_filter_file(path) {
                let definitions = jq::definitions(&content, timeline.now_us());
                content.splice(..0, definitions.into_bytes());
            }
            if timeline.hooks.is_searched(path) {
                long_lines::refuse(&content)?;
            }
            if timeline.hooks.carries_bytes()
                && let Cow::Owned(text) = bytes::to_text(&content)
            {
                content = text;
            }
            if timeline.hooks.is_script_file(path)
                && let Ok(script) = std::str::from_utf8(&content)
                && let Some(instead) = script::instead_of_script(path, script)
            {
                content = instead.into_bytes();
            }
        }
        Ok(content)
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        named_in_text(path)?;
        let content = to_bytes(content);
        self.of(path).write_file(path, &content).await
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        named_in_text(path)?;
        let content = to_bytes(content);
        self.of(path).append_file(path, &content).await
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        self.of(path).mkdir(path, recursive).await
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        self.of(path).remove(path, recursive).await
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        self.of(path).stat(path).await
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.of(path).read_dir(path).await
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        self.of(path).exists(path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.of_both(from, to).rename(from, to).await
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        self.of_both(from, to).copy(from, to).await
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        self.of(link).symlink(target, link).await
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        self.of(path).read_link(path).await
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        self.of(path).chmod(path, mode).await
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        self.of(path).set_modified_time(path, time).await
    }
}
