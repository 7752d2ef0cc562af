//! Logs: `run --record` and `replay`, from outside.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::{CANARY, Ran, command, finish, scratch, serve, shell};

fn replay(log: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
    command
        .arg("replay")
        .arg(log)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command, b"")
}

/// Steps that write, read, fail and run commands, with an attachment's worth of text.
fn steps() -> Value {
    let write = |path: &str, content: &str| {
        json!({"tool_calls": [{"name": "write_file",
            "arguments": {"file_path": path, "content": content}}]})
    };
    json!([
        write("a.txt", &"line\n".repeat(500)),
        shell("cat a.txt | wc -l; echo $RANDOM > b; ls nowhere"),
        {"text": "Looking.", "tool_calls": [{"name": "read_file", "arguments": {"file_path": "b"}}]},
        {"error": {"status": 429, "headers": {"retry-after": "0"}}},
        shell("sleep 2; date; cat b"),
        {"text": format!("done, and never {CANARY}")},
    ])
}

/// A run and its log; what it printed with `--json`.
fn recorded(directory: &Path, arguments: &[&str]) -> (PathBuf, String) {
    let log = directory.join("run.log.gz");
    let work = directory.join("work");
    fs::create_dir(&work).expect("a directory");
    let model = serve(steps());
    let mut all = vec!["--json", "--record", log.to_str().expect("UTF-8")];
    all.extend(arguments);
    all.push("go");
    let ran = finish(command(&model.url(), &work, &all), b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    (log, ran.stdout)
}

pub(super) fn unpacked(log: &Path) -> String {
    let mut text = String::new();
    let file = fs::File::open(log).expect("a log");
    MultiGzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("gzip");
    text
}

fn check(place: &[&str]) {
    let directory = scratch();
    let (log, events) = recorded(directory.path(), place);
    // Nothing of the run is there any more: no model, no files.
    fs::remove_dir_all(directory.path().join("work")).expect("removed");
    let replayed = replay(&log, &[]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert!(
        replayed
            .stdout
            .ends_with(" 5 answers of models: every event and effect is the same\n"),
        "{replayed:?}"
    );
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let again = lines(&replay(&log, &["--events"]).stdout);
    // The run also prints what becomes of its files.
    let events: Vec<_> = lines(&events)
        .into_iter()
        .filter(|line| line.contains("\"session_id\""))
        .collect();
    assert_eq!(again, events);
    let text = unpacked(&log);
    assert!(!text.contains(CANARY), "the log has the key");
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).expect("JSON");
        assert!(value["sum"].is_string(), "{line:.100}");
    }
}

#[test]
fn a_run_in_the_sandbox_is_replayed() {
    check(&["--env", "memory"]);
}

#[test]
fn a_run_on_this_machine_is_replayed() {
    check(&[]);
}

#[test]
fn what_the_core_would_not_do_is_shown_with_both_sides() {
    let directory = scratch();
    let (log, _) = recorded(directory.path(), &["--env", "memory"]);
    // Another answer of the model than the one that was recorded, with right sums.
    let text = unpacked(&log).replace("Looking.", "Listening");
    let mut sum = flate2::Crc::new();
    let mut lines = String::new();
    for line in text.lines() {
        let (line, _) = line.rsplit_once(",\"sum\":\"").expect("a sum");
        let line = match line.split_once(",\"output\":") {
            // The output stays as it is.
            Some((step, output)) => {
                format!(
                    "{step},\"output\":{}",
                    output.replace("Listening", "Looking.")
                )
            }
            None => line.to_owned(),
        };
        sum.update(line.as_bytes());
        lines.push_str(&format!("{line},\"sum\":\"{:08x}\"}}\n", sum.sum()));
    }
    let other = directory.path().join("other.gz");
    let mut file = GzEncoder::new(
        fs::File::create(&other).expect("a file"),
        Compression::fast(),
    );
    file.write_all(lines.as_bytes()).expect("written");
    file.finish().expect("written");
    let replayed = replay(&other, &[]);
    assert_eq!((replayed.code, &*replayed.stdout), (Some(1), ""));
    let Ran { stderr, .. } = replayed;
    assert!(
        stderr.contains("round 2: event")
            && stderr.contains("Looking.")
            && stderr.contains("Listening"),
        "{stderr}"
    );
}

