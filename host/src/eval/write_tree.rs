//! Trees of files as directories of this machine.

use std::path::Path;

use crate::tree::{Kind, Node, Tree};

/// Writes `tree` to a new `directory`.
pub(super) fn write_tree(tree: &Tree, directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for (path, node) in tree {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        match node.kind {
            Kind::Directory => std::fs::create_dir_all(&path)?,
            Kind::Link => link(node, &path)?,
            Kind::Plain | Kind::Executable => {
                std::fs::write(&path, &node.content)?;
                set_mode(node, &path)?;
            }
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(node: &Node, path: &Path) -> std::io::Result<()> {
    let target = String::from_utf8_lossy(&node.content).into_owned();
    std::os::unix::fs::symlink(target, path)
}

#[cfg(unix)]
fn set_mode(node: &Node, path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = std::fs::Permissions::from_mode(node.mode);
    std::fs::set_permissions(path, permissions)
}

#[cfg(not(unix))]
fn link(_node: &Node, _path: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn set_mode(_node: &Node, _path: &Path) -> std::io::Result<()> {
    Ok(())
}
