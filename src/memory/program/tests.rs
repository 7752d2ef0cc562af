//! The changes that programs get, and what becomes of those that they return.

use bytes::Bytes;

use super::answer::{overtaken, overtaking, resolved, without_told};
use super::*;
use crate::memory::tree::{DIRECTORY_MODE, FILE_MODE};

fn tree_with(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::new(TreeLimits::default());
    for (path, content) in files {
        tree.write_with_parents(path, Content::from(content.as_bytes()), 1)
            .unwrap();
    }
    tree
}

fn file(path: &str, content: &'static [u8]) -> FileChange {
    FileChange::new(path, FileNode::File(Bytes::from_static(content)))
}

fn removed(path: &str) -> FileChange {
    FileChange::new(path, FileNode::Removed)
}

fn told(seen: &Seen, tree: &Tree) -> (Option<u64>, u64, Vec<String>) {
    let told = seen.tell("p", tree);
    let changes = told.changes.into_iter().map(|change| match change.node {
        FileNode::File(content) => {
            format!("{} = {}", change.path, String::from_utf8_lossy(&content))
        }
        FileNode::Directory => format!("{}/", change.path),
        FileNode::Link(target) => format!("{} -> {target}", change.path),
        FileNode::Removed => format!("{} removed", change.path),
    });
    (told.since, told.state, changes.collect())
}

fn known<const N: usize>(
    since: Option<u64>,
    state: u64,
    changes: [&str; N],
) -> (Option<u64>, u64, Vec<String>) {
    (since, state, changes.map(str::to_owned).to_vec())
}

#[test]
fn a_program_is_told_everything_once_and_then_changes() {
    let seen = Seen::default();
    let mut tree = tree_with(&[("/w/a", "1"), ("/w/b", "2")]);
    tree.link("/w/l", "a", 1).unwrap();
    assert_eq!(
        told(&seen, &tree),
        known(None, 1, ["/w/", "/w/a = 1", "/w/b = 2", "/w/l -> a"])
    );
    assert_eq!(told(&seen, &tree), known(Some(1), 2, []));
    tree.remove("/w/b", 1).unwrap();
    tree.make_directory("/w/b", 1).unwrap();
    tree.write("/w/a", Content::from(&b"3"[..]), 1).unwrap();
    assert_eq!(told(&seen, &tree), known(Some(2), 3, ["/w/a = 3", "/w/b/"]));
    seen.forget("p");
    let (since, _, changes) = told(&seen, &tree);
    assert_eq!((since, changes.len()), (None, 4));
}

#[test]
fn a_program_knows_its_own_changes_whatever_becomes_of_them() {
    let seen = Seen::default();
    let mut tree = tree_with(&[("/w/a", "1")]);
    let (_, state, _) = told(&seen, &tree);
    // Somebody else works on the tree while the program runs.
    tree.write("/w/a", Content::from(&b"2"[..]), 1).unwrap();
    let changes = vec![file("/w/kept", b"k"), file("/w/undone", b"u")];
    assert!(apply(&mut tree, changes.clone(), 2).is_empty());
    seen.changed("p", state, changes, 2);
    tree.remove("/w/undone", 3).unwrap();
    assert_eq!(
        told(&seen, &tree),
        known(Some(1), 2, ["/w/a = 2", "/w/undone removed"])
    );
}

#[test]
fn a_program_on_the_path_is_no_news() {
    let seen = Seen::default();
    let mut tree = tree_with(&[("/usr/local/bin/own", "1")]);
    put_on_path(&mut tree, "p", 1);
    put_on_path(&mut tree, "own", 1);
    put_on_path(&mut tree, "a/b", 1);
    assert_eq!(
        tree.read("/usr/local/bin/p").unwrap().as_slice(),
        b"#!/bin/sh\nexec p \"$@\"\n"
    );
    let told = told(&seen, &tree).2;
    assert_eq!(
        told,
        [
            "/usr/",
            "/usr/local/",
            "/usr/local/bin/",
            "/usr/local/bin/own = 1"
        ]
    );
}

