//! Two trees as a unified diff that `git apply` and `patch -p1` read.
//!
//! Format: git's own (`git help diff`, "Generating patch text with -p"). What it
//! cannot say in text, binary contents and empty directories, is left out of the
//! patch, which would be refused as a whole for their sake, and named beside it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use similar::{Algorithm, DiffOp, DiffTag, TextDiff};

use super::{Kind, Node, Tree};

/// What has changed between two trees.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The patch; empty where no text has changed.
    pub patch: String,
    /// Paths of changed files that are not text, and of empty directories that
    /// came or went (with a final `/`).
    pub left_out: Vec<String>,
}

impl Diff {
    /// Files that have changed, and lines of texts that were added and removed.
    pub fn counts(&self) -> (usize, usize, usize) {
        let binary = self.left_out.iter().filter(|path| !path.ends_with('/'));
        let (mut files, mut added, mut removed) = (binary.count(), 0, 0);
        // A line of a hunk begins with a mark, so no header is one.
        let mut is_in_hunk = false;
        for line in self.patch.split('\n') {
            match line.as_bytes().first() {
                Some(b'd') if line.starts_with("diff --git ") => {
                    files += 1;
                    is_in_hunk = false;
                }
                Some(b'@') => is_in_hunk = true,
                Some(b'+') if is_in_hunk => added += 1,
                Some(b'-') if is_in_hunk => removed += 1,
                _ => {}
            }
        }
        (files, added, removed)
    }
}

/// The changes from `before` to `after`.
pub fn diff(before: &Tree, after: &Tree) -> Diff {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut diff = Diff::default();
    // Lines that no patch tool takes for more than remarks, and only before the
    // first header: behind one they would belong to it.
    let mut remarks = String::new();
    for path in paths {
        let (old, new) = (before.get(path), after.get(path));
        // Of the permission bits a patch knows one, which is the kind's.
        let shown = |node: Option<&Node>| node.map(|node| (node.kind, node.content.clone()));
        if shown(old) == shown(new) {
            continue;
        }
        let is_directory = |node: Option<&Node>| node.is_some_and(|n| n.kind == Kind::Directory);
        if is_directory(old) || is_directory(new) {
            let inside = format!("{path}/");
            let filled = |tree: &Tree| {
                let mut after = tree.range(inside.clone()..);
                after
                    .next()
                    .is_some_and(|(path, _)| path.starts_with(&inside))
            };
            if !(filled(before) || filled(after)) {
                diff.left_out.push(inside);
            }
        }
        let file =
            |node: Option<&'_ Node>| node.filter(|node| node.kind != Kind::Directory).cloned();
        // A link is not a file with another mode: git writes two changes.
        let steps = match (file(old), file(new)) {
            (Some(old), Some(new)) if (old.kind == Kind::Link) != (new.kind == Kind::Link) => {
                vec![(Some(old), None), (None, Some(new))]
            }
            both => vec![both],
        };
        for (old, new) in steps {
            // Writing to a String cannot fail.
            if let Ok(Shown::LeftOut) =
                file_patch(&mut diff.patch, path, old.as_ref(), new.as_ref())
            {
                let side = |node: &Option<Node>, side: &str| match node {
                    Some(_) => name(side, path),
                    None => "/dev/null".to_owned(),
                };
                let (old, new) = (side(&old, "a/"), side(&new, "b/"));
                let _ = writeln!(remarks, "Binary files {old} and {new} differ");
                if diff.left_out.last() != Some(path) {
                    diff.left_out.push(path.clone());
                }
            }
        }
    }
    diff.patch.insert_str(0, &remarks);
    diff
}

enum Shown {
    Patch,
    LeftOut,
}

/// Beyond this, a diff that is right but not the shortest is good enough.
const TIMEOUT: Duration = Duration::from_secs(2);

