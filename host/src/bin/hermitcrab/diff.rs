//! Two trees as a unified diff in the form that `git apply` and `patch -p1` read.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use similar::{Algorithm, TextDiff};

use crate::archive::{File, Kind, Tree};

/// The diff from `before` to `after`; empty where nothing changed.
pub(crate) fn trees(before: &Tree, after: &Tree) -> String {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut diff = String::new();
    for path in paths {
        let (old, new) = (before.get(path), after.get(path));
        if old != new {
            // Writing to a String cannot fail.
            let _ = file(&mut diff, path, old, new);
        }
    }
    diff
}

/// Beyond this, a diff that is right but not the shortest is good enough.
const TIMEOUT: Duration = Duration::from_secs(2);

fn file(diff: &mut String, path: &str, old: Option<&File>, new: Option<&File>) -> std::fmt::Result {
    writeln!(diff, "diff --git a/{path} b/{path}")?;
    match (old.map(mode), new.map(mode)) {
        (None, Some(mode)) => writeln!(diff, "new file mode {mode}")?,
        (Some(mode), None) => writeln!(diff, "deleted file mode {mode}")?,
        (Some(old), Some(new)) if old != new => {
            writeln!(diff, "old mode {old}\nnew mode {new}")?;
        }
        _ => {}
    }
    let content = |file: Option<&File>| match file {
        None => Some(String::new()),
        Some(file) if file.content.contains(&0) => None,
        Some(file) => String::from_utf8(file.content.to_vec()).ok(),
    };
    let old_name = old.map_or("/dev/null".to_owned(), |_| format!("a/{path}"));
    let new_name = new.map_or("/dev/null".to_owned(), |_| format!("b/{path}"));
    match (content(old), content(new)) {
        (Some(old), Some(new)) if old == new => Ok(()),
        (Some(old), Some(new)) => {
            let lines = TextDiff::configure()
                .algorithm(Algorithm::Myers)
                .timeout(TIMEOUT)
                .diff_lines(&old, &new);
            let mut lines = lines.unified_diff();
            write!(
                diff,
                "{}",
                lines.context_radius(3).header(&old_name, &new_name)
            )
        }
        _ => writeln!(diff, "Binary files {old_name} and {new_name} differ"),
    }
}

fn mode(file: &File) -> &'static str {
    match file.kind {
        Kind::Plain => "100644",
        Kind::Executable => "100755",
        Kind::Link => "120000",
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    type Entry<'a> = (&'a str, &'a str, Kind);

    fn tree(files: &[Entry<'_>]) -> Tree {
        files
            .iter()
            .map(|(path, content, kind)| {
                let content = Bytes::copy_from_slice(content.as_bytes());
                (
                    (*path).to_owned(),
                    File {
                        content,
                        kind: *kind,
                    },
                )
            })
            .collect()
    }

    fn check(before: &[Entry<'_>], after: &[Entry<'_>], expected: &str) {
        assert_eq!(trees(&tree(before), &tree(after)), expected);
    }

    #[test]
    fn nothing_changed() {
        check(
            &[("a", "x\n", Kind::Plain)],
            &[("a", "x\n", Kind::Plain)],
            "",
        );
    }

    #[test]
    fn changed_line_without_final_newline() {
        check(
            &[("a", "1\n2\n3\n4\n5\n6", Kind::Plain)],
            &[("a", "1\n2\n3\n4\n5\nsix", Kind::Plain)],
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -3,4 +3,4 @@\n 3\n 4\n 5\n-6\n\\ No newline at end of file\n+six\n\\ No newline at end of file\n",
        );
    }

    #[test]
    fn new_and_deleted() {
        check(
            &[("b", "x\n", Kind::Executable)],
            &[("a/n", "y\n", Kind::Plain)],
            "diff --git a/a/n b/a/n\nnew file mode 100644\n--- /dev/null\n+++ b/a/n\n@@ -0,0 +1 @@\n+y\n\
             diff --git a/b b/b\ndeleted file mode 100755\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        );
    }

    #[test]
    fn mode_only_and_empty() {
        check(
            &[("a", "x\n", Kind::Plain)],
            &[("a", "x\n", Kind::Executable), ("e", "", Kind::Plain)],
            "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n\
             diff --git a/e b/e\nnew file mode 100644\n",
        );
    }

    #[test]
    fn binary() {
        check(
            &[],
            &[("a", "x\0", Kind::Plain)],
            "diff --git a/a b/a\nnew file mode 100644\nBinary files /dev/null and b/a differ\n",
        );
    }
}
