//! The checklist in `README.md`: every case has tests, and they exist.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{ADAPTERS, parse, path, read};

/// One line of the table.
struct Case {
    number: u32,
    adapters: Vec<String>,
    tests: Vec<String>,
}

fn cases() -> Vec<Case> {
    let readme = read("README.md");
    let lines = readme.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let number = cells.get(1)?.parse().ok()?;
        let adapters = match *cells.get(3)? {
            "all" => ADAPTERS.map(str::to_owned).to_vec(),
            some => some.split(' ').map(str::to_owned).collect(),
        };
        let tests = cells.get(4)?.split('`').map(str::trim);
        Some(Case {
            number,
            adapters,
            tests: tests
                .filter(|test| !test.is_empty())
                .map(str::to_owned)
                .collect(),
        })
    });
    lines.collect()
}

/// Whether `name` is a test in `file`, written out or as a line of a macro.
fn is_test(file: &str, name: &str) -> bool {
    let source = read(&format!("{file}.rs"));
    source.lines().any(|line| {
        let line = line.trim();
        line.starts_with(&format!("fn {name}("))
            || line == format!("{name},")
            || line.starts_with(&format!("{name} \""))
    })
}

fn exists(test: &str) -> bool {
    let in_table = |file: &str, row: &str| -> bool {
        let table: Value = parse(file);
        table.get(row).is_some()
    };
    if let Some((file, name)) = test.split_once("::") {
        return is_test(file, name);
    }
    let pieces: Vec<&str> = test.split('/').collect();
    match pieces.as_slice() {
        ["retry", row] => in_table("retry.json", row),
        ["errors", adapter, row] => in_table(&format!("errors/{adapter}.json"), row),
        // Every fixture of these two has a test, see `cases!`.
        ["requests" | "streams", ..] => path(&format!("{test}.json")).is_file(),
        ["cases", name] => path(&format!("../cases/{name}.json")).is_file(),
        _ => false,
    }
}

/// The adapters that a test covers.
fn covers(test: &str, adapter: &str) -> bool {
    let named = ADAPTERS
        .iter()
        .find(|known| test.split('/').any(|piece| piece == **known));
    named.is_none_or(|named| *named == adapter)
}

#[test]
fn every_case_has_tests() {
    let cases = cases();
    let numbers: Vec<u32> = cases.iter().map(|case| case.number).collect();
    assert_eq!(numbers, (1..=52).collect::<Vec<u32>>());
    let mut missing = BTreeSet::new();
    for case in &cases {
        assert!(!case.tests.is_empty(), "case {}", case.number);
        for test in case.tests.iter().filter(|test| !exists(test)) {
            missing.insert(format!("case {}: {test}", case.number));
        }
        for adapter in &case.adapters {
            let covered = case.tests.iter().any(|test| covers(test, adapter));
            if !covered {
                missing.insert(format!("case {}: nothing for {adapter}", case.number));
            }
        }
    }
    assert_eq!(missing, BTreeSet::new());
}