fn file_patch(
    patch: &mut String,
    path: &str,
    old: Option<&Node>,
    new: Option<&Node>,
) -> Result<Shown, std::fmt::Error> {
    let same = old.map(|node| &node.content) == new.map(|node| &node.content);
    let (old_text, new_text) = match (text(old), text(new)) {
        _ if same => ("", ""),
        (Some(old), Some(new)) => (old, new),
        _ => return Ok(Shown::LeftOut),
    };
    let (old_name, new_name) = (name("a/", path), name("b/", path));
    match (old.map(mode), new.map(mode)) {
        (None, None) => return Ok(Shown::Patch),
        modes => {
            writeln!(patch, "diff --git {old_name} {new_name}")?;
            match modes {
                (None, Some(mode)) => writeln!(patch, "new file mode {mode}")?,
                (Some(mode), None) => writeln!(patch, "deleted file mode {mode}")?,
                (Some(old), Some(new)) if old != new => {
                    writeln!(patch, "old mode {old}\nnew mode {new}")?;
                }
                _ => {}
            }
        }
    }
    if old_text == new_text {
        return Ok(Shown::Patch);
    }
    let side = |node: Option<&Node>, name: &str| match node {
        None => "/dev/null".to_owned(),
        // The end of the name, for tools that would end it at its first space.
        Some(_) if name.contains(' ') => format!("{name}\t"),
        Some(_) => name.to_owned(),
    };
    // Only \n ends a line: a lone \r is a character to git.
    let old_lines: Vec<&str> = old_text.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new_text.split_inclusive('\n').collect();
    let lines = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(TIMEOUT)
        .diff_slices(&old_lines, &new_lines);
    writeln!(patch, "--- {}", side(old, &old_name))?;
    writeln!(patch, "+++ {}", side(new, &new_name))?;
    for hunk in lines.grouped_ops(3) {
        hunk_patch(patch, &hunk, &old_lines, &new_lines)?;
    }
    Ok(Shown::Patch)
}

/// One hunk. Not by `similar`, to which a lone \r at the end of a file is a line end.
fn hunk_patch(
    patch: &mut String,
    hunk: &[DiffOp],
    old_lines: &[&str],
    new_lines: &[&str],
) -> std::fmt::Result {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
        return Ok(());
    };
    let old = first.old_range().start..last.old_range().end;
    let new = first.new_range().start..last.new_range().end;
    writeln!(patch, "@@ -{} +{} @@", extent(&old), extent(&new))?;
    for op in hunk {
        let (old, new) = (&old_lines[op.old_range()], &new_lines[op.new_range()]);
        let (kept, gone, came): (&[&str], &[&str], &[&str]) = match op.tag() {
            DiffTag::Equal => (old, &[], &[]),
            _ => (&[], old, new),
        };
        for (mark, lines) in [(' ', kept), ('-', gone), ('+', came)] {
            for line in lines {
                patch.push(mark);
                patch.push_str(line);
                if !line.ends_with('\n') {
                    patch.push_str("\n\\ No newline at end of file\n");
                }
            }
        }
    }
    Ok(())
}

/// Where a hunk begins, from 1, and how many lines it has; of none, the line before.
fn extent(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        count => format!("{},{count}", lines.start + 1),
    }
}

/// Content as text, empty where there is no file; none where it is binary.
fn text(node: Option<&Node>) -> Option<&str> {
    match node {
        None => Some(""),
        Some(node) if node.content.contains(&0) => None,
        Some(node) => std::str::from_utf8(&node.content).ok(),
    }
}

fn mode(node: &Node) -> &'static str {
    match node.kind {
        Kind::Plain | Kind::Directory => "100644",
        Kind::Executable => "100755",
        Kind::Link => "120000",
    }
}

