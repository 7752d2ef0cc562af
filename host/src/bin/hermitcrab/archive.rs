//! Directories as trees: what `--env memory` loads, and what it compares with
//! afterwards.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use hermitcrab::memory::TreeLimits;
use hermitcrab_host::tree::{Kind, Node, Tree, Unpackable};

use crate::failure::{Failure, reason};

/// A directory with more than this is not loaded: it would not fit the
/// sandbox, and is most likely the wrong directory.
const MAX_BYTES: u64 = 512 << 20;

/// Directories within directories that are loaded: a little fewer than the
/// sandbox takes from its root on.
const MAX_DEPTH: usize = 250;

/// Reads `directory` as the user sees it in version control: hidden files too,
/// but neither what `.gitignore` names nor `.git`. Build products and package
/// folders are often a thousand times the source, the sandbox cannot run them,
/// and a changed one in the diff would hide what matters. Nor the paths in
/// `without`, absolute.
///
/// # Errors
/// Something cannot be read, or the tree is too large.
pub(crate) fn read_directory(directory: &Path, without: &[PathBuf]) -> Result<Tree, Failure> {
    let without = without.to_vec();
    let mut tree = Tree::new();
    let mut total = 0_u64;
    let limits = TreeLimits::default();
    let walk = ignore::WalkBuilder::new(directory)
        .standard_filters(false)
        .git_ignore(true)
        .git_exclude(true)
        .parents(true)
        .require_git(false)
        .filter_entry(move |entry| {
            entry.file_name() != ".git" && !without.iter().any(|path| path == entry.path())
        })
        .build();
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Err(unwalkable(directory, &error)),
        };
        let path = entry.path();
        if entry.depth() > MAX_DEPTH {
            let why = format!("it lies more than {MAX_DEPTH} directories deep");
            return Err(cannot_load(path, &why, IGNORED));
        }
        let unreadable = |error: io::Error| {
            let way_out = match error.kind() {
                io::ErrorKind::PermissionDenied => READABLE,
                _ => IGNORED,
            };
            cannot_load(path, &reason(&error), way_out)
        };
        let Some(file_type) = entry.file_type() else {
            continue;
        };
        let mut mode = None;
        let (content, kind) = if file_type.is_symlink() {
            let target = std::fs::read_link(path).map_err(unreadable)?;
            let Some(target) = target.to_str() else {
                return Err(not_utf8(&target));
            };
            (Bytes::copy_from_slice(target.as_bytes()), Kind::Link)
        } else if file_type.is_file() {
            let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
            if bytes > limits.file_bytes {
                let why = format!(
                    "it has {} MiB, and a file there has at most {}",
                    bytes >> 20,
                    limits.file_bytes >> 20
                );
                return Err(cannot_load(path, &why, IGNORED));
            }
            let content = std::fs::read(path).map_err(unreadable)?;
            let metadata = entry.metadata().ok();
            mode = metadata.as_ref().and_then(permissions);
            (Bytes::from(content), Kind::of_file(mode))
        } else if file_type.is_dir() && entry.depth() > 0 {
            (Bytes::new(), Kind::Directory)
        } else {
            // Sockets and pipes do not travel.
            continue;
        };
        total += content.len() as u64;
        if total > MAX_BYTES {
            return Err(Failure::usage(format!(
                "{} has more than {} MiB to load into the sandbox: choose a smaller --dir or add what the task does not need to .gitignore",
                directory.display(),
                MAX_BYTES >> 20
            )));
        }
        let relative = path.strip_prefix(directory).unwrap_or(path);
        let modified = entry.metadata().ok().and_then(|it| it.modified().ok());
        let node = Node {
            content,
            kind,
            mode: mode.unwrap_or(kind.usual_mode()),
            modified: modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()),
        };
        tree.insert(slashed(relative)?, node);
        if tree.len() as u64 > limits.entries {
            return Err(Failure::usage(format!(
                "{} has more than {} files to load into the sandbox: choose a smaller --dir or add what the task does not need to .gitignore",
                directory.display(),
                limits.entries
            )));
        }
    }
    Ok(tree)
}

