//! `fork` of logs and `replay --until`, from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hermitcrab_host::serve_model::ServeModel;
use serde_json::{Value, json};

use super::{CANARY, Ran, command, finish, scratch, serve, shell};

pub(super) fn hermitcrab(arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
    command
        .args(arguments)
        .env("ANTHROPIC_API_KEY", CANARY)
        .env("OPENAI_API_KEY", CANARY)
        .env_remove("ANTHROPIC_BASE_URL")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command, b"")
}

/// Bodies of the requests that a model has had, the older first.
pub(super) fn bodies(model: &ServeModel) -> Vec<Vec<u8>> {
    let requests = model.requests();
    requests
        .iter()
        .map(|request| request.body.to_vec())
        .collect()
}

/// A run of four rounds, each with two calls, in `directory/work`.
pub(super) struct Recorded {
    pub(super) log: PathBuf,
    pub(super) bodies: Vec<Vec<u8>>,
}

pub(super) fn recorded(directory: &Path, place: &[&str]) -> Recorded {
    let work = directory.join("work");
    fs::create_dir(&work).expect("a directory");
    fs::write(work.join("a.txt"), "a\n").expect("a file");
    let append = |n: u32| shell(&format!("echo {n} >> a.txt; cat a.txt"));
    let model = serve(json!([append(1), append(2), append(3), {"text": "done"}]));
    let log = directory.join("run.log.gz");
    let mut all = vec!["--record", log.to_str().expect("UTF-8")];
    all.extend(place);
    all.push("Count.");
    let ran = finish(command(&model.url(), &work, &all), b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let bodies = bodies(&model);
    Recorded { log, bodies }
}

/// Forks at `round` onto a model that answers with `steps`; what it was asked.
fn fork(log: &Path, round: u32, steps: Value, more: &[&str]) -> (Ran, Vec<Vec<u8>>) {
    let model = serve(steps);
    let (log, at, url) = (log.to_str().expect("UTF-8"), round.to_string(), model.url());
    let mut all = vec!["fork", log, "--at", &at, "--quiet", "--base-url", &url];
    all.extend(more);
    let ran = hermitcrab(&all);
    (ran, bodies(&model))
}

/// Bytes that both begin with.
pub(super) fn shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[test]
fn a_fork_asks_what_the_run_asked_there() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    for round in 0..=3 {
        let (ran, asked) = fork(&run.log, round, json!([{"text": "other"}]), &[]);
        let at = usize::try_from(round).expect("small");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.starts_with("other\n"), "{ran:?}");
        // To the byte: the provider has that prefix in its cache.
        assert_eq!(asked, [run.bodies[at].clone()], "round {round}");
    }
}

#[test]
fn what_the_model_is_told_comes_behind_the_same_history() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    for option in [&["--steer", "Use tabs."][..], &["Use tabs."]] {
        let (ran, asked) = fork(&run.log, 2, json!([{"text": "other"}]), option);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let [asked] = &asked[..] else {
            panic!("{} requests", asked.len())
        };
        let text = String::from_utf8_lossy(asked);
        assert!(text.contains("Use tabs."), "{text}");
        // All up to the end of the results of round 2, cache marks aside.
        let request: Value = serde_json::from_slice(asked).expect("JSON");
        let old: Value = serde_json::from_slice(&run.bodies[2]).expect("JSON");
        assert_eq!(request["system"], old["system"]);
        assert_eq!(request["tools"], old["tools"]);
        let before = run.bodies[1].len() * 9 / 10;
        assert!(shared(asked, &run.bodies[2]) > before, "{text}");
    }
}

#[test]
fn the_files_are_those_of_that_round() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let look = json!([shell("cat a.txt; cat b.txt"), {"text": "seen"}]);
    let b = directory.path().join("b");
    fs::write(&b, "edited\n").expect("a file");
    let edit = format!("b.txt={}", b.display());
    for (round, content) in [(0, "a\n"), (1, "a\n1\n"), (3, "a\n1\n2\n3\n")] {
        let (ran, asked) = fork(&run.log, round, look.clone(), &["--edit", &edit]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let result = String::from_utf8_lossy(&asked[1]).into_owned();
        let seen = format!("{content}edited\n").replace('\n', "\\n");
        assert!(result.contains(&seen), "round {round}: {result}");
        // The result is compared with the files at the round, before the edit.
        assert!(ran.stdout.contains("+edited"), "{ran:?}");
        assert!(!ran.stdout.contains("\n+1\n"), "{ran:?}");
    }
}

