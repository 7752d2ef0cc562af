//! What tells whether files of a copy have changed, without those that git ignores.
//!
//! The copy is elsewhere than its directory, so the ignore rules above it are others. Those
//! above the directory hold for it, up to the root of the repository. Format: gitignore(5).

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::{Deserialize, Serialize};

const RULES: &str = ".gitignore";
const GIT: &str = ".git";

/// Stamps by path, relative to the copy.
pub(super) type Stamps = BTreeMap<PathBuf, Stamp>;

/// Of one file, link or directory. What a directory holds is no part of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    length: u64,
    inode: u64,
    mode: u32,
    modified_ns: i128,
    changed_ns: i128,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let ns = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        let mode = metadata.mode();
        match metadata.is_dir() {
            true => Self {
                length: 0,
                inode: 0,
                mode,
                modified_ns: 0,
                changed_ns: 0,
            },
            false => Self {
                length: metadata.len(),
                inode: metadata.ino(),
                mode,
                modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
                changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
            },
        }
    }
}

/// The stamps of `copy`, a copy of `directory`.
///
/// # Errors
/// There is no copy, or it cannot be read. What cannot be read in it is left out.
pub(super) fn stamps(copy: &Path, directory: &Path) -> io::Result<Stamps> {
    drop(fs::read_dir(copy)?);
    let mut look = Look {
        copy,
        directory,
        rules: above(directory),
        stamps: Stamps::new(),
    };
    look.enter(Path::new(""));
    Ok(look.stamps)
}

/// A look through a copy.
struct Look<'a> {
    copy: &'a Path,
    directory: &'a Path,
    /// The outermost first: the last one that knows a path decides.
    rules: Vec<Gitignore>,
    stamps: Stamps,
}

impl Look<'_> {
    fn enter(&mut self, relative: &Path) {
        let place = self.copy.join(relative);
        let outer = self.rules.len();
        // As if they stood in the directory, so that all rules see the same paths.
        self.rules
            .extend(rules(&place.join(RULES), &self.directory.join(relative)));
        for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
            let path = relative.join(entry.file_name());
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let is_dir = metadata.is_dir();
            if entry.file_name() == GIT || ignored(&self.rules, &self.directory.join(&path), is_dir)
            {
                continue;
            }
            if is_dir {
                self.enter(&path);
            }
            self.stamps.insert(path, Stamp::of(&metadata));
        }
        self.rules.truncate(outer);
    }
}

/// The rules that hold in `directory` and stand above it.
fn above(directory: &Path) -> Vec<Gitignore> {
    let root = directory.ancestors().find(|each| each.join(GIT).exists());
    let Some(root) = root else {
        return Vec::new();
    };
    let mut way: Vec<&Path> = directory.ancestors().collect();
    way.retain(|each| each.starts_with(root));
    let mut all: Vec<Gitignore> = exclude(root).into_iter().collect();
    for each in way.into_iter().rev() {
        // Ignored as a whole, such as below a home directory that is a repository: the
        // rules are not about what is in it.
        if each != root && ignored(&all, each, true) {
            return Vec::new();
        }
        if each != directory {
            all.extend(rules(&each.join(RULES), each));
        }
    }
    all
}

/// The rules of a repository that are in no tree.
fn exclude(root: &Path) -> Option<Gitignore> {
    let mut git = root.join(GIT);
    if !git.is_dir() {
        // A worktree has its repository elsewhere.
        let text = fs::read_to_string(&git).ok()?;
        let own = root.join(text.strip_prefix("gitdir: ")?.trim_end());
        let common = fs::read_to_string(own.join("commondir")).ok()?;
        git = own.join(common.trim_end());
    }
    rules(&git.join("info/exclude"), root)
}

/// The rules of `file`, for what is in `directory`.
fn rules(file: &Path, directory: &Path) -> Option<Gitignore> {
    // A pipe of that name has nobody who writes to it.
    if !fs::metadata(file).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let mut builder = GitignoreBuilder::new(directory);
    // A line that is no rule is none for git, too.
    drop(builder.add(file));
    builder.build().ok()
}

fn ignored(rules: &[Gitignore], path: &Path, is_dir: bool) -> bool {
    let mut found = rules.iter().rev().map(|rules| rules.matched(path, is_dir));
    found
        .find(|found| !found.is_none())
        .is_some_and(|found| found.is_ignore())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of `copy` that count.
    fn seen(copy: &Path, directory: &Path) -> Vec<String> {
        let stamps = stamps(copy, directory).expect("a copy");
        let paths = stamps.into_keys();
        paths.map(|path| path.display().to_string()).collect()
    }

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        }
    }

    #[test]
    fn rules_hold_from_the_root_of_the_repository_on() {
        let (outside, copies) = (
            tempfile::tempdir().expect("a directory"),
            tempfile::tempdir().expect("a directory"),
        );
        let root = outside.path().join("repository");
        write(
            outside.path(),
            &[
                (".gitignore", "kept.txt\n"),
                ("repository/.git/info/exclude", "private\n/sub/mine\n"),
                (
                    "repository/.gitignore",
                    "build\n*.log\n/anchored\n/sub/b.txt\n",
                ),
                ("repository/sub/x", ""),
            ],
        );
        // Above the copy stand rules that are not those of the directory.
        write(
            copies.path(),
            &[
                (".gitignore", "*\n"),
                ("sub/.gitignore", "!wanted.log\n"),
                ("sub/anchored", ""),
                ("sub/b.txt", ""),
                ("sub/build/o", ""),
                ("sub/kept.txt", ""),
                ("sub/lib/x.log", ""),
                ("sub/mine", ""),
                ("sub/private", ""),
                ("sub/wanted.log", ""),
                ("sub/.git/x", ""),
            ],
        );
        let copy = copies.path().join("sub");
        let expected = [".gitignore", "anchored", "kept.txt", "lib", "wanted.log"];
        assert_eq!(seen(&copy, &root.join("sub")), expected);
        // A worktree.
        write(
            outside.path(),
            &[
                ("worktree/.git", "gitdir: ../repository/.git/worktrees/w\n"),
                ("repository/.git/worktrees/w/commondir", "../..\n"),
                ("worktree/sub/x", ""),
            ],
        );
        let there = seen(&copy, &outside.path().join("worktree/sub"));
        assert!(!there.contains(&"private".to_owned()), "{there:?}");
        assert!(there.contains(&"build/o".to_owned()), "{there:?}");
    }

    #[test]
    fn rules_that_ignore_the_whole_directory_say_nothing_of_it() {
        let home = tempfile::tempdir().expect("a directory");
        write(
            home.path(),
            &[
                (".git/HEAD", ""),
                (".gitignore", "*\n"),
                ("work/project/a.txt", ""),
            ],
        );
        let project = home.path().join("work/project");
        assert_eq!(seen(&project, &project), ["a.txt"]);
    }
}
