//! `hermitcrab undo`, from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CANARY, Ran, finish, scratch, serve, shell};

struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        let root = scratch();
        fs::create_dir(root.path().join("work")).expect("a directory");
        fs::write(root.path().join("work/a.txt"), "a\n").expect("a file");
        Self { root }
    }

    fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.work().join(name)).ok()
    }

    fn call(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
        command
            .args(arguments)
            .current_dir(self.work())
            .env("HERMITCRAB_STATE_DIR", self.root.path().join("state"))
            .env("ANTHROPIC_API_KEY", CANARY)
            .env_remove("ANTHROPIC_BASE_URL")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        finish(command, b"")
    }

    fn run(&self, steps: Value, arguments: &[&str]) {
        let model = serve(steps);
        let url = model.url();
        let mut all = vec!["run", "--quiet", "--base-url", &url];
        all.extend(arguments);
        all.push("Go");
        let ran = self.call(&all);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }

    fn undo(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut all = vec!["undo"];
        all.extend(arguments);
        let ran = self.call(&all);
        (ran.code, ran.stdout, ran.stderr)
    }
}

fn write(name: &str, content: &str) -> Value {
    json!({"tool_calls": [{"name": "write_file",
        "arguments": {"file_path": name, "content": content}}]})
}

fn three_rounds() -> Value {
    json!([
        write("b.txt", "b\n"),
        shell("true"),
        shell("echo more >> a.txt; mkdir d; echo d > d/d"),
        {"text": "Done."},
    ])
}

/// Everything below `directory`, names and contents.
fn all_of(directory: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    let mut walk = ignore::WalkBuilder::new(directory);
    for entry in walk.standard_filters(false).build() {
        let entry = entry.expect("an entry");
        all.extend(entry.path().as_os_str().as_encoded_bytes());
        if entry.path().is_file() {
            all.extend(fs::read(entry.path()).expect("a file"));
        }
    }
    all
}

#[test]
fn what_is_kept_has_no_key() {
    let place = Place::new();
    let steps = json!([
        shell(&format!("echo {CANARY} > /dev/null; echo b > b.txt")),
        {"text": "Done."},
    ]);
    let model = serve(steps);
    let prompt = format!("Use {CANARY} now");
    let ran = place.call(&["run", "--base-url", &model.url(), &prompt]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let kept = all_of(&place.root.path().join("state"));
    let holds = |text: &str| kept.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!holds(CANARY));
    assert!(holds("Use [redacted] now"));
    assert!(holds("echo [redacted] > /dev/null"));
    assert_eq!(place.undo(&[]).0, Some(0));
    assert_eq!(place.text("b.txt"), None);
}