/// Ways out for what cannot be loaded.
const READABLE: &str = "make it readable or add it to .gitignore";
const IGNORED: &str = "add it to .gitignore or choose a smaller --dir";

fn cannot_load(path: &Path, why: &str, way_out: &str) -> Failure {
    Failure::usage(format!(
        "cannot load {} into the sandbox: {why}; {way_out}",
        short(&path.to_string_lossy())
    ))
}

/// Characters of a path that are shown at each end.
const PATH_END: usize = 60;

/// A long path without its middle.
fn short(path: &str) -> String {
    let count = path.chars().count();
    if count <= 2 * PATH_END + 1 {
        return path.to_owned();
    }
    let head: String = path.chars().take(PATH_END).collect();
    let tail: String = path.chars().skip(count - PATH_END).collect();
    format!("{head}…{tail}")
}

/// A directory that cannot be listed, or the like.
fn unwalkable(directory: &Path, error: &ignore::Error) -> Failure {
    let place = place(error).unwrap_or(directory);
    let way_out = match place == directory {
        true => "make it readable or choose another --dir",
        false => READABLE,
    };
    let why = match error.io_error() {
        Some(error) => reason(error),
        None => error.to_string(),
    };
    // The walker's own words name the path once more.
    let why = why.rsplit(": ").next().unwrap_or_default().to_owned();
    cannot_load(place, &why.to_lowercase(), way_out)
}

/// The path that a walker's error is about.
fn place(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            place(err)
        }
        _ => None,
    }
}

/// The tree as tar bytes, to be imported.
///
/// # Errors
/// A name does not fit the format.
pub(crate) fn to_tar(tree: &Tree) -> Result<Vec<u8>, Failure> {
    hermitcrab_host::tree::to_tar(tree).map_err(|Unpackable { path, why }| {
        Failure::usage(format!(
            "cannot load {path} into the sandbox: {}; rename it or add it to .gitignore",
            reason(&why)
        ))
    })
}

/// The files and directories of a tar that was exported; they share its bytes.
///
/// # Errors
/// The bytes are not a tar.
pub(crate) fn from_tar(bytes: &Bytes) -> Result<Tree, Failure> {
    hermitcrab_host::tree::from_tar(bytes).map_err(|error| {
        Failure::failed(format!("cannot read the exported tree: {}", reason(&error)))
    })
}

/// Bytes of each file and link of a tree, by path.
pub(crate) fn sizes(tree: &Tree) -> BTreeMap<&str, usize> {
    let files = tree.iter().filter(|(_, node)| node.kind != Kind::Directory);
    files
        .map(|(path, node)| (&**path, node.content.len()))
        .collect()
}

