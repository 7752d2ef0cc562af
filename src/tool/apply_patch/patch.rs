//! What a patch is once it is read, and what can be wrong with one.

use std::fmt;

/// A patch that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// What to do, in order; at least one.
    pub files: Vec<FilePatch>,
}

impl Patch {
    /// Every path that it names, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(|file| {
            let target = match &file.action {
                Action::Update { move_to, .. } => move_to.as_deref(),
                Action::Add { .. } | Action::Delete => None,
            };
            [Some(file.path.as_str()), target].into_iter().flatten()
        })
    }
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// Line of the patch that says so, from 1.
    pub line: usize,
    /// The file, as the patch names it.
    pub path: String,
    /// What to do with it.
    pub action: Action,
}

/// The three kinds of change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create or overwrite the file.
    Add {
        /// The whole content: lines that end with `\n`.
        content: String,
    },
    /// Remove the file.
    Delete,
    /// Change lines of the file.
    Update {
        /// New path, as the patch names it.
        move_to: Option<String>,
        /// Changes in the order of the file; at least one.
        hunks: Vec<Hunk>,
    },
}

/// Neighbouring changes of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Line of the patch where the hunk begins, from 1.
    pub line: usize,
    /// Lines of the file to pass on the way, each after the one before.
    pub anchors: Vec<Anchor>,
    /// What stands there and what shall; at least one.
    pub lines: Vec<HunkLine>,
    /// The old lines are the last of the file.
    pub end_of_file: bool,
}

/// A line that stands somewhere above a hunk, such as the head of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Line of the patch, from 1.
    pub line: usize,
    /// The line to look for.
    pub text: String,
}

/// One line of a hunk, without its mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HunkLine {
    /// The line stands there and stays.
    Context(String),
    /// The line stands there and goes.
    Remove(String),
    /// The line comes.
    Add(String),
}

/// Why a patch cannot be read or does not fit a file; models read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchError {
    /// Line of the patch, from 1.
    pub line: usize,
    /// The file that the line is about, as the patch names it.
    pub path: Option<String>,
    /// What is wrong and, where there is one, the way out.
    pub message: String,
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "patch line {} ({path}): {}", self.line, self.message),
            None => write!(f, "patch line {}: {}", self.line, self.message),
        }
    }
}

impl std::error::Error for PatchError {}
