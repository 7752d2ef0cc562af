//! `Import`: files on their way into a sandbox, one by one, all or nothing.
//!
//! A host that reads an archive or a folder hands over each entry as it has
//! read it; the tree changes once, at the end. What breaks a limit or leaves
//! the directory is refused when it is handed over, before more is read.

use bytes::Bytes;

use super::archive::{entry_path, refused, set_times};
use super::tree::{self, Content, Tree, TreeError, TreeLimits};
use crate::environment::EnvironmentError;

/// What an entry is.
#[derive(Clone, Debug)]
pub enum ImportNode {
    /// A file, its permission bits if they are known.
    File {
        /// Content.
        content: Bytes,
        /// Permission bits; a file that is there already keeps its own otherwise.
        mode: Option<u32>,
    },
    /// A directory, its permission bits if they are known.
    Directory {
        /// Permission bits; a directory that is there already keeps its own otherwise.
        mode: Option<u32>,
    },
    /// A symbolic link to this target.
    Link(String),
}

/// Entries collected for one directory.
#[derive(Debug)]
pub struct Import {
    directory: String,
    limits: TreeLimits,
    bytes: u64,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    path: String,
    node: ImportNode,
    modified_us: Option<u64>,
}

impl Import {
    /// Nothing yet, for `directory` of a tree with `limits`.
    pub fn new(directory: &str, limits: TreeLimits) -> Self {
        Self {
            directory: directory.to_owned(),
            limits,
            bytes: 0,
            entries: Vec::new(),
        }
    }

    /// Takes an entry; `name` is relative to the directory. `modified_us`:
    /// absent for the time of the import.
    ///
    /// # Errors
    ///
    /// A name that is absolute or leaves the directory, or a limit that could
    /// not be kept even if the tree were empty.
    pub fn add(
        &mut self,
        name: String,
        node: ImportNode,
        modified_us: Option<u64>,
    ) -> Result<(), EnvironmentError> {
        let path = entry_path(&self.directory, &name)?;
        let limit = |what, value| Err(refused(&name, &TreeError::Limit(what, value)));
        if let ImportNode::File { content, .. } = &node {
            let bytes = content.len() as u64;
            if bytes > self.limits.file_bytes {
                return limit("bytes of one file", self.limits.file_bytes);
            }
            self.bytes = self.bytes.saturating_add(bytes);
        }
        if self.bytes > self.limits.total_bytes {
            return limit("bytes of all files", self.limits.total_bytes);
        }
        if self.entries.len() as u64 >= self.limits.entries {
            return limit("number of files", self.limits.entries);
        }
        self.entries.push(Entry {
            name,
            path,
            node,
            modified_us,
        });
        Ok(())
    }

    /// Puts everything into `tree`, or nothing.
    ///
    /// # Errors
    ///
    /// The entry that cannot be taken, and why.
    pub fn commit(self, tree: &mut Tree, now_us: u64) -> Result<(), EnvironmentError> {
        let mut copy = tree.clone();
        // What comes into a directory changes it: its own time is put back last.
        let mut directories = Vec::new();
        for entry in self.entries {
            let name = entry.name.clone();
            if let (ImportNode::Directory { .. }, Some(time)) = (&entry.node, entry.modified_us) {
                directories.push((entry.path.clone(), time));
            }
            apply(&mut copy, entry, now_us).map_err(|error| refused(&name, &error))?;
        }
        set_times(&mut copy, directories);
        *tree = copy;
        Ok(())
    }
}