#[test]
fn rounds_are_listed_and_undone() {
    let place = Place::new();
    place.run(three_rounds(), &[]);
    assert_eq!(place.text("a.txt").as_deref(), Some("a\nmore\n"));
    let (code, list, _) = place.undo(&["--list"]);
    assert_eq!(code, Some(0));
    assert_eq!(
        list,
        "1  b.txt (file tools)\n\
         3  a.txt, d, d/d (`echo more >> a.txt; mkdir d; echo d > d/d`)\n"
    );
    let (code, stdout, _) = place.undo(&[]);
    assert_eq!((code, &*stdout), (Some(0), "a.txt\nd\nd/d\n"));
    assert_eq!(place.text("a.txt").as_deref(), Some("a\n"));
    assert!(!place.work().join("d").exists());
    assert_eq!(place.text("b.txt").as_deref(), Some("b\n"));
    let (code, _, stderr) = place.undo(&["--to", "3"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("something changed in round 1"), "{stderr}");
    assert_eq!(place.undo(&["--to", "1"]).0, Some(0));
    assert_eq!(place.text("b.txt"), None);
    let (code, _, stderr) = place.undo(&[]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("there is nothing to undo"), "{stderr}");
}

#[test]
fn what_was_changed_since_is_named_and_nothing_is_undone() {
    let place = Place::new();
    place.run(three_rounds(), &[]);
    fs::write(place.work().join("a.txt"), "mine\n").expect("a file");
    let (code, stdout, stderr) = place.undo(&[]);
    assert_eq!((code, &*stdout), (Some(1), ""));
    assert!(
        stderr.contains("\n  a.txt: it was changed since\n"),
        "{stderr}"
    );
    assert_eq!(place.text("d/d").as_deref(), Some("d\n"));
    let (code, stdout, stderr) = place.undo(&["--partly"]);
    assert_eq!((code, &*stdout), (Some(1), "d\nd/d\n"), "{stderr}");
    assert_eq!(place.text("a.txt").as_deref(), Some("mine\n"));
    assert_eq!(place.text("d/d"), None);
}

#[test]
fn a_session_that_goes_on_counts_on() {
    let place = Place::new();
    place.run(three_rounds(), &[]);
    place.run(
        json!([write("c.txt", "c\n"), {"text": "Done."}]),
        &["--continue"],
    );
    let (_, list, _) = place.undo(&["--list"]);
    let rounds: Vec<&str> = list.lines().map(|line| &line[..1]).collect();
    assert_eq!(rounds, ["1", "3", "5"], "{list}");
    assert_eq!(place.undo(&["--to", "2"]).0, Some(0));
    assert_eq!(place.text("c.txt"), None);
    assert_eq!(place.text("a.txt").as_deref(), Some("a\n"));
    assert_eq!(place.text("b.txt").as_deref(), Some("b\n"));
}

#[test]
fn nothing_is_noted_where_nobody_wants_it() {
    let place = Place::new();
    place.run(three_rounds(), &["--no-checkpoints"]);
    assert_eq!(place.undo(&[]).0, Some(2));
    assert!(!place.root.path().join("state/checkpoints").exists());
    // Without a journal there are checkpoints all the same.
    place.run(
        json!([shell("echo x > x"), {"text": "Done."}]),
        &["--no-journal"],
    );
    assert_eq!(place.undo(&[]).0, Some(0));
    assert_eq!(place.text("x"), None);
    // Where nothing changed nothing stays.
    place.run(json!([shell("true"), {"text": "Done."}]), &[]);
    let left = fs::read_dir(place.root.path().join("state/checkpoints")).expect("a directory");
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["undone"]);
    for arguments in [
        &["--to", "x"][..],
        &["--list", "--partly"],
        &["--dir", "nowhere"],
    ] {
        assert_eq!(place.undo(arguments).0, Some(2), "{arguments:?}");
    }
}

#[test]
fn a_round_or_session_that_is_not_there_is_named() {
    let place = Place::new();
    place.run(three_rounds(), &[]);
    let (code, _, stderr) = place.undo(&["--to", "99"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("nothing changed in that round"), "{stderr}");
    let (code, _, stderr) = place.undo(&["--session", "nope"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("no session nope is known"), "{stderr}");
}

#[test]
fn what_undoing_took_away_is_kept_until_the_session_is_deleted() {
    let place = Place::new();
    place.run(three_rounds(), &[]);
    let (code, _, stderr) = place.undo(&[]);
    assert_eq!(code, Some(0), "{stderr}");
    let (_, kept) = stderr
        .split_once("what was in them until now is in ")
        .expect("a place");
    let kept = PathBuf::from(kept.trim_end());
    assert!(kept.is_dir(), "{stderr}");
    let checkpoints = place.root.path().join("state/checkpoints");
    let names = || {
        let entries = fs::read_dir(&checkpoints).expect("checkpoints");
        entries
            .flatten()
            .map(|entry| entry.file_name())
            .collect::<Vec<_>>()
    };
    assert_eq!(names().len(), 2, "{:?}", names());
    let listed = place.call(&["sessions", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let id = listed[0]["id"].as_str().expect("an id");
    assert_eq!(place.call(&["sessions", "delete", id]).code, Some(0));
    assert!(!kept.exists());
    assert!(!checkpoints.join(id).exists());
}