#[test]
fn a_log_that_was_cut_counts_as_far_as_it_goes() {
    let directory = scratch();
    let (log, _) = recorded(directory.path(), &["--env", "memory"]);
    let whole = fs::read(&log).expect("a log");
    for length in [whole.len() - 1, whole.len() * 2 / 3, whole.len() / 3] {
        fs::write(&log, &whole[..length]).expect("written");
        let replayed = replay(&log, &[]);
        assert_eq!(
            (replayed.code, &*replayed.stderr),
            (Some(0), ""),
            "{length} bytes"
        );
        assert!(
            replayed.stdout.contains("ends in the middle"),
            "{replayed:?}"
        );
    }
}

#[test]
fn a_flipped_bit_is_found_or_changes_nothing() {
    let directory = scratch();
    let (log, _) = recorded(directory.path(), &["--env", "memory"]);
    let whole = fs::read(&log).expect("a log");
    let flipped = directory.path().join("flipped.gz");
    let text = |path: &Path| {
        let file = fs::File::open(path).expect("a file");
        let mut log = hermitcrab::log::LogReader::open(file).map_err(|error| error.to_string())?;
        let mut lines = Vec::new();
        loop {
            match log.read() {
                Ok(Some(line)) => lines.push(format!("{line:?}")),
                Ok(None) => return Ok((lines, log.is_closed())),
                Err(error) => return Err(error.to_string()),
            }
        }
    };
    let (lines, closed) = text(&log).expect("a log");
    assert!(closed);
    // Every bit of the first bytes and the last ones, and one in each byte between.
    let bits = (0..whole.len() * 8).filter(|bit| {
        let byte = bit / 8;
        byte < 64 || whole.len() - byte <= 64 || bit % 8 == byte % 8
    });
    let mut unseen = 0;
    for bit in bits {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&flipped, bytes).expect("written");
        match text(&flipped) {
            Err(error) => assert!(
                error.contains("is damaged: line ") || error.contains("is not a log"),
                "bit {bit}: {error}"
            ),
            // Padding between blocks, which says nothing; or a length that makes the
            // end look torn. What is read is what was written.
            Ok((read, _)) => {
                assert_eq!(lines[..read.len()], read[..], "bit {bit}");
                unseen += 1;
            }
        }
    }
    assert!(unseen < 200, "{unseen} of {} bits unseen", whole.len() * 8);
}

fn check_refused(content: &[u8], expected: &str) {
    let directory = scratch();
    let log = directory.path().join("log.gz");
    fs::write(&log, content).expect("written");
    let replayed = replay(&log, &[]);
    let told = format!("hermitcrab: {}: {expected}\n", log.display());
    assert_eq!(replayed, super::ran(2, "", &told));
}

#[test]
fn what_is_no_log_is_refused() {
    let gzip = |text: &str| {
        let mut sum = flate2::Crc::new();
        sum.update(text.as_bytes());
        let mut file = GzEncoder::new(Vec::new(), Compression::fast());
        writeln!(file, "{text},\"sum\":\"{:08x}\"}}", sum.sum()).expect("written");
        file.finish().expect("written")
    };
    let none = "this is not a log of a run; `hermitcrab run --record FILE` writes one";
    check_refused(b"", none);
    check_refused(b"no log", none);
    check_refused(&gzip("{\"a\":1"), none);
    check_refused(
        &gzip("{\"hermitcrab_log\":99"),
        "this is a log of version 99, and this program reads up to 2; use a newer hermitcrab",
    );
}

#[test]
fn a_log_never_replaces_a_file() {
    let directory = scratch();
    let old = directory.path().join("old");
    fs::write(&old, "mine").expect("written");
    let model = serve(json!([{"text": "done"}]));
    let path = old.to_str().expect("UTF-8");
    let ran = finish(
        command(&model.url(), directory.path(), &["--record", path, "go"]),
        b"",
    );
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("name another file, or remove it"),
        "{ran:?}"
    );
    assert_eq!(fs::read_to_string(&old).expect("a file"), "mine");
}

#[test]
fn texts_that_look_like_names_of_contents_come_back() {
    let directory = scratch();
    let log = directory.path().join("log.gz");
    let path = log.to_str().expect("UTF-8");
    let name = format!("content:{}", "0123456789abcdef".repeat(4));
    let model = serve(json!([{"text": name}]));
    let ran = finish(
        command(&model.url(), directory.path(), &["--record", path, &name]),
        b"",
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let replayed = super::fork::hermitcrab(&["replay", path]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}
