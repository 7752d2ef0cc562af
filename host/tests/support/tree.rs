//! A working directory on disk that holds a case's files.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::case::Tree;

/// A temporary directory; it goes when this is dropped.
pub struct LocalTree {
    guard: tempfile::TempDir,
    directory: String,
}

impl LocalTree {
    /// A fresh directory with `files`, all of the same age and older than
    /// anything that a session writes.
    pub fn new(files: &Tree) -> Result<Self, String> {
        let guard = tempfile::tempdir().map_err(|error| error.to_string())?;
        let directory = guard
            .path()
            .canonicalize()
            .map_err(|error| error.to_string())?;
        let directory = directory.to_str().ok_or("TMPDIR is not UTF-8")?.to_owned();
        let old = SystemTime::now() - Duration::from_secs(3600);
        for (path, content) in files {
            write(&Path::new(&directory).join(path), content, old)
                .map_err(|error| format!("{path}: {error}"))?;
        }
        Ok(Self { guard, directory })
    }

    /// Its absolute path.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// All its files.
    pub fn read(&self) -> Result<Tree, String> {
        read(self.guard.path())
    }
}

/// All files below `directory`.
pub fn read(directory: &Path) -> Result<Tree, String> {
    let mut tree = Tree::new();
    collect(directory, "", &mut tree).map_err(|error| error.to_string())?;
    Ok(tree)
}

fn write(path: &Path, content: &[u8], modified: SystemTime) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, content)?;
    std::fs::File::options()
        .write(true)
        .open(path)?
        .set_modified(modified)
}

fn collect(directory: &Path, prefix: &str, tree: &mut Tree) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), tree)?;
        } else {
            tree.insert(name, std::fs::read(entry.path())?.into());
        }
    }
    Ok(())
}
