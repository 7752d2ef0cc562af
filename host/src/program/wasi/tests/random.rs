//! Whatever a program does to its files: what the tree tells of it makes the
//! same of the files that were sent.

use super::*;
use crate::program::tree::Kind;

const NAMES: [&str; 9] = [
    "a", "b", "c", "a/x", "a/y", "b/x", "a/x/y", "b/x/y", "a/../b",
];
/// Where links lead.
const TARGETS: [&str; 5] = ["b", "../c", "/a", "x/y", "none"];

/// Numbers that follow from a seed (Knuth's linear congruence).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn path(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len())]
    }
}

/// Path and content of everything, targets of links; `None` for directories.
fn listed(tree: &Tree) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut left = vec![(String::new(), ROOT)];
    while let Some((path, id)) = left.pop() {
        let node = tree.get(id).expect("a node");
        match &node.kind {
            Kind::File(content) => all.insert(path, Some(content.as_slice().to_vec())),
            Kind::Link(target) => all.insert(path, Some(format!("-> {target}").into())),
            Kind::Device(_) => None,
            Kind::Directory(directory) => {
                let entries = directory.entries.iter();
                left.extend(entries.map(|(name, id)| (format!("{path}/{name}"), *id)));
                all.insert(path, None)
            }
        };
    }
    all
}

/// One random call; most are refused, as most of a program's mistakes are.
fn act(fixture: &mut Fixture, numbers: &mut Numbers, open: &mut Vec<u32>) {
    let path = numbers.path();
    let _ = match numbers.below(10) {
        0 | 1 => fixture.on_path(path, |system, guest, length| {
            system.path_create_directory(guest, 3, PATH, length)
        }),
        2 => fixture.on_path(path, |system, guest, length| {
            system.path_remove_directory(guest, 3, PATH, length)
        }),
        3 => fixture.on_path(path, |system, guest, length| {
            system.path_unlink_file(guest, 3, PATH, length)
        }),
        4 => fixture.rename(path, numbers.path()),
        5 => match open.pop() {
            Some(fd) => fixture.call(|system, guest| system.fd_close(guest, fd)),
            None => Ok(()),
        },
        6 | 7 => fixture.link(TARGETS[numbers.below(TARGETS.len())], path),
        _ => fixture.open(3, path, 1).and_then(|fd| {
            open.push(fd);
            let digits = numbers.below(1_000).to_string();
            fixture.write(fd, &digits).map(drop)
        }),
    };
}

#[test]
fn what_is_told_makes_the_same() {
    let files = [("/a/x", "1"), ("/b/x/y", "2"), ("/c", "3"), ("/b/z", "4")];
    let mut told = 0;
    for seed in 0..500 {
        let mut fixture = fixture(&files);
        let mut mirror = self::fixture(&files).system.end().0;
        let mut numbers = Numbers(seed);
        let mut open = Vec::new();
        // Several calls on one tree, as a sandbox makes them.
        for _ in 0..3 {
            for _ in 0..12 {
                act(&mut fixture, &mut numbers, &mut open);
            }
            let changes = fixture.system.tree.changes();
            fixture.system.tree.mark();
            told += changes.len();
            mirror.apply(changes, 1);
            assert_eq!(listed(&mirror), listed(&fixture.system.tree), "{seed}");
        }
    }
    assert!(told > 2_000, "only {told} changes");
}