#[test]
fn after_overlapping_calls_everything_is_told() {
    let seen = Seen::default();
    let tree = tree_with(&[("/w/a", "1")]);
    let (_, first, _) = told(&seen, &tree);
    let (_, second, _) = told(&seen, &tree);
    seen.changed("p", second, Vec::new(), 1);
    assert_eq!(told(&seen, &tree), known(Some(second), 3, []));
    seen.changed("p", first, vec![file("/w/b", b"2")], 1);
    assert_eq!(told(&seen, &tree), known(None, 4, ["/w/", "/w/a = 1"]));
}

#[test]
fn permission_bits_are_told_and_kept() {
    let seen = Seen::default();
    let mut tree = tree_with(&[("/w/run", "1"), ("/w/text", "2"), ("/w/kept", "3")]);
    tree.set_mode("/w/run", 0o755).unwrap();
    tree.set_mode("/w/kept", 0o700).unwrap();
    tree.link("/w/link", "run", 1).unwrap();
    let told = seen.tell("p", &tree);
    let modes = told.changes.iter().filter_map(|change| change.mode);
    // By path: the directory, kept, run, text; the link has none.
    assert_eq!(
        modes.collect::<Vec<_>>(),
        [DIRECTORY_MODE, 0o700, 0o755, FILE_MODE]
    );
    let with = |change: FileChange, mode| FileChange {
        mode: Some(mode),
        ..change
    };
    let changes = vec![
        removed("/w/run"),
        with(file("/w/moved", b"1"), 0o755),
        file("/w/kept", b"4"),
        with(file("/w/text", b"2"), 0o17_7600),
        file("/w/new", b"5"),
        with(FileChange::new("/w/dir", FileNode::Directory), 0o700),
        with(
            FileChange::new("/w/linked", FileNode::Link("text".into())),
            0o600,
        ),
    ];
    assert!(apply(&mut tree, changes.clone(), 2).is_empty());
    let modes = ["moved", "kept", "text", "new", "dir"].map(|name| {
        let node = tree.get(&format!("/w/{name}")).unwrap();
        (name, node.mode)
    });
    assert_eq!(
        modes,
        [
            ("moved", 0o755),
            ("kept", 0o700),
            ("text", 0o7600),
            ("new", FILE_MODE),
            ("dir", 0o700)
        ]
    );
    // The program knows them; what the shell changes is news.
    seen.changed("p", told.state, changes, 2);
    tree.remove("/w/link", 3).unwrap();
    tree.set_mode("/w/new", 0o755).unwrap();
    let told = seen.tell("p", &tree);
    let news = told
        .changes
        .iter()
        .map(|change| (&*change.path, change.mode));
    assert_eq!(
        news.collect::<Vec<_>>(),
        [("/w/link", None), ("/w/new", Some(0o755))]
    );
}

#[test]
fn permission_bits_that_a_program_was_told_are_not_set_again() {
    let mut told = tree_with(&[("/w/a", "1"), ("/w/b", "1")]);
    told.set_mode("/w/b", 0o755).unwrap();
    let with = |path, mode| FileChange {
        mode: Some(mode),
        ..file(path, b"2")
    };
    let changes = vec![
        with("/w/a", FILE_MODE),
        with("/w/b", FILE_MODE),
        with("/w/new", 0o755),
    ];
    let modes = without_told(&told, &told, changes).into_iter();
    assert_eq!(
        modes.map(|change| change.mode).collect::<Vec<_>>(),
        [None, Some(FILE_MODE), Some(0o755)]
    );
}

#[test]
fn a_content_that_a_program_was_told_takes_the_place_of_no_other() {
    let told = tree_with(&[("/w/a", "1"), ("/w/b", "1"), ("/w/gone", "1")]);
    let mut now = told.clone();
    for path in ["/w/a", "/w/b"] {
        now.write(path, Content::from(&b"theirs"[..]), 2).unwrap();
    }
    now.remove("/w/gone", 2).unwrap();
    let chmod = FileChange {
        mode: Some(0o755),
        ..file("/w/a", b"1")
    };
    let changes = vec![chmod, file("/w/b", b"2"), file("/w/gone", b"1")];
    let made = without_told(&told, &now, changes);
    assert_eq!(overtaken(&told, &now, &made), ["/w/b", "/w/gone"]);
    assert!(apply(&mut now, made, 3).is_empty());
    let file = |path| {
        let node = now.get(path).unwrap();
        (now.read(path).unwrap().as_slice(), node.mode)
    };
    assert_eq!(file("/w/a"), (&b"theirs"[..], 0o755));
    assert_eq!(file("/w/b"), (&b"2"[..], FILE_MODE));
    assert_eq!(file("/w/gone"), (&b"1"[..], FILE_MODE));
}

