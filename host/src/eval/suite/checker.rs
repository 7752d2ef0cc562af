//! `Checker`: what decides about the tree that an agent leaves.

use bytes::Bytes;

use crate::tree::{Node, Tree};

/// Decides whether a tree is as it should be.
#[derive(Clone, Debug)]
pub enum Checker {
    /// A command and the files that it needs, by absolute path. The agent never sees
    /// them.
    Command {
        /// Command line, run in a copy of the final tree.
        command: String,
        /// Files, by path from `/`.
        files: Tree,
    },
    /// Files that must be in the final tree as they are here.
    Expected(Tree),
}

impl Checker {
    /// Whether it is a script in Python.
    pub(in crate::eval) fn needs_python(&self) -> bool {
        matches!(self, Self::Command { command, .. } if command.starts_with("python3 "))
    }

    /// A script in bash, or in Python if its name ends with `.py`: the file `name` in
    /// the folder of the checker's files.
    pub fn script(name: &str, content: Bytes) -> Self {
        let entry = match name.ends_with(".py") {
            true => "check.py",
            false => "check.sh",
        };
        command(entry, Tree::new(), content)
    }
}

/// The checker that is a file of this name, and the files beside it.
pub(super) fn command(entry: &str, mut files: Tree, content: Bytes) -> Checker {
    let path = format!("{TESTS}/{entry}");
    let runs = if entry.ends_with(".py") {
        "python3"
    } else {
        "bash"
    };
    files.insert(path[1..].to_owned(), Node::file(content));
    Checker::Command {
        command: format!("{runs} {path}"),
        files,
    }
}

/// Where a checker's files lie.
pub(super) const TESTS: &str = "/tests";
