//! Archives in and out: what is kept, what is refused, and that a refusal changes
//! nothing.

use super::*;

fn sample() -> Tree {
    let mut tree = Tree::new(TreeLimits::default());
    let long = format!("w/{}/{}", "d".repeat(120), "f".repeat(120));
    for (path, content) in [
        ("/w/a.txt", "one"),
        ("/w/sub/b", "two"),
        (&*format!("/{long}"), "3"),
    ] {
        tree.write_with_parents(path, Content::from(content.as_bytes()), 5_000_000)
            .unwrap();
    }
    tree.link("/w/link", "sub/b", 5_000_000).unwrap();
    tree.make_directory("/w/empty", 5_000_000).unwrap();
    tree.set_mode("/w/a.txt", 0o755).unwrap();
    tree
}

#[test]
fn a_tree_survives_the_round_trip() {
    let tree = sample();
    let bytes = export_tar(&tree, "/w").unwrap();
    let mut copy = Tree::new(TreeLimits::default());
    copy.make_directory("/w", 0).unwrap();
    import_tar(&mut copy, "/w", &bytes, 9).unwrap();
    assert_eq!(copy.changes_since(&tree), []);
    assert_eq!(export_tar(&copy, "/w").unwrap(), bytes);
    assert_eq!(copy.get("/w/a.txt").unwrap().modified_us, 5_000_000);
}

#[test]
fn a_delta_leads_from_one_tree_to_another() {
    let old = sample();
    let mut new = old.clone();
    let now = 7_000_000;
    new.write("/w/a.txt", Content::from(&b"uno"[..]), now)
        .unwrap();
    new.write_with_parents("/tmp/x/y", Content::from(&b"\0\xff"[..]), now)
        .unwrap();
    // A link becomes a file, a file a directory, a directory a link.
    for path in ["/w/link", "/w/sub", "/w/empty"] {
        new.remove_all(path, now).unwrap();
    }
    new.write("/w/link", Content::from(&b"no link"[..]), now)
        .unwrap();
    new.make_directories("/w/sub/b", now).unwrap();
    new.link("/w/empty", "a.txt", now).unwrap();
    for (from, to) in [(&old, &new), (&new, &old), (&old, &old)] {
        let mut copy = from.clone();
        apply(&mut copy, &delta(to, from).unwrap(), now).unwrap();
        assert_eq!(copy.changes_since(to), []);
    }
    assert_eq!(delta(&old, &old).unwrap().removed, [""; 0]);
}

#[test]
fn a_delta_that_does_not_fit_changes_nothing() {
    let tree = sample();
    let mut copy = tree.clone();
    let broken = Delta {
        archive: vec![7; 600],
        removed: vec!["/w/a.txt".to_owned()],
    };
    assert!(apply(&mut copy, &broken, 1).is_err());
    assert!(copy.is_same(&tree));
}

#[test]
fn empty_directories_survive_the_round_trip() {
    let mut tree = Tree::new(TreeLimits::default());
    for directory in ["/w/empty", "/w/full/empty/inner", "/w/private"] {
        tree.make_directories(directory, 5_000_000).unwrap();
    }
    tree.set_mode("/w/private", 0o700).unwrap();
    let mut copy = Tree::new(TreeLimits::default());
    copy.make_directory("/w", 0).unwrap();
    import_tar(&mut copy, "/w", &export_tar(&tree, "/w").unwrap(), 9).unwrap();
    let mut found = Vec::new();
    copy.walk("/w", u32::MAX, &mut |path, node| {
        found.push((path.to_owned(), node.is_directory(), node.mode));
        true
    })
    .unwrap();
    let directory = |path: &str, mode| (path.to_owned(), true, mode);
    assert_eq!(
        found,
        [
            directory("empty", 0o755),
            directory("full", 0o755),
            directory("full/empty", 0o755),
            directory("full/empty/inner", 0o755),
            directory("private", 0o700),
        ]
    );
}

fn one_entry(name: &[u8], kind: tar::EntryType) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut good = tar::Header::new_gnu();
    good.set_size(2);
    good.set_mode(0o644);
    builder.append_data(&mut good, "good", &b"ok"[..]).unwrap();
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_size(0);
    header.set_mode(0o644);
    header.set_cksum();
    builder.append(&header, std::io::empty()).unwrap();
    builder.into_inner().unwrap()
}