#[test]
fn links_are_told_as_links_and_come_back_as_such() {
    let link = |path: &str, target: &str| FileChange::new(path, FileNode::Link(target.into()));
    let seen = Seen::default();
    let mut tree = tree_with(&[("/w/a", "1"), ("/w/d/x", "2"), ("/w/full/x", "3")]);
    tree.link("/w/to-dir", "d", 1).unwrap();
    tree.link("/w/nowhere", "../none", 1).unwrap();
    let (_, state, changes) = told(&seen, &tree);
    assert!(changes.contains(&"/w/to-dir -> d".to_owned()));
    assert!(changes.contains(&"/w/nowhere -> ../none".to_owned()));
    // What a link leads to may change without it.
    tree.write("/w/d/x", Content::from(&b"4"[..]), 1).unwrap();
    assert_eq!(told(&seen, &tree).2, ["/w/d/x = 4"]);
    let changes = vec![
        removed("/w/nowhere"),
        file("/w/nowhere", b"a file"),
        link("/w/to-dir", "full"),
        link("/w/a", "d/x"),
        link("/w/full", "d"),
        link("/w/new/deep", "/w/d"),
        link("/w/d/x/y", "z"),
    ];
    assert_eq!(
        apply(&mut tree, changes.clone(), 2),
        ["/w/d/x/y: not a directory"]
    );
    seen.changed("p", state + 1, changes[..6].to_vec(), 2);
    assert_eq!(told(&seen, &tree).2, [""; 0]);
    assert_eq!(tree.read("/w/nowhere").unwrap().as_slice(), b"a file");
    let target = |path| match &tree.get(path).unwrap().kind {
        NodeKind::Link(target) => target.to_string(),
        other => panic!("{other:?}"),
    };
    let links = ["/w/to-dir", "/w/a", "/w/full", "/w/new/deep"].map(target);
    assert_eq!(links, ["full", "d/x", "d", "/w/d"]);
}

#[test]
fn files_are_written_through_links_that_the_program_knows() {
    let mut told = tree_with(&[
        ("/w/x", "1"),
        ("/w/y", "1"),
        ("/w/d/f", "1"),
        ("/w/e/f", "1"),
    ]);
    told.link("/w/known", "y", 1).unwrap();
    told.link("/w/way", "d", 1).unwrap();
    let mut now = told.clone();
    // Something else puts links where the program knows a file and a directory.
    now.remove("/w/x", 2).unwrap();
    now.link("/w/x", "y", 2).unwrap();
    now.remove_all("/w/d", 2).unwrap();
    now.link("/w/d", "e", 2).unwrap();
    let executable = FileChange {
        mode: Some(0o755),
        ..file("/w/x", b"mine")
    };
    let changes = resolved(
        &told,
        vec![
            executable,
            file("/w/known", b"through"),
            file("/w/way/g", b"lost"),
            removed("/w/way/f"),
            removed("/w/known"),
            file("/w/known", b"in its place"),
            file("/w/../y", b"bad"),
        ],
    );
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/w/x", "/w/y", "/w/d/g", "/w/d/f", "/w/known", "/w/known", "/w/../y"
        ]
    );
    assert_eq!(overtaken(&told, &now, &changes[..3]), ["/w/x"]);
    assert_eq!(
        apply(&mut now, changes, 3),
        [
            "/w/d/g: not a directory",
            "/w/../y: not an absolute path without .."
        ]
    );
    let read = |path| {
        (
            now.read(path).unwrap().as_slice(),
            now.get(path).unwrap().mode,
        )
    };
    assert_eq!(read("/w/x"), (&b"mine"[..], 0o755));
    assert_eq!(read("/w/y"), (&b"through"[..], FILE_MODE));
    assert_eq!(read("/w/e/f"), (&b"1"[..], FILE_MODE));
    assert_eq!(read("/w/known"), (&b"in its place"[..], FILE_MODE));
}

