//! Tests of the tree: operations as scripts, whole trees compared as listings.

use super::*;

/// Applies `script`, one operation a line, and compares the listing.
fn check(script: &str, expected: &str) {
    let mut tree = Tree::new(TreeLimits::default());
    let log = apply(&mut tree, script);
    assert_eq!(log + &listing(&tree), expected.trim_start_matches('\n'));
}

fn apply(tree: &mut Tree, script: &str) -> String {
    let mut log = String::new();
    for line in script.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let result = match words[..] {
            ["write", path, text] => tree.write(path, Content::from(text.as_bytes()), 1),
            ["put", path, text] => tree.write_with_parents(path, Content::from(text.as_bytes()), 1),
            ["append", path, text] => tree.append(path, text.as_bytes(), 1),
            ["mkdir", path] => tree.make_directory(path, 1),
            ["mkdirs", path] => tree.make_directories(path, 1),
            ["link", path, target] => tree.link(path, target, 1),
            ["rm", path] => tree.remove(path, 1),
            ["rmall", path] => tree.remove_all(path, 1),
            ["mv", from, to] => tree.rename(from, to, 1),
            ["chmod", path] => tree.set_mode(path, 0o755),
            ["resolve", path] => {
                log += &match tree.resolve(path, LastLink::Follow) {
                    Ok(path) => format!("-> {path}\n"),
                    Err(error) => format!("{line}: {error}\n"),
                };
                Ok(())
            }
            _ => panic!("unknown operation {line}"),
        };
        if let Err(error) = result {
            log += &format!("{line}: {error}\n");
        }
        assert_totals(tree);
    }
    log
}

fn listing(tree: &Tree) -> String {
    let mut text = String::new();
    tree.walk("/", u32::MAX, &mut |path, node| {
        text += &match &node.kind {
            NodeKind::File(content) => {
                format!("{path} {}\n", String::from_utf8_lossy(content.as_slice()))
            }
            NodeKind::Directory(_) => format!("{path}/\n"),
            NodeKind::Link(target) => format!("{path} -> {target}\n"),
        };
        true
    })
    .unwrap();
    text
}

/// The running totals must equal a full count after every operation.
fn assert_totals(tree: &Tree) {
    let (mut bytes, mut entries) = (0, 0);
    tree.walk("/", u32::MAX, &mut |_, node| {
        bytes += node.size();
        entries += 1;
        true
    })
    .unwrap();
    assert_eq!((tree.total_bytes(), tree.total_entries()), (bytes, entries));
}

#[test]
fn writes_replace_and_append() {
    check(
        "write /a one\nwrite /a two\nappend /a +\nappend /b new",
        "\na two+\nb new\n",
    );
}

#[test]
fn a_write_needs_its_parent() {
    check(
        "write /d/a x\nput /d/a x\nput /d/a/b x",
        "\nwrite /d/a x: no such file or directory\nput /d/a/b x: not a directory\nd/\nd/a x\n",
    );
}

#[test]
fn a_failed_write_with_parents_leaves_nothing() {
    let mut tree = Tree::new(TreeLimits {
        file_bytes: 3,
        ..TreeLimits::default()
    });
    let log = apply(&mut tree, "put /x/y/z four");
    assert_eq!(
        log,
        "put /x/y/z four: the sandbox limit on bytes of one file is 3\n"
    );
    assert_eq!(listing(&tree), "");
}

#[test]
fn names_list_in_byte_order_with_prefixes() {
    check(
        "put /a/b 1\nput /a-b 2\nput /a.c 3\nput /a0 4",
        "\na/\na/b 1\na-b 2\na.c 3\na0 4\n",
    );
}

#[test]
fn removal_spares_full_directories() {
    check(
        "put /d/a 1\nrm /d\nrmall /d\nrm /gone\nrmall /",
        "\nrm /d: directory not empty\nrm /gone: no such file or directory\nrmall /: the root cannot be removed\n",
    );
}

#[test]
fn renames_follow_posix() {
    check(
        "put /d/a 1\nput /e/b 2\nput /f 3\nmv /d /d/x\nmv /d /e\nmv /f /e\nmv /d /f\nmv /d /g\nmv /f /e/b\nmv /g /no/x",
        "
mv /d /d/x: a directory cannot move into itself
mv /d /e: directory not empty
mv /f /e: is a directory
mv /d /f: not a directory
mv /g /no/x: no such file or directory
e/
e/b 3
g/
g/a 1
",
    );
}