/// A path as git writes it: in quotes, as a C string, where it has to be.
fn name(side: &str, path: &str) -> String {
    let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    if path.chars().all(plain) {
        return format!("{side}{path}");
    }
    let mut quoted = format!("\"{side}");
    for byte in path.bytes() {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    type Entry<'a> = (&'a str, &'a [u8], Kind);

    fn tree(files: &[Entry<'_>]) -> Tree {
        let node = |content: &[u8], kind: Kind| Node {
            content: Bytes::copy_from_slice(content),
            kind,
            mode: kind.usual_mode(),
            modified: None,
        };
        files
            .iter()
            .map(|(path, content, kind)| ((*path).to_owned(), node(content, *kind)))
            .collect()
    }

    fn check(before: &[Entry<'_>], after: &[Entry<'_>], patch: &str, left_out: &[&str]) {
        let expected = Diff {
            patch: patch.to_owned(),
            left_out: left_out.iter().map(|path| (*path).to_owned()).collect(),
        };
        assert_eq!(diff(&tree(before), &tree(after)), expected);
    }

    #[test]
    fn counts_of_files_and_lines() {
        let before = tree(&[
            ("a", b"1\n-- x\n3\n", Kind::Plain),
            ("b", b"\0", Kind::Plain),
            ("c", b"", Kind::Plain),
        ]);
        let after = tree(&[
            ("a", b"1\n++ y\nnew\n3\n", Kind::Plain),
            ("b", b"\0\0", Kind::Plain),
            ("c", b"", Kind::Plain),
            ("d", b"", Kind::Directory),
            ("e", b"", Kind::Plain),
        ]);
        assert_eq!(diff(&before, &after).counts(), (3, 2, 1));
    }

    #[test]
    fn nothing_changed() {
        let files: &[Entry<'_>] = &[("a", b"x\n", Kind::Plain), ("d", b"", Kind::Directory)];
        check(files, files, "", &[]);
    }

    #[test]
    fn changed_line_without_final_newline() {
        check(
            &[("a", b"1\n2\n3\n4\n5\n6", Kind::Plain)],
            &[("a", b"1\n2\n3\n4\n5\nsix", Kind::Plain)],
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -3,4 +3,4 @@\n 3\n 4\n 5\n-6\n\\ No newline at end of file\n+six\n\\ No newline at end of file\n",
            &[],
        );
    }

    #[test]
    fn new_and_deleted() {
        check(
            &[("b", b"x\n", Kind::Executable)],
            &[("a/n", b"y\n", Kind::Plain)],
            "diff --git a/a/n b/a/n\nnew file mode 100644\n--- /dev/null\n+++ b/a/n\n@@ -0,0 +1 @@\n+y\n\
             diff --git a/b b/b\ndeleted file mode 100755\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
            &[],
        );
    }

    #[test]
    fn mode_only_and_empty() {
        check(
            &[("a", b"x\n", Kind::Plain)],
            &[("a", b"x\n", Kind::Executable), ("e", b"", Kind::Plain)],
            "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n\
             diff --git a/e b/e\nnew file mode 100644\n",
            &[],
        );
    }

    #[test]
    fn binary_before_the_patch_and_left_out_of_it() {
        check(
            &[("z", b"\xff", Kind::Plain)],
            &[("a", b"x\0", Kind::Plain), ("e", b"", Kind::Plain)],
            "Binary files /dev/null and b/a differ\n\
             Binary files a/z and /dev/null differ\n\
             diff --git a/e b/e\nnew file mode 100644\n",
            &["a", "z"],
        );
    }

    #[test]
    fn binary_mode_only() {
        check(
            &[("a", b"x\0", Kind::Plain)],
            &[("a", b"x\0", Kind::Executable)],
            "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n",
            &[],
        );
    }

    #[test]
    fn only_empty_directories_are_left_out() {
        check(
            &[
                ("gone", b"", Kind::Directory),
                ("full", b"", Kind::Directory),
                ("full/x", b"", Kind::Plain),
            ],
            &[
                ("new", b"", Kind::Directory),
                ("new/in", b"", Kind::Directory),
            ],
            "diff --git a/full/x b/full/x\ndeleted file mode 100644\n",
            &["gone/", "new/in/"],
        );
    }

    #[test]
    fn names_that_need_quotes_or_a_tab() {
        check(
            &[],
            &[("a b", b"x\n", Kind::Plain), ("c\"\n", b"x\n", Kind::Plain)],
            "diff --git a/a b b/a b\nnew file mode 100644\n--- /dev/null\n+++ b/a b\t\n@@ -0,0 +1 @@\n+x\n\
             diff --git \"a/c\\\"\\012\" \"b/c\\\"\\012\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/c\\\"\\012\"\n@@ -0,0 +1 @@\n+x\n",
            &[],
        );
    }

    /// Writes `before`, has git apply the patch to `after`, and compares what is
    /// there then with `expected`.
    #[cfg(unix)]
    fn check_apply(before: &[Entry<'_>], after: &[Entry<'_>], expected: &[Entry<'_>]) {
        use std::io::Write as _;
        use std::os::unix::fs::{PermissionsExt, symlink};
        use std::process::{Command, Stdio};

        let directory = tempfile::tempdir().expect("a directory");
        for (path, content, kind) in before {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            if *kind == Kind::Link {
                symlink(std::str::from_utf8(content).expect("a target"), &path).expect("a link");
                continue;
            }
            std::fs::write(&path, content).expect("a file");
            let mode = if *kind == Kind::Executable {
                0o755
            } else {
                0o644
            };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
        }
        let patch = diff(&tree(before), &tree(after)).patch;
        let mut child = Command::new("git")
            .args(["apply", "-"])
            .current_dir(directory.path())
            .env("GIT_CEILING_DIRECTORIES", "/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("git");
        let mut stdin = child.stdin.take().expect("stdin");
        stdin.write_all(patch.as_bytes()).expect("a patch");
        drop(stdin);
        let output = child.wait_with_output().expect("an end");
        assert!(
            output.status.success(),
            "{}\n{patch}",
            String::from_utf8_lossy(&output.stderr)
        );
        let mut applied = crate::eval::suite::read_tree(directory.path()).expect("a tree");
        applied.retain(|_, node| node.kind != Kind::Directory);
        assert_eq!(applied, tree(expected), "{patch}");
    }

    const BEFORE: &[Entry<'_>] = &[
        ("a b/\u{fc}.txt", b"1\n2\n3\n4\n5\n6\n7\n8", Kind::Plain),
        ("cr", b"a\rb\nc\r\n", Kind::Plain),
        ("gone", b"x\n", Kind::Plain),
        ("gone-empty", b"", Kind::Plain),
        ("run", b"#!/bin/sh\n", Kind::Plain),
        ("same", b"s\n", Kind::Plain),
    ];
    const AFTER: &[Entry<'_>] = &[
        (
            "a b/\u{fc}.txt",
            b"1\n2\n3\nfour\n5\n6\n7\neight",
            Kind::Plain,
        ),
        ("cr", b"a\rB\nc\r\nd\r", Kind::Plain),
        ("new/empty", b"", Kind::Plain),
        ("new/tail", b"no end", Kind::Plain),
        ("new/tool", b"#!/bin/sh\n", Kind::Executable),
        ("run", b"#!/bin/sh\n", Kind::Executable),
        ("same", b"s\n", Kind::Plain),
    ];

    #[cfg(unix)]
    #[test]
    fn git_applies_it() {
        check_apply(BEFORE, AFTER, AFTER);
        check_apply(AFTER, BEFORE, BEFORE);
    }

    #[cfg(unix)]
    #[test]
    fn git_applies_links_and_strange_names() {
        let before: &[Entry<'_>] = &[("l", b"x\n", Kind::Plain), ("q\"\t", b"1\n", Kind::Plain)];
        let after: &[Entry<'_>] = &[
            ("l", b"target", Kind::Link),
            ("m", b"l", Kind::Link),
            ("q\"\t", b"2\n", Kind::Plain),
        ];
        check_apply(before, after, after);
        check_apply(after, before, before);
    }

    #[cfg(unix)]
    #[test]
    fn git_applies_the_text_beside_binary_files() {
        let before: &[Entry<'_>] = &[("a", b"1\n", Kind::Plain), ("b", b"x\0", Kind::Plain)];
        let after: &[Entry<'_>] = &[
            ("a", b"2\n", Kind::Plain),
            ("b", b"y\0", Kind::Plain),
            ("e", b"", Kind::Plain),
        ];
        let applied: &[Entry<'_>] = &[
            ("a", b"2\n", Kind::Plain),
            ("b", b"x\0", Kind::Plain),
            ("e", b"", Kind::Plain),
        ];
        check_apply(before, after, applied);
    }
}