#[test]
fn links_are_overtaken_by_other_links() {
    let link = |path: &str, target: &str| FileChange::new(path, FileNode::Link(target.into()));
    let mut told = tree_with(&[("/w/d/x", "1")]);
    told.link("/w/l", "a", 1).unwrap();
    let mut now = told.clone();
    now.remove("/w/l", 2).unwrap();
    now.link("/w/l", "b", 2).unwrap();
    now.write("/w/d/x", Content::from(&b"2"[..]), 2).unwrap();
    let changes = [link("/w/l", "c"), link("/w/d", "c"), link("/w/other", "c")];
    assert_eq!(overtaken(&told, &now, &changes), ["/w/l", "/w/d"]);
    assert_eq!(
        overtaken(&told, &now, &[link("/w/l", "b")]),
        Vec::<&str>::new()
    );
}

#[test]
fn who_is_overtaken() {
    let told = tree_with(&[
        ("/w/both", "1"),
        ("/w/same", "1"),
        ("/w/mode", "1"),
        ("/w/gone", "1"),
        ("/w/mine", "1"),
        ("/w/d/x", "1"),
        ("/w/e/x", "1"),
        ("/w/linked", "1"),
    ]);
    let mut now = told.clone();
    now.link("/w/link", "linked", 2).unwrap();
    let put = |tree: &mut Tree, path: &str, text: &str| {
        tree.write_with_parents(path, Content::from(text.as_bytes()), 2)
            .unwrap();
    };
    put(&mut now, "/w/both", "theirs");
    put(&mut now, "/w/same", "alike");
    put(&mut now, "/w/new", "theirs");
    put(&mut now, "/w/d/theirs", "1");
    put(&mut now, "/w/linked", "theirs");
    put(&mut now, "/w/alone", "theirs");
    put(&mut now, "/w/dir", "a file");
    now.set_mode("/w/mode", 0o755).unwrap();
    now.remove("/w/gone", 2).unwrap();
    let changes = [
        removed("/w/e"),
        removed("/w/d"),
        removed("/w/gone"),
        FileChange::new("/w/dir", FileNode::Directory),
        FileChange::new("/w", FileNode::Directory),
        file("/w/both", b"mine"),
        file("/w/same", b"alike"),
        file("/w/mode", b"mine"),
        file("/w/mine", b"mine"),
        file("/w/new", b"mine"),
        file("/w/link", b"mine"),
    ];
    assert_eq!(
        overtaken(&told, &now, &changes),
        ["/w/d", "/w/dir", "/w/both", "/w/new", "/w/link"]
    );
    assert_eq!(
        overtaken(&told, &now, &[file("/w/gone", b"mine"), removed("/w/both")]),
        ["/w/gone", "/w/both"]
    );
    assert_eq!(overtaken(&now, &now, &changes), Vec::<&str>::new());
    // A link that is removed takes nothing from what it led to.
    let mut linked = told.clone();
    linked.link("/w/link", "linked", 1).unwrap();
    assert_eq!(
        overtaken(&linked, &now, &[removed("/w/link")]),
        Vec::<&str>::new()
    );
}

#[test]
fn what_is_said_of_the_overtaken() {
    assert_eq!(overtaking("p", &[]), None);
    assert_eq!(
        overtaking("p", &["/a", "/b", "/c", "/d", "/e"]).as_deref(),
        Some(
            "p: something else changed /a, /b, /c and 2 more while it ran; what p made of it has taken the place of that\n"
        )
    );
}

#[test]
fn changes_apply_in_order_and_bad_paths_are_named() {
    let mut tree = tree_with(&[("/w/a", "1"), ("/w/d/x", "2")]);
    let failures = apply(
        &mut tree,
        vec![
            file("/w/a", b"first"),
            file("/w/a", b"last"),
            file("/w/new/deep", b"n"),
            file("/w/d", b"now a file"),
            removed("/w/none"),
            file("relative", b"x"),
            file("/w/../etc/x", b"x"),
            removed("/"),
            FileChange::new("/w/l", FileNode::Link(String::new())),
        ],
        2,
    );
    assert_eq!(
        failures,
        [
            "relative: not an absolute path without ..",
            "/w/../etc/x: not an absolute path without ..",
            "/: the root cannot be removed",
            "/w/l: a link leads to a path, without a NUL character",
        ]
    );
    assert_eq!(tree.read("/w/a").unwrap().as_slice(), b"last");
    assert_eq!(tree.read("/w/new/deep").unwrap().as_slice(), b"n");
    assert_eq!(tree.read("/w/d").unwrap().as_slice(), b"now a file");
}