fn apply(tree: &mut Tree, entry: Entry, now_us: u64) -> Result<(), TreeError> {
    let time = entry.modified_us.unwrap_or(now_us);
    let path = entry.path.as_str();
    match entry.node {
        ImportNode::Directory { mode } => {
            tree.make_directories(path, time)?;
            mode.map_or(Ok(()), |mode| tree.set_mode(path, mode))
        }
        ImportNode::File { content, mode } => {
            tree.write_with_parents(path, Content::from(content), time)?;
            mode.map_or(Ok(()), |mode| tree.set_mode(path, mode))
        }
        ImportNode::Link(target) => {
            tree.make_directories(tree::parent(path), time)?;
            if tree.get(path).is_ok() {
                tree.remove(path, time)?;
            }
            tree.link(path, &target, time)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::EnvironmentErrorKind;

    fn file(content: &'static str) -> ImportNode {
        ImportNode::File {
            content: Bytes::from_static(content.as_bytes()),
            mode: None,
        }
    }

    fn limits() -> TreeLimits {
        TreeLimits {
            total_bytes: 10,
            file_bytes: 6,
            entries: 6,
            ..TreeLimits::default()
        }
    }

    /// Adds the entries to a tree with the file `/w/old`; expects the paths
    /// below `/w` afterwards, or the error and an unchanged tree.
    #[track_caller]
    fn check(entries: Vec<(&str, ImportNode)>, expected: Result<&[&str], &str>) {
        let mut tree = Tree::new(limits());
        tree.write_with_parents("/w/old", Content::from(&b"12"[..]), 1)
            .unwrap();
        let before = tree.clone();
        let mut import = Import::new("/w", limits());
        let added = entries
            .into_iter()
            .try_for_each(|(name, node)| import.add(name.to_owned(), node, None));
        let result = added.and_then(|()| import.commit(&mut tree, 2));
        let mut paths = Vec::new();
        tree.walk("/w", u32::MAX, &mut |path, _| {
            paths.push(path.to_owned());
            true
        })
        .unwrap();
        match (result, expected) {
            (Ok(()), Ok(expected)) => assert_eq!(paths, expected),
            (Err(error), Err(expected)) => {
                assert_eq!(error.message, expected);
                assert!(tree.is_same(&before));
            }
            (result, expected) => panic!("{result:?} is not {expected:?}"),
        }
    }

    #[test]
    fn everything_goes_in() {
        check(
            vec![
                ("a/b", file("1")),
                ("c", ImportNode::Directory { mode: None }),
                ("l", ImportNode::Link("a/b".to_owned())),
                ("l", ImportNode::Link("old".to_owned())),
            ],
            Ok(&["a", "a/b", "c", "l", "old"]),
        );
    }

    #[test]
    fn names_that_leave_are_refused() {
        check(
            vec![("a", file("1")), ("../b", file("1"))],
            Err("cannot take ../b: its path holds .."),
        );
        check(
            vec![("/etc/passwd", file("1"))],
            Err("cannot take /etc/passwd: its path is absolute"),
        );
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let link = ImportNode::Link("/tmp".to_owned());
        check(
            vec![("l", link), ("l/x", file("1"))],
            Err("cannot take l/x: not a directory"),
        );
    }

    #[test]
    fn limits_hold_while_reading_and_at_the_end() {
        check(
            vec![("a", file("1234567"))],
            Err("cannot take a: the sandbox limit on bytes of one file is 6"),
        );
        check(
            vec![("a", file("123456")), ("b", file("123456"))],
            Err("cannot take b: the sandbox limit on bytes of all files is 10"),
        );
        check(
            vec![("a", file("123456")), ("b", file("1234"))],
            Err("cannot take b: the sandbox limit on bytes of all files is 10"),
        );
        let many = ["a", "b", "c", "d", "e", "f", "g"].map(|name| (name, file("")));
        check(
            many.into(),
            Err("cannot take g: the sandbox limit on number of files is 6"),
        );
    }

    #[test]
    fn refusals_have_a_kind() {
        let mut import = Import::new("/w", limits());
        let error = import.add("..".to_owned(), file(""), None).unwrap_err();
        assert_eq!(error.kind, EnvironmentErrorKind::InvalidInput);
        let error = import.add("a".to_owned(), file("1234567"), None);
        assert_eq!(error.unwrap_err().kind, EnvironmentErrorKind::TooLarge);
    }
}
