//! `docs/spec.md` against what it names: every box of the specification has
//! tests, and they are there.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

const DOCUMENT: &str = include_str!("../../docs/spec.md");

/// How many boxes each subsection of §9 has.
const BOXES: [(&str, usize); 11] = [
    ("9.1", 8),
    ("9.2", 6),
    ("9.3", 5),
    ("9.4", 6),
    ("9.5", 6),
    ("9.6", 4),
    ("9.7", 3),
    ("9.8", 6),
    ("9.9", 6),
    ("9.10", 4),
    ("9.11", 5),
];

fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn read(relative: &str) -> Option<String> {
    fs::read_to_string(path(relative)).ok()
}

/// A row of a table: what stands in code in its last cell is a test.
struct Row {
    section: &'static str,
    wanted: &'static str,
    tests: Vec<&'static str>,
}

fn rows() -> Vec<Row> {
    let mut section = "";
    let mut rows = Vec::new();
    for line in DOCUMENT.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.split(' ').next().unwrap_or_default();
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, wanted, _, tests, _] = cells[..] else {
            continue;
        };
        if wanted == "box" || wanted.starts_with("---") {
            continue;
        }
        let tests = tests.split('`').skip(1).step_by(2).collect();
        rows.push(Row {
            section,
            wanted,
            tests,
        });
    }
    rows
}

/// Whether `name` is a function of `source` that is run as a test.
fn is_rust_test(source: &str, name: &str) -> bool {
    let lines: Vec<_> = source.lines().map(str::trim).collect();
    let starts = [format!("fn {name}("), format!("async fn {name}(")];
    lines.iter().enumerate().any(|(index, line)| {
        let attributes = lines[..index].iter().rev();
        starts.iter().any(|start| line.starts_with(start))
            && attributes
                .take_while(|line| line.starts_with("#["))
                .any(|line| line.ends_with("test]"))
    })
}

/// Whether what `test` names is there; the forms stand in the document.
fn exists(test: &str) -> bool {
    let row = |file: &str, name: &str| {
        let table = read(file).and_then(|text| serde_json::from_str::<Value>(&text).ok());
        table.is_some_and(|table| table.get(name).is_some())
    };
    if let Some((file, name)) = test.split_once("::") {
        let Some(source) = read(file) else {
            return false;
        };
        return match file.ends_with(".mjs") {
            true => source.contains(&format!("\ntest(\"{name}\",")),
            false => is_rust_test(&source, name),
        };
    }
    match test.split('/').collect::<Vec<_>>()[..] {
        ["apply_patch", name] => row("tests/apply_patch/cases.json", name),
        ["llm", "retry", name] => row("tests/llm/retry.json", name),
        ["llm", "errors", adapter, name] => row(&format!("tests/llm/errors/{adapter}.json"), name),
        ["cases" | "contract", _] | ["llm", "requests" | "streams", _, _] => {
            path(&format!("tests/{test}.json")).is_file()
        }
        _ => false,
    }
}

#[test]
fn every_box_has_tests() {
    let rows = rows();
    for (section, boxes) in BOXES {
        let found = rows.iter().filter(|row| row.section == section).count();
        assert_eq!(found, boxes, "rows of {section}");
    }
    let mut missing = Vec::new();
    for Row {
        section,
        wanted,
        tests,
    } in &rows
    {
        if tests.is_empty() {
            missing.push(format!("{section} {wanted}: no test"));
        }
        for test in tests.iter().filter(|test| !exists(test)) {
            missing.push(format!("{section} {wanted}: {test} is not there"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The transcripts of the session cases are compared as a whole, so that a kind
/// of event that stands in one of them cannot go missing.
#[test]
fn every_kind_of_event_is_in_a_transcript() {
    let schema = read("docs/events.schema.json").expect("the schema of the events");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let kinds = schema["oneOf"].as_array().expect("kinds").iter();
    let kinds: Vec<_> = kinds
        .filter_map(|kind| kind["properties"]["kind"]["const"].as_str())
        .collect();
    assert!(kinds.contains(&"SESSION_START"), "{kinds:?}");
    let transcripts = fs::read_dir(path("tests/cases")).expect("cases");
    let transcripts: String = transcripts
        .map(|entry| entry.expect("directory entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .map(|path| fs::read_to_string(path).expect("a transcript"))
        .collect();
    let unseen: Vec<_> = kinds
        .iter()
        .filter(|kind| !transcripts.contains(&format!("{{\"kind\":\"{kind}\",")))
        .collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}