fn check_refused(archive: &[u8], message: &str) {
    let mut tree = sample();
    let before = tree.clone();
    let error = import_tar(&mut tree, "/w", archive, 0).unwrap_err();
    assert_eq!(error.message, message);
    assert_eq!(tree.changes_since(&before), []);
}

#[test]
fn a_parent_reference_is_refused_and_nothing_changes() {
    check_refused(
        &one_entry(b"x/../../evil", tar::EntryType::Regular),
        "cannot take x/../../evil: its path holds ..",
    );
}

#[test]
fn an_absolute_path_is_refused() {
    check_refused(
        &one_entry(b"/etc/passwd", tar::EntryType::Regular),
        "cannot take /etc/passwd: its path is absolute",
    );
}

#[test]
fn a_device_is_refused() {
    check_refused(
        &one_entry(b"dev", tar::EntryType::Char),
        "cannot take dev: it is a device, which a sandbox cannot hold",
    );
    check_refused(
        &one_entry(b"pipe", tar::EntryType::Fifo),
        "cannot take pipe: it is a named pipe, which a sandbox cannot hold",
    );
    check_refused(
        &one_entry(b"label", tar::EntryType::new(b'V')),
        "cannot take label: it is of the type 'V', which a sandbox cannot hold",
    );
}

#[test]
fn a_name_that_is_not_utf8_is_named() {
    check_refused(
        &one_entry(b"bad\xff", tar::EntryType::Regular),
        "cannot take bad\u{fffd}: its name is not UTF-8",
    );
}

