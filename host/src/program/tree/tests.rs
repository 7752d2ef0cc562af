//! Trees: the changes that they get, what a program does, the changes that they give.

use bytes::Bytes;
use hermitcrab::environment::{FileChange, FileNode};

use super::*;

fn told(files: &[(&str, &str)]) -> Tree {
    told_with(files, Room::default())
}

fn told_with(files: &[(&str, &str)], room: Room) -> Tree {
    let mut tree = Tree::new(room);
    let changes = files.iter().map(|(path, content)| {
        let content = Bytes::copy_from_slice(content.as_bytes());
        FileChange::new(*path, FileNode::File(content))
    });
    tree.apply(changes.collect(), 1);
    tree.mount("/usr/lib/own.zip", Bytes::from_static(b"own"));
    tree.mount_device("/dev/null", Device::Null);
    tree.mark();
    tree
}

fn at(tree: &Tree, path: &str) -> Id {
    let names = path.split('/').filter(|name| !name.is_empty());
    names.fold(ROOT, |id, name| {
        tree.directory(id).expect("a directory").entries[name]
    })
}

fn directory() -> Kind {
    Kind::Directory(Directory::default())
}

fn file() -> Kind {
    Kind::File(Content::default())
}

/// What the tree tells, a line per change.
fn check<const N: usize>(tree: &mut Tree, expected: [&str; N]) {
    let lines: Vec<String> = tree
        .changes()
        .into_iter()
        .map(|change| match change.node {
            FileNode::File(content) => {
                format!("{} = {}", change.path, String::from_utf8_lossy(&content))
            }
            FileNode::Directory => format!("{}/", change.path),
            FileNode::Link(target) => format!("{} -> {target}", change.path),
            FileNode::Removed => format!("{} removed", change.path),
        })
        .collect();
    assert_eq!(lines, expected);
    tree.mark();
    assert!(tree.changes().is_empty(), "told once");
    tree.mark();
}

#[test]
fn nothing_changed() {
    check(&mut told(&[("/w/a", "1")]), []);
}

#[test]
fn writes_past_the_end_over_it_and_within() {
    let mut tree = told(&[("/w/a", "abc")]);
    let id = at(&tree, "/w/a");
    tree.write(id, 1, b"X", 2).expect("room");
    tree.write(id, 2, b"YZ", 2).expect("room");
    tree.write(id, 6, b"!", 2).expect("room");
    check(&mut tree, ["/w/a = aXYZ\0\0!"]);
    tree.resize(id, 2, 3).expect("room");
    tree.write(id, u64::MAX, b"", 3).expect("nothing to write");
    check(&mut tree, ["/w/a = aX"]);
}

#[test]
fn a_file_that_was_shared_is_written_to_again() {
    let mut tree = told(&[("/w/a", "abc")]);
    let id = at(&tree, "/w/a");
    tree.write(id, 0, b"1", 2).expect("room");
    let first = tree.changes();
    tree.mark();
    tree.write(id, 1, b"2", 2).expect("room");
    check(&mut tree, ["/w/a = 12c"]);
    assert_eq!(first[0].node, FileNode::File("1bc".into()));
}

#[test]
fn a_renamed_directory_is_removed_and_made() {
    let mut tree = told(&[("/w/old/a", "1"), ("/w/old/deep/b", "2"), ("/w/c", "3")]);
    let w = at(&tree, "/w");
    tree.rename((w, "old"), (w, "new"), 2).expect("room");
    check(
        &mut tree,
        [
            "/w/old removed",
            "/w/new/",
            "/w/new/a = 1",
            "/w/new/deep/",
            "/w/new/deep/b = 2",
        ],
    );
}

#[test]
fn kinds_change() {
    let mut tree = told(&[("/w/d/x", "1"), ("/w/f", "2")]);
    let w = at(&tree, "/w");
    tree.unlink(w, "d", 2);
    tree.create(w, "d", file(), 2).expect("room");
    tree.unlink(w, "f", 2);
    let f = tree.create(w, "f", directory(), 2).expect("room");
    tree.create(f, "y", file(), 2).expect("room");
    check(
        &mut tree,
        [
            "/w/d removed",
            "/w/f removed",
            "/w/d = ",
            "/w/f/",
            "/w/f/y = ",
        ],
    );
}

#[test]
fn a_directory_made_again_keeps_what_it_was_told() {
    let mut tree = told(&[("/w/d/a", "1"), ("/w/d/b", "2")]);
    let w = at(&tree, "/w");
    tree.unlink(w, "d", 2);
    let d = tree.create(w, "d", directory(), 2).expect("room");
    let a = tree.create(d, "a", file(), 2).expect("room");
    tree.write(a, 0, b"new", 2).expect("room");
    check(&mut tree, ["/w/d/b removed", "/w/d/a = new"]);
}

#[test]
fn links_are_told_as_links() {
    let link = |path: &str, target: &str| FileChange::new(path, FileNode::Link(target.into()));
    let mut tree = told(&[("/w/a", "1"), ("/w/d/x", "2")]);
    tree.apply(
        vec![link("/w/dir", "d"), link("/w/l", "a"), link("/w/m", "a")],
        1,
    );
    tree.mark();
    check(&mut tree, []);
    let w = at(&tree, "/w");
    for (name, kind) in [
        ("l", file()),
        ("m", Kind::Link("b".into())),
        ("a", Kind::Link("d".into())),
        ("d", Kind::Link("dir".into())),
    ] {
        tree.unlink(w, name, 2);
        tree.create(w, name, kind, 2).expect("room");
    }
    // A link in the place of another is sent alone, what is in that of
    // something else after its removal.
    check(
        &mut tree,
        [
            "/w/a removed",
            "/w/d removed",
            "/w/l removed",
            "/w/a -> d",
            "/w/d -> dir",
            "/w/l = ",
            "/w/m -> b",
        ],
    );
}

