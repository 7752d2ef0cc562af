//! `run --save` and `run --restore`, from outside.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::fork::{bodies, hermitcrab};
use super::record::unpacked;
use super::{CANARY, Ran, command, finish, scratch, serve, shell};

fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Goes on with `saved` on a model that plays `steps`; what it was asked.
fn restore(saved: &str, steps: Value, more: &[&str]) -> (Ran, Vec<Vec<u8>>) {
    let model = serve(steps);
    let url = model.url();
    let mut all = vec!["run", "--restore", saved, "--quiet", "--base-url", &url];
    all.extend(more);
    let ran = hermitcrab(&all);
    (ran, bodies(&model))
}

#[test]
fn a_run_goes_on_in_another_process() {
    let directory = scratch();
    let work = directory.path().join("work");
    fs::create_dir(&work).expect("a directory");
    fs::write(work.join("a.txt"), "a\n").expect("a file");
    let (one, two) = (
        directory.path().join("1.tar"),
        directory.path().join("2.tar"),
    );
    let model = serve(json!([shell("echo b >> a.txt"), {"text": "done"}]));
    let options = [
        "--env",
        "memory",
        "--max-turns",
        "5",
        "--save",
        text(&one),
        "Begin.",
    ];
    let ran = finish(command(&model.url(), &work, &options), b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let saved = fs::read(&one).expect("a file");
    assert!(!String::from_utf8_lossy(&saved).contains(CANARY));
    let mode = fs::metadata(&one).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let steps = json!([shell("echo c >> a.txt; cat a.txt"), {"text": "went on"}]);
    let (ran, asked) = restore(text(&one), steps, &["--save", text(&two), "Go on."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("went on\n"), "{ran:?}");
    // The difference is that of this run alone.
    assert!(
        ran.stdout.contains("\n+c\n") && !ran.stdout.contains("\n+b\n"),
        "{ran:?}"
    );
    let first: Value = serde_json::from_slice(&bodies(&model)[1]).expect("JSON");
    let next: Value = serde_json::from_slice(&asked[0]).expect("JSON");
    assert_eq!(next["system"], first["system"]);
    assert_eq!(next["tools"], first["tools"]);
    let messages = |request: &Value| request["messages"].as_array().expect("messages").len();
    assert_eq!(messages(&next), messages(&first) + 2);
    assert!(String::from_utf8_lossy(&asked[1]).contains("a\\nb\\nc\\n"));

    // Answers are counted on: the limit of five was set in the first run.
    let two = text(&two).to_owned();
    let (ran, _) = restore(&two, json!([shell("true"), shell("true")]), &["More."]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let (ran, _) = restore(
        &two,
        json!([shell("true"), {"text": "ok"}]),
        &["--max-turns", "9", "More."],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Another provider has the conversation in its own words.
    let (ran, asked) = restore(
        &two,
        json!([{"text": "ok"}]),
        &["--provider", "openai", "More."],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        String::from_utf8_lossy(&asked[0]).contains("went on"),
        "{ran:?}"
    );
}

#[test]
fn a_restored_run_is_recorded_and_forked() {
    let directory = scratch();
    let (saved, log) = (
        directory.path().join("s.tar"),
        directory.path().join("log.gz"),
    );
    let model = serve(json!([{"text": "done"}]));
    let options = ["--env", "memory", "--save", text(&saved), "Begin."];
    let ran = finish(command(&model.url(), directory.path(), &options), b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let steps = json!([shell("echo a > a.txt"), {"text": "went on"}]);
    let (ran, asked) = restore(text(&saved), steps, &["--record", text(&log), "Go on."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = hermitcrab(&["replay", text(&log)]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let other = serve(json!([{"text": "other"}]));
    let arguments = [
        "fork",
        text(&log),
        "--at",
        "2",
        "--quiet",
        "--base-url",
        &other.url(),
    ];
    let ran = hermitcrab(&arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(bodies(&other), [asked[1].clone()]);
}

/// The core puts together what came in two deltas, and nobody else sees the whole.
#[test]
fn a_key_that_comes_in_pieces_is_in_no_file() {
    let directory = scratch();
    let saved = directory.path().join("s.tar");
    let log = directory.path().join("run.log.gz");
    let (one, two) = CANARY.split_at(CANARY.len() / 2);
    let model = serve(json!([shell("echo a > a.txt"), {"texts": [one, two]}]));
    let options = [
        "--env",
        "memory",
        "--record",
        text(&log),
        "--save",
        text(&saved),
        "Begin.",
    ];
    let ran = finish(command(&model.url(), directory.path(), &options), b"");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for told in [
        "the session is not saved to",
        "a key of the host's stands in what was said",
        "what came next holds a key of the host's",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {ran:?}");
    }
    assert!(!saved.exists());
    assert!(!unpacked(&log).contains(CANARY));
    // It ends before the step, like that of a run that was killed.
    let ran = hermitcrab(&["replay", text(&log), "--until", "1"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_local_run_goes_on_in_a_directory() {
    let directory = scratch();
    let saved = directory.path().join("s.tar");
    let work = directory.path().join("work");
    fs::create_dir(&work).expect("a directory");
    let model = serve(json!([shell("echo a > a.txt"), {"text": "done"}]));
    let ran = finish(
        command(&model.url(), &work, &["--save", text(&saved), "Begin."]),
        b"",
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let steps = json!([shell("cat a.txt"), {"text": "went on"}]);
    let (ran, asked) = restore(text(&saved), steps, &["--dir", text(&work), "Go on."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        String::from_utf8_lossy(&asked[1]).contains("\"a\\n"),
        "{ran:?}"
    );
}

#[test]
fn files_and_options_that_do_not_fit() {
    let directory = scratch();
    let at = |name: &str| {
        directory
            .path()
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    let (saved, local) = (at("s.tar"), at("l.tar"));
    for (file, place) in [(&saved, "memory"), (&local, "local")] {
        let model = serve(json!([{"text": "done"}]));
        let options = ["--env", place, "--save", file, "Begin."];
        let ran = finish(command(&model.url(), directory.path(), &options), b"");
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    fs::write(at("bad"), "nothing").expect("a file");
    let torn = fs::read(&saved).expect("a file");
    fs::write(at("torn"), &torn[..torn.len() / 3]).expect("a file");
    let name = b"tree.tar\0";
    let tree = torn.windows(name.len()).position(|window| window == name);
    let tree = tree.expect("a tree");
    fs::write(at("bare"), &torn[..tree]).expect("a file");
    // The checksum of its first entry.
    let mut bent = torn.clone();
    bent[tree + 512 + 148..][..6].copy_from_slice(b"000001");
    fs::write(at("bent"), &bent).expect("a file");
    let check = |arguments: &[&str], code: i32, message: &str| {
        let model = serve(json!([{"text": "done"}]));
        let url = model.url();
        let mut all = vec!["run", "--quiet", "--base-url", &url, "x"];
        all.extend(arguments);
        let ran = hermitcrab(&all);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains(message), "{ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
        assert!(model.requests().is_empty());
    };
    check(&["--restore", &at("none")], 2, "cannot read --restore");
    check(
        &["--restore", &at("bad")],
        2,
        "this is no saved session, or it is damaged",
    );
    check(
        &["--restore", &at("torn")],
        2,
        "this is no saved session, or it is damaged",
    );
    check(&["--restore", &saved, "--dir", "/"], 2, "leave --dir out");
    let local_env = ["--restore", &saved, "--env", "local"];
    check(&local_env, 2, "leave --env out");
    check(
        &["--restore", &local, "--env", "memory"],
        2,
        "leave --env out",
    );
    check(&["--save", &saved], 2, "name another file, or remove it");
    check(&["--restore", &at("bare")], 2, "its tree.tar is missing");
    let log = at("log.gz");
    check(
        &["--restore", &at("bent"), "--record", &log],
        2,
        "--restore ",
    );
    assert!(!fs::exists(&log).expect("a look"), "nothing has run");
    check(&["--save", &at("no/such")], 2, "--save ");
    check(&["--save", &at(&"x".repeat(256))], 2, "--save ");
    check(&["--save", &at("kept/")], 2, "not the name of a file");
    let same = "--restore and --out are the same file";
    check(&["--restore", &saved, "--out", &saved], 2, same);
    let new = at("same");
    let same = "--record and --save are the same file";
    check(&["--record", &new, "--save", &new], 2, same);
    let ran = hermitcrab(&["fork", &saved, "--at", "1", "--restore", &saved]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let long = at(&"x".repeat(255));
    let model = serve(json!([{"text": "done"}]));
    let options = ["--save", &long, "Begin."];
    let ran = finish(command(&model.url(), directory.path(), &options), b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(fs::metadata(&long).expect("a file").len() > 0);
    // A run that fails leaves no empty file.
    let model = serve(json!([{"error": {"status": 401}}]));
    let kept = at("kept.tar");
    let ran = finish(
        command(&model.url(), directory.path(), &["--save", &kept, "x"]),
        b"",
    );
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(!fs::exists(&kept).expect("a look"));
    let files = fs::read_dir(directory.path()).expect("a directory");
    let names = files.map(|file| file.expect("a file").file_name());
    let names: Vec<_> = names
        .filter(|name| name.as_encoded_bytes().starts_with(b"."))
        .collect();
    assert!(names.is_empty(), "{names:?}");
}
