//! Files that import each other in a circle have to be read together, so there are
//! none. A file imports another by a path that begins with `crate`, `super` or `self`;
//! what `mod.rs` hands on of its own children is no import.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Roots of crates; the files of the binary are one of their own.
const CRATES: [&str; 4] = ["src", "host/src", "host/src/bin/hermitcrab", "xtask/src"];

type Module = Vec<String>;

fn files(dir: &Path, below: &[String], found: &mut BTreeMap<Module, PathBuf>) {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut module = below.to_vec();
        if path.is_dir() {
            if name == "bin" {
                continue;
            }
            module.push(name.into_owned());
            files(&path, &module, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !name.contains("tests") {
            match &*name {
                "mod" => {}
                "lib" | "main" => continue,
                _ => module.push(name.into_owned()),
            }
            found.insert(module, path);
        }
    }
}

/// The paths of a `use`, written out.
fn write_out(before: &str, tree: &str, paths: &mut BTreeSet<String>) {
    let tree = tree.trim();
    let Some((start, list)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        paths.insert(format!("{before}{path}"));
        return;
    };
    let before = format!("{before}{start}");
    let list = list.trim_end().trim_end_matches('}');
    let (mut depth, mut from) = (0, 0);
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                write_out(&before, &list[from..at], paths);
                from = at + 1;
            }
            _ => {}
        }
    }
    write_out(&before, &list[from..], paths);
}

/// What the file of `module` imports of `all`.
fn imports(module: &Module, path: &Path, all: &BTreeMap<Module, PathBuf>) -> BTreeSet<Module> {
    let source = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let source = source.split("#[cfg(test)]\nmod tests").next();
    let lines = source.unwrap_or_default().lines();
    let code: Vec<&str> = lines
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join("\n");
    let mut paths = BTreeSet::new();
    let uses = Regex::new(r"\buse ((?:crate|super|self)\b[^;]*);").expect("a pattern");
    for found in uses.captures_iter(&code) {
        write_out("", &found[1], &mut paths);
    }
    let plain = Regex::new(r"\b(?:crate|super)(?:::\w+)+").expect("a pattern");
    paths.extend(
        plain
            .find_iter(&code)
            .map(|found| found.as_str().to_owned()),
    );
    let target = |path: &String| {
        let mut parts = path.split("::").map(str::trim).peekable();
        let mut place = match parts.next() {
            Some("self") => module.clone(),
            Some("super") => module[..module.len().saturating_sub(1)].to_vec(),
            _ => Vec::new(),
        };
        while parts.next_if_eq(&"super").is_some() {
            place.pop();
        }
        place.extend(parts.map(str::to_owned));
        // The longest beginning that is a module.
        (1..=place.len())
            .rev()
            .map(|length| place[..length].to_vec())
            .find(|place| all.contains_key(place))
    };
    let mut targets: BTreeSet<Module> = paths.iter().filter_map(target).collect();
    targets.remove(module);
    targets
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut circles = Vec::new();
    for root in CRATES {
        let mut all = BTreeMap::new();
        files(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(root),
            &[],
            &mut all,
        );
        assert!(all.len() > 10, "{root} has few files");
        let arrows: BTreeMap<&Module, BTreeSet<Module>> = all
            .iter()
            .map(|(module, path)| (module, imports(module, path, &all)))
            .collect();
        for (module, targets) in &arrows {
            for target in targets {
                // Whether the way leads back.
                let (mut seen, mut next) = (BTreeSet::new(), vec![target]);
                while let Some(at) = next.pop() {
                    if seen.insert(at) {
                        next.extend(&arrows[at]);
                    }
                }
                if seen.contains(*module) {
                    let (from, to) = (module.join("::"), target.join("::"));
                    circles.push(format!("{root}: {from} imports {to}"));
                }
            }
        }
    }
    assert!(circles.is_empty(), "circles:\n{}", circles.join("\n"));
}