#[test]
fn a_rename_onto_an_empty_directory_replaces_it() {
    check("put /d/a 1\nmkdir /e\nmv /d /e", "\ne/\ne/a 1\n");
}

#[test]
fn links_resolve_inside_the_tree() {
    check(
        "put /d/a 1\nlink /l d\nlink /d/up ../../../d/a\nresolve /l/a\nresolve /l/up\nresolve /l/new/x\nlink /m /m\nresolve /m",
        "
-> /d/a
-> /d/a
-> /d/new/x
resolve /m: too many levels of symbolic links
d/
d/a 1
d/up -> ../../../d/a
l -> d
m -> /m
",
    );
}

#[test]
fn directories_nest_so_deep() {
    let mut tree = Tree::new(TreeLimits::default());
    let deep = |depth: usize| "/d".repeat(depth);
    let limit = Err(TreeError::Limit("directories within directories", 256));
    for depth in 1..=256 {
        assert_eq!(tree.make_directory(&deep(depth), 1), Ok(()));
    }
    assert_eq!(tree.make_directory(&deep(257), 1), limit);
    // Nor does moving a directory get around it.
    assert_eq!(tree.make_directory("/e", 1), Ok(()));
    assert_eq!(tree.rename("/d", "/e/d", 1), limit);
    assert_eq!(tree.rename("/d", "/f", 1), Ok(()));
    assert_eq!(tree.remove_all("/f", 1), Ok(()));
    assert_eq!(tree.total_entries(), 1);
}

#[test]
fn limits_name_themselves() {
    let mut tree = Tree::new(TreeLimits {
        total_bytes: 10,
        file_bytes: 8,
        entries: 3,
        path_bytes: 20,
    });
    let log = apply(
        &mut tree,
        "write /a 123456789\nwrite /a 12345678\nwrite /b 123\nappend /a 123\nwrite /b 12\nmkdir /c\nmkdir /d\nmv /a /cccccccccccccccccccccccccccc",
    );
    assert_eq!(
        log,
        "\
write /a 123456789: the sandbox limit on bytes of one file is 8
write /b 123: the sandbox limit on bytes of all files is 10
append /a 123: the sandbox limit on bytes of one file is 8
mkdir /d: the sandbox limit on number of files is 3
mv /a /cccccccccccccccccccccccccccc: the sandbox limit on bytes of one path is 20
"
    );
}

#[test]
fn a_snapshot_is_untouched_by_later_changes() {
    let mut tree = Tree::new(TreeLimits::default());
    apply(&mut tree, "put /d/a 1\nput /d/b 2");
    let snapshot = tree.clone();
    apply(&mut tree, "append /d/a +\nrm /d/b\nput /d/c 3");
    assert_eq!(listing(&snapshot), "d/\nd/a 1\nd/b 2\n");
    assert_eq!(listing(&tree), "d/\nd/a 1+\nd/c 3\n");
}

#[test]
fn changes_name_every_path_once_sorted() {
    let mut tree = Tree::new(TreeLimits::default());
    apply(
        &mut tree,
        "put /d/a 1\nput /d/b 2\nput /same/x 3\nput /was/dir 4\nwrite /was-file 5\nwrite /mode 6",
    );
    let old = tree.clone();
    apply(
        &mut tree,
        "write /d/a new\nrm /d/b\nput /d/n/c 3\nrmall /was\nwrite /was 1\nrm /was-file\nput /was-file/in 1\nchmod /mode\nwrite /same/x 3",
    );
    let found: Vec<String> = tree
        .changes_since(&old)
        .into_iter()
        .map(|change| format!("{:?} {}", change.kind, change.path))
        .collect();
    assert_eq!(
        found,
        [
            "Changed /d/a",
            "Removed /d/b",
            "Added /d/n",
            "Added /d/n/c",
            "Changed /mode",
            "Added /was",
            "Removed /was",
            "Added /was-file",
            "Removed /was-file",
            "Added /was-file/in",
            "Removed /was/dir",
        ]
    );
}

#[test]
fn contents_are_shared_until_they_grow() {
    let content = Content::from(vec![1, 2, 3]);
    let bytes = content.to_bytes();
    assert_eq!(bytes.as_ptr(), content.as_slice().as_ptr());
}