#[test]
fn settings_change_with_a_fork() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let done = json!([{"text": "other"}]);
    let (ran, asked) = fork(&run.log, 2, done.clone(), &["--model", "claude-opus-4-6"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let request: Value = serde_json::from_slice(&asked[0]).expect("JSON");
    assert_eq!(request["model"], "claude-opus-4-6");
    let (ran, _) = fork(&run.log, 2, done.clone(), &["--max-turns", "2"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    // Another provider has the conversation in its own words.
    let (ran, asked) = fork(&run.log, 2, done, &["--provider", "openai"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let request: Value = serde_json::from_slice(&asked[0]).expect("JSON");
    let calls = request["input"].as_array().expect("items").iter();
    let calls = calls.filter(|item| item["type"] == "function_call").count();
    assert_eq!(calls, 2, "{request}");
}

#[test]
fn the_log_of_a_fork_is_a_log() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let second = directory.path().join("fork.log.gz");
    let second = second.to_str().expect("UTF-8");
    let steps = json!([shell("echo fork >> a.txt"), {"text": "other"}]);
    let (ran, _) = fork(&run.log, 1, steps, &["--record", second, "Go on."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let replayed = hermitcrab(&["replay", second]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let told = hermitcrab(&["replay", second, "--until", "3"]);
    let told: Value = serde_json::from_str(&told.stdout).expect("JSON");
    assert_eq!(told["files"]["a.txt"], "a\n1\nfork\n".len());
    let many = hermitcrab(&["replay", directory.path().to_str().expect("UTF-8")]);
    assert_eq!(
        (many.code, &*many.stdout),
        (Some(0), "0 of 2 logs depart\n")
    );
}

#[test]
fn a_local_run_goes_on_with_its_history() {
    let directory = scratch();
    let run = recorded(directory.path(), &[]);
    let work = directory.path().join("work");
    let steps = json!([shell("cat a.txt"), {"text": "other"}]);
    let (ran, asked) = fork(&run.log, 1, steps, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("as it is now"), "{ran:?}");
    assert_eq!(asked[0], run.bodies[1]);
    // Its files are the run's last ones.
    assert!(String::from_utf8_lossy(&asked[1]).contains("a\\n1\\n2\\n3"));
    fs::remove_dir_all(&work).expect("removed");
    let (ran, _) = fork(&run.log, 1, json!([{"text": "other"}]), &[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("which is not there"), "{ran:?}");
}

#[test]
fn a_round_shows_state_history_and_files() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let log = run.log.to_str().expect("UTF-8");
    let tree = directory.path().join("tree.tar");
    let tree = tree.to_str().expect("UTF-8");
    for (round, turns, bytes) in [("0", 1, 2), ("1", 3, 4), ("3", 7, 8), ("4", 8, 8)] {
        let told = hermitcrab(&["replay", log, "--until", round, "--out", tree]);
        assert_eq!(told.code, Some(0), "{told:?}");
        let told: Value = serde_json::from_str(&told.stdout).expect("JSON");
        assert_eq!(told["paused"], round != "4");
        assert_eq!(told["round"].to_string(), round);
        assert_eq!(told["files"]["a.txt"], bytes, "{told}");
        assert_eq!(
            told["history"].as_array().map(Vec::len),
            Some(turns),
            "{told}"
        );
        let mut archive = tar::Archive::new(fs::File::open(tree).expect("a file"));
        let entries = archive.entries().expect("entries");
        let sizes: Vec<u64> = entries
            .map(|entry| entry.expect("an entry").size())
            .collect();
        assert!(sizes.contains(&bytes), "{sizes:?}");
    }
    let beyond = hermitcrab(&["replay", log, "--until", "5"]);
    let why = "hermitcrab: the run has 4 rounds: name one of 0 to 4\n";
    assert_eq!(beyond, super::ran(2, "", why));
}

#[test]
fn what_does_not_fit_is_refused() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    for (arguments, expected) in [
        (&["--dir", "/tmp"][..], "--dir is that of the run"),
        (&["--edit", "a.txt"], "write PATH=FILE"),
        (&["--edit", "a.txt=/nowhere"], "cannot read /nowhere"),
        (&["--steer", " "], "the prompt is empty"),
        (
            &["--record", run.log.to_str().expect("UTF-8")],
            "name another file",
        ),
    ] {
        let (ran, asked) = fork(&run.log, 1, json!([{"text": "other"}]), arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{ran:?}");
        assert_eq!(asked.len(), 0);
    }
    let (ran, _) = fork(&run.log, 9, json!([{"text": "other"}]), &[]);
    assert!(ran.stderr.contains("the run has 4 rounds"), "{ran:?}");
    let (ran, _) = fork(&run.log, 4, json!([{"text": "other"}]), &[]);
    assert!(ran.stderr.contains("say what comes next"), "{ran:?}");
    let (ran, asked) = fork(&run.log, 4, json!([{"text": "other"}]), &["And now?"]);
    assert_eq!((ran.code, asked.len()), (Some(0), 1), "{ran:?}");
}