#[cfg(unix)]
fn permissions(metadata: &std::fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    Some(metadata.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn permissions(_metadata: &std::fs::Metadata) -> Option<u32> {
    None
}

fn slashed(path: &Path) -> Result<String, Failure> {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    parts
        .map(|parts| parts.join("/"))
        .ok_or_else(|| not_utf8(&path.to_path_buf()))
}

fn not_utf8(path: &PathBuf) -> Failure {
    Failure::usage(format!(
        "the name {path:?} is not valid UTF-8 and cannot be loaded into the sandbox: rename it or add it to .gitignore"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn file(content: &str, kind: Kind) -> Node {
        Node {
            content: Bytes::copy_from_slice(content.as_bytes()),
            kind,
            mode: kind.usual_mode(),
            modified: None,
        }
    }

    #[test]
    fn tar_round_trip() {
        let long = format!("{}/x.txt", "deep/".repeat(40).trim_end_matches('/'));
        let tree = Tree::from([
            ("a.txt".to_owned(), file("a\n", Kind::Plain)),
            ("bin".to_owned(), file("", Kind::Directory)),
            ("bin/run".to_owned(), file("#!/bin/sh\n", Kind::Executable)),
            ("empty".to_owned(), file("", Kind::Directory)),
            ("link".to_owned(), file("a.txt", Kind::Link)),
            (long, file("", Kind::Plain)),
        ]);
        let tar = Bytes::from(to_tar(&tree).expect("a tar"));
        assert_eq!(from_tar(&tar), Ok(tree));
    }

    #[test]
    fn times_are_kept_to_the_microsecond() {
        let directory = tempfile::tempdir().expect("a directory");
        let times = [("a", 1_700_000_000_250_001), ("b", 1_700_000_000_000_000)];
        for (name, micros) in times {
            let file = std::fs::File::create(directory.path().join(name)).expect("a file");
            let time = UNIX_EPOCH + Duration::from_micros(micros);
            file.set_modified(time).expect("a time");
        }
        let tree = read_directory(directory.path(), &[]).expect("a tree");
        let tar = to_tar(&tree).expect("a tar");
        let mut archive = tar::Archive::new(tar.as_slice());
        let mut kept = Vec::new();
        for entry in archive.entries().expect("entries") {
            let mut entry = entry.expect("an entry");
            let precise = entry
                .pax_extensions()
                .expect("extensions")
                .map(|extensions| {
                    let mut extensions = extensions.map(|extension| {
                        let extension = extension.expect("an extension");
                        let value = extension.value().expect("UTF-8").to_owned();
                        format!("{}={value}", extension.key().expect("UTF-8"))
                    });
                    extensions.next().expect("one")
                });
            kept.push((entry.header().mtime().expect("a time"), precise));
        }
        let precise = "mtime=1700000000.250001".to_owned();
        assert_eq!(
            kept,
            [(1_700_000_000, Some(precise)), (1_700_000_000, None)]
        );
    }

    #[test]
    fn garbage_is_an_error() {
        let error = from_tar(&Bytes::from_static(&[b'x'; 2048])).expect_err("no tar");
        assert!(
            error.message.starts_with("cannot read the exported tree: "),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_too_large_is_named_and_not_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("huge");
        let file = std::fs::File::create(&path).expect("a file");
        file.set_len(400 << 20).expect("a size");
        let expected = format!(
            "cannot load {} into the sandbox: it has 400 MiB, and a file there has at most 256; add it to .gitignore or choose a smaller --dir",
            path.display()
        );
        let failure = read_directory(directory.path(), &[]).expect_err("too large");
        assert_eq!(failure, Failure::usage(expected));
    }

    #[test]
    fn a_directory_that_cannot_be_listed_is_named() {
        let check = |path: &str, expected: &str| {
            let error = ignore::Error::WithDepth {
                depth: 1,
                err: Box::new(ignore::Error::WithPath {
                    path: path.into(),
                    err: Box::new(ignore::Error::Io(io::Error::from(
                        io::ErrorKind::PermissionDenied,
                    ))),
                }),
            };
            let failure = unwalkable(Path::new("/d"), &error);
            assert_eq!(failure, Failure::usage(expected));
        };
        check(
            "/d/sub",
            "cannot load /d/sub into the sandbox: permission denied; make it readable or add it to .gitignore",
        );
        check(
            "/d",
            "cannot load /d into the sandbox: permission denied; make it readable or choose another --dir",
        );
    }

    #[cfg(unix)]
    #[test]
    fn directory_without_what_git_ignores() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        for (path, content) in [
            (".gitignore", "target\n*.log\n"),
            (".github/ci.yml", "on: push\n"),
            (".git/HEAD", "ref\n"),
            ("target/big", "big"),
            ("src/a.rs", "fn a() {}\n"),
            ("src/a.log", "log"),
            ("out.tar", "an older result"),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, content).expect("a file");
        }
        std::fs::create_dir_all(root.join("src/empty")).expect("a directory");
        std::os::unix::fs::symlink("src/a.rs", root.join("link")).expect("a link");
        let expected = Tree::from([
            (
                ".gitignore".to_owned(),
                file("target\n*.log\n", Kind::Plain),
            ),
            (".github".to_owned(), file("", Kind::Directory)),
            (".github/ci.yml".to_owned(), file("on: push\n", Kind::Plain)),
            ("link".to_owned(), file("src/a.rs", Kind::Link)),
            ("src".to_owned(), file("", Kind::Directory)),
            ("src/a.rs".to_owned(), file("fn a() {}\n", Kind::Plain)),
            ("src/empty".to_owned(), file("", Kind::Directory)),
        ]);
        assert_eq!(read_directory(root, &[root.join("out.tar")]), Ok(expected));
    }
}