/// An entry: its kind, name, link target and content.
type Entry = (tar::EntryType, &'static str, &'static str, &'static str);

fn archive(entries: &[Entry], mtime: u64) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (kind, name, target, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(mtime);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if !target.is_empty() {
            header.set_link_name(target).unwrap();
        }
        header.set_cksum();
        builder.append(&header, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

/// What the entries come to: path with content, `-> target` or `/`.
fn check_taken(entries: &[Entry], expected: &[&str]) {
    let mut tree = Tree::new(TreeLimits::default());
    tree.make_directory("/w", 0).unwrap();
    import_tar(&mut tree, "/w", &archive(entries, 5), 9).unwrap();
    let mut found = Vec::new();
    tree.walk("/w", u32::MAX, &mut |path, node| {
        found.push(match &node.kind {
            NodeKind::File(content) => {
                format!("{path} {}", String::from_utf8_lossy(content.as_slice()))
            }
            NodeKind::Directory(_) => format!("{path}/"),
            NodeKind::Link(target) => format!("{path} -> {target}"),
        });
        true
    })
    .unwrap();
    assert_eq!(found, expected);
}

#[test]
fn later_entries_replace_earlier_ones() {
    use tar::EntryType::{Link, Regular, Symlink};
    check_taken(
        &[(Regular, "a", "", "one"), (Regular, "./a", "", "two")],
        &["a two"],
    );
    check_taken(
        &[(Symlink, "a", "/etc/passwd", ""), (Regular, "a", "", "two")],
        &["a two"],
    );
    check_taken(
        &[(Regular, "a", "", "one"), (Symlink, "a", "b", "")],
        &["a -> b"],
    );
    check_taken(
        &[
            (Regular, "a", "", "one"),
            (Symlink, "b", "../x", ""),
            (Link, "b", "a", ""),
        ],
        &["a one", "b one"],
    );
}

#[test]
fn hard_links_become_copies() {
    use tar::EntryType::{Link, Regular, Symlink};
    check_taken(
        &[
            (Regular, "a", "", "one"),
            (Symlink, "l", "a", ""),
            (Link, "c", "./a", ""),
            (Link, "d/m", "l", ""),
            (Link, "a", "a", ""),
        ],
        &["a one", "c one", "d/", "d/m -> a", "l -> a"],
    );
    check_refused(
        &archive(&[(Link, "b", "later", ""), (Regular, "later", "", "x")], 5),
        "cannot take b: it is a hard link to later, which is no file before it",
    );
    check_refused(
        &archive(&[(Link, "b", "../x", "")], 5),
        "cannot take ../x: its path holds ..",
    );
}

#[test]
fn an_old_directory_is_one() {
    check_taken(&[(tar::EntryType::Regular, "d/", "", "")], &["d/"]);
}

#[test]
fn a_time_out_of_range_is_now() {
    for (mtime, expected) in [(5, 5_000_000), (0, 9), (u64::MAX - 4, 9), (1 << 62, 9)] {
        let bytes = archive(&[(tar::EntryType::Regular, "a", "", "x")], mtime);
        let mut tree = Tree::new(TreeLimits::default());
        tree.make_directory("/w", 0).unwrap();
        import_tar(&mut tree, "/w", &bytes, 9).unwrap();
        assert_eq!(tree.get("/w/a").unwrap().modified_us, expected);
    }
}

/// Files of one second keep their order, and a directory the time that it had
/// before its files came.
#[test]
fn times_are_kept() {
    let mut tree = Tree::new(TreeLimits::default());
    let times = [
        ("/w/d", 9_000_007),
        ("/w/d/a", 5_000_001),
        ("/w/d/b", 5_999_999),
        ("/w/d/c", 6_000_000),
    ];
    for (path, _) in &times[1..] {
        tree.write_with_parents(path, Content::from(&b"x"[..]), 1)
            .unwrap();
    }
    for (path, time) in times {
        tree.set_modified(path, time).unwrap();
    }
    let bytes = export_tar(&tree, "/w").unwrap();
    let mut copy = Tree::new(TreeLimits::default());
    copy.make_directory("/w", 0).unwrap();
    import_tar(&mut copy, "/w", &bytes, 1).unwrap();
    let kept = times.map(|(path, _)| (path, copy.get(path).unwrap().modified_us));
    assert_eq!(kept, times);
    assert_eq!(export_tar(&copy, "/w").unwrap(), bytes);
}

#[test]
fn precise_times_of_other_writers() {
    for (mtime, expected) in [
        ("7.5", 7_500_000),
        ("7.123456789", 7_123_456),
        ("7", 7_000_000),
        ("-1.5", 3_000_000),
        ("7.x", 3_000_000),
    ] {
        let mut builder = tar::Builder::new(Vec::new());
        builder
            .append_pax_extensions([("mtime", mtime.as_bytes())])
            .unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_mtime(3);
        header.set_size(0);
        builder.append_data(&mut header, "a", &[][..]).unwrap();
        let mut tree = Tree::new(TreeLimits::default());
        tree.make_directory("/w", 0).unwrap();
        import_tar(&mut tree, "/w", &builder.into_inner().unwrap(), 9).unwrap();
        assert_eq!(tree.get("/w/a").unwrap().modified_us, expected, "{mtime}");
    }
}

/// As `tar --sparse --format=pax` writes it.
#[test]
fn a_sparse_file_in_pax_format_is_refused() {
    let mut builder = tar::Builder::new(Vec::new());
    let extensions = [("GNU.sparse.major", &b"1"[..]), ("GNU.sparse.name", b"s")];
    builder.append_pax_extensions(extensions).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_size(1);
    builder
        .append_data(&mut header, "GNUSparseFile.1/s", &b"0"[..])
        .unwrap();
    check_refused(
        &builder.into_inner().unwrap(),
        "cannot take GNUSparseFile.1/s: it is a sparse file in pax format; pack it without \
         --sparse or with --format=gnu",
    );
}

#[test]
fn garbage_is_refused() {
    let mut tree = sample();
    let error = import_tar(&mut tree, "/w", &[7; 1024], 0).unwrap_err();
    assert_eq!(error.kind, EnvironmentErrorKind::InvalidInput);
}

#[test]
fn a_truncated_archive_is_refused_whole() {
    let bytes = export_tar(&sample(), "/w").unwrap();
    for length in (0..bytes.len()).step_by(97) {
        let mut tree = Tree::new(TreeLimits::default());
        tree.make_directory("/w", 0).unwrap();
        let before = tree.clone();
        if import_tar(&mut tree, "/w", &bytes[..length], 0).is_err() {
            assert_eq!(tree.changes_since(&before), []);
        }
    }
}

#[test]
fn files_come_as_a_list() {
    let mut tree = Tree::new(TreeLimits::default());
    let files = vec![("./a/b".to_owned(), Bytes::from_static(b"x"))];
    import_files(&mut tree, "/w", files, 0).unwrap();
    assert_eq!(tree.read("/w/a/b").unwrap().as_slice(), b"x");
    let files = vec![
        ("c".to_owned(), Bytes::from_static(b"x")),
        ("../d".to_owned(), Bytes::from_static(b"x")),
    ];
    let error = import_files(&mut tree, "/w", files, 0).unwrap_err();
    assert_eq!(error.message, "cannot take ../d: its path holds ..");
    assert!(tree.get("/w/c").is_err());
}
