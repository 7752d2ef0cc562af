//! Where paths lead: names, `..` and links, one after the other.

use super::{Id, Kind, ROOT, Tree};

/// Links followed in one lookup before it fails, as on Linux and in the sandbox.
const MAX_LINKS: usize = 40;

/// Whether a lookup follows a link in the last component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::program) enum Last {
    /// As `open` and `stat` do.
    Follow,
    /// As `lstat`, `unlink` and `rename` do.
    Keep,
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::program) struct Found {
    pub(in crate::program) directory: Id,
    /// Empty where it does not end in a name: `.`, `..`.
    pub(in crate::program) name: String,
    pub(in crate::program) node: Option<Id>,
    /// Whether it ends with a slash, so that only a directory can be there.
    pub(in crate::program) slash: bool,
}

/// Why a path leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::program) enum Lost {
    /// A directory on the way is missing.
    Missing,
    /// Something on the way is no directory.
    NotDirectory,
    /// Too many links.
    Loop,
}

impl Tree {
    /// Where `path` leads from the directory `start`, or from the root if it begins
    /// with `/`. It never leaves the tree: above the root is the root.
    pub(in crate::program) fn find(
        &self,
        start: Id,
        path: &str,
        last: Last,
    ) -> Result<Found, Lost> {
        let names = |path: &str| {
            let names = path.split('/').filter(|name| !name.is_empty());
            names.rev().map(str::to_owned).collect::<Vec<_>>()
        };
        let unnamed = |node| Found {
            directory: self.directory(node).map_or(node, |it| it.parent),
            name: String::new(),
            node: Some(node),
            slash: path.ends_with('/'),
        };
        let start = if path.starts_with('/') { ROOT } else { start };
        self.directory(start).ok_or(Lost::NotDirectory)?;
        let last = if path.ends_with('/') {
            Last::Follow
        } else {
            last
        };
        let mut left = names(path);
        let mut found = unnamed(start);
        let mut links = 0;
        while let Some(name) = left.pop() {
            let at = found.node.ok_or(Lost::Missing)?;
            let directory = self.directory(at).ok_or(Lost::NotDirectory)?;
            if matches!(&*name, "." | "..") {
                found = unnamed(if name == "." { at } else { directory.parent });
                continue;
            }
            let node = directory.entries.get(&name).copied();
            if let Some(Kind::Link(target)) = node.and_then(|id| self.get(id)).map(|it| &it.kind)
                && (last == Last::Follow || !left.is_empty())
            {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Lost::Loop);
                }
                found = unnamed(if target.starts_with('/') { ROOT } else { at });
                left.extend(names(target));
                continue;
            }
            found = Found {
                directory: at,
                name,
                node,
                slash: path.ends_with('/'),
            };
        }
        match found.node {
            Some(id) if found.slash && self.directory(id).is_none() => Err(Lost::NotDirectory),
            _ => Ok(found),
        }
    }
}