#[test]
fn permission_bits_go_where_a_node_goes() {
    let mut tree = Tree::new(Room::default());
    let with = |path: &str, node, mode| FileChange {
        path: path.to_owned(),
        node,
        mode: Some(mode),
    };
    let told = vec![
        with("/d", FileNode::Directory, 0o700),
        with("/d/x", FileNode::File("1".into()), 0o755),
        with("/e", FileNode::Directory, 0o755),
    ];
    tree.apply(told, 1);
    tree.mark();
    tree.rename((ROOT, "d"), (ROOT, "e"), 2).expect("room");
    let modes: Vec<(String, Option<u32>)> = tree
        .changes()
        .into_iter()
        .map(|change| (change.path, change.mode))
        .collect();
    let expected = [("/d", None), ("/e", Some(0o700)), ("/e/x", Some(0o755))];
    assert_eq!(modes, expected.map(|(path, mode)| (path.to_owned(), mode)));
}

#[test]
fn what_is_ours_is_never_told() {
    let mut tree = told(&[("/usr/bin/x", "1")]);
    tree.mount("/usr/lib/own.zip", Bytes::from_static(b"another"));
    let usr = at(&tree, "/usr");
    tree.create(usr, "mine", file(), 2).expect("room");
    check(&mut tree, ["/usr/mine = "]);
    tree.unlink(ROOT, "dev", 2);
    check(&mut tree, []);
}

#[test]
fn what_the_sandbox_removed_with_its_directory_stays_away() {
    let mut tree = told(&[("/d/e/a", "1"), ("/f/a", "2"), ("/k", "3")]);
    let removed = |path: &str| FileChange::new(path, FileNode::Removed);
    let file = |path: &str| FileChange::new(path, FileNode::File("new".into()));
    // In the order in which the core tells them: sorted by path.
    tree.apply(
        vec![
            removed("/d"),
            removed("/d/e"),
            removed("/d/e/a"),
            file("/f"),
            removed("/f/a"),
            removed("/none/at/all"),
        ],
        2,
    );
    let root = tree.directory(ROOT).expect("the root");
    let names: Vec<&str> = root.entries.keys().map(String::as_str).collect();
    assert_eq!(names, ["dev", "f", "k", "usr"]);
    assert!(tree.directory(at(&tree, "/f")).is_none(), "a file");
}

#[test]
fn what_was_made_and_removed_is_nothing() {
    let mut tree = told(&[]);
    tree.create(ROOT, "t", file(), 2).expect("room");
    tree.unlink(ROOT, "t", 2);
    check(&mut tree, []);
}

#[test]
fn an_open_file_outlives_its_name_and_takes_its_room_along() {
    let room = Room {
        bytes: 10,
        entries: 100,
    };
    let mut tree = told_with(&[], room);
    for _ in 0..5 {
        let id = tree.create(ROOT, "t", file(), 2).expect("room");
        tree.open(id);
        tree.write(id, 0, b"12345678", 2).expect("room");
        tree.unlink(ROOT, "t", 2);
        tree.write(id, 8, b"9", 2).expect("still there");
        assert_eq!(tree.write(id, 9, b"ab", 2), Err(TreeError::NoRoom));
        assert_eq!(tree.resize(id, u64::MAX, 2), Err(TreeError::NoRoom));
        tree.close(id);
        assert!(tree.get(id).is_none());
    }
    check(&mut tree, []);
}

#[test]
fn a_directory_that_was_removed_takes_nothing_any_more() {
    let mut tree = told(&[("/w/a", "1"), ("/d/b", "2")]);
    let w = at(&tree, "/w");
    tree.open(w);
    tree.unlink(ROOT, "w", 2);
    assert_eq!(tree.create(w, "x", file(), 2), Err(TreeError::Gone));
    let d = at(&tree, "/d");
    assert_eq!(tree.rename((d, "b"), (w, "b"), 2), Err(TreeError::Gone));
    tree.close(w);
    check(&mut tree, ["/w removed"]);
}

#[test]
fn entries_names_and_depth_are_bounded() {
    let room = Room {
        bytes: 10,
        entries: 300,
    };
    let mut tree = told_with(&[], room);
    let long = "n".repeat(NAME_BYTES + 1);
    assert_eq!(tree.create(ROOT, &long, file(), 2), Err(TreeError::TooLong));
    let mut at = ROOT;
    for _ in 0..DEPTH {
        at = tree.create(at, "d", directory(), 2).expect("room");
    }
    assert_eq!(
        tree.create(at, "d", directory(), 2),
        Err(TreeError::TooLong)
    );
    let e = tree.create(ROOT, "e", directory(), 2).expect("room");
    assert_eq!(
        tree.rename((ROOT, "d"), (e, "d"), 2),
        Err(TreeError::TooLong)
    );
    let mut made = 0;
    while tree.create(ROOT, &format!("f{made}"), file(), 2).is_ok() {
        made += 1;
    }
    assert_eq!(made, 300 - DEPTH - 1);
}

#[test]
fn a_directory_knows_what_it_holds() {
    let tree = told(&[("/a/b/c", "1")]);
    let (a, b) = (at(&tree, "/a"), at(&tree, "/a/b"));
    assert!(tree.holds(a, b) && tree.holds(a, a) && tree.holds(ROOT, b));
    assert!(!tree.holds(b, a));
}
